"""The job ``encode``: the features of a shard's texts, each text once; on any device.

The job looks in all files of the shard first, computes what none of them has, and publishes that as
one further file, then a report. An attempt that was stopped publishes what it has computed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

import numpy as np

from featpipe.build.intake import Chunk, KnownUnits
from featpipe.build.progress import RunRecord
from featpipe.build.run import Run
from featpipe.build.shards.folder_plan import layout_of
from featpipe.build.shards.job import Job, JobReport
from featpipe.build.shards.outbox import SliceUnits, read_slice
from featpipe.build.shards.stacked import StackedReader
from featpipe.build.shards.work_file import discard, work_file
from featpipe.cache import tables
from featpipe.cache.levels import level_bits
from featpipe.cache.write import CacheWriter
from featpipe.errors import FeatpipeError, UsageError
from featpipe.store import Reader
from featpipe.store.folder_layout import OUTBOX, REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.build.plan import Plan
    from featpipe.build.publish import Publisher
    from featpipe.build.shards.folder_plan import FolderPlan
    from featpipe.build.shards.open_seat import OpenSeat
    from featpipe.cache.tables import Rows
    from featpipe.report import RunReport
    from featpipe.store import TableSpec

#: Units looked at together.
_UNITS = 1 << 14


def encode(folder: Publisher, plan: FolderPlan, number: int, opened: OpenSeat) -> JobReport:
    """Do the job, or find that it has been done.

    Raises:
        UsageError: no such shard.
        CheckpointError: this machine has other weights or another arithmetic than planned.
        DictionaryLocked, WriteFailed, PoolBroken: as a build.

    """
    if not 0 <= number < plan.n_shards:
        raise UsageError(f"there is no shard {number}", hint=f"{plan.n_shards} were planned")
    shard = Shard(folder, plan, number)
    before = shard.done()
    if before is not None:
        return before
    made = plan.plan_encoding(opened.devices)
    return _Encoding(shard, made, opened).finish()


class Shard:
    """The files of one shard, and what is left to do for it."""

    def __init__(self, folder: Publisher, plan: FolderPlan, number: int) -> None:
        self.folder, self.plan, self.number = folder, plan, number
        self.job = Job("encode", number)
        self._layout = layout_of(plan)
        self._stem = f"{REPORTS}/{self.job.name(self._layout)}"
        self.outboxes = folder.list(OUTBOX)
        """Names of those that are published."""
        self.reports = [name for name in folder.list(REPORTS) if name.startswith(f"{self._stem}-")]
        """Of jobs that are done, oldest first."""
        self.covered: set[str] = set()
        """Outboxes whose units the shard has."""
        self._last: JobReport | None = None
        if self.reports:
            self._last, facts = JobReport.from_json(folder.read(self.reports[-1]))
            self.covered = set(cast("list[str]", facts["outboxes"]))

    def done(self) -> JobReport | None:
        """The report, should nothing be left to do."""
        last = self._last
        if last is None or not self.covered.issuperset(self.outboxes):
            return None
        n_lost = sum(failed.n_units for failed in last.run.failed if failed.table == self._vectors)
        run = replace(
            last.run,
            n_hits=last.run.n_unique - n_lost,
            n_encoded=0,
            n_entities=0,
            seconds=0.0,
            notes=(),
        )
        return replace(last, run=run, files=(), was_done=True)

    @property
    def _vectors(self) -> str:
        return self.plan.encoder.table

    def files(self) -> list[str]:
        """Names of the published files, in order."""
        return list(self._files())

    def _files(self) -> Iterator[str]:
        for addition in count():
            name = self.file_name(addition)
            if not self.folder.exists(name):
                return
            yield name

    def file_name(self, addition: int) -> str:
        """Of the shard's file, or of an addition to it."""
        return self._layout.shard_file(self.number, addition).as_posix()

    def write_report(self, report: JobReport) -> None:
        """Say that everything up to these outboxes is done, unless another attempt has."""
        facts = {"outboxes": sorted(self.covered.union(self.outboxes))}
        self.folder.write(f"{self._stem}-{len(self.reports):04d}.done", report.to_json(**facts))


class _Encoding:
    """One attempt at the job."""

    def __init__(self, shard: Shard, plan: Plan, opened: OpenSeat) -> None:
        self._shard, self._opened = shard, opened
        self._plan = replace(plan, specs=_shard_specs(plan))

    def finish(self) -> JobReport:
        """Compute, publish and report."""
        shard = self._shard
        while True:
            mine = shard.files()
            name = shard.file_name(len(mine))
            with work_file(shard.folder, self._opened.seat, name) as work:
                if shard.folder.exists(name):  # published while this process waited
                    discard(work)
                    continue
                report = self._fill(work, mine)
                has_rows = _has_rows(work)
                is_mine = not has_rows or shard.folder.publish(work, name)
                discard(work)
            if is_mine:
                break
        files = (name,) if has_rows else ()
        done = JobReport(shard.job, report, files, is_done=not report.was_interrupted)
        if done.is_done:
            shard.write_report(done)
        return done

    def _fill(self, work: Path, mine: Sequence[str]) -> RunReport:
        folder, opened = self._shard.folder, self._opened
        pool = opened.encoding_pool(self._plan, self._shard.plan.settings())
        writer = CacheWriter(pool, work)
        record = RunRecord(str(self._shard.job), 0, self._plan.levels, self._plan.checkpoints)
        try:
            writer.append({})
            writer.settle()
            with StackedReader([*map(folder.fetch, mine), work]) as stacked:
                reader = cast("Reader", stacked)  # which it stands for
                units = _StoredAndNew(reader, self._new_units())
                run = Run(self._plan, writer, units, reader, record, opened.listen)
                with opened.running(run):
                    report = run.finish()
            writer.release()
        except FeatpipeError:
            opened.drop(pool)
            raise
        return report

    def _new_units(self) -> SliceUnits:
        shard = self._shard
        names = [name for name in shard.outboxes if name not in shard.covered]
        return SliceUnits([read_slice(shard.folder.fetch(n), shard.number) for n in names])


class _StoredAndNew:
    """The units of a shard: the stored texts first, which may lack a row, then those of slices.

    Levels are those of both.
    """

    def __init__(self, reader: Reader, slices: SliceUnits) -> None:
        self.is_exhausted = False
        self._reader, self._slices = reader, slices
        self._chunks = self._all()

    def next_chunk(self) -> Chunk | None:
        """The next few units."""
        chunk = next(self._chunks, None)
        self.is_exhausted = chunk is None
        return chunk

    def find_departed(self) -> dict[str, str]:
        """None: texts do not leave."""
        return {}

    def _all(self) -> Iterator[Chunk]:
        slices = self._slices
        # The reader's last file is not yet written to: what it holds is of a killed attempt.
        known = level_bits(self._reader)
        rows = self._find_stored(slices.keys)
        stored = np.flatnonzero(rows >= 0)
        bits = known.copy()
        bits[rows[stored]] |= slices.levels[stored]
        yield from self._stored(known, bits)
        for units in slices.blocks(np.flatnonzero(rows < 0), _UNITS):
            texts: Rows = {"keys": units.keys, "text": units.texts.ragged}
            levels: Rows = {"text": units.keys, "bits": units.levels}
            yield Chunk(known=units, rows={tables.TEXTS: texts, tables.TEXT_LEVELS: levels})

    def _find_stored(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        if tables.TEXTS not in self._reader:
            return np.full(len(keys), -1, np.int64)
        return self._reader.table(tables.TEXTS).find(keys)

    def _stored(self, known: NDArray[np.uint8], bits: NDArray[np.uint8]) -> Iterator[Chunk]:
        if not len(bits):
            return
        texts = self._reader.table(tables.TEXTS)
        for start in range(0, len(bits), _UNITS):
            rows = np.arange(start, min(start + _UNITS, len(bits)))
            keys = np.asarray(texts.gather("keys", rows), np.uint8)
            levels = bits[rows]
            changed = np.flatnonzero(levels != known[rows])
            written: dict[str, Rows] = {}
            if len(changed):
                written = {tables.TEXT_LEVELS: {"text": keys[changed], "bits": levels[changed]}}
            yield Chunk(known=KnownUnits(keys, levels, texts, rows), rows=written)


def _shard_specs(plan: Plan) -> dict[str, TableSpec]:
    """Specs of the tables of a shard."""
    others = {tables.DOCUMENTS, tables.SOURCES, tables.RUNS}
    return {name: spec for name, spec in plan.specs.items() if name not in others}


def _has_rows(shard: Path) -> bool:
    with Reader(shard) as reader:
        return any(reader.table(name).n_rows for name in reader.tables())
