"""The backlog: units waiting for a device, cut into tasks of about equal cost.

Units are collected over many documents, sorted by length, and cut by bytes rather than by count:
texts of one length then share a batch, and every task takes about :data:`TASK_S` seconds whatever
the model or device, because the bytes per task follow the measured rate. Vectors do not depend on
how the cuts fall.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.messages import FeatureTask
from featpipe.cache.texts import Units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.build.plan import Product
    from featpipe.store import Reader

# The ledger: what is stored, what is under way, and what must still be computed, for one table.
#
# Guarantee: a text is handed out at most once per run, whatever document, level or worker asks, and
# never when the cache holds it. A key is in flight from the moment it is handed out until the
# writer
# has acknowledged its row *and* the reader has seen it: at no instant do both not know it.


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


#: Seconds one task should take: long against a message (0.1 ms), short against a lost worker.
TASK_S = 2.0

_FIRST_BYTES = 24 << 10
_LEAST_BYTES = 6 << 10
_MOST_BYTES = 8 << 20

#: Tasks that are sorted together.
_RESERVOIR = 8

#: Cost of one more text, in bytes: its two special tokens, and its place in the bookkeeping.
_PER_TEXT = 8


class Backlog:
    """Waiting units of one product.

    Args:
        product: the table they lack.
        n_workers: how many share them.

    """

    def __init__(self, product: Product, n_workers: int) -> None:
        self.product = product
        self.n_bytes = 0
        self._n_workers = n_workers
        self._parts: list[Units] = []
        self._part_bytes = 0
        self._tasks: deque[FeatureTask] = deque()
        self._task_bytes = float(_FIRST_BYTES)
        self._open_bytes = 0
        self._rate: float | None = None
        self._n_answers = 0

    def add(self, units: Units) -> None:
        """Units that must be computed."""
        if len(units):
            self._parts.append(units)
            cost = _cost(units)
            self._part_bytes += cost
            self.n_bytes += cost

    def next_task(self, *, is_last: bool) -> FeatureTask | None:
        """The next task, longest texts of the reservoir first; None when it pays to wait for more.

        ``is_last``: no more units will be added, so what is left is shared out evenly.
        """
        if not self._tasks and self._parts:
            enough = self._part_bytes >= self._task_bytes * _RESERVOIR * self._n_workers
            if enough or is_last:
                self._cut()
        if not self._tasks:
            return None
        task = self._tasks.popleft()
        cost = _cost(task.units)
        self.n_bytes -= cost
        self._open_bytes += cost
        return task

    def close_task(self, task: FeatureTask) -> None:
        """A task that was handed out has been answered, well or not."""
        self._open_bytes -= _cost(task.units)

    def learn(self, task: FeatureTask, seconds: float) -> None:
        """Follow the measured rate; the first task of each worker also paid for loading a model."""
        if seconds <= 0:
            return
        rate = _cost(task.units) / seconds
        smoothed = 0.5 * self._task_bytes + 0.5 * rate * TASK_S
        self._task_bytes = min(max(smoothed, _LEAST_BYTES), _MOST_BYTES)
        self._n_answers += 1
        if self._n_answers > self._n_workers:
            self._rate = rate if self._rate is None else 0.8 * self._rate + 0.2 * rate

    def seconds_left(self) -> float | None:
        """Until all that was added is answered, at the rate measured; None while that is unknown.

        What workers hold counts half: on average they are in the middle of it.
        """
        left = self.n_bytes + self._open_bytes / 2
        if left <= 0:
            return 0.0
        return left / (self._rate * self._n_workers) if self._rate else None

    def _cut(self) -> None:
        units = Units.joined(self._parts)
        # A few tasks per worker at the end of a run, so that none works long after the others.
        share = self._part_bytes / (3 * self._n_workers)
        budget = max(min(self._task_bytes, share), _LEAST_BYTES)
        order = np.argsort(-units.texts.lengths, kind="stable")
        cost = np.cumsum(units.texts.lengths[order] + _PER_TEXT)
        cuts = np.flatnonzero(np.diff(cost // budget)) + 1
        self._tasks.extend(
            FeatureTask(self.product.table, units.take(rows)) for rows in np.split(order, cuts)
        )
        self._parts, self._part_bytes = [], 0


def _cost(units: Units) -> int:
    return len(units.texts.values) + _PER_TEXT * len(units)
