"""The three BM25s of rank-bm25 0.2.2, operation by operation.

Equal to the last bit means the same operations in the same order, so every expression below is
written in rank-bm25's order, with ``math.log`` where it uses that and float64 throughout.
What differs from the papers, and from rank-bm25's unreleased repository, is kept: BM25L has an
extra factor of the term's frequency, and BM25+ takes one logarithm of a quotient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
