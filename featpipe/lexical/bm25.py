"""The three BM25s of rank-bm25 0.2.2, operation by operation.

Equal to the last bit means the same operations in the same order, so every expression below is
written in rank-bm25's order, with ``math.log`` where it uses that and float64 throughout.
What differs from the papers, and from rank-bm25's unreleased repository, is kept: BM25L has an
extra factor of the term's frequency, and BM25+ takes one logarithm of a quotient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Lengths = NDArray[np.int64]


class Columns(NamedTuple):
    """A row's share of a score, tabled by (length, frequency) code; what remains is idf's part.

    Product form (``divisor`` empty): score = idf * factor. Quotient form, BM25L's:
    score = idf * factor * scale * numerator / divisor, from left to right.
    """

    factor: Floats
    numerator: Floats
    divisor: Floats


@dataclass(frozen=True, slots=True)
class Okapi:
    """BM25 with ATIRE's idf; terms in more than half of the rows get ``epsilon`` x the mean idf."""

    k1: float = 1.5
    b: float = 0.75
    epsilon: float = 0.25

    name = "okapi"
    delta = 0.0
    background = 0.0
    """What every row gets of each query term's idf, whether it holds the term or not."""

    def __post_init__(self) -> None:
        check_parameters(self.k1, self.b)

    @property
    def scale(self) -> float:
        """The factor between factor and numerator in quotient form."""
        return self.k1 + 1

    def idf(self, frequencies: Sequence[int], n_rows: int) -> list[float]:
        """By number of rows that hold a term, before the floor."""
        return [math.log(n_rows - each + 0.5) - math.log(each + 0.5) for each in frequencies]

    def floor(self, idf: Floats, order: NDArray[np.int32]) -> Floats:
        """Lift negative idf, in place; ``order`` are the terms in any row by first appearance."""
        negative = np.flatnonzero(idf < 0)
        if len(negative):
            # rank-bm25 adds one by one; a pairwise or compensated sum has other last bits.
            sums = idf.take(order)
            np.add.accumulate(sums, out=sums)
            idf[negative] = self.epsilon * (float(sums[-1]) / len(order))
        return idf

    def norms(self, lengths: Lengths, mean_length: float) -> Floats:
        """What a row's length does, by row."""
        norms = self.k1 * (1 - self.b + self.b * lengths / mean_length)
        return np.asarray(norms, np.float64)

    def columns(self, frequencies: Lengths, norms: Floats) -> Columns:
        """From a term's frequency (at least 1) in a row and the row's norm."""
        none = np.zeros(0)
        return Columns(frequencies * (self.k1 + 1) / (frequencies + norms), none, none)


@dataclass(frozen=True, slots=True)
class L:
    """BM25L as in rank-bm25 0.2.2, extra factor of the frequency included."""

    k1: float = 1.5
    b: float = 0.75
    delta: float = 0.5

    name = "l"
    background = 0.0

    def __post_init__(self) -> None:
        check_parameters(self.k1, self.b)

    @property
    def scale(self) -> float:
        """The factor between factor and numerator in quotient form."""
        return self.k1 + 1

    def idf(self, frequencies: Sequence[int], n_rows: int) -> list[float]:
        """By number of rows that hold a term."""
        return [math.log(n_rows + 1) - math.log(each + 0.5) for each in frequencies]

    def floor(self, idf: Floats, order: NDArray[np.int32]) -> Floats:  # noqa: ARG002  # one protocol
        """Nothing to lift: this idf is positive."""
        return idf

    def norms(self, lengths: Lengths, mean_length: float) -> Floats:
        """What a row's length does, by row."""
        norms = 1 - self.b + self.b * lengths / mean_length
        return np.asarray(norms, np.float64)

    def columns(self, frequencies: Lengths, norms: Floats) -> Columns:
        """From a term's frequency (at least 1) in a row and the row's norm."""
        scaled = frequencies / norms
        numerator, divisor = scaled + self.delta, self.k1 + scaled + self.delta
        return Columns(frequencies.astype(np.float64), numerator, divisor)


@dataclass(frozen=True, slots=True)
class Plus:
    """BM25+: every row gets ``delta`` of each query term's idf."""

    k1: float = 1.5
    b: float = 0.75
    delta: float = 1

    name = "plus"

    def __post_init__(self) -> None:
        check_parameters(self.k1, self.b)

    @property
    def background(self) -> float:
        """What every row gets of each query term's idf, whether it holds the term or not."""
        return self.delta

    @property
    def scale(self) -> float:
        """The factor between factor and numerator in quotient form."""
        return self.k1 + 1

    def idf(self, frequencies: Sequence[int], n_rows: int) -> list[float]:
        """By number of rows that hold a term."""
        return [math.log((n_rows + 1) / each) for each in frequencies]

    def floor(self, idf: Floats, order: NDArray[np.int32]) -> Floats:  # noqa: ARG002  # one protocol
        """Nothing to lift: this idf is positive."""
        return idf

    def norms(self, lengths: Lengths, mean_length: float) -> Floats:
        """What a row's length does, by row."""
        norms = self.k1 * (1 - self.b + self.b * lengths / mean_length)
        return np.asarray(norms, np.float64)

    def columns(self, frequencies: Lengths, norms: Floats) -> Columns:
        """From a term's frequency (at least 1) in a row and the row's norm."""
        none = np.zeros(0)
        factor = self.delta + (frequencies * (self.k1 + 1)) / (norms + frequencies)
        return Columns(factor, none, none)


Variant = Okapi | L | Plus


def check_parameters(k1: float, b: float) -> None:
    """Raises UsageError where rank-bm25 would divide by zero or turn lengths around."""
    if not k1 > 0 or not 0 <= b <= 1:
        raise UsageError(f"BM25 needs k1 > 0 and 0 <= b <= 1, not k1 = {k1}, b = {b}")


# What BM25 knows of a corpus: how many rows hold each term, and how long rows are.


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


# Many field queries against one document's sentences, in one pass: extraction's hot call.


def score_fields(
    ids: NDArray[np.int32],
    lengths: NDArray[np.int64],
    queries: Sequence[NDArray[np.int32]],
    variant: Variant,
    *,
    statistics: Statistics | None = None,
    backend: Literal["numba", "numpy"] = "numpy",
) -> Floats:
    """Score every sentence of a document for every query.

    With ``statistics=None`` the document is its own corpus and the scores are, to the last bit,
    those of a fresh rank-bm25 over its sentences. With a corpus's statistics the same sentences
    are scored by the corpus's idf and mean length, which is what a document of one or two
    sentences needs.

    Args:
        ids: (n_tokens,) term ids of the sentences, laid end to end.
        lengths: (n_sentences,) terms per sentence.
        queries: term ids of each query; -1 or any id not in the document adds nothing (BM25+ adds
            its background for terms the statistics know).
        variant: the BM25.
        statistics: of a corpus with the same term ids.
        backend: whose kernels run.

    Returns:
        (n_queries, n_sentences) float64.
    """
    if backend == "numba":
        from featpipe.lexical.score_numba import score_document
    else:
        from featpipe.lexical.score_numpy import score_document
    bounds = np.zeros(len(queries) + 1, np.int64)
    np.cumsum([len(query) for query in queries], out=bounds[1:])
    asked = np.concatenate([*queries, np.zeros(0, np.int32)]).astype(np.int32, copy=False)
    lengths = np.asarray(lengths, np.int64)
    scores: Floats = score_document(ids, lengths, asked, bounds, variant, statistics)
    return scores


def weigh_query(
    asked: NDArray[np.int32],
    local: NDArray[np.int64] | NDArray[np.int32],
    pointers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    variant: Variant,
    statistics: Statistics | None,
) -> tuple[Floats, Floats] | None:
    """Idf of each query token and norm of each sentence; None where every score is 0.0.

    ``local`` numbers the document's terms by first appearance, -1 for those not in it.
    """
    if statistics is None:
        counts = np.diff(pointers)
        order = np.arange(len(counts), dtype=np.int32)
        own = compute_statistics(variant, counts, len(lengths), int(lengths.sum()), order)
        if not own.is_defined:
            return None
        idf = np.where(local >= 0, own.idf.take(local, mode="clip"), 0.0)
        return idf, variant.norms(lengths, own.mean_length)
    if not statistics.is_defined:
        return None
    known = (asked >= 0) & (asked < len(statistics.idf))
    idf = np.where(known, statistics.idf.take(asked, mode="clip"), 0.0)
    return idf, variant.norms(lengths, statistics.mean_length)
