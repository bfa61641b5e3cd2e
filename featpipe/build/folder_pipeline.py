"""The pipeline of a folder cache: plans, has an engine do the jobs, adds their reports up.

Guarantees: those of `featpipe.build.jobs`. Killed at any point, the same call again does the rest.
Memory grows with files and jobs, not with documents or texts.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from featpipe.build.folder_dry_run import dry_run_folder
from featpipe.build.folder_sync import check_roots, let_go, list_documents
from featpipe.build.jobs import find_engine
from featpipe.build.progress import Progress
from featpipe.build.publish import open_folder
from featpipe.build.shards.folder_plan import (
    FolderPlan,
    Models,
    find_plan,
    plan_folder,
    plan_space,
)
from featpipe.build.shards.job import Job, Seat, Total
from featpipe.build.shards.part_lists import plan_run
from featpipe.build.shards.prepare import is_unfinished
from featpipe.documents import Source
from featpipe.documents.find import search
from featpipe.documents.source import GivenText
from featpipe.errors import UsageError
from featpipe.pool.devices import default_devices
from featpipe.settings import BuildSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from featpipe.build.dry_run import DryRunReport
    from featpipe.build.jobs import Engine, EngineMaker
    from featpipe.build.publish import Publisher
    from featpipe.build.shards.job import JobReport
    from featpipe.build.shards.part_lists import RunPlan
    from featpipe.report import RunReport


class FolderPipeline:
    """Builds a folder cache from documents.

    ::

        pipeline = FolderPipeline("corpus.fp", n_shards=64)
        report = pipeline.build(["contracts/"])

    Args:
        folder: the cache, made when it does not exist.
        models: encoder and tagger with their settings; by default the folder's own.
        settings: levels, limits and deadlines; levels and analyser are those of the folder.
        n_shards: of a new folder, a power of two; 64 by default.
        seat: what a job may use where it runs. The precision of a new folder is that of its
            devices, which need not be of this machine.
        on: the engine that gets the jobs done, by name or address; by default this process.
        n_seats: the most that do jobs at a time, for an engine that has several.

    """

    def __init__(  # noqa: PLR0913  # the one public door: each argument is one decision of the user
        self,
        folder: str | Path,
        models: Models | None = None,
        *,
        settings: BuildSettings | None = None,
        n_shards: int | None = None,
        seat: Seat | None = None,
        on: str | EngineMaker = "local",
        n_seats: int | None = None,
    ) -> None:
        self._folder = open_folder(folder)
        self._models, self._settings = models or Models(), settings
        self._n_shards, self._seat = n_shards, seat or Seat()
        address = on if isinstance(on, str) and "://" in on else ""
        make = find_engine(on) if isinstance(on, str) else on
        self._make_engine = partial(make, address=address, n_seats=n_seats)
        self._engine: Engine | None = None
        self._is_stopping = False

    @property
    def folder(self) -> Publisher:
        """The files of the cache."""
        return self._folder

    def plan(self) -> FolderPlan:
        """The plan of the folder, made if there is none.

        Raises:
            UsageError: the folder has another one.
            CheckpointError: a model that cannot be used.

        """
        return plan_folder(
            self._folder, self._models, self._settings, self._devices(), self._n_shards
        )

    def plan_of_folder(self) -> FolderPlan:
        """The plan that the folder has. Raises UnreadableDictionary."""
        return FolderPlan.read(self._folder)

    def plan_space(self) -> str:
        """Plan the models for all texts of the folder; the name of their space.

        Raises:
            UnreadableDictionary: the folder has no plan.
            CheckpointError, UsageError: models that cannot be used.

        """
        plan = self.plan_of_folder()
        return plan_space(self._folder, plan, self._models, self._devices())

    def plan_documents(
        self,
        documents: Sequence[str | Path | Source],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        n_parts: int | None = None,
    ) -> RunPlan:
        """List the documents of a run, cut into parts.

        Args:
            documents: as of `featpipe.Pipeline.build`; no texts at hand.
            include: as there.
            exclude: as there.
            n_parts: by default as the bytes of the files ask for.

        Raises:
            MissingDocuments: a path that does not exist, or nothing to read.
            UsageError: texts at hand; as :meth:`plan`.

        """
        paths = [one for one in documents if not isinstance(one, Source)]
        given = [one for one in documents if isinstance(one, Source)]
        _refuse_texts(given)
        found = search(paths, include, exclude, own=Path(self._folder.address)) if paths else None
        self.plan()  # not before: a folder that is named by mistake stays as it is
        return plan_run(
            self._folder,
            sorted([*given, *(found.sources if found else ())]),
            self._settings or BuildSettings(),
            is_unfinished=lambda run: is_unfinished(self._folder, run),
            n_parts_asked=n_parts,
            notes=found.notes if found else (),
        )

    def build(
        self,
        documents: Sequence[str | Path | Source],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        n_parts: int | None = None,
        sync: bool = False,
        listen: Callable[[Progress], None] | None = None,
    ) -> RunReport:
        """Make sure that every unit of these documents has its features in the cache.

        Args:
            documents: as of :meth:`plan_documents`.
            include: as there.
            exclude: as there.
            n_parts: as there.
            sync: documents that are gone from these folders and files leave the cache, once all
                jobs are done (see `featpipe.build.folder_sync`).
            listen: called with a `Progress` a few times a second, or where jobs run elsewhere, as
                they end.

        Raises:
            MissingDocuments, UsageError: as :meth:`plan_documents`; with ``sync`` a folder that
                holds no document while the cache has some from there.
            DictionaryLocked, WriteFailed, PoolBroken: as `featpipe.Pipeline.build`.

        """
        address, chosen = self._folder.address, (documents, include, exclude)
        if sync:
            check_roots(address, list_documents(address, *chosen))
        run = self.plan_documents(documents, include=include, exclude=exclude, n_parts=n_parts)
        notes = (*run.notes, *self._notes(self.plan_of_folder()))
        work = _Work(Total(run.id, dict.fromkeys(notes)), run.n_files, listen)
        parts = [Job("prepare", number, run.id) for number in range(run.n_parts)]
        with self._working(work):
            self._do(parts, work)
            self._do(self._shards(), work)
        report = work.finish()
        if not sync or report.was_interrupted:
            return report
        return replace(report, n_departed=let_go(address, list_documents(address, *chosen)))

    def dry_run(
        self,
        documents: Sequence[str | Path | Source],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        sync: bool = False,
    ) -> DryRunReport:
        """Count what :meth:`build` would do, in this process; nothing is written.

        Texts of documents that were prepared and not encoded yet count as missing. Raises as
        :meth:`build`.
        """
        devices = self._devices()
        plan = find_plan(self._folder, self._models, self._settings, devices, self._n_shards)
        found = list_documents(self._folder.address, documents, include, exclude)
        if sync:
            check_roots(self._folder.address, found)
        settings = self._settings or BuildSettings()
        return dry_run_folder(self._folder, plan, settings, found, devices, sync=sync)

    def encode_stored(self, *, listen: Callable[[Progress], None] | None = None) -> RunReport:
        """Give every stored text its features by other models; no document is read.

        Raises:
            UnreadableDictionary: the folder has no plan.
            CheckpointError, UsageError: models that cannot be used.

        """
        space = self.plan_space()
        notes = self._notes(self.plan_of_folder().for_space(self._folder, space))
        work = _Work(Total(f"models of {self._folder.address}", dict.fromkeys(notes)), 0, listen)
        with self._working(work):
            self._do([replace(job, space=space) for job in self._shards()], work)
        return work.finish()

    @property
    def is_running(self) -> bool:
        """Whether there is work in flight that :meth:`stop_after_current` would wait for."""
        return self._engine is not None

    def stop_after_current(self) -> bool:
        """Have the jobs under way publish what they have, and :meth:`build` return its report.

        Safe to call from a signal handler or another thread. Returns whether a build is running.
        """
        self._is_stopping = True
        return self._engine is not None and self._engine.stop_after_current()

    def _devices(self) -> tuple[str, ...]:
        return self._seat.devices or default_devices()

    def _notes(self, plan: FolderPlan) -> Iterator[str]:
        """Why the plan has its precision, where the user left it open."""
        asked = self._models.encoder
        if plan.encoder.note and (asked is None or asked.precision == "auto"):
            yield plan.encoder.note

    def _shards(self) -> list[Job]:
        return [Job("encode", n) for n in range(self.plan_of_folder().n_shards)]

    @contextmanager
    def _working(self, work: _Work) -> Iterator[None]:
        self._is_stopping = False
        self._engine = self._make_engine(self._folder.address, listen=work.show)
        try:
            yield
            work.note(self._engine.notes)
        finally:
            self._engine.close()
            self._engine = None

    def _do(self, jobs: Sequence[Job], work: _Work) -> None:
        if self._engine is None or self._is_stopping:
            work.n_left += len(jobs)
            return
        n_done = 0
        for report in self._engine.run(jobs, self._seat):
            n_done += 1
            work.add(report)
        work.n_left += len(jobs) - n_done


class _Work:
    """Reports and progress of the jobs of one build."""

    def __init__(
        self, total: Total, n_sources: int, listen: Callable[[Progress], None] | None
    ) -> None:
        self._total, self._listen = total, listen
        self._started = monotonic()
        self._base = Progress(n_sources, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, None)
        self.n_left = 0
        """Jobs that were not begun."""

    def add(self, report: JobReport) -> None:
        """A job has ended."""
        self._total.add(report)
        self._base = _sum(self._base, _progress_of(report.run))
        if self._listen is not None:
            self._listen(self._now(self._base))

    def show(self, progress: Progress) -> None:
        """That of a job under way."""
        if self._listen is not None:
            self._listen(self._now(_sum(self._base, progress)))

    def note(self, lines: Iterable[str]) -> None:
        """What the engine has to tell."""
        self._total.notes.update(dict.fromkeys(lines))

    def finish(self) -> RunReport:
        """The report of the whole."""
        report = self._total.finish(monotonic() - self._started)
        return replace(report, was_interrupted=True) if self.n_left else report

    def _now(self, progress: Progress) -> Progress:
        # A file may hold many documents, which only its job counts.
        n_sources = max(progress.n_sources, progress.n_sources_done)
        seconds = monotonic() - self._started
        return replace(progress, n_sources=n_sources, seconds=seconds, seconds_left=None)


def _progress_of(run: RunReport) -> Progress:
    return Progress(
        n_sources=0,
        n_sources_done=run.n_loaded + len(run.quarantined),
        n_quarantined=len(run.quarantined),
        n_units=run.n_units,
        n_unique=run.n_unique,
        n_hits=run.n_hits,
        n_encoded=run.n_encoded,
        n_waiting=0,
        n_waiting_others=0,
        seconds=0.0,
        seconds_left=None,
    )


def _sum(before: Progress, now: Progress) -> Progress:
    """Counts of both; the sources are those of the first."""
    names = [field.name for field in fields(Progress) if field.name.startswith("n_")]
    both = {name: getattr(before, name) + getattr(now, name) for name in names}
    return replace(before, **both | {"n_sources": before.n_sources})


def _refuse_texts(sources: Sequence[Source]) -> None:
    for source in sources:
        if isinstance(source.part, GivenText):
            raise UsageError(
                f"{source.id} is a text at hand, which no other machine can read",
                hint="write it to a file, or name a file as the cache",
            )
