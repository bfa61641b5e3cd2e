"""asyncio: the loop goes on while work is done, and a cancelled build keeps what it finished."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from known_texts import KNOWN, UNKNOWN

from featpipe import Cache, Extractor
from featpipe.errors import UsageError
from featpipe.extraction.template import FieldSpec, SampleSpec, Template
from featpipe.integrations.aio import AsyncCache, AsyncExtractor, AsyncPipeline

if TYPE_CHECKING:
    from featpipe.build.progress import Progress

TEMPLATE = Template(
    name="contract",
    fields=(FieldSpec(name="合同金额", type="money"),),
    samples=(SampleSpec(text="合同金额为五万元。", fields={"合同金额": ("五万元",)}),),
)


def test_a_cache_answers_without_holding_up_the_loop(filled: Path, model: Path) -> None:
    async def main() -> None:
        n_ticks = 0

        async def tick() -> None:
            nonlocal n_ticks
            while True:
                n_ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        async with AsyncCache(filled, model) as cache:
            vectors = await cache.encode([*KNOWN, *UNKNOWN])
            assert n_ticks > 10
            stored, found = await cache.lookup([*KNOWN, *UNKNOWN])
            assert found.tolist() == [True] * 3 + [False] * 2
            np.testing.assert_array_equal(vectors[:3], np.asarray(stored[:3], np.float32))
            (nearest,) = await cache.nearest(vectors[0], 1)
            assert nearest[0].score == pytest.approx(1, abs=1e-3)
            await cache.refresh()
            ids = [document.id async for document in cache.documents()]
            assert ids == ["docs/a.txt", "docs/b.txt"]
        ticking.cancel()

    asyncio.run(main())


def test_extractions_come_in_order_and_a_few_at_a_time(filled: Path) -> None:
    async def some() -> object:
        for text in KNOWN:
            yield text

    async def main() -> None:
        async with AsyncExtractor([TEMPLATE], filled) as extractor:
            one = await extractor.extract(KNOWN[1])
            assert one.fields["合同金额"].value == "三万元"
            texts = [*KNOWN] * 3
            found = [e.fields["合同金额"].value async for e in extractor.extract_many(texts)]
            assert found == [None, "三万元", None] * 3
            found = [e async for e in extractor.extract_many(some(), n_at_once=1)]  # type: ignore[arg-type]
            assert len(found) == 3
            async for _ in extractor.extract_many(texts):
                break  # what is under way is waited for
            with pytest.raises(UsageError):
                await anext(extractor.extract_many(texts, n_at_once=0))
        with Extractor([TEMPLATE], filled) as opened:
            async with AsyncExtractor(opened) as extractor:
                await extractor.extract(KNOWN[1])
            assert opened.extract(KNOWN[1]).fields["合同金额"].value == "三万元"

    asyncio.run(main())


def test_a_cancelled_build_keeps_what_it_finished(tmp_path: Path, model: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02d}.txt").write_text(f"第{number}号合同。甲方与乙方。", "utf-8")

    async def main() -> None:
        async with AsyncPipeline(tmp_path / "c.h5", model, "none", devices=["cpu"]) as pipeline:
            begun = asyncio.Event()

            def listen(progress: Progress) -> None:
                if progress.n_sources_done or progress.n_waiting:
                    begun.set()

            building = asyncio.create_task(
                pipeline.build(tmp_path, include=["*.txt"], listen=listen)
            )
            await begun.wait()
            building.cancel()
            with pytest.raises(asyncio.CancelledError):
                await building
            assert not pipeline.pipeline.is_running
            report = await pipeline.build(tmp_path, include=["*.txt"])
            assert report.is_complete
            assert report.n_loaded == 30

    asyncio.run(main())
    with Cache.open(tmp_path / "c.h5") as cache:
        assert sum(1 for _ in cache.documents()) == 30


def test_a_build_whose_loop_ends_is_stopped_and_waited_for(tmp_path: Path, model: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02d}.txt").write_text(f"第{number}号合同。甲方与乙方。", "utf-8")
    running_then: list[bool] = []

    async def main() -> None:
        pipeline = AsyncPipeline(tmp_path / "c.h5", model, "none", devices=["cpu"])
        begun = asyncio.Event()

        async def build() -> None:
            try:
                await pipeline.build(tmp_path, include=["*.txt"], listen=lambda _: begun.set())
            except asyncio.CancelledError:
                running_then.append(pipeline.pipeline.is_running)
                await pipeline.close()
                raise

        building = asyncio.create_task(build())
        await begun.wait()
        # All tasks, as asyncio.run cancels them, those first that the build has started itself;
        # and more than once.
        others = asyncio.all_tasks() - {asyncio.current_task(), building}
        for task in (*others, building):
            task.cancel()
        await asyncio.sleep(0)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building

    asyncio.run(main())
    assert running_then == [False]
