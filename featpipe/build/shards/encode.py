"""The job ``encode``: the features of a shard's texts, each text once; on any device.

The job looks in all files of the shard first, computes what none of them has, and publishes that as
one further file, then a report. An attempt that was stopped publishes what it has computed; one
that takes long, on scratch, publishes so every few minutes and goes on.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Self, cast

from featpipe.build.other_caches import OtherCaches
from featpipe.build.plan import Product
from featpipe.build.progress import RunRecord
from featpipe.build.queue import UnitStates
from featpipe.build.run import Run
from featpipe.build.shards.folder_plan import layout_of
from featpipe.build.shards.job import SPACE_MARK, Job, JobReport
from featpipe.build.shards.outbox import SliceUnits, fetch_slice
from featpipe.build.shards.stacked import StackedReader
from featpipe.build.shards.work_file import discard, work_file
from featpipe.build.stored_units import StoredUnits
from featpipe.cache import tables
from featpipe.cache.texts import LEVEL_BIT
from featpipe.errors import UsageError
from featpipe.store import Reader
from featpipe.store.folder_layout import OUTBOX, REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.build.plan import Plan
    from featpipe.build.progress import Progress
    from featpipe.build.publish import Publisher
    from featpipe.build.shards.folder_plan import FolderPlan
    from featpipe.build.shards.open_seat import OpenSeat
    from featpipe.cache.texts import Units
    from featpipe.report import RunReport
    from featpipe.store import TableSpec


def encode(folder: Publisher, plan: FolderPlan, job: Job, opened: OpenSeat) -> JobReport:
    """Do the job, or find that it has been done.

    Args:
        folder: the cache.
        plan: with the models of the job's space.
        job: of the kind ``encode``.
        opened: the seat.

    Raises:
        UsageError: no such shard.
        CheckpointError: this machine has other weights or another arithmetic than planned.
        DictionaryLocked, WriteFailed, PoolBroken: as a build.

    """
    if not 0 <= job.number < plan.n_shards:
        raise UsageError(f"there is no shard {job.number}", hint=f"{plan.n_shards} were planned")
    shard = Shard(folder, plan, job)
    before = shard.done()
    if before is not None:
        return before
    made = plan.plan_encoding(opened.devices)
    return _Encoding(shard, made, opened).finish()


class Shard:
    """The files of one shard, and what is left to do of a job on it.

    Args:
        folder: the cache.
        plan: with the models of the job's space.
        job: of the kind ``encode``.
        listing: names of the folder's outboxes and reports, where they were listed already.

    """

    def __init__(
        self, folder: Publisher, plan: FolderPlan, job: Job, listing: Listing | None = None
    ) -> None:
        self.folder, self.plan, self.job = folder, plan, job
        self._layout = layout_of(plan)
        listing = listing or Listing.of(folder)
        self._stem = job.name(self._layout)
        self.n_reports = len(listing.reports_of(self._stem))
        """Of this job, all of which ended well."""
        self.covered: set[str] = set()
        """Outboxes whose units are in files of the shard, or have been looked at."""
        self._last: JobReport | None = None
        self._covered_here: set[str] = set()
        every_space = f"encode-{self._layout.shard_name(job.number)}"
        for stem, names in listing.reports_below(every_space).items():
            last, facts = JobReport.from_json(folder.read(names[-1]))
            covered = set(cast("list[str]", facts["outboxes"]))
            self.covered |= covered
            if stem == self._stem:
                self._last, self._covered_here = last, covered
        self.new = [name for name in listing.outboxes if name not in self.covered]
        """Names of the other outboxes."""

    def done(self) -> JobReport | None:
        """The report, should nothing be left to do."""
        last = self._last
        if last is None or self.new or self._covered_here != self.covered:
            return None
        vectors = self.plan.encoder.table
        n_lost = sum(failed.n_units for failed in last.run.failed if failed.table == vectors)
        run = replace(
            last.run,
            n_hits=last.run.n_unique - n_lost,
            n_encoded=0,
            n_entities=0,
            seconds=0.0,
            notes=(),
        )
        return replace(last, run=run, files=(), was_done=True)

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
        return self._layout.shard_file(self.job.number, addition).as_posix()

    def new_units(self) -> SliceUnits:
        """Of the other outboxes."""
        return SliceUnits([fetch_slice(self.folder, name, self.job.number) for name in self.new])

    def lacking(self, table: str) -> Iterator[Units]:
        """The units that have no row in a table of the plan's models."""
        is_encoder = table == self.plan.encoder.table
        of_levels = self.plan.levels if is_encoder else ("paragraph",)
        levels = sum(LEVEL_BIT[level] for level in of_levels)
        with StackedReader([self.folder.fetch(name) for name in self.files()]) as stacked:
            reader = cast("Reader", stacked)  # which it stands for
            states = UnitStates(Product("encode", table, levels), reader)
            units = StoredUnits(reader, self.new_units())
            while (chunk := units.next_chunk()) is not None:
                if chunk.known is None:
                    continue
                missing = states.find_missing(reader, chunk.known.keys, chunk.known.levels)
                if len(missing):
                    yield chunk.known.take(missing)

    def write_report(self, report: JobReport) -> None:
        """Say that everything up to these outboxes is done, unless another attempt has.

        One that began sooner may have said less: the last report tells of all.
        """
        outboxes = self.covered.union(self.new)
        for number in count(self.n_reports):
            name = f"{REPORTS}/{self._stem}-{number:04d}.done"
            if self.folder.write(name, report.to_json(outboxes=sorted(outboxes))):
                return
            told = cast("list[str]", JobReport.from_json(self.folder.read(name))[1]["outboxes"])
            if outboxes.issubset(told):
                return
            outboxes |= set(told)


class Listing:
    """Names of the outboxes and reports of a folder."""

    def __init__(self, outboxes: Sequence[str], reports: Sequence[str]) -> None:
        self.outboxes = outboxes
        self._reports: dict[str, list[str]] = {}
        for name in reports:
            stem = name.removeprefix(f"{REPORTS}/").rpartition("-")[0]
            self._reports.setdefault(stem, []).append(name)

    @classmethod
    def of(cls, folder: Publisher) -> Self:
        """As they are now. Reports come after what they tell of, so they are listed first."""
        reports = folder.list(REPORTS)
        return cls(folder.list(OUTBOX), reports)

    def reports_of(self, stem: str) -> list[str]:
        """Of one job, oldest first."""
        return self._reports.get(stem, [])

    def reports_below(self, shard: str) -> dict[str, list[str]]:
        """Of the jobs on a shard, for each space."""
        found = {shard: self.reports_of(shard)}
        found |= {s: n for s, n in self._reports.items() if s.startswith(f"{shard}{SPACE_MARK}")}
        return {stem: names for stem, names in found.items() if names}


class _Encoding:
    """One attempt at the job, in rounds: each ends with a file that is published."""

    def __init__(self, shard: Shard, plan: Plan, opened: OpenSeat) -> None:
        self._shard, self._opened = shard, opened
        self._plan = replace(plan, specs=_shard_specs(plan))
        self._lost: list[Path] = []
        """Files of rounds that another attempt was faster in."""
        self._files: list[str] = []
        self._has_failed = False

    @cached_property
    def _record(self) -> RunRecord:
        """Of all rounds; begins with the first, once this process owns a file."""
        return RunRecord(str(self._shard.job), 0, self._plan.levels, self._plan.checkpoints)

    def finish(self) -> JobReport:
        """Compute, publish and report."""
        report = None
        with ExitStack() as held:
            while report is None or self._goes_on(report):
                report = self._do_round(held)
            # Not where an error was raised: the next attempt goes on in the same file.
            for file in self._lost:
                discard(file)
        is_done = not report.was_interrupted
        done = JobReport(self._shard.job, report, tuple(self._files), is_done=is_done)
        if is_done:
            self._shard.write_report(done)
        return done

    def _goes_on(self, report: RunReport) -> bool:
        """Whether a round was ended for its publication alone."""
        return report.was_interrupted and not self._opened.is_stopping

    def _do_round(self, held: ExitStack) -> RunReport | None:
        """Compute and publish a file; None: another attempt published one of its name."""
        shard = self._shard
        mine = shard.files()
        name = shard.file_name(len(mine))
        with ExitStack() as owned:
            work = owned.enter_context(work_file(shard.folder, self._opened.seat, name))
            if shard.folder.exists(name):  # published while this process waited
                discard(work)
                return None
            report = self._fill(work, mine)
            # Texts that cannot be computed are tried again by each round: there is one more.
            self._has_failed |= bool(report.failed)
            if _has_rows(work):
                if not shard.folder.publish(work, name):
                    # What the other file lacks is taken from this one.
                    self._lost.append(work)
                    held.enter_context(owned.pop_all())
                    return None
                self._files.append(name)
            discard(work)
        self._record.n_stored_before = report.n_encoded
        return report

    def _fill(self, work: Path, mine: Sequence[str]) -> RunReport:
        folder, opened = self._shard.folder, self._opened
        pool = opened.encoding_pool(self._plan, self._shard.plan.settings())
        record = self._record
        until, n_before = self._end_of_round(), record.n_batches

        def listen(progress: Progress) -> None:
            opened.listen(progress)
            # Something was computed, so every round brings the job on.
            if record.n_batches > n_before and opened.clock() >= until:
                run.stop_after_current()

        with (
            opened.writing(pool, work) as writer,
            StackedReader([*map(folder.fetch, mine), work]) as stacked,
            OtherCaches([*opened.seat.also, *self._lost]) as others,
        ):
            reader = cast("Reader", stacked)  # which it stands for
            units = StoredUnits(reader, self._shard.new_units())
            run = Run(self._plan, writer, units, reader, record, listen, others=others)
            with opened.running(run):
                return run.finish()

    def _end_of_round(self) -> float:
        """When it publishes what it has, by the seat's clock."""
        seat = self._opened.seat
        # What grows in place is there for the next attempt without being published.
        if seat.scratch is None or self._has_failed:
            return inf
        return self._opened.clock() + seat.publish_every_s


def _shard_specs(plan: Plan) -> dict[str, TableSpec]:
    """Specs of the tables of a shard."""
    others = {tables.DOCUMENTS, tables.SOURCES, tables.RUNS}
    return {name: spec for name, spec in plan.specs.items() if name not in others}


def _has_rows(shard: Path) -> bool:
    with Reader(shard) as reader:
        return any(reader.table(name).n_rows for name in reader.tables())
