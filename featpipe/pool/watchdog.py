"""The vigil: workers that neither work nor die are noticed, also without any deadline.

A stopped process (SIGSTOP, a job suspended from a shell) is no event on any descriptor, so it is
looked for: every few seconds, and only while there is a task in hand or a worker starting. Pure but
for the look itself, which is injected.

- A stopped worker is named in a warning at the first look, and given up after ``stopped_s``: it is
  killed, and its task given to another, as if it had died.
- One held by a debugger or busy in the kernel is left alone.
- A task that takes very long is named in a warning, ever more rarely, with what its process is at.
"""

from __future__ import annotations

import logging
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from featpipe.pool.task import Cause, Loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from featpipe.pool.forkserver import Nursery
    from featpipe.pool.role import Role
    from featpipe.pool.scheduler import Scheduler
    from featpipe.pool.workers import Roster, Worker

# The clock of a pool: seconds in which its process could run.
#
# A program that is suspended (Ctrl-Z, a stopped container) does not use up the deadlines of its
# tasks: its workers were most likely suspended with it, and would all be killed when it goes on.


#: To wake this much later than asked is the work of a busy machine; more is not.
_LATE_S = 1.0


class Clock:
    """Monotonic seconds, less those that are known to have been slept through.

    Args:
        read: the clock beneath; injected by tests.
    """

    def __init__(self, read: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._missed_s = 0.0

    def now(self) -> float:
        """Seconds since some beginning."""
        return self._read() - self._missed_s

    def forgive(self, began: float, patience_s: float) -> None:
        """A wait begun at ``began`` for at most ``patience_s`` is over: what it overran is missed.

        So a suspension is forgiven except for the wait it fell into.
        """
        late_s = self.now() - began - patience_s
        if late_s > _LATE_S:
            self._missed_s += late_s


log = logging.getLogger("featpipe.pool")

LOOK_S = 5.0
#: A task without a deadline is mentioned after so long, and whenever that has doubled.
LONG_S = 120.0

_STATES = {
    "R": "running",
    "S": "asleep",
    "D": "waiting in the kernel, as for a disk that does not answer",
    "T": "stopped",
    "t": "held by a debugger",
}


class Watched(NamedTuple):
    """A worker that has something to do."""

    number: int
    name: str
    pid: int
    """Of the process that has to act: a template's, as long as it has not forked the worker."""
    stopped_s: float
    """How long it may be stopped."""
    task: int
    """Number of the task in hand; 0 while it starts."""
    has_deadline: bool


class _Record:
    def __init__(self, task: int, now: float) -> None:
        self.task, self.since, self.long_s = task, now, LONG_S
        self.stopped_since: float | None = None


class Vigil:
    """Keeps watch over workers at work.

    Args:
        look_s: seconds between two looks.
        state_of: the letter that /proc gives for a process; empty when there is none to be had.
    """

    def __init__(
        self, look_s: float = LOOK_S, state_of: Callable[[int], str] | None = None
    ) -> None:
        self._look_s = look_s
        self._state_of = state_of or state_of_process
        self._records: dict[int, _Record] = {}
        self._next_look: float | None = None

    def wake_at(self, now: float, *, is_busy: bool) -> float | None:
        """When to look next; None while nobody has anything to do."""
        if not is_busy:
            self._next_look = None
            self._records.clear()
        elif self._next_look is None:
            self._next_look = now + self._look_s
        return self._next_look

    def is_due(self, now: float) -> bool:
        """Whether it is time to look."""
        return self._next_look is not None and self._next_look <= now

    def look(self, workers: Iterable[Watched], now: float) -> list[int]:
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
            _mention_if_long(worker, record, state, now)
        self._next_look = now + self._look_s
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


def _mention_if_long(worker: Watched, record: _Record, state: str, now: float) -> None:
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
    """R, S, D, T (stopped), t (traced) ...; empty where there is no /proc, or no such process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # The name in parentheses may hold anything, parentheses and blanks too.
    return status[status.rindex(b")") + 2 :][:1].decode("ascii")


# The patrol: workers that say nothing, at work or at the close, are looked for and ended.
#
# Whoever has to act is who is looked at: for a worker that a template has not forked yet, or whose
# end only its template can tell, that is the template.


class Patrol:
    """Kills what does not go on. That it ended is then told as of any other. In the hub's thread.

    Args:
        roles: by name.
        scheduler: who has something to do.
        roster: the workers.
        nursery: their templates.
    """

    def __init__(
        self, roles: Mapping[str, Role], scheduler: Scheduler, roster: Roster, nursery: Nursery
    ) -> None:
        self._roles, self._scheduler = roles, scheduler
        self._roster, self._nursery = roster, nursery
        self._vigil = Vigil(min(LOOK_S, *(role.stopped_deadline_s for role in roles.values())))

    def wake_at(self, now: float) -> float | None:
        """When to look next; None while nobody has anything to do."""
        return self._vigil.wake_at(now, is_busy=self._scheduler.is_busy)

    def look(self, now: float) -> None:
        """Give up who was stopped for too long, if it is time to look."""
        if self._vigil.is_due(now):
            for number in self._vigil.look(self._at_work(), now):
                self._give_up(self._roster[number])

    def end_due(self, now: float) -> None:
        """At a close: kill those whose time to stop by themselves is over."""
        for worker in self._roster.take_due(now):
            worker.signal(signal.SIGKILL)
            template = self._idle_template(worker)
            if template is not None:
                self._nursery.give_up(template)

    def _at_work(self) -> Iterator[Watched]:
        for number, role, task in self._scheduler.at_work():
            worker = self._roster[number]
            acting = self._idle_template(worker) or worker
            yield Watched(
                number,
                worker.name if acting is worker else f"the template of {worker.name}",
                acting.pid or 0,
                self._roles[role].stopped_deadline_s,
                task.number if task is not None else 0,
                task is None or task.deadline_s is not None,
            )

    def _give_up(self, worker: Worker) -> None:
        """It has been stopped for too long."""
        template = self._idle_template(worker)
        if template is not None:  # its workers are then started, or their ends learnt, without it
            self._nursery.give_up(template)
            return
        words = f"({worker.name}, pid {worker.pid}) was stopped (SIGSTOP) and did not go on"
        worker.reason = Loss(Cause.STOPPED, words)
        worker.signal(signal.SIGKILL)

    def _idle_template(self, worker: Worker) -> Worker | None:
        """The template that we wait for, to fork this worker or to tell that it has ended."""
        if worker.pid is not None and not worker.is_silent:
            return None
        return self._nursery.template_of(worker.number)
