"""The queue hands out every unit once, whatever the sizes and rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from building import units
from hypothesis import given
from hypothesis import strategies as st

from featpipe.build.plan import Product
from featpipe.build.queue import UnitQueue

if TYPE_CHECKING:
    from featpipe.build.messages import FeatureTask

PRODUCT = Product("encode", "embeddings/m@0", 7)


def drained(queue: UnitQueue, *, is_last: bool) -> list[FeatureTask]:
    tasks = []
    while (task := queue.next_task(is_last=is_last)) is not None:
        tasks.append(task)
    return tasks


def drained_once(queue: UnitQueue) -> list[FeatureTask]:
    """The tasks of one cut."""
    tasks = [queue.next_task(is_last=False)]
    while queue._tasks:
        tasks.append(queue.next_task(is_last=False))
    return [task for task in tasks if task is not None]


@given(
    st.lists(st.integers(1, 4000), min_size=1, max_size=60),
    st.integers(1, 4),
    st.floats(0.001, 100),
)
def test_every_unit_leaves_once_and_tasks_are_sorted_by_length(
    lengths: list[int], n_workers: int, seconds: float
) -> None:
    texts = [f"{number:04d}" + "字" * length for number, length in enumerate(lengths)]
    queue = UnitQueue(PRODUCT, n_workers)
    queue.add(units(texts))
    tasks = drained(queue, is_last=False)
    for task in tasks:
        queue.learn(task, seconds)
    tasks += drained(queue, is_last=True)
    seen = [text for task in tasks for text in task.units.texts.strings()]
    assert sorted(seen) == sorted(texts)
    assert queue.n_bytes == 0
    for task in tasks:
        sizes = task.units.texts.lengths.tolist()
        assert sizes == sorted(sizes, reverse=True)


def test_little_work_waits_for_more_until_the_end_is_known() -> None:
    queue = UnitQueue(PRODUCT, 1)
    queue.add(units(["违约责任", "合同金额"]))
    assert drained(queue, is_last=False) == []
    assert len(drained(queue, is_last=True)) == 1


def test_a_card_waits_for_one_task_a_worker_and_for_no_more() -> None:
    texts = [f"{number:05d}" + "字" * 30 for number in range(600)]  # two first tasks
    patient, card = UnitQueue(PRODUCT, 2), UnitQueue(PRODUCT, 2, can_wait=False)
    for queue in (patient, card):
        queue.add(units(texts[:100]))
        assert not drained(queue, is_last=False)
        queue.add(units(texts[100:]))
    assert not drained(patient, is_last=False)
    assert len(drained(card, is_last=False)) > 1


def test_what_is_left_behind_many_small_tasks_is_cut_by_the_rate_they_tell() -> None:
    texts = [f"{number:05d}" + "字" * 900 for number in range(1000)]
    queue = UnitQueue(PRODUCT, 1, can_wait=False)
    queue.add(units(texts))
    first = drained_once(queue)
    assert sum(map(len, first)) < len(texts) / 2
    for task in first:
        queue.close_task(task)
        queue.learn(task, 0.1)
    following = drained_once(queue)
    assert max(map(len, following)) > 4 * max(map(len, first))
    rest = drained(queue, is_last=True)
    assert sum(map(len, first + following + rest)) == len(texts)


def test_a_slow_device_gets_smaller_tasks() -> None:
    texts = [f"{number:04d}" + "字" * 500 for number in range(400)]
    slow, fast = UnitQueue(PRODUCT, 1), UnitQueue(PRODUCT, 1)
    for queue, seconds in ((slow, 60.0), (fast, 0.01)):
        queue.add(units(texts[:100]))
        for task in drained(queue, is_last=True):
            queue.learn(task, seconds)
        queue.add(units(texts[100:]))
    assert len(drained(slow, is_last=True)) > 2 * len(drained(fast, is_last=True))


def test_time_left_is_unknown_until_work_is_steady_and_then_follows_the_rate() -> None:
    texts = [f"{number:04d}" + "字" * 500 for number in range(400)]
    queue = UnitQueue(PRODUCT, 1)
    queue.add(units(texts))
    tasks = drained(queue, is_last=True)
    while len(tasks) < 6:
        queue.add(units(texts))
        tasks += drained(queue, is_last=True)
    for task, seconds in zip(tasks[:3], (90.0, 2.0, 3.9), strict=True):  # a model was loaded first
        queue.close_task(task)
        queue.learn(task, seconds)
        assert queue.seconds_left() is None
    queue.close_task(tasks[3])
    queue.learn(tasks[3], 2.0)
    left = queue.seconds_left()
    assert left is not None
    n_bytes = [len(task.units.texts.values) for task in tasks]
    slowest, fastest = (n_bytes[at] / s for at, s in ((2, 3.9), (1, 2.0)))
    waiting = sum(n_bytes[4:]) / 2  # handed out, so half done on average
    assert waiting / fastest * 0.9 < left < waiting / slowest * 1.1
    for task in tasks[4:]:
        queue.close_task(task)
    assert queue.seconds_left() == 0.0


def test_short_tasks_tell_their_rate_by_their_number() -> None:
    queue = UnitQueue(PRODUCT, 1)
    queue.add(units([f"{number:05d}" + "字" * 900 for number in range(2000)]))
    tasks = drained(queue, is_last=True)
    while len(tasks) < 12:
        queue.add(units([f"{number:05d}" + "字" * 900 for number in range(2000)]))
        tasks += drained(queue, is_last=True)
    known = []
    for task in tasks[:10]:
        queue.close_task(task)
        queue.learn(task, 0.01)
        known.append(queue.seconds_left() is not None)
    assert known == [False] * 8 + [True] * 2
