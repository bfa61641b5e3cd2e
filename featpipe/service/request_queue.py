"""The queue of a batcher: items in order of arrival, and which of them form the next batch.

It decides from its items and the time that is passed in. An idle worker gets the waiting items at
once. A batch that is made ahead, while all workers are busy, is due when it is full or when its
first item has waited for ``linger_s``.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Hashable, Sequence

    from featpipe.pool import Outcome
    from featpipe.service.tracing import Tracer


@dataclass(frozen=True, slots=True)
class BatcherLimits:
    """Bounds of the queue, with the items that workers have, and of a batch."""

    max_waiting: int
    max_waiting_weight: int
    max_batch: int
    max_batch_weight: int
    linger_s: float


@dataclass(slots=True, eq=False)
class Item:
    """One unit of work of one request. Times are those of the event loop, in seconds."""

    payload: object
    weight: int
    arrived: float
    future: asyncio.Future[object]
    group: Hashable
    n_repeats: int = 0
    """Times that it was queued again because its workers were lost."""
    sent: float | None = None
    """When it went to the pool last."""
    n_together: int = 0
    """Items of its batch."""
    outcome: Outcome | None = None
    """Of its batch, or of its part of a batch that was bisected."""

    def settle(self, answer: object) -> None:
        """Set its answer or its error, unless its request has ended."""
        if not self.future.done():
            self.future.set_result(answer)

    def record_spans(self, tracer: Tracer, name: str, now: float) -> None:
        """Two spans below that of the request: in the queue, and with the workers until ``now``."""
        if not tracer.is_on:
            return
        zero = time.time_ns() - int(now * 1e9)
        arrived, ended = zero + int(self.arrived * 1e9), zero + int(now * 1e9)
        sent = ended if self.sent is None else zero + int(self.sent * 1e9)
        tracer.record(f"{name} queue", arrived, sent, {"featpipe.repeats": self.n_repeats})
        if self.sent is None:
            return
        tracer.record(f"{name} run", sent, ended, self._facts_of_run())

    def _facts_of_run(self) -> dict[str, str | int | float]:
        facts: dict[str, str | int | float] = {"featpipe.batch_items": self.n_together}
        if self.outcome is not None:
            facts["featpipe.worker"] = self.outcome.worker
            facts["featpipe.attempts"] = self.outcome.attempts
            facts["featpipe.worker_seconds"] = round(self.outcome.seconds, 6)
            if self.outcome.error is not None:
                facts["error.type"] = type(self.outcome.error).__name__
        return facts


class RequestQueue:
    """Items by group; only those of one group share a batch."""

    def __init__(self, limits: BatcherLimits) -> None:
        self._limits = limits
        self._queues: dict[Hashable, deque[Item]] = {}

    def add(self, item: Item) -> None:
        """Append to the item's group."""
        self._queues.setdefault(item.group, deque()).append(item)

    def put_back(self, items: Sequence[Item]) -> None:
        """Put these first, in this order."""
        for item in reversed(items):
            self._queues.setdefault(item.group, deque()).appendleft(item)

    def take(self, now: float, *, is_idle: bool) -> list[Item]:
        """The next batch, of the group whose first item waits longest; empty when none is due."""
        queue = self._first()
        if queue is None or not (is_idle or self._is_full(queue) or now >= self._due_at(queue)):
            return []
        batch: list[Item] = []
        weight = 0
        while queue and len(batch) < self._limits.max_batch:
            item = queue[0]
            if batch and weight + item.weight > self._limits.max_batch_weight:
                break
            if batch and (batch[0].n_repeats or item.n_repeats):
                break  # it has lost workers, so its batch holds no other item
            queue.popleft()
            if not item.future.done():
                batch.append(item)
                weight += item.weight
        return batch

    def due_at(self) -> float | None:
        """When `take` gives a batch although no worker is idle; None while the queue is empty."""
        queue = self._first()
        return None if queue is None else self._due_at(queue)

    def clear(self) -> list[Item]:
        """Remove and return all items."""
        items = [item for queue in self._queues.values() for item in queue]
        self._queues.clear()
        return items

    def _first(self) -> deque[Item] | None:
        self._drop_ended()
        return min(self._queues.values(), key=lambda queue: queue[0].arrived, default=None)

    def _drop_ended(self) -> None:
        """Items whose requests have ended cost the workers nothing."""
        for group in list(self._queues):
            queue = self._queues[group]
            while queue and queue[0].future.done():
                queue.popleft()
            if not queue:
                del self._queues[group]

    def _is_full(self, queue: deque[Item]) -> bool:
        return (
            queue[0].n_repeats > 0
            or len(queue) >= self._limits.max_batch
            or sum(item.weight for item in queue) >= self._limits.max_batch_weight
        )

    def _due_at(self, queue: deque[Item]) -> float:
        return queue[0].arrived + self._limits.linger_s
