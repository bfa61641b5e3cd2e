"""The Okapi BM25 of rank-bm25 0.2.2, operation by operation.

Scores are equal to the last bit: every expression below has rank-bm25's operations in rank-bm25's
order, with ``math.log`` where it uses that, and float64 throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.lexical.score_numpy import Codes, Postings

Floats = NDArray[np.float64]
Lengths = NDArray[np.int64]
Query = NDArray[np.int32]

#: Counts below this are looked up in a table.
_SMALL = 1 << 14


@dataclass(frozen=True, slots=True)
class Okapi:
    """BM25 with ATIRE's idf; terms in more than half of the rows get ``epsilon`` x the mean idf.

    Raises:
        UsageError: not k1 > 0, or b outside 0 ... 1: rank-bm25 would divide by zero, or prefer long
            rows.
    """

    k1: float = 1.5
    b: float = 0.75
    epsilon: float = 0.25

    def __post_init__(self) -> None:
        if not self.k1 > 0 or not 0 <= self.b <= 1:
            raise UsageError(f"BM25 needs k1 > 0 and 0 <= b <= 1, not k1 = {self.k1}, b = {self.b}")

    def idf(self, row_counts: Sequence[int], n_rows: int) -> list[float]:
        """By number of rows that hold a term; negative above half of the rows."""
        return [math.log(n_rows - each + 0.5) - math.log(each + 0.5) for each in row_counts]

    def lift_negative(self, idf: Floats, order: NDArray[np.int32]) -> None:
        """Lift negative idf, in place; ``order`` are the terms in any row by first appearance."""
        negative = np.flatnonzero(idf < 0)
        if len(negative):
            # rank-bm25 adds one by one; a pairwise or compensated sum has other last bits.
            sums = idf.take(order)
            np.add.accumulate(sums, out=sums)
            idf[negative] = self.epsilon * (float(sums[-1]) / len(order))

    def norms(self, lengths: Lengths, mean_length: float) -> Floats:
        """The part of a score's divisor that depends on the row's length, by row."""
        norms = self.k1 * (1 - self.b + self.b * lengths / mean_length)
        return np.asarray(norms, np.float64)

    def factors(self, frequencies: NDArray[np.integer], norms: Floats) -> Floats:
        """A term's score in a row divided by its idf, from its frequency and the row's norm."""
        factors: Floats = frequencies * (self.k1 + 1) / (frequencies + norms)
        return factors


class Statistics(NamedTuple):
    """Corpus figures.

    ``idf`` (n_terms,) float64 by term id, 0.0 for terms in no row; ``mean_length`` in terms.
    ``is_defined`` is False where rank-bm25 would divide by zero, in a corpus without rows or
    without terms: all scores are 0.0 then.
    """

    mean_length: float
    idf: Floats
    is_defined: bool


def compute_statistics(
    okapi: Okapi,
    row_counts: NDArray[np.int64],
    n_rows: int,
    n_tokens: int,
    order: NDArray[np.int32],
) -> Statistics:
    """Corpus figures.

    Args:
        okapi: the parameters.
        row_counts: (n_terms,) rows that hold each term, by term id.
        n_rows: rows, empty ones included.
        n_tokens: sum of the rows' lengths.
        order: ids of all terms in at least one row, by first appearance in the corpus.
    """
    if not n_rows or not len(order):
        return Statistics(0.0, np.zeros(len(row_counts)), is_defined=False)
    idf = _idf_by_term(okapi, row_counts, n_rows)
    okapi.lift_negative(idf, order)
    return Statistics(n_tokens / n_rows, idf, is_defined=True)


def _idf_by_term(okapi: Okapi, row_counts: NDArray[np.int64], n_rows: int) -> Floats:
    """One logarithm per distinct count; 0.0 for a term in no row."""
    # Nearly all counts are small, and a table of those few thousand stays in the core's own cache;
    # the frequent terms are looked up by a sort.
    frequent = np.flatnonzero(row_counts >= _SMALL)
    small = np.minimum(row_counts, _SMALL) if len(frequent) else row_counts
    distinct = np.flatnonzero(np.bincount(small, minlength=1)[:_SMALL])
    distinct = distinct[distinct > 0]
    by_count = np.zeros(_SMALL + 1)
    by_count[distinct] = okapi.idf(distinct.tolist(), n_rows)
    idf: Floats = by_count.take(small)
    if len(frequent):
        counts, numbers = np.unique(row_counts[frequent], return_inverse=True)
        idf[frequent] = np.array(okapi.idf(counts.tolist(), n_rows))[numbers]
    return idf


def score_fields(
    ids: NDArray[np.int32],
    lengths: Lengths,
    queries: Sequence[Query],
    okapi: Okapi,
    *,
    backend: Literal["numba", "numpy"] = "numpy",
) -> Floats:
    """Score every sentence of a document for many queries in one pass.

    The document is its own corpus: the scores are, to the last bit, those of a fresh rank-bm25 over
    its sentences.

    Args:
        ids: (n_tokens,) term ids of the sentences, laid end to end.
        lengths: (n_sentences,) terms per sentence.
        queries: term ids of each query; ids not in the document, such as -1, add nothing.
        okapi: the parameters.
        backend: whose kernels run.

    Returns:
        (n_queries, n_sentences) float64.
    """
    kernels = open_kernels(backend)
    lengths = np.asarray(lengths, np.int64)
    asked, bounds = join_queries(queries)
    scores = np.zeros((len(queries), len(lengths)))
    local, postings = kernels.number_terms(ids, lengths, asked)
    counts = np.diff(postings.pointers)
    order = np.arange(len(counts), dtype=np.int32)
    statistics = compute_statistics(okapi, counts, len(lengths), len(ids), order)
    if statistics.is_defined and len(asked):
        idf = np.where(local >= 0, statistics.idf.take(local, mode="clip"), 0.0)
        norms = okapi.norms(lengths, statistics.mean_length)
        factors = okapi.factors(postings.frequencies, norms[postings.rows])
        kernels.score_queries(scores, (local, idf, bounds), postings, factors)
    return scores


def join_queries(queries: Sequence[Query]) -> tuple[Query, NDArray[np.int64]]:
    """Term ids of queries laid end to end, and where each query begins: (n_queries + 1,)."""
    bounds = np.zeros(len(queries) + 1, np.int64)
    np.cumsum([len(query) for query in queries], out=bounds[1:])
    joined = np.concatenate([*queries, np.zeros(0, np.int32)]).astype(np.int32, copy=False)
    return joined, bounds


class Kernels(Protocol):
    """What ``score_numpy`` and ``score_numba`` both offer; they give the same bits."""

    def build_postings(self, ids: NDArray[np.int32], lengths: Lengths) -> Postings:
        """Where each term of the rows occurs."""

    def mark_pairs(
        self,
        is_used: NDArray[np.bool_],
        bases: NDArray[np.int32],
        rows: NDArray[np.int32],
        frequencies: NDArray[np.int32],
    ) -> None:
        """Mark, in place, the index ``bases[row] + frequency`` of every posting."""

    def read_codes(
        self,
        numbers: Codes,
        bases: NDArray[np.int32],
        rows: NDArray[np.int32],
        frequencies: NDArray[np.int32],
    ) -> Codes:
        """The number at every posting's index."""

    def add_scores(
        self,
        scores: Floats,
        postings: tuple[NDArray[np.int64], NDArray[np.int32], Codes],
        query: tuple[NDArray[np.int64], Floats],
        factors: Floats,
    ) -> None:
        """Add a query's scores to all rows of a segment, in place, term after term.

        ``postings`` are pointers, rows and codes; ``query`` is the index of each term in the
        pointers (-1: in no row) and its idf; ``factors`` are by code.
        """

    def number_terms(
        self, ids: NDArray[np.int32], lengths: Lengths, asked: Query
    ) -> tuple[NDArray[np.int32], Postings]:
        """A document's terms numbered by first appearance.

        Returns:
            the number of each asked term, -1 for those not in the document; the postings by number.
        """

    def score_queries(
        self,
        scores: Floats,
        queries: tuple[NDArray[np.int32], Floats, NDArray[np.int64]],
        postings: Postings,
        factors: Floats,
    ) -> None:
        """Score queries laid end to end: term numbers, their idf, and bounds; factors by posting.

        ``scores`` (n_queries, n_rows) are zeros, changed in place.
        """


def open_kernels(backend: Literal["numba", "numpy"]) -> Kernels:
    """The kernels of a backend; numba is imported only when it is asked for."""
    if backend == "numba":
        from featpipe.lexical import score_numba

        return score_numba
    from featpipe.lexical import score_numpy

    return score_numpy
