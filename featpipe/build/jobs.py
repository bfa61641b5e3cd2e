"""Jobs: a folder cache is built by any number of processes on any number of machines.

::

    featpipe shard plan corpus.fp DOCS --shards 64
    every machine:  for job in its share of list_jobs("corpus.fp"): run_job("corpus.fp", job, seat)

Guarantees:

- A job's only state is the folder's files. It may be killed, repeated, or run twice at once,
  anywhere: rows are those that one machine makes, and each text's are stored once.
- Published files are whole and never written again; a reader may open the folder at any time.
- A machine whose rows would differ (other weights, another featpipe) is refused with the reason.

Jobs ``prepare`` come first: ``encode`` computes what the outboxes hold when it begins.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from tempfile import gettempdir
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self

from featpipe.build.publish import open_folder
from featpipe.build.shards.encode import encode
from featpipe.build.shards.folder_plan import FolderPlan, list_spaces
from featpipe.build.shards.job import Job, JobReport, Kind, Seat
from featpipe.build.shards.open_seat import OpenSeat
from featpipe.build.shards.part_lists import is_superseded, read_run_plans
from featpipe.build.shards.prepare import prepare
from featpipe.build.shards.work_file import discard_left
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from featpipe.build.progress import Progress
    from featpipe.build.publish import Publisher
    from featpipe.build.shards.part_lists import RunPlan

__all__ = [
    "Engine",
    "Job",
    "JobReport",
    "LocalEngine",
    "Seat",
    "SeatJobs",
    "find_engine",
    "list_jobs",
    "run_job",
]

#: Engines of other packages: name -> an `EngineMaker`.
ENGINES = "featpipe.engines"


def run_job(folder: str | Path | Publisher, job: Job, seat: Seat) -> JobReport:
    """Do one job, or find that it has been done. `SeatJobs` keeps workers for several.

    Raises:
        UnreadableDictionary: the folder has no plan.
        UsageError: no such job, or documents would be read otherwise here than planned.
        CheckpointError: texts would be encoded otherwise here than planned.
        UnknownDevice: the seat names a device that this machine does not have.
        DictionaryLocked, WriteFailed, PoolBroken: as a build.

    """
    with SeatJobs(folder, seat) as jobs:
        return jobs.run(job)


def list_jobs(folder: str | Path | Publisher, kind: Kind, *, space: str | None = None) -> list[Job]:
    """Every job of a kind, done or not: the parts of all runs, or the shards of every space.

    Args:
        folder: the cache.
        kind: ``prepare`` or ``encode``.
        space: encode for this one only; "" for the folder's own.

    Raises:
        UnreadableDictionary: the folder has no plan.
        UnknownSpace: it has no such space.

    """
    opened = open_folder(folder)
    plan = FolderPlan.read(opened)
    if kind == "prepare":
        runs = read_run_plans(opened)
        return [Job(kind, number, run.id) for run in runs for number in range(run.n_parts)]
    spaces = ["", *list_spaces(opened)] if space is None else [space]
    for name in spaces:
        plan.for_space(opened, name)
    return [Job(kind, number, "", name) for name in spaces for number in range(plan.n_shards)]


class SeatJobs:
    """Does jobs on one folder, one after the other, with workers that stay warm.

    Args:
        folder: its path, or its files.
        seat: what the workers may use of this machine.
        listen: called with the progress of the job under way, a few times a second.
        clock: seconds, for the seat's ``publish_every_s``.

    """

    def __init__(
        self,
        folder: str | Path | Publisher,
        seat: Seat,
        listen: Callable[[Progress], None] | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._folder = open_folder(folder, seat.scratch)
        if seat.scratch is None and self._folder.work_folder() is None:
            seat = replace(seat, scratch=gettempdir())  # no file grows in an object store
        self._opened = OpenSeat(seat, listen, clock)
        self._plan: FolderPlan | None = None
        self._runs: dict[str, RunPlan] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers."""
        self._opened.close()

    def run(self, job: Job) -> JobReport:
        """As `run_job`."""
        if self._plan is None:
            self._plan = FolderPlan.read(self._folder)
            discard_left(self._folder, self._opened.seat, partial(is_superseded, self._folder))
        if job.kind == "encode":
            plan = self._plan.for_space(self._folder, job.space)
            return encode(self._folder, plan, job, self._opened)
        return prepare(self._folder, self._plan, self._find_run(job), job.number, self._opened)

    def stop_after_current(self) -> bool:
        """Have the job under way commit and publish what it has, and return its report.

        Safe to call from a signal handler or another thread. It is not done then; no further job
        of this seat computes anything.
        """
        return self._opened.stop_after_current()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop_after_current` was called."""
        return self._opened.is_stopping

    def _find_run(self, job: Job) -> RunPlan:
        if job.run not in self._runs:
            self._runs = {run.id: run for run in read_run_plans(self._folder)}
            self._runs[""] = max(self._runs.values(), key=lambda run: run.id, default=None)  # type: ignore[assignment]  # looked at below
        run = self._runs.get(job.run)
        if run is None:
            raise UsageError(
                f"{self._folder.address} has no run {job.run or 'over documents'}",
                hint=f"featpipe shard status {self._folder.address}",
            )
        return run


class Engine(Protocol):
    """Gets jobs done: each at least once, in any order, anywhere. It carries no data."""

    @property
    def notes(self) -> Sequence[str]:
        """What is to be told of the runs, such as machines that were lost, in words."""

    def run(self, jobs: Iterable[Job], seat: Seat) -> Iterator[JobReport]:
        """The report of every job, as they end.

        Args:
            jobs: of one kind.
            seat: what each job may use where it runs.

        """

    def stop_after_current(self) -> bool:
        """Begin nothing new, and have the jobs under way publish what they have.

        Safe in a signal handler.
        """

    def close(self) -> None:
        """End what runs have left open. There is no further run."""


class LocalEngine:
    """Does jobs in this process, one after the other.

    Args:
        folder: the cache.
        listen: as of `SeatJobs`.
        address: of no meaning here.
        n_seats: likewise: there is one.

    """

    def __init__(
        self,
        folder: str | Path | Publisher,
        *,
        listen: Callable[[Progress], None] | None = None,
        address: str = "",  # noqa: ARG002  # as of every engine
        n_seats: int | None = None,  # noqa: ARG002
    ) -> None:
        self._folder, self._listen = folder, listen
        self._jobs: SeatJobs | None = None
        self._is_stopping = False

    def run(self, jobs: Iterable[Job], seat: Seat) -> Iterator[JobReport]:
        """The report of every job, in order, until `stop_after_current`."""
        with SeatJobs(self._folder, seat, self._listen) as self._jobs:
            for job in jobs:
                if self._is_stopping:
                    return
                yield self._jobs.run(job)

    def stop_after_current(self) -> bool:
        """End with the job under way, which publishes what it has; safe in a signal handler."""
        self._is_stopping = True
        return self._jobs is not None and self._jobs.stop_after_current()

    @property
    def notes(self) -> Sequence[str]:
        """None: reports of jobs tell all."""
        return ()

    def close(self) -> None:
        """Nothing is left open."""


class EngineMaker(Protocol):
    """Makes an engine: what an entry point of the group names."""

    def __call__(
        self,
        folder: str,
        *,
        listen: Callable[[Progress], None] | None = None,
        address: str = "",
        n_seats: int | None = None,
    ) -> Engine:
        """The engine of one build.

        Args:
            folder: the cache.
            listen: as of `SeatJobs`; an engine elsewhere may leave it uncalled.
            address: of a cluster, such as ``ray://host:10001``; "" for the one at hand.
            n_seats: the most that do jobs at a time, for an engine that has several.

        """


def find_engine(name: str) -> EngineMaker:
    """An engine by its name or address: ``local``, or one of an installed package.

    Raises:
        UsageError: no engine of this name.

    """
    if name == "local":
        return LocalEngine
    name, _, _ = name.partition("://")
    found = {point.name: point for point in entry_points(group=ENGINES)}
    if name not in found:
        raise UsageError(
            f"no engine {name!r} is installed", hint=f"choose from {', '.join(['local', *found])}"
        )
    maker: EngineMaker = found[name].load()
    return maker
