"""Hashed features of spans, kept by the places that spans begin and end at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class HashedRows:
    """Hashed columns of spans, by the place they begin at, the place they end at, and both.

    Many spans share a place: what is computed for each place is computed once. A column lies in
    one piece, so that columns are added up five times as fast as rows were.

    Shapes: ``at_start`` (N_AT_START, n_starts), ``at_end`` (N_AT_END, n_ends), ``of_both``
    (N_OF_BOTH, n) places in the hashed space; ``start`` and ``end`` (n,) numbers in the first two.
    """

    at_start: NDArray[np.int32]
    at_end: NDArray[np.int32]
    of_both: NDArray[np.int32]
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    def at(self, chosen: Ints | NDArray[np.bool_]) -> HashedRows:
        """Some of the spans."""
        at_start, start = _used(self.at_start, self.start[chosen])
        at_end, end = _used(self.at_end, self.end[chosen])
        return HashedRows(at_start, at_end, self.of_both[:, chosen], start, end)

    def matrix(self) -> NDArray[np.int32]:
        """All columns of each span: (n, N_COLUMNS)."""
        parts = (self.at_start[:, self.start], self.at_end[:, self.end], self.of_both)
        return np.ascontiguousarray(np.concatenate(parts).T)

    def sums(self, table: NDArray[np.float32]) -> Floats:
        """Sum (n,) over the columns of each span of a table (N_HASHED,)."""
        starts, ends, both = (
            np.add.reduce(table.take(part, mode="clip"), axis=0, dtype=np.float64)
            for part in (self.at_start, self.at_end, self.of_both)
        )
        return np.asarray(starts[self.start] + ends[self.end] + both)


def _used(columns: NDArray[np.int32], numbers: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Columns of these places alone, where they are few, and their numbers among those."""
    n = columns.shape[1]
    if len(numbers) >= n:
        return columns, numbers
    kept, inverse = distinct_below(n, numbers)
    return columns.take(kept, axis=1), inverse


def distinct_below(n: int, places: Ints) -> tuple[Ints, Ints]:
    """The distinct ones of places below n, ascending, and the number of each among them."""
    is_used = np.zeros(n, bool)
    is_used[places] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[places]
