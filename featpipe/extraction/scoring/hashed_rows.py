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
        return HashedRows(
            self.at_start, self.at_end, self.of_both[chosen], self.start[chosen], self.end[chosen]
        )

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
