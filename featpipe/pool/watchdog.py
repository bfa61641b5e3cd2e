"""The watchdog: replaces workers that are stopped, and kills those that do not end at a close.

A stopped process (SIGSTOP, a job suspended from a shell) causes no event on any descriptor. So the
states of processes are read every few seconds, only while a worker has a task or starts.

- A stopped worker is named in a warning when first seen, and killed after its role's
  ``stopped_deadline_s``; its task is given to another, as after any other death.
- One held by a debugger or busy in the kernel is left alone.
- A task without a deadline that takes very long is named in a warning, at doubling intervals, with
  the state of its process.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from featpipe.pool.log_thread import log
from featpipe.pool.task import Cause, Loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from featpipe.pool.forkserver import Forkservers
    from featpipe.pool.role import Role
    from featpipe.pool.scheduler import Scheduler
    from featpipe.pool.workers import Worker, WorkerTable

CHECK_S = 2.5
#: A task without a deadline is named after so long, and whenever that has doubled.
LONG_S = 120.0
#: A wait that overran by this much was not merely late on a busy machine.
LATE_S = 1.0

_STATES = {
    "R": "running",
    "S": "asleep",
    "D": "waiting in the kernel, as for a disk that does not answer",
    "T": "stopped",
    "t": "held by a debugger",
}


class Watchdog:
    """Kills workers that make no progress; their ends are reported as any other.

    Used in the hub's thread. Where a worker is yet to be forked, or its end can only be reported by
    its fork server, the fork server is watched in its place.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        scheduler: Scheduler,
        workers: WorkerTable,
        forkservers: Forkservers,
    ) -> None:
        self._roles, self._scheduler = roles, scheduler
        self._workers, self._forkservers = workers, forkservers
        deadlines = (role.stopped_deadline_s for role in roles.values())
        self._detector = StallDetector(min(CHECK_S, *deadlines))
        self.next_check: float | None = None
        """When to look next whether a worker is busy; None: look now."""

    def wake_at(self, now: float) -> float | None:
        """When to check next; None while no worker is busy."""
        self.next_check = self._detector.wake_at(now, is_busy=self._scheduler.is_busy)
        return self.next_check

    def check(self, now: float) -> None:
        """Kill workers that were stopped for too long, if a check is due."""
        if self._detector.is_due(now):
            for number in self._detector.check(self._busy(), now):
                self._give_up(self._workers[number])
            self.next_check = None

    def kill_due(self, now: float) -> None:
        """At a close: kill the workers whose time to stop by themselves is over."""
        for worker in self._workers.take_due(now):
            self._workers.kill(worker)
            forkserver = self._awaited_forkserver(worker)
            if forkserver is not None:  # nothing is wrong with it: it was still starting
                self._workers.kill(forkserver)

    def _busy(self) -> Iterator[Watched]:
        for number, role, task in self._scheduler.busy_workers():
            worker = self._workers[number]
            forkserver = self._awaited_forkserver(worker)
            yield Watched(
                number,
                worker.name if forkserver is None else f"the fork server of {worker.name}",
                (forkserver or worker).pid or 0,
                self._roles[role].stopped_deadline_s,
                task.number if task is not None else 0,
                task is None or task.deadline_s is not None,
            )

    def _give_up(self, worker: Worker) -> None:
        forkserver = self._awaited_forkserver(worker)
        if forkserver is not None:  # its workers are then started, or their ends seen, without it
            self._forkservers.give_up(forkserver)
            return
        words = f"({worker.name}, pid {worker.pid}) was stopped (SIGSTOP) and did not go on"
        worker.reason = Loss(Cause.STOPPED, words)
        self._workers.kill(worker)

    def _awaited_forkserver(self, worker: Worker) -> Worker | None:
        """The fork server that is to fork this worker or to report its end."""
        if worker.pid is not None and not worker.is_silent:
            return None
        return self._forkservers.server_of(worker.number)


class Watched(NamedTuple):
    """A worker that is busy."""

    number: int
    name: str
    pid: int
    """Its own, or that of the fork server watched in its place."""
    stopped_s: float
    """How long it may be stopped."""
    task: int
    """Number of its first task; 0 while it starts."""
    has_deadline: bool


class _Record:
    def __init__(self, task: int, now: float) -> None:
        self.task, self.since, self.long_s = task, now, LONG_S
        self.stopped_since: float | None = None


class StallDetector:
    """Finds workers that were stopped for too long. Pure but for ``state_of``.

    Args:
        check_s: seconds between two checks.
        state_of: the letter that /proc gives for a process; empty when there is none.
    """

    def __init__(
        self, check_s: float = CHECK_S, state_of: Callable[[int], str] | None = None
    ) -> None:
        self._check_s = check_s
        self._state_of = state_of or state_of_process
        self._records: dict[int, _Record] = {}
        self._next_check: float | None = None

    def wake_at(self, now: float, *, is_busy: bool) -> float | None:
        """When to check next; None while no worker is busy."""
        if not is_busy:
            self._next_check = None
            self._records.clear()
        elif self._next_check is None:
            self._next_check = now + self._check_s
        return self._next_check

    def is_due(self, now: float) -> bool:
        """Whether it is time to check."""
        return self._next_check is not None and self._next_check <= now

    def check(self, workers: Iterable[Watched], now: float) -> list[int]:
        """The numbers of the workers to give up."""
        before, self._records = self._records, {}
        given_up = []
        for worker in workers:
            record = before.get(worker.number)
            if record is None or record.task != worker.task:
                record = _Record(worker.task, now)
            self._records[worker.number] = record
            state = self._state_of(worker.pid)
            if _is_stopped_too_long(worker, record, state, now):
                given_up.append(worker.number)
            _warn_if_long(worker, record, state, now)
        self._next_check = now + self._check_s
        return given_up


def _is_stopped_too_long(worker: Watched, record: _Record, state: str, now: float) -> bool:
    if state != "T":
        record.stopped_since = None
        return False
    if record.stopped_since is None:
        record.stopped_since = now
        log.warning(
            "%s (pid %d) is stopped (SIGSTOP); unless it goes on (kill -CONT %d) it is replaced"
            " in %.0f s",
            *(worker.name, worker.pid, worker.pid, worker.stopped_s),
        )
    return now - record.stopped_since >= worker.stopped_s


def _warn_if_long(worker: Watched, record: _Record, state: str, now: float) -> None:
    if worker.has_deadline or state == "T" or now - record.since < record.long_s:
        return
    record.long_s *= 2
    log.warning(
        "%s (pid %d) has been %s for %.0f s; its process is %s",
        worker.name,
        worker.pid,
        "at one task" if worker.task else "starting",
        now - record.since,
        _STATES.get(state, "in an unknown state"),
    )


def state_of_process(pid: int) -> str:
    """R, S, D, T (stopped), t (traced) ...; empty without /proc or without such a process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # The name in parentheses may hold anything, parentheses and blanks too.
    return status[status.rindex(b")") + 2 :][:1].decode("ascii")


class Clock:
    """Monotonic seconds in which this process could run.

    A program that is suspended (Ctrl-Z, a stopped container) does not use up the deadlines of its
    tasks: its workers were most likely suspended with it, and would all be killed when it goes on.

    Args:
        read: the clock beneath; injected by tests.
    """

    def __init__(self, read: Callable[[], float] = time.monotonic) -> None:
        self.read = read
        self.missed_s = 0.0

    def now(self) -> float:
        """Seconds since some beginning."""
        return self.read() - self.missed_s

    def forgive(self, began: float, patience_s: float) -> None:
        """Do not count the time by which a wait of ``patience_s``, begun at ``began``, overran."""
        late_s = self.now() - began - patience_s
        if late_s > LATE_S:
            self.missed_s += late_s
