"""A batcher over a real pool: what others kill costs time and no answer."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest
from waiting import HANG_S

from featpipe.pool import Role
from featpipe.service.batcher import Batcher, Workload
from featpipe.service.errors import Failure
from featpipe.service.metrics import ServiceMetrics
from featpipe.service.request_queue import BatcherLimits


@asynccontextmanager
async def opened(marker: Path, max_losses: int = 1) -> AsyncIterator[Batcher]:
    batcher = make_batcher(marker, max_losses)
    batcher.open()
    try:
        yield batcher
    finally:
        await asyncio.to_thread(batcher.close)


def make_batcher(marker: Path, max_losses: int = 1) -> Batcher:
    role = Role(
        name="square",
        target="batcher_roles:Squares",
        arguments={"marker": str(marker)},
        devices=("cpu", "cpu"),
        bisect="featpipe.pool.role:halve_sequence",
        preload=("decimal", "fractions"),
        max_losses=max_losses,
        is_lazy=False,
    )
    workload = Workload(role, make=lambda _, items: items, count=len, answers=list, ping=())
    return Batcher(workload, BatcherLimits(1000, 1000, 4, 1000, 0.001), ServiceMetrics())


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_S):
        while not holds():
            await asyncio.sleep(0.005)


def run(make: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await make()

    asyncio.run(main())


def processes(batcher: Batcher, others: set[int]) -> list[int]:
    """Workers and templates, also workers whose template is gone; not the other children."""
    found = {child.pid for child in psutil.Process().children(recursive=True)} - others
    return sorted(found | {view.pid for view in batcher.workers() if view.pid})


def test_processes_killed_at_random_cost_no_answer(tmp_path: Path) -> None:
    generator = random.Random(7)  # noqa: S311  # a test's dice
    others = {child.pid for child in psutil.Process().children(recursive=True)}

    async def kill(batcher: Batcher) -> None:
        n_open = 600
        while True:
            await asyncio.sleep(generator.random() * 0.4)
            # Not by the clock alone: on a busy machine no start would be outlived.
            await until(lambda n=n_open: batcher.n_open <= n - 12)  # type: ignore[misc]
            n_open = batcher.n_open
            for pid in generator.sample(found := processes(batcher, others), min(1, len(found))):
                with suppress(ProcessLookupError):  # it ended since
                    os.kill(pid, signal.SIGKILL)

    async def scene() -> None:
        async with opened(tmp_path / "none") as batcher:
            killer = asyncio.create_task(kill(batcher))
            answers = await asyncio.gather(
                *(batcher.submit(number, timeout_s=HANG_S) for number in range(600))
            )
            killer.cancel()
        assert answers == [number * number for number in range(600)]

    run(scene)


def test_an_item_that_ends_its_workers_is_the_only_one_without_an_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(tmp_path / "none") as batcher:
            answers = await asyncio.gather(
                *(batcher.submit(number, timeout_s=HANG_S) for number in (1, 2, -1, 3, 4)),
                return_exceptions=True,
            )
        assert [answer for answer in answers if isinstance(answer, int)] == [1, 4, 9, 16]
        assert isinstance(answers[2], Failure)
        assert answers[2].code == "worker_died"

    run(scene)


def break_pool(batcher: Batcher, marker: Path) -> None:
    """No worker starts any more, and those there are end."""
    marker.touch()
    for view in batcher.workers():
        if view.pid is not None:
            os.kill(view.pid, signal.SIGKILL)


def test_a_pool_that_breaks_costs_no_answer_when_the_next_one_works(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    async def scene() -> None:
        async with opened(marker) as batcher:
            await until(lambda: batcher.is_ready)
            asked = asyncio.gather(
                *(batcher.submit(number, timeout_s=HANG_S) for number in range(100))
            )
            await until(lambda: batcher.n_open < 100)
            break_pool(batcher, marker)
            await until(lambda: batcher.problem)
            assert not batcher.is_ready
            late = asyncio.create_task(
                batcher.submit(100, timeout_s=HANG_S)
            )  # nobody is turned away
            await asyncio.sleep(0)
            marker.unlink()
            assert await asked == [number * number for number in range(100)]
            assert await late == 10_000
            await until(lambda: batcher.is_ready)
            assert not batcher.problem

    run(scene)


def test_workers_that_never_start_are_told_to_those_who_wait_and_tried_again(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "marker"
    marker.touch()

    async def scene() -> None:
        async with opened(marker) as batcher:
            for _ in range(2):  # one who waits, and one who comes when it is known
                with pytest.raises(Failure) as caught:
                    await batcher.submit(1, timeout_s=HANG_S)
                assert (caught.value.status, caught.value.code) == (503, "workers_unavailable")
            assert "cannot be started" in caught.value.message
            assert "cannot work" in batcher.problem
            marker.unlink()
            await until(lambda: batcher.is_ready)
            assert await batcher.submit(3, timeout_s=HANG_S) == 9

    run(scene)


def test_who_asks_before_it_is_open_is_not_told_of_a_fault(tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(Failure, match="not started yet") as caught:
            await make_batcher(tmp_path / "marker").submit(1, timeout_s=HANG_S)
        assert (caught.value.status, caught.value.code) == (503, "workers_unavailable")
        assert "/readyz" in str(caught.value.hint)

    run(scene)
