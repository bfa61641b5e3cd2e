"""The queue of a build: units that lack a row, from the moment they are met until it is durable.

Guarantee: a text is handed out at most once per run and table, whatever document, level or worker
asks, and never when the cache holds its row.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.build.messages import TOGETHER, FeatureTask
from featpipe.build.plan import Product
from featpipe.cache.texts import Units, split_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from featpipe.build.intake import KnownUnits
    from featpipe.build.other_caches import FoundRows, OtherCaches
    from featpipe.build.plan import Plan
    from featpipe.cache.tables import Rows
    from featpipe.store import Reader

#: Seconds one task should take: long against a message (0.1 ms), short against a lost worker.
TASK_S = 2.0

_FIRST_BYTES = 24 << 10
_LEAST_BYTES = 6 << 10
_MOST_BYTES = 8 << 20

#: Tasks for each worker that are sorted together. A card's worker packs texts of any lengths
#: without loss and sorts a task itself, and a card must not wait: its queue is cut as soon as it
#: has a task for each.
_RESERVOIR = 8

#: Work after which a rate is known: seconds, or tasks where each is short.
_STEADY_S, _STEADY_TASKS = 6.0, 8

#: Cost of one more text, in bytes: its two special tokens, and its place in the bookkeeping.
_PER_TEXT = 8


class CopiedRows(NamedTuple):
    """Rows for a table, which another cache has."""

    table: str
    rows: Rows


class BuildQueue:
    """The units that the products of a plan lack, cut into tasks.

    Args:
        plan: with the tables to fill.
        reader: of the cache.
        others: whose rows are copied.

    """

    def __init__(self, plan: Plan, reader: Reader, others: OtherCaches | None = None) -> None:
        self._specs, self._others = plan.specs, others
        n_workers = {"encode": len(plan.devices), "count": 1}
        self._reader = reader
        self._states = {p.table: UnitStates(p, reader) for p in plan.products}
        can_wait = {"encode": set(plan.devices) <= {"cpu"}, "count": True}

        def queue_of(product: Product) -> UnitQueue:
            role = product.role
            return UnitQueue(product, n_workers[role], can_wait=can_wait[role])

        self._queues = {product.table: queue_of(product) for product in plan.products}
        self._together: tuple[str, ...] = ()
        if plan.is_together and plan.tagger is not None:
            self._together = (plan.encoder.table, plan.tagger.table)
            self._queues[TOGETHER] = queue_of(Product("encode", TOGETHER, 0))
        self.vectors = self._states[plan.encoder.table]

    @property
    def states(self) -> Iterable[UnitStates]:
        """One for each product."""
        return self._states.values()

    @property
    def n_bytes(self) -> int:
        """Cost of the units that wait for a worker."""
        return sum(queue.n_bytes for queue in self._queues.values())

    def add(self, units: Units | KnownUnits) -> list[CopiedRows]:
        """Queue what lacks a row; what lacks both rows of one trunk, in a queue of its own.

        Returns the rows that other caches have, to be written instead.
        """
        missing: dict[str, NDArray[np.intp]] = {}
        copied: list[CopiedRows] = []
        for table, states in self._states.items():
            rows = states.find_missing(self._reader, units.keys, units.levels)
            for found in self._find_elsewhere(table, units.keys[rows]):
                copied.append(CopiedRows(table, found.rows))
                states.take_over(len(found.places))
                rows = np.delete(rows, found.places)
            missing[table] = rows
        if self._together:
            first, second = self._together
            both = np.intersect1d(missing[first], missing[second], assume_unique=True)
            for table in self._together:
                missing[table] = np.setdiff1d(missing[table], both, assume_unique=True)
            missing[TOGETHER] = both
        for table, rows in missing.items():
            if len(rows):
                self._queues[table].add(units.take(rows))
        return copied

    def _find_elsewhere(self, table: str, keys: NDArray[np.uint8]) -> Iterable[FoundRows]:
        if self._others is None or not len(keys):
            return ()
        return self._others.find(table, self._specs[table], keys)

    def next_task(self, role: str, *, is_last: bool) -> FeatureTask | None:
        """The next task for a role; None when there is none, or when it pays to wait for more.

        ``is_last``: no more units will be added until some are handed out.
        """
        for queue in self._queues.values():
            task = queue.next_task(is_last=is_last) if queue.product.role == role else None
            if task is not None:
                return task
        return None

    def close_task(self, task: FeatureTask, seconds: float = 0.0) -> None:
        """A task was answered: well, after ``seconds`` of work, or not, after 0."""
        self._queues[task.table].close_task(task)
        self._queues[task.table].learn(task, seconds)

    def give_up(self, task: FeatureTask, reason: str) -> None:
        """The units of a task could not be computed; they are not tried again in this run."""
        for table in self._together if task.table == TOGETHER else (task.table,):
            self._states[table].give_up(task.units.keys, reason)

    def states_of(self, table: str) -> UnitStates:
        """Those of the units that get a row in ``table``."""
        return self._states[table]

    def seconds_left(self) -> float | None:
        """Of the role that has most to do; None while that is unknown."""
        by_role: defaultdict[str, float] = defaultdict(float)
        for queue in self._queues.values():
            seconds = queue.seconds_left()
            if seconds is None:
                return None
            by_role[queue.product.role] += seconds
        return max(by_role.values(), default=0.0)


class UnitStates:
    """For one table: which units are stored, under way, or failed.

    A key is under way from the moment it is handed out until the writer has acknowledged its row
    *and* the reader has seen it: at every instant one of the two knows it.

    ``n_hits + n_issued`` is the number of distinct texts met in this run: a text counts as a hit
    when the row was there before the run began.
    """

    def __init__(self, product: Product, reader: Reader) -> None:
        self.product = product
        self.n_hits = 0
        self.n_issued = 0
        self.n_stored = 0
        self.failed: dict[bytes, str] = {}
        self._under_way: set[bytes] = set()
        n_before = reader.table(product.table).n_rows if product.table in reader else 0
        self._is_counted = np.zeros(n_before, bool)

    def find_missing(
        self, reader: Reader, keys: NDArray[np.uint8], levels: NDArray[np.uint8]
    ) -> NDArray[np.intp]:
        """Positions of the units without a row that were not handed out yet.

        They are under way from here on. Shapes: ``keys`` (n, 16), distinct; ``levels`` (n,).
        """
        wanted = np.flatnonzero(levels & self.product.levels)
        if self.product.table in reader:
            rows = reader.table(self.product.table).find(keys[wanted])
            self._count_hits(rows)
            wanted = wanted[rows < 0]
        fresh = [
            at
            for at, key in zip(wanted.tolist(), split_keys(keys[wanted]), strict=True)
            if self._issue(key)
        ]
        return np.array(fresh, np.intp)

    def take_over(self, n: int) -> None:
        """So many of the units found missing are hits: another cache has their rows."""
        self.n_issued -= n
        self.n_hits += n

    def acknowledge(self, keys: NDArray[np.uint8], *, is_copied: bool = False) -> None:
        """Their rows are durable and the reader has been refreshed."""
        if not is_copied:
            self.n_stored += len(keys)
        self._under_way.difference_update(split_keys(keys))

    def give_up(self, keys: NDArray[np.uint8], reason: str) -> None:
        """They could not be computed; they are not tried again in this run."""
        for key in split_keys(keys):
            self._under_way.discard(key)
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
        if key in self._under_way or key in self.failed:
            return False
        self._under_way.add(key)
        self.n_issued += 1
        return True

    def _count_hits(self, rows: NDArray[np.int64]) -> None:
        # Rows beyond the first count were written by this run: they were issued, not hit.
        before = rows[(rows >= 0) & (rows < len(self._is_counted))]
        fresh = np.unique(before[~self._is_counted[before]])
        self._is_counted[fresh] = True
        self.n_hits += len(fresh)


class UnitQueue:
    """Units that wait for the workers of one product, cut into tasks of about equal cost.

    Units are collected over many documents, sorted by length, and cut by bytes rather than by
    count: texts of one length then share a batch, and every task takes about :data:`TASK_S` seconds
    whatever the model or device, because the bytes per task follow the measured rate. Vectors do
    not depend on how the cuts fall.

    Args:
        product: the table they lack.
        n_workers: how many share them.
        can_wait: whether the workers may, for a few tasks that are cut together.

    """

    def __init__(self, product: Product, n_workers: int, *, can_wait: bool = True) -> None:
        self.product = product
        self._can_wait = can_wait
        self.n_bytes = 0
        self._n_workers = n_workers
        self._parts: list[Units] = []
        self._part_bytes = 0
        self._tasks: deque[FeatureTask] = deque()
        self._task_bytes = float(_FIRST_BYTES)
        self._open_bytes = 0
        self._rate = 0.0
        self._n_answers = 0
        self._steady_s = 0.0

    def add(self, units: Units) -> None:
        """Units that must be computed."""
        if len(units):
            self._parts.append(units)
            cost = _cost(units)
            self._part_bytes += cost
            self.n_bytes += cost

    def next_task(self, *, is_last: bool) -> FeatureTask | None:
        """The next task, longest texts of the reservoir first; None when it pays to wait for more.

        ``is_last``: no more units will be added until some are handed out: what is there is shared
        out evenly.
        """
        if not self._tasks and self._parts:
            n_together = self._n_workers * (_RESERVOIR if self._can_wait else 1)
            if is_last or self._part_bytes >= self._task_bytes * n_together:
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
            self._steady_s += seconds
            self._rate = 0.8 * self._rate + 0.2 * rate if self._rate else rate

    def seconds_left(self) -> float | None:
        """Until all that was added is answered, at the rate measured; None while that is unknown.

        The first tasks after a model was loaded do not tell it yet: see `_STEADY_S`.
        What workers hold counts half: on average they are in the middle of it.
        """
        left = self.n_bytes + self._open_bytes / 2
        if left <= 0:
            return 0.0
        return left / (self._rate * self._n_workers) if self._is_steady else None

    @property
    def _is_steady(self) -> bool:
        """Whether the rate is known."""
        return (
            self._steady_s >= _STEADY_S * self._n_workers
            or self._n_answers >= (1 + _STEADY_TASKS) * self._n_workers
        )

    def _cut(self) -> None:
        units = Units.joined(self._parts)
        # A few tasks per worker at the end of a run, so that none works long after the others.
        share = self._part_bytes / (3 * self._n_workers)
        budget = max(min(self._task_bytes, share), _LEAST_BYTES)
        order = np.argsort(-units.texts.lengths, kind="stable")
        cost = np.cumsum(units.texts.lengths[order] + _PER_TEXT)
        cuts = np.flatnonzero(np.diff(cost // budget)) + 1
        tasks = np.split(order, cuts)
        # While the rate is learnt, no more than a reservoir: the rest is cut by a better one.
        most = len(tasks) if self._is_steady else _RESERVOIR * self._n_workers
        self._tasks.extend(
            FeatureTask(self.product.table, units.take(rows)) for rows in tasks[:most]
        )
        self._parts, self._part_bytes = [], 0
        if len(tasks) > most:
            rest = units.take(np.sort(np.concatenate(tasks[most:])))
            self._parts, self._part_bytes = [rest], _cost(rest)


def _cost(units: Units) -> int:
    return len(units.texts.values) + _PER_TEXT * len(units)
