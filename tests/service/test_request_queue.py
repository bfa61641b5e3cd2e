"""What goes to a worker together, decided without a clock and without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from featpipe.service.request_queue import BatcherLimits, Item, RequestQueue

LIMITS = BatcherLimits(
    max_waiting=100, max_waiting_weight=100, max_batch=3, max_batch_weight=10, linger_s=0.5
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    found = asyncio.new_event_loop()
    yield found
    found.close()


class Queue(RequestQueue):
    """Items are known by their payload."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(LIMITS)
        self._loop = loop

    def put(self, name: str, arrived: float, weight: int = 1, group: str = "g") -> Item:
        item = Item(name, weight, arrived, self._loop.create_future(), group)
        self.add(item)
        return item

    def names(self, now: float, *, is_idle: bool) -> list[object]:
        return [item.payload for item in self.take(now, is_idle=is_idle)]


def test_a_worker_without_work_is_given_what_there_is_at_once(
    loop: asyncio.AbstractEventLoop,
) -> None:
    queue = Queue(loop)
    queue.put("a", 1.0)
    queue.put("b", 1.0)
    assert queue.names(1.0, is_idle=True) == ["a", "b"]
    assert queue.names(1.0, is_idle=True) == []
    assert queue.due_at() is None


def test_a_batch_made_ahead_waits_for_company_but_not_for_long(
    loop: asyncio.AbstractEventLoop,
) -> None:
    queue = Queue(loop)
    queue.put("a", 1.0)
    queue.put("b", 1.2)
    assert queue.names(1.4, is_idle=False) == []
    assert queue.due_at() == 1.5
    assert queue.names(1.5, is_idle=False) == ["a", "b"]
    for name in "cdef":
        queue.put(name, 2.0)
    assert queue.names(2.0, is_idle=False) == ["c", "d", "e"], "full, so nothing is waited for"
    assert queue.names(2.0, is_idle=False) == []


def test_what_is_heavy_goes_alone_and_at_once(loop: asyncio.AbstractEventLoop) -> None:
    queue = Queue(loop)
    queue.put("light", 1.0, weight=2)
    queue.put("heavy", 1.0, weight=40)
    queue.put("last", 1.0, weight=2)
    assert queue.names(1.0, is_idle=False) == ["light"]
    assert queue.names(1.0, is_idle=False) == ["heavy"]
    assert queue.names(1.0, is_idle=False) == []


def test_groups_take_turns_by_the_first_that_waits(loop: asyncio.AbstractEventLoop) -> None:
    queue = Queue(loop)
    queue.put("a1", 1.0, group="a")
    queue.put("b1", 1.1, group="b")
    queue.put("a2", 1.2, group="a")
    queue.put("a3", 1.3, group="a")
    assert queue.names(9.0, is_idle=True) == ["a1", "a2", "a3"]
    queue.put("a4", 1.4, group="a")
    assert queue.names(9.0, is_idle=True) == ["b1"]
    assert queue.names(9.0, is_idle=True) == ["a4"]


def test_what_nobody_waits_for_is_left_out(loop: asyncio.AbstractEventLoop) -> None:
    queue = Queue(loop)
    items = [queue.put(name, 1.0) for name in "abcd"]
    items[0].future.cancel()
    items[2].settle("answered")
    assert queue.names(1.0, is_idle=True) == ["b", "d"]
    queue.put("e", 1.0).future.cancel()
    assert queue.due_at() is None


def test_what_lost_its_workers_comes_first_and_alone(loop: asyncio.AbstractEventLoop) -> None:
    queue = Queue(loop)
    for name in "abc":
        queue.put(name, 1.0)
    lost = queue.take(1.0, is_idle=True)
    queue.put("d", 2.0)
    for item in lost[:2]:
        item.n_repeats += 1
    queue.put_back(lost)
    taken = [queue.names(1.0, is_idle=False) for _ in range(2)]
    assert taken == [["a"], ["b"]]
    assert queue.names(1.0, is_idle=True) == ["c", "d"]
    assert queue.clear() == []
