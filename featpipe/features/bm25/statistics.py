"""What BM25 knows of a corpus: how many rows hold each term, and how long rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.features.bm25.variants import Floats, Variant


class Statistics(NamedTuple):
    """Corpus figures for one variant.

    ``idf`` (n_terms,) float64 by term id, 0.0 for terms in no row; ``mean_length`` in terms.
    ``is_defined`` is False where rank-bm25 would divide by zero, in a corpus without rows or
    without terms: all scores are 0.0 then. ``is_telling`` is False below three rows, where idf
    says next to nothing (in a single row every known term counts against it).
    """

    n_rows: int
    mean_length: float
    idf: Floats
    is_defined: bool
    is_telling: bool


def compute_statistics(
    variant: Variant,
    row_counts: NDArray[np.int64],
    n_rows: int,
    n_tokens: int,
    order: NDArray[np.int32],
) -> Statistics:
    """Corpus figures.

    Args:
        variant: the BM25.
        row_counts: (n_terms,) rows that hold each term, by term id.
        n_rows: rows, empty ones included.
        n_tokens: sum of the rows' lengths.
        order: ids of all terms in at least one row, by first appearance in the corpus.
    """
    if not n_rows or not len(order):
        return Statistics(n_rows, 0.0, np.zeros(len(row_counts)), False, False)
    distinct = np.flatnonzero(np.bincount(row_counts))
    distinct = distinct[distinct > 0]  # a term in no row has no idf, and stays at 0.0
    by_count = np.zeros(int(distinct[-1]) + 1)
    by_count[distinct] = variant.idf(distinct.tolist(), n_rows)
    idf = variant.floor(by_count.take(row_counts), order)
    return Statistics(n_rows, n_tokens / n_rows, idf, True, n_rows >= 3)
