"""Decides which job a free seat takes, where seats are lost, stand still or fail.

Pure: it is given facts and the time, starts nothing and waits for nothing. An engine asks it.

Guarantees:

- Every job is given out until a seat reports its end; the first report counts, later ones do not.
- The job of a lost seat is the next to be given out.
- A job that takes more than three times the median of those that ended stands still: when nothing
  waits, a further seat gets it, too, and after as long again another. Jobs are of one size, and may
  be done twice at once (`featpipe.build.jobs`), so this costs time of idle seats only.
- A job that twenty seats died with is given up.
- A seat that failed with a job gets no other one, unless that job fails on three seats (or on all
  there are to be): then it is given up with its last error, and the seats go on with the others.
- Memory: some hundred bytes a job.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Generic, TypeVar

from featpipe.errors import FeatpipeError, WorkerDied

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

Job = TypeVar("Job")

#: No job stands still before this, however short the others were: seats start workers, too.
PATIENCE_S = 60.0
#: Times the median that a job may take.
_SLOW = 3.0
#: Seats that may fail with a job before it is given up.
_MOST_FAILURES = 3
#: Seats that may die with a job. Machines that can be taken away at any time lose a few.
_MOST_LOSSES = 20


@dataclass(slots=True)
class _Open:
    """A job that seats are at, and no seat reported yet."""

    n_seats: int
    last_begun: float


@dataclass(slots=True)
class _Failed:
    """A job that seats could not do so far."""

    error: FeatpipeError
    seats: set[Hashable] = field(default_factory=set)


class Dispatch(Generic[Job]):
    """The jobs of a run, and the seats that are there to do them.

    Args:
        jobs: in the order in which they are to begin; hashable.
        n_seats: how many are to come, sooner or later.
        patience_s: a job that takes less long than this does not stand still.

    Attributes:
        n_done: jobs that ended.
        given_up: jobs that failed, with the last error of each.
        blamed: seats that failed with a job that another seat did, with their error.
    """

    def __init__(
        self, jobs: Iterable[Job], n_seats: int, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._waiting = deque(jobs)
        self._most_failures = min(_MOST_FAILURES, n_seats)
        self._patience_s = patience_s
        self._seats: dict[Hashable, Job | None] = {}
        self._open: dict[Job, _Open] = {}
        self._failed: dict[Job, _Failed] = {}
        self._n_losses: Counter[Job] = Counter()
        self._took: list[float] = []
        self._begins = True
        self.n_done = 0
        self.given_up: dict[Job, FeatpipeError] = {}
        self.blamed: dict[Hashable, FeatpipeError] = {}

    @property
    def is_finished(self) -> bool:
        """Whether every job was reported or given up."""
        return not self._waiting and not self._open

    @property
    def is_stuck(self) -> bool:
        """Whether jobs wait, and each seat that is there failed with one: see `go_on_with_these`.

        Seats that are to come, or to come back, may change that.
        """
        is_anyone_able = any(self._may_work(seat) for seat in self._seats)
        return bool(self._waiting and self._seats) and not self._open and not is_anyone_able

    def has_come(self, seat: Hashable) -> None:
        """A seat is there, without a job. A blamed one that was moved begins anew."""
        self._seats[seat] = None
        self.blamed.pop(seat, None)

    def has_gone(self, seat: Hashable) -> None:
        """A seat died, or was moved; what it had is given to another."""
        job = self._seats.get(seat)
        if job is not None:
            self._n_losses[job] += 1
            self.gave_back(seat)
        self._seats.pop(seat, None)
        if job is not None and self._n_losses[job] >= _MOST_LOSSES:
            self._give_up(job, WorkerDied(f"{_MOST_LOSSES} seats died with it"))
        for failed in self._failed.values():
            failed.seats.discard(seat)

    def next_job(self, seat: Hashable, now: float) -> Job | None:
        """A job for this seat, which is taken to begin it now; None when there is none for it."""
        if self._seats[seat] is not None or not self._may_work(seat):
            return None
        job = self._waiting.popleft() if self._waiting else self._standing(now)
        if job is not None:
            opened = self._open.get(job)
            self._open[job] = _Open(opened.n_seats + 1 if opened else 1, now)
            self._seats[seat] = job
        return job

    def has_ended(self, seat: Hashable, took_s: float) -> bool:
        """A seat reports its job; whether it is the first to report this one."""
        job = self._seats[seat]
        self._seats[seat] = None
        if job is None or self._open.pop(job, None) is None:
            return False
        failed = self._failed.pop(job, None)
        if failed:
            self.blamed.update(dict.fromkeys(failed.seats, failed.error))
        self._n_losses.pop(job, None)
        self._took.append(took_s)
        self.n_done += 1
        return True

    def gave_back(self, seat: Hashable) -> None:
        """A seat leaves its job unfinished; another is to take it."""
        job = self._seats[seat]
        self._seats[seat] = None
        opened = None if job is None else self._open.get(job)
        if job is None or opened is None:
            return  # reported by another seat
        opened.n_seats -= 1
        if not opened.n_seats:
            del self._open[job]
            if self._begins:
                self._waiting.appendleft(job)

    def has_failed(self, seat: Hashable, error: FeatpipeError) -> None:
        """A seat could not do its job."""
        job = self._seats[seat]
        failed = None
        if job is not None and job in self._open:
            failed = self._failed.setdefault(job, _Failed(error))
            failed.error = error
            failed.seats.add(seat)
        self.gave_back(seat)
        if job is not None and failed is not None and len(failed.seats) >= self._most_failures:
            self._give_up(job, error)

    def go_on_with_these(self) -> None:
        """Give up the jobs that failed, so that the seats may go on: no better one is coming."""
        self._most_failures = 1
        self.blamed.clear()
        for job, failed in list(self._failed.items()):
            self._give_up(job, failed.error)

    def begin_nothing(self) -> None:
        """Leave out what waits: the run is to end with what seats have at present."""
        self._begins = False
        self._waiting.clear()

    def _may_work(self, seat: Hashable) -> bool:
        failing = any(seat in failed.seats for failed in self._failed.values())
        return not failing and seat not in self.blamed

    def _give_up(self, job: Job, error: FeatpipeError) -> None:
        """Unless a seat is at it still."""
        if job in self._waiting:
            self._waiting.remove(job)
            self._failed.pop(job, None)
            self.given_up[job] = error

    def _standing(self, now: float) -> Job | None:
        """The job that was given out first, if it is slow."""
        if not self._took or not self._open:
            return None
        job, opened = min(self._open.items(), key=lambda item: item[1].last_begun)
        waited_s = now - opened.last_begun
        if waited_s <= self._patience_s:
            return None
        return job if waited_s > _SLOW * median(self._took) else None
