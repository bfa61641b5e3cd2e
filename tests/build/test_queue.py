"""The queue hands out every unit once, whatever the sizes and rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from featpipe.build.plan import Product
from featpipe.build.queue import UnitQueue
from featpipe.cache.texts import UnitCollector, Units

if TYPE_CHECKING:
    from featpipe.build.messages import FeatureTask

PRODUCT = Product("encode", "embeddings/m@0", 7)


def units(texts: list[str]) -> Units:
    collector = UnitCollector()
    collector.add(texts, "sentence")
    return collector.units()


def drained(queue: UnitQueue, *, is_last: bool) -> list[FeatureTask]:
    tasks = []
    while (task := queue.next_task(is_last=is_last)) is not None:
        tasks.append(task)
    return tasks


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


def test_a_slow_device_gets_smaller_tasks() -> None:
    texts = [f"{number:04d}" + "字" * 500 for number in range(400)]
    slow, fast = UnitQueue(PRODUCT, 1), UnitQueue(PRODUCT, 1)
    for queue, seconds in ((slow, 60.0), (fast, 0.01)):
        queue.add(units(texts[:100]))
        for task in drained(queue, is_last=True):
            queue.learn(task, seconds)
        queue.add(units(texts[100:]))
    assert len(drained(slow, is_last=True)) > 2 * len(drained(fast, is_last=True))


def test_time_left_is_unknown_until_a_task_without_a_model_load_and_then_follows_the_rate() -> None:
    texts = [f"{number:04d}" + "字" * 500 for number in range(400)]
    queue = UnitQueue(PRODUCT, 1)
    queue.add(units(texts))
    tasks = drained(queue, is_last=True)
    assert len(tasks) >= 3
    queue.close_task(tasks[0])
    queue.learn(tasks[0], 90.0)  # the model was loaded in this one
    assert queue.seconds_left() is None
    queue.close_task(tasks[1])
    queue.learn(tasks[1], 2.0)
    share = sum(len(task.units.texts.values) for task in tasks[2:]) / len(
        tasks[1].units.texts.values
    )
    left = queue.seconds_left()
    assert left is not None
    assert abs(left - share * 2.0 / 2) < 0.1 * left  # handed out, so half done on average
    for task in tasks[2:]:
        queue.close_task(task)
    assert queue.seconds_left() == 0.0
