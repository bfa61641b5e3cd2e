"""Waiting: what is to be done, in order of arrival, and what of it goes to a worker together.

Decided from facts and the time that is passed in. A worker that has nothing to do is given what
there is, at once; a batch that is made ahead, while all are busy, waits for company until it is
full or its first has waited ``linger_s``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from featpipe.service.batcher import Item


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """How much a lane takes on."""

    max_waiting: int
    max_waiting_weight: int
    max_batch: int
    max_batch_weight: int
    linger_s: float


class Waiting:
    """Items by group; only those of one group share a batch."""

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self._queues: dict[Hashable, deque[Item]] = {}

    def add(self, item: Item) -> None:
        """The last of its group."""
        self._queues.setdefault(item.group, deque()).append(item)

    def put_back(self, items: Sequence[Item]) -> None:
        """These come first again, in this order."""
        for item in reversed(items):
            self._queues.setdefault(item.group, deque()).appendleft(item)

    def take(self, now: float, *, is_idle: bool) -> list[Item]:
        """The next batch, of the group whose first waits longest; empty when none is ripe."""
        queue = self._first()
        if queue is None or not (is_idle or self._is_full(queue) or now >= self._ripe_at(queue)):
            return []
        batch: list[Item] = []
        weight = 0
        while queue and len(batch) < self._limits.max_batch:
            item = queue[0]
            if batch and weight + item.weight > self._limits.max_batch_weight:
                break
            if batch and (batch[0].n_repeats or item.n_repeats):
                break  # it has lost workers, so it goes alone and takes nobody along
            queue.popleft()
            if not item.future.done():
                batch.append(item)
                weight += item.weight
        return batch

    def ripe_at(self) -> float | None:
        """When `take` gives something although nobody is idle; None while nothing waits."""
        queue = self._first()
        return None if queue is None else self._ripe_at(queue)

    def clear(self) -> list[Item]:
        """All of them; nothing waits any more."""
        items = [item for queue in self._queues.values() for item in queue]
        self._queues.clear()
        return items

    def _first(self) -> deque[Item] | None:
        self._drop_ended()
        return min(self._queues.values(), key=lambda queue: queue[0].arrived, default=None)

    def _drop_ended(self) -> None:
        """Nobody waits for these any more: they cost the workers nothing."""
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

    def _ripe_at(self, queue: deque[Item]) -> float:
        return queue[0].arrived + self._limits.linger_s
