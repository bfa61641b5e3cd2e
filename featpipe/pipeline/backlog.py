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

from featpipe.pipeline.messages import FeatureTask
from featpipe.pipeline.units import Units

if TYPE_CHECKING:
    from featpipe.pipeline.plan import Product

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
