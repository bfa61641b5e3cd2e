"""The backlog hands out every unit once, whatever the sizes and rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from featpipe.build.plan import Product
from featpipe.build.queue import Backlog
from featpipe.cache.texts import UnitCollector, Units

if TYPE_CHECKING:
    from featpipe.build.messages import FeatureTask

PRODUCT = Product("encode", "embeddings/m@0", 7)


def units(texts: list[str]) -> Units:
    collector = UnitCollector()
    collector.add(texts, "sentence")
    return collector.units()


def drained(backlog: Backlog, *, is_last: bool) -> list[FeatureTask]:
    tasks = []
    while (task := backlog.next_task(is_last=is_last)) is not None:
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
    backlog = Backlog(PRODUCT, n_workers)
    backlog.add(units(texts))
    tasks = drained(backlog, is_last=False)
    for task in tasks:
        backlog.learn(task, seconds)
    tasks += drained(backlog, is_last=True)
    seen = [text for task in tasks for text in task.units.texts.strings()]
    assert sorted(seen) == sorted(texts)
    assert backlog.n_bytes == 0
    for task in tasks:
        sizes = task.units.texts.lengths.tolist()
        assert sizes == sorted(sizes, reverse=True)


def test_little_work_waits_for_more_until_the_end_is_known() -> None:
    backlog = Backlog(PRODUCT, 1)
    backlog.add(units(["违约责任", "合同金额"]))
    assert drained(backlog, is_last=False) == []
    assert len(drained(backlog, is_last=True)) == 1


def test_a_slow_device_gets_smaller_tasks() -> None:
    texts = [f"{number:04d}" + "字" * 500 for number in range(400)]
    slow, fast = Backlog(PRODUCT, 1), Backlog(PRODUCT, 1)
    for backlog, seconds in ((slow, 60.0), (fast, 0.01)):
        backlog.add(units(texts[:100]))
        for task in drained(backlog, is_last=True):
            backlog.learn(task, seconds)
        backlog.add(units(texts[100:]))
    assert len(drained(slow, is_last=True)) > 2 * len(drained(fast, is_last=True))


def test_time_left_is_unknown_until_a_task_without_a_model_load_and_then_follows_the_rate() -> None:
    texts = [f"{number:04d}" + "字" * 500 for number in range(400)]
    backlog = Backlog(PRODUCT, 1)
    backlog.add(units(texts))
    tasks = drained(backlog, is_last=True)
    assert len(tasks) >= 3
    backlog.close_task(tasks[0])
    backlog.learn(tasks[0], 90.0)  # the model was loaded in this one
    assert backlog.seconds_left() is None
    backlog.close_task(tasks[1])
    backlog.learn(tasks[1], 2.0)
    share = sum(len(task.units.texts.values) for task in tasks[2:]) / len(
        tasks[1].units.texts.values
    )
    left = backlog.seconds_left()
    assert left is not None
    assert abs(left - share * 2.0 / 2) < 0.1 * left  # handed out, so half done on average
    for task in tasks[2:]:
        backlog.close_task(task)
    assert backlog.seconds_left() == 0.0
