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

    Many spans share a place: what is computed for each place is computed once.

    Shapes: ``at_start`` (n_starts, N_AT_START), ``at_end`` (n_ends, N_AT_END), ``of_both``
    (n, N_OF_BOTH) places in the hashed space; ``start`` and ``end`` (n,) rows of the first two.
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
        return HashedRows(at_start, at_end, self.of_both[chosen], start, end)

    def matrix(self) -> NDArray[np.int32]:
        """All columns of each span: (n, N_COLUMNS)."""
        parts = (self.at_start[self.start], self.at_end[self.end], self.of_both)
        return np.concatenate(parts, axis=1)

    def sums(self, table: NDArray[np.float32]) -> Floats:
        """Sum (n,) over the columns of each span of a table (N_HASHED,)."""
        starts, ends, both = (
            # Widened before the sum: the bits of a sum that widens on its way, in half the time.
            table.take(part, mode="clip").astype(np.float64).sum(axis=1)
            for part in (self.at_start, self.at_end, self.of_both)
        )
        return np.asarray(starts[self.start] + ends[self.end] + both)


def _used(rows: NDArray[np.int32], numbers: Ints) -> tuple[NDArray[np.int32], Ints]:
    """The rows with these numbers alone, where they are few, and their numbers among those."""
    if len(numbers) >= len(rows):
        return rows, numbers
    kept, inverse = distinct_below(len(rows), numbers)
    return rows[kept], inverse


def distinct_below(n: int, places: Ints) -> tuple[Ints, Ints]:
    """The distinct ones of places below n, ascending, and the number of each among them."""
    is_used = np.zeros(n, bool)
    is_used[places] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[places]
