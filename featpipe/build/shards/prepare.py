"""The job ``prepare``: the documents of a part, read and cut into units; no device is needed.

The part is published first, then its outbox, which is made of the published part, then the report.
An attempt that was stopped leaves what it has read as a part of its own, and the next one goes on;
the jobs of a later run make the outboxes that it lacks, as they do not read its documents again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

from featpipe.build.intake import Intake
from featpipe.build.messages import EncoderPlan
from featpipe.build.plan import Plan, Product
from featpipe.build.progress import RunRecord
from featpipe.build.roles import read_limits
from featpipe.build.run import Run
from featpipe.build.shards.job import Job, JobReport
from featpipe.build.shards.outbox import write_outbox
from featpipe.build.shards.part_lists import read_list
from featpipe.build.shards.stacked import StackedReader
from featpipe.build.shards.work_file import discard, work_file
from featpipe.cache import tables
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.texts import join_keys
from featpipe.cache.write import TermTables
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import UsageError
from featpipe.report import Counts
from featpipe.settings import LEVELS
from featpipe.store import Reader
from featpipe.store.folder_layout import LISTS, OUTBOX, PARTS, REPORTS, part_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from featpipe.build.intake import KnownUnits
    from featpipe.build.publish import Publisher
    from featpipe.build.shards.folder_plan import FolderPlan
    from featpipe.build.shards.open_seat import OpenSeat
    from featpipe.build.shards.part_lists import RunPlan
    from featpipe.cache.places import Preparation
    from featpipe.report import RunReport
    from featpipe.store import TableReader


def prepare(
    folder: Publisher, plan: FolderPlan, run: RunPlan, number: int, opened: OpenSeat
) -> JobReport:
    """Do the job, or find that it has been done.

    Raises:
        UsageError: no such part, or this installation reads documents otherwise than planned.
        DictionaryLocked, WriteFailed, PoolBroken: as a build.

    """
    if not 0 <= number < run.n_parts:
        raise UsageError(f"run {run.id} has no part {number}", hint=f"it has {run.n_parts}")
    job = Job("prepare", number, run.id)
    name = report_name(run, number)
    if folder.exists(name):
        report, _ = JobReport.from_json(folder.read(name))
        return replace(report, files=(), was_done=True)
    part = _Part(folder, plan, run, number)
    read, files = part.read(opened)
    if read.was_interrupted:
        return JobReport(job, read, files, is_done=False)
    part.publish_outboxes(opened)
    done = JobReport(job, read, files)
    folder.write(name, done.to_json())
    return done


def report_name(run: RunPlan, number: int) -> str:
    """Of the report of a part that is done."""
    return f"{REPORTS}/prepare-{run.id}-{number:04d}.done"


def is_unfinished(folder: Publisher, run: RunPlan) -> bool:
    """Whether a part of a run is left to do."""
    return any(not folder.exists(report_name(run, number)) for number in range(run.n_parts))


class _Part:
    """The files of one part: ``RUN-0007.h5``, and ``RUN.1-0007.h5`` ... of further attempts."""

    def __init__(self, folder: Publisher, plan: FolderPlan, run: RunPlan, number: int) -> None:
        self._folder, self._plan, self._run, self._number = folder, plan, run, number

    def _name(self, kind: str, attempt: int) -> str:
        suffix = f".{attempt}" if attempt else ""
        return f"{kind}/{self._run.id}{suffix}-{self._number:04d}.h5"

    def published(self) -> list[str]:
        """Names of the part's files, in order."""
        return list(self._published())

    def _published(self) -> Iterator[str]:
        for attempt in count():
            name = self._name(PARTS, attempt)
            if not self._folder.exists(name):
                return
            yield name

    def read(self, opened: OpenSeat) -> tuple[RunReport, tuple[str, ...]]:
        """Read the documents that no file of the part has; the report and the file published."""
        while True:
            mine = self.published()
            name = self._name(PARTS, len(mine))
            with work_file(self._folder, opened.seat, name) as work:
                if self._folder.exists(name):  # published while this process waited
                    discard(work)
                    continue
                report = self._fill(work, mine, opened)
                is_mine = not _has_rows(work) or self._folder.publish(work, name)
                files = (name,) if self._folder.exists(name) else ()
                discard(work)
            if is_mine:
                return report, files

    def _fill(self, work: Path, mine: Sequence[str], opened: OpenSeat) -> RunReport:
        preparation = self._plan.check_preparation()
        settings = self._run.build_settings(self._plan.settings(), bool(preparation.ocr))
        plan = _reading_plan(self._plan, preparation)
        sources = read_list(self._folder, self._run, self._number)
        record = RunRecord(
            f"{self._run.id}-{self._number:04d}", len(sources), plan.levels, self._checkpoints()
        )
        pool = opened.reading_pool(plan, settings)
        known = [self._folder.fetch(name) for name in (*self._earlier(), *mine)]
        with (
            opened.writing(pool, work) as writer,
            StackedReader([*known, work]) as stacked,
        ):
            reader = cast("Reader", stacked)  # which it stands for
            intake = PartIntake(sources, preparation, reader, read_limits(settings))
            run = Run(plan, writer, intake, reader, record, opened.listen)
            with opened.running(run):
                return run.finish()

    def _checkpoints(self) -> dict[str, str]:
        models = (self._plan.encoder, self._plan.tagger)
        return {model.table: str(model.path()) for model in models if model is not None}

    def _earlier(self) -> list[str]:
        """The parts of earlier runs: what a part holds does not depend on others of its own run."""
        names = self._folder.list(PARTS)
        return [name for name in names if name.startswith(f"{PARTS}/") and self._is_before(name)]

    def _is_before(self, name: str) -> bool:
        return name.removeprefix(f"{PARTS}/").rpartition("-")[0] < self._run.id

    def publish_outboxes(self, opened: OpenSeat) -> None:
        """Make the outbox of each file of the part that lacks one, and of those left before it."""
        mine = [name for name in self._published() if not self._folder.exists(_outbox_of(name))]
        for published in [*sorted(left_parts(self._folder, self._earlier())), *mine]:
            part, name = self._folder.fetch(published), _outbox_of(published)
            with work_file(self._folder, opened.seat, name) as work:
                if write_outbox(part, self._plan.bits, work):
                    self._folder.publish(work, name)
                discard(work)


def left_parts(folder: Publisher, parts: Sequence[str]) -> set[str]:
    """Of the names of published parts those whose job ended before it had made their outbox.

    Their documents are known, so a later run does not read them, and that job may never be done:
    a build drops unfinished ones over the same files, and does not look at those over others.
    """
    # Reports tell of outboxes that were there, or were not needed: they are listed last.
    made = {*folder.list(OUTBOX), *folder.list(LISTS)}
    made.update(folder.list(REPORTS))
    return {name for name in parts if _is_left(Path(name).stem, made)}


def _outbox_of(part: str) -> str:
    return f"{OUTBOX}/{part.removeprefix(f'{PARTS}/')}"


def _is_left(stem: str, made: Container[str]) -> bool:
    """Whether a part has no outbox and no job that has ended; one without a list needs none."""
    part = part_of(stem)
    run = part.rpartition("-")[0]
    return (
        f"{OUTBOX}/{stem}.h5" not in made
        and f"{REPORTS}/prepare-{part}.done" not in made
        and f"{LISTS}/{run}.json" in made
    )


class PartIntake(Intake):
    """Documents of a part; the units of known ones were given out with the part that has them.

    Forgotten ones are read again: a compaction that broke off has freed their texts before them.
    """

    @cached_property
    def _forgotten(self) -> frozenset[bytes]:
        return Forgotten(self._reader).documents

    def _is_stored(self, documents: TableReader, key: bytes) -> bool:
        return super()._is_stored(documents, key) and key not in self._forgotten

    def _look_up(self, keys: Sequence[bytes]) -> tuple[KnownUnits | None, Counts] | None:
        documents = self._reader.table(tables.DOCUMENTS)
        at = documents.find(join_keys(keys))
        n_units = {
            level: int(documents.ragged_many(f"{level}_keys", at)[1].sum()) for level in LEVELS
        }
        n = len(keys)
        return None, Counts(n_loaded=n, n_unchanged=n, units_by_level=n_units)

    def find_departed(self) -> dict[str, str]:
        """None: what is gone is not decided by one part."""
        return {}


def _reading_plan(plan: FolderPlan, preparation: Preparation) -> Plan:
    """A plan by which no unit lacks anything, so that nothing is encoded; no model is needed."""
    table = plan.encoder.table
    return Plan(
        encoder=EncoderPlan(table, plan.encoder.model, EncoderSettings(), ""),
        tagger=None,
        products=(Product("encode", table, 0),),
        preparation=preparation,
        specs={
            tables.DOCUMENTS: tables.documents_spec(),
            tables.SOURCES: tables.sources_spec(),
            tables.RUNS: tables.runs_spec(),
        },
        devices=("cpu",),
        levels=plan.levels,
        terms=TermTables("", ""),
    )


def _has_rows(part: Path) -> bool:
    with Reader(part) as reader:
        names = (tables.DOCUMENTS, tables.SOURCES)
        return any(name in reader and reader.table(name).n_rows for name in names)
