"""What BM25 knows of a corpus: how many rows hold each term, and how long rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.features.bm25.variants import Floats, Variant


#: Counts below this are looked up in a table.
_SMALL = 1 << 14


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
    idf = variant.floor(_idf_by_term(variant, row_counts, n_rows), order)
    return Statistics(n_rows, n_tokens / n_rows, idf, True, n_rows >= 3)


def _idf_by_term(variant: Variant, row_counts: NDArray[np.int64], n_rows: int) -> Floats:
    """One logarithm per distinct count; 0.0 for a term in no row."""
    # Nearly all counts are small, and a table of those few thousand stays in the core's own cache;
    # the frequent terms are looked up by a sort.
    frequent = np.flatnonzero(row_counts >= _SMALL)
    small = np.minimum(row_counts, _SMALL) if len(frequent) else row_counts
    distinct = np.flatnonzero(np.bincount(small, minlength=1)[:_SMALL])
    distinct = distinct[distinct > 0]
    by_count = np.zeros(_SMALL + 1)
    by_count[distinct] = variant.idf(distinct.tolist(), n_rows)
    idf: Floats = by_count.take(small)
    if len(frequent):
        counts, numbers = np.unique(row_counts[frequent], return_inverse=True)
        idf[frequent] = np.array(variant.idf(counts.tolist(), n_rows))[numbers]
    return idf
