"""The engine on Ray: jobs on the seats of the cluster that this process is connected to.

Guarantees: those of :mod:`featpipe.build.dispatch`, and

- A seat that is lost is started again by Ray, elsewhere if its node is gone; its job does not wait
  for it. Calls are never retried by Ray itself: it resubmits those of a frozen node after minutes.
- The run ends, with an error, when the cluster has had no seat for ten minutes.
- No seat, and no process of one, outlives the run or the driver.
- The driver holds some hundred bytes a job; the object store holds nothing.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from featpipe.build.dispatch import PATIENCE_S, Dispatch
from featpipe.errors import PoolBroken
from featpipe.integrations.ray_seat import Demand, FeatpipeSeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from featpipe.build.jobs import Job, JobReport, Seat
    from featpipe.errors import FeatpipeError
    from featpipe.integrations.ray_seat import Outcome, Place, Worker

log = logging.getLogger(__name__)

#: How often the driver looks at seats that are idle, absent or slow.
_TICK_S = 1.0


@dataclass(slots=True)
class _Seated:
    """An actor, the call it is at, and where it was when it sat down last."""

    number: int
    actor: Any  # Any: a handle of Ray's
    call: Any = None
    place: Place | None = None
    left: Place | None = None
    """A process that was told to end, and may answer once more."""

    def __str__(self) -> str:
        return "a seat" if self.place is None else f"the seat on {self.place.host}"


class RayEngine:
    """Runs jobs; one run at a time.

    Args:
        open_worker: makes, on a seat, what does the jobs; pickled.
        workers: the most seats there may be; those beyond what the cluster has wait for nodes to
            join, and an autoscaler sees them wait. By default as many as fit when a run begins.
        wait_s: how long the cluster may have no seat at all.
        patience_s: see :class:`featpipe.build.dispatch.Dispatch`.

    """

    def __init__(
        self,
        open_worker: Callable[[Seat], Worker],
        *,
        workers: int | None = None,
        wait_s: float = 600.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._open_worker, self._workers = open_worker, workers
        self._wait_s, self._patience_s = wait_s, patience_s
        self._calls: dict[Any, _Seated] = {}  # Any: references of Ray's
        self._idle: list[_Seated] = []
        self._absent: list[_Seated] = []
        self._events: Counter[str] = Counter()
        self._blamed: dict[str, None] = {}
        self._is_stopping = False

    @property
    def notes(self) -> list[str]:
        """In words: seats that were lost or left out, jobs that were done twice."""
        return [*self._blamed, *(f"{n} {what}" for what, n in sorted(self._events.items()))]

    def stop_after_current(self) -> bool:
        """Begin nothing new; have every seat publish what it has. Safe in a signal handler."""
        self._is_stopping = True
        return True

    def run(self, jobs: Iterable[Job], seat: Seat) -> Iterator[JobReport]:
        """The report of each job, as they end.

        Args:
            jobs: of one kind.
            seat: of each actor: ``threads`` are its cores, ``cuda:0``, ``cuda:1`` ... its cards,
                which it has for ``encode`` only.

        Raises:
            PoolBroken: there was no seat for ``wait_s``, or none can start.
            FeatpipeError: jobs failed wherever they were tried; raised after all others ended.

        """
        todo = list(jobs)
        demand = Demand.of(todo, seat)
        n_seats = min(self._workers or _count_fitting(demand), len(todo))
        dispatch: Dispatch[Job] = Dispatch(todo, n_seats, patience_s=self._patience_s)
        everyone = self._take_seats(n_seats, demand)
        try:
            yield from self._work(dispatch, demand)
            self._note_blamed(dispatch, everyone)
        finally:
            for seated in everyone:
                ray.kill(seated.actor)
            self._calls.clear()
            self._idle.clear()
            self._absent.clear()
        if dispatch.given_up:
            raise _summary(dispatch.given_up)

    # ---- the loop

    def _work(self, dispatch: Dispatch[Job], demand: Demand) -> Iterator[JobReport]:
        seated_at = able_at = time.monotonic()
        has_told_seats = False
        while not dispatch.is_finished:
            if self._is_stopping and not has_told_seats:
                has_told_seats = True
                dispatch.begin_nothing()
                self._tell_seats()
            for seated in self._ended():
                report = self._take(seated, dispatch)
                if report is not None:
                    yield report
            self._hand_out(dispatch)
            now = time.monotonic()
            if self._idle or any(seated.place for seated in self._calls.values()):
                seated_at = now
            if not dispatch.is_stuck:
                able_at = now
            if now - seated_at > self._wait_s:
                raise self._no_seat(demand)
            if now - able_at > self._patience_s:
                dispatch.go_on_with_these()

    def _ended(self) -> list[_Seated]:
        """Seats whose call has ended; after a tick there may be none."""
        if not self._calls:
            time.sleep(_TICK_S)
            return []
        ended, _ = ray.wait(list(self._calls), timeout=_TICK_S)
        return [self._calls.pop(call) for call in ended]

    def _take(self, seated: _Seated, dispatch: Dispatch[Job]) -> JobReport | None:
        """What a call brought; a report only if it is the first of its job."""
        try:
            answer = ray.get(seated.call)
        except RayActorError as error:  # lost, or not to be reached at present
            self._lose(seated, dispatch, error)
            return None
        if answer == seated.left:
            self._absent.append(seated)
            return None
        if seated.place is None:
            seated.place = answer
            dispatch.has_come(seated.number)
            self._idle.append(seated)
            return None
        return self._finish(seated, answer, dispatch)

    def _finish(
        self, seated: _Seated, outcome: Outcome, dispatch: Dispatch[Job]
    ) -> JobReport | None:
        report = outcome.report
        is_first = False
        if outcome.error is not None:
            log.warning("a job failed on %s: %s", seated, outcome.error.message)
            dispatch.has_failed(seated.number, outcome.error)
        elif report is not None and (report.is_done or self._is_stopping):
            is_first = dispatch.has_ended(seated.number, outcome.took_s)
            if not is_first:
                self._events["jobs were done twice, as their seats had stood still"] += 1
        else:
            dispatch.gave_back(seated.number)
        if outcome.is_leaving and not self._is_stopping:
            self._move(seated, dispatch)
        else:
            self._idle.append(seated)
        return report if is_first else None

    # ---- seats

    def _take_seats(self, n: int, demand: Demand) -> list[_Seated]:
        kind = ray.remote(FeatpipeSeat).options(
            num_cpus=demand.n_cpus,
            num_gpus=demand.n_gpus,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        everyone = [_Seated(number, kind.remote(self._open_worker, demand)) for number in range(n)]
        self._absent.extend(everyone)
        self._ask_absent()
        return everyone

    def _ask_absent(self) -> None:
        """Have seats that Ray has started, or will start, sit down."""
        for seated in self._absent:
            seated.place = None
            seated.call = seated.actor.sit.remote()
            self._calls[seated.call] = seated
        self._absent.clear()

    def _lose(self, seated: _Seated, dispatch: Dispatch[Job], error: RayActorError) -> None:
        if error.actor_init_failed:  # Ray does not start it again
            reason = str(error).strip().splitlines()[-1]
            raise PoolBroken(
                f"a seat cannot start on this cluster: {reason}",
                hint="install the same featpipe, with the extra ray, on every node",
            ) from error
        if seated.place is not None:
            log.warning("%s is lost (%s); its job goes to another", seated, type(error).__name__)
            self._events["seats were lost and replaced"] += 1
            dispatch.has_gone(seated.number)
        self._absent.append(seated)

    def _move(self, seated: _Seated, dispatch: Dispatch[Job]) -> None:
        """Have Ray start the seat again, on another node if this one is going."""
        self._events["seats were told to end, published what they had, and were replaced"] += 1
        dispatch.has_gone(seated.number)
        seated.left = seated.place
        ray.kill(seated.actor, no_restart=False)
        self._absent.append(seated)

    def _hand_out(self, dispatch: Dispatch[Job]) -> None:
        self._ask_absent()
        still_idle = []
        for seated in self._idle:
            job = dispatch.next_job(seated.number, time.monotonic())
            if job is None:
                still_idle.append(seated)
                continue
            seated.call = seated.actor.do.remote(job)
            self._calls[seated.call] = seated
        self._idle = still_idle

    def _tell_seats(self) -> None:
        """SIGTERM to every seat at work: further calls would wait for the one at hand."""
        for seated in self._calls.values():
            if seated.place is not None:
                there = NodeAffinitySchedulingStrategy(seated.place.node, soft=False)
                terminate = ray.remote(_terminate).options(num_cpus=0, scheduling_strategy=there)
                terminate.remote(seated.place.pid)

    def _no_seat(self, demand: Demand) -> PoolBroken:
        return PoolBroken(
            f"the cluster had no seat of {demand} for {self._wait_s:g} s",
            hint="ray status shows what it has; ask for less (--cpus, --gpus), or add nodes",
        )

    def _note_blamed(self, dispatch: Dispatch[Job], everyone: Sequence[_Seated]) -> None:
        for seated in everyone:
            error = dispatch.blamed.get(seated.number)
            if error is not None:
                self._blamed[f"{seated} was left out: {error.message}"] = None


def _count_fitting(demand: Demand) -> int:
    """Seats that the nodes of the cluster have room for; at least one."""
    asked = (("CPU", demand.n_cpus), ("GPU", demand.n_gpus))
    free = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    fitting = (min(int(one.get(name, 0) / n) for name, n in asked if n) for one in free)
    return max(1, sum(fitting))


def _terminate(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _summary(given_up: dict[Job, FeatpipeError]) -> FeatpipeError:
    """The last error, with its job, and how many others were given up."""
    job, error = next(reversed(given_up.items()))
    n_others = len(given_up) - 1
    also = f" (and {n_others} other jobs)" if n_others else ""
    error.message = f"{job}{also}: {error.message}"
    return error
