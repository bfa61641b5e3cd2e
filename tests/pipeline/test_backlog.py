"""The backlog hands out every unit once, whatever the sizes and rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from featpipe.pipeline.backlog import Backlog
from featpipe.pipeline.plan import Product
from featpipe.pipeline.units import UnitCollector, Units

if TYPE_CHECKING:
    from featpipe.pipeline.messages import FeatureTask

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
