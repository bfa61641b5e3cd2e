"""The ledger: what is stored, what is under way, and what must still be computed, for one table.

Guarantee: a text is handed out at most once per run, whatever document, level or worker asks, and
never when the cache holds it. A key is in flight from the moment it is handed out until the writer
has acknowledged its row *and* the reader has seen it: at no instant do both not know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.pipeline.plan import Product
    from featpipe.store import Reader


class Ledger:
    """Counts and dedups the units of one product.

    ``n_hits + n_issued`` is the number of distinct texts met in this run: a text counts as a hit
    when the row was there before the run began.
    """

    def __init__(self, product: Product, reader: Reader) -> None:
        self.product = product
        self.n_hits = 0
        self.n_issued = 0
        self.n_stored = 0
        self.failed: dict[bytes, str] = {}
        self._in_flight: set[bytes] = set()
        table = None
        if product.table in reader:
            table = reader.table(product.table)
        n_before = 0 if table is None else table.n_rows
        self._is_counted = np.zeros(n_before, bool)

    def find_missing(
        self, reader: Reader, keys: NDArray[np.uint8], levels: NDArray[np.uint8]
    ) -> NDArray[np.intp]:
        """Positions of the units that lack a row and that nobody was given yet.

        They are in flight from here on. Shapes: ``keys`` (n, 16), distinct; ``levels`` (n,).
        """
        wanted = np.flatnonzero(levels & self.product.levels)
        if self.product.table in reader:
            rows = reader.table(self.product.table).find(keys[wanted])
            self._count_hits(rows)
            wanted = wanted[rows < 0]
        fresh = [
            at
            for at, key in zip(wanted.tolist(), _as_bytes(keys[wanted]), strict=True)
            if self._issue(key)
        ]
        return np.array(fresh, np.intp)

    def acknowledge(self, keys: NDArray[np.uint8]) -> None:
        """Their rows are durable and the reader has been refreshed."""
        self.n_stored += len(keys)
        self._in_flight.difference_update(_as_bytes(keys))

    def give_up(self, keys: NDArray[np.uint8], reason: str) -> None:
        """They could not be computed; they are not tried again in this run."""
        for key in _as_bytes(keys):
            self._in_flight.discard(key)
            self.failed[key] = reason

    @property
    def n_unique(self) -> int:
        """Distinct texts met so far."""
        return self.n_hits + self.n_issued

    @property
    def n_waiting(self) -> int:
        """Distinct texts that were handed out and have no row yet."""
        return self.n_issued - self.n_stored - len(self.failed)

    def _issue(self, key: bytes) -> bool:
        if key in self._in_flight or key in self.failed:
            return False
        self._in_flight.add(key)
        self.n_issued += 1
        return True

    def _count_hits(self, rows: NDArray[np.int64]) -> None:
        # Rows beyond the first count were written by this run: they were issued, not hit.
        before = rows[(rows >= 0) & (rows < len(self._is_counted))]
        fresh = np.unique(before[~self._is_counted[before]])
        self._is_counted[fresh] = True
        self.n_hits += len(fresh)


def _as_bytes(keys: NDArray[np.uint8]) -> list[bytes]:
    whole = keys.tobytes()
    return [whole[at : at + 16] for at in range(0, len(whole), 16)]
