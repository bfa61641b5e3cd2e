"""The hub: the thread that talks to every child.

It sleeps until a socket, a process or an alarm has something to say, and it never waits for one
child while others could speak. What to do is decided by the scheduler; here it is done.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import threading
from collections import deque
from typing import TYPE_CHECKING

from featpipe.errors import FeatpipeError, PoolBroken, PoolClosed, PoolError
from featpipe.pool import actions, frames
from featpipe.pool.event_loop import OUT, Switchboard
from featpipe.pool.forkserver import Nursery
from featpipe.pool.freight import Freight
from featpipe.pool.open_tasks import OpenTasks
from featpipe.pool.outcomes import Ended
from featpipe.pool.scheduler import Scheduler, State
from featpipe.pool.spawn import boot_record, environment_of, start_fresh
from featpipe.pool.task import Cause, Loss
from featpipe.pool.watchdog import Clock, Patrol
from featpipe.pool.workers import Roster, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from featpipe.pool.actions import Action
    from featpipe.pool.cargo import Cargo
    from featpipe.pool.frames import Frame
    from featpipe.pool.role import Role
    from featpipe.pool.task import Task

log = logging.getLogger("featpipe.pool")

#: A process whose socket has closed is given this long to end by itself.
_ENDING_S = 0.2
#: At a close, a worker in the middle of a task is given this long.
_BUSY_GRACE_S = 0.5


class Hub:
    """Owns the children. Other threads post to it.

    Args:
        roles: by name.
        arguments: each role's arguments, pickled.
        halve: cuts a task that kills workers in two, or says that it cannot be cut. Called
            with the task and with the cargo that its pieces are to travel in.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        arguments: Mapping[str, bytes],
        halve: Callable[[Task, Cargo], Sequence[Task] | None],
    ) -> None:
        self._roles, self._arguments = roles, arguments
        self._scheduler = Scheduler(roles.values())
        self._board = Switchboard()
        self._nursery = Nursery(self._board, self)
        self.roster = Roster(self._board)
        self._clock = Clock()
        self._patrol = Patrol(roles, self._scheduler, self.roster, self._nursery)
        self._is_closing = False
        self._to_do: deque[Action] = deque()
        self._is_acting = False
        self._freight = Freight(self._board, self.roster)
        self.cargo = self._freight.cargo
        self.open_tasks = OpenTasks(roles, self.cargo, halve)
        self.ended_by: PoolError | None = None
        self.thread = threading.Thread(target=self._run, name="featpipe-hub", daemon=True)
        self._do: dict[type, Callable[..., None]] = {
            actions.Start: self._start,
            actions.Send: self._send,
            actions.Question: self._question,
            actions.Kill: self._kill,
            actions.Finish: self._finish_lost,
            actions.Halve: self._cut,
            actions.Break: self._break,
        }
        self._on_frame: dict[int, Callable[[Worker, Frame], None]] = {
            frames.DONE: self._answered,
            frames.ERROR: self._answered,
            frames.READY: self._ready,
            frames.START_ERROR: Worker.note_failed_start,
            frames.LOG: Worker.relay_log,
            frames.SLAB: self._freight.take_in,
            frames.DROP: self._freight.drop,
            frames.LET_GO: self._freight.let_go,
        }

    def start(self) -> None:
        """Begin. Raises PoolBroken where no thread can be started."""
        try:
            self.thread.start()
        except RuntimeError as error:
            self._release_everything()
            raise PoolBroken(
                f"the pool cannot begin: {error}",
                hint="make it before the program ends (Python 3.12 starts no threads in exit "
                "handlers), or allow more threads (ulimit -u)",
            ) from error

    # for other threads

    def submit(self, task: Task) -> None:
        """Accept a task. It is concluded in ``task.into``, whatever happens."""
        self._board.post(self._submit, task)
        if self._board.is_closed:  # it was closed while we posted
            self._board.read_inbox()
            self.open_tasks.hand_over()

    def cancel_waiting(self, roles: Iterable[str], why: str) -> None:
        """End the tasks of these roles that no worker has been given."""
        self._board.post(self._cancel, tuple(roles), why)

    def close(self, grace_s: float) -> None:
        """Stop the children: idle ones at once, busy ones soon, all of them within the grace."""
        self._board.post(self._close, grace_s)

    def workers(self) -> list[tuple[Worker | None, str, int, State, int]]:
        """(worker, role, slot, state, tasks it holds) of every process there should be."""
        while True:
            try:
                return [
                    (self.roster.get(number), role, slot, state, n_tasks)
                    for number, role, slot, state, n_tasks in self._scheduler.workers()
                ]
            except RuntimeError:  # the hub changed the table under us: look again
                continue

    def forget_after_fork(self) -> None:
        """In a forked child: give up the parent's descriptors, above all the lifelines.

        A lifeline held here would keep the parent's workers alive after the parent's death.
        """
        self.roster.forget_after_fork(self.cargo.is_leased)
        for template in self._nursery.workers():
            template.forget_after_fork()
        self.cargo.forget_after_fork()
        self._board.close()
        self.ended_by = PoolClosed(
            "this pool belongs to the process that forked this one",
            hint="make the pool after the fork",
        )

    # the loop

    def _run(self) -> None:
        # Children inherit the mask: none of them prints a KeyboardInterrupt while it imports.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self._act(self._scheduler.open(self._clock.now()))
            while not self._is_closing or self.roster:
                self._take_turn()
        except BaseException as error:
            log.exception("the hub failed")
            self._end_all(PoolBroken(f"the pool failed: {error!r}", hint=_cure_of(error)))
        finally:
            self._release_everything()

    def _take_turn(self) -> None:
        self.roster.send_all()
        self.open_tasks.hand_over()
        began = self._clock.now()
        at = self._wake_at(began)
        patience_s = None if at is None else max(0.0, at - began)
        self._board.take_turn(patience_s)
        if patience_s is not None:
            self._clock.forgive(began, patience_s)
        self._look_at_the_clock(self._clock.now())

    def _wake_at(self, now: float) -> float | None:
        if self._is_closing:
            return self.roster.kill_at()
        look_at = self._patrol.wake_at(now)
        due_at = self._scheduler.wake_at()
        return min((at for at in (look_at, due_at) if at is not None), default=None)

    def _look_at_the_clock(self, now: float) -> None:
        if self._is_closing:
            self._patrol.end_due(now)
            return
        self._act(self._scheduler.tick(now))
        self._patrol.look(now)

    def _act(self, decided: Iterable[Action]) -> None:
        # Acting may give the scheduler new facts, and that new actions. They come last: a worker
        # must get its tasks in the order in which the scheduler handed them out.
        self._to_do.extend(decided)
        if self._is_acting:
            return
        self._is_acting = True
        try:
            while self._to_do and not self._is_closing:
                action = self._to_do.popleft()
                self._do[type(action)](action)
        finally:
            self._is_acting = False

    # what other threads posted

    def _submit(self, task: Task) -> None:
        if self.ended_by is not None:
            self.open_tasks.put(task, Ended(task, error=self.ended_by))
            return
        self.open_tasks.add(task)
        self._act(self._scheduler.submit(task, self._clock.now()))

    def _cancel(self, roles: Iterable[str], why: str) -> None:
        self._act(self._scheduler.cancel_waiting(roles, Loss(Cause.CANCELLED, why)))

    def _close(self, grace_s: float) -> None:
        if self._is_closing:
            return
        now = self._clock.now()
        for number, _, _, state, n_tasks in self._scheduler.workers():
            worker = self.roster[number]
            if state is State.READY:
                self.roster.write(worker, frames.frame(frames.STOP))
                worker.kill_at = now + (min(grace_s, _BUSY_GRACE_S) if n_tasks else grace_s)
            else:
                worker.kill_at = now
        self._end_all(PoolClosed("the pool was closed"))
        self._is_closing = True

    # what the scheduler decided

    def _start(self, action: actions.Start) -> None:
        role = self._roles[action.role]
        level = logging.getLogger().getEffectiveLevel()
        record = boot_record(role, action.slot, action.worker, self._arguments[role.name], level)
        environment = environment_of(role, action.slot)
        try:
            if self._nursery.takes(role, action.slot):
                started = self._nursery.start(action.worker, role, record, environment)
            else:
                started = start_fresh(record, environment)
        except FeatpipeError as error:
            message = f"{record['name']} cannot be started: {error.message}"
            self._break_with(PoolBroken(message, hint=error.hint))
            return
        device = role.devices[action.slot]
        worker = Worker(action.worker, str(record["name"]), device, action, started)
        self.roster.add(worker, self._speak, self._hear, self._bury)

    def _send(self, action: actions.Send) -> None:
        self._freight.send(self.roster[action.worker], action.task)

    def _question(self, action: actions.Question) -> None:
        worker = self.roster[action.worker]
        worker.is_condemned = True
        worker.tail.clear()
        worker.signal(signal.SIGUSR1)

    def _kill(self, action: actions.Kill) -> None:
        worker = self.roster[action.worker]
        worker.signal(signal.SIGKILL)
        template = self._nursery.template_of(worker.number)
        if worker.pid is None and template is not None:  # it has not even forked it
            self._nursery.give_up(template)

    def _finish_lost(self, action: actions.Finish) -> None:
        self.open_tasks.conclude(Ended(action.task, loss=action.loss))

    def _cut(self, action: actions.Halve) -> None:
        task = action.task
        pieces = self.open_tasks.cut(task)
        if pieces is None:
            self._act(self._scheduler.cannot_halve(task, action.loss, self._clock.now()))
            return
        self._act(self._scheduler.halved(pieces, self._clock.now()))

    def _break(self, action: actions.Break) -> None:
        story = f"\n{action.loss.story}" if action.loss.story else ""
        error = PoolBroken(
            f"workers of role {action.role} cannot work: {action.loss.summary}{story}"
        )
        error.__cause__ = action.loss.original
        self._break_with(error)

    def _break_with(self, error: PoolBroken) -> None:
        self._end_all(error)
        for worker in self.roster:
            worker.kill_at = self._clock.now()
        self._is_closing = True

    # what the children say

    def _speak(self, worker: Worker, events: int) -> None:
        if events & OUT:
            self.roster.flush(worker)
        if events & ~OUT:
            found, is_open = worker.read()
            for item in found:
                self._on_frame[item[0]](worker, item)
            if not is_open:
                # It is ending, or has closed what it must not close: either way it has no more to
                # say. How it ended we are told by the process itself.
                worker.is_silent = True
                worker.signal(signal.SIGKILL)
                self._board.ignore(worker.sock.fileno())
                if not hasattr(os, "pidfd_open"):
                    self._bury(worker)

    def _answered(self, worker: Worker, item: Frame) -> None:
        kind, flags, number, seconds, body, _ = item
        if flags & frames.FATAL:
            worker.note_last_error(body)
            return
        if self._is_closing or worker.is_condemned:
            return  # too late: the request for its stack may itself have ended a sleep
        lease = None
        if kind == frames.DONE and flags & frames.PARCEL:
            lease = self._freight.lease(worker, int.from_bytes(body[:8], "little"))
            body = body[8:]
        finish, *others = self._scheduler.answered(worker.number, number, self._clock.now())
        assert isinstance(finish, actions.Finish)  # noqa: S101  # the scheduler's contract
        task = finish.task
        if flags & frames.HOLDS:
            self.cargo.hold(worker.number, task)
        is_error = kind == frames.ERROR
        self.open_tasks.conclude(
            Ended(task, worker.name, seconds, body, flags, is_error=is_error, lease=lease)
        )
        self._act(others)

    def _ready(self, worker: Worker, _: Frame) -> None:
        if not self._is_closing:
            self._act(self._scheduler.ready(worker.number, self._clock.now()))

    def _hear(self, worker: Worker) -> None:
        lines, is_open = worker.read_stderr()
        if not worker.is_condemned:
            for line in lines:
                log.info("%s: %s", worker.name, line)
        if not is_open:
            self._board.ignore(worker.stderr)

    def _bury(self, worker: Worker) -> None:
        """A worker has ended."""
        if self.roster.get(worker.number) is not worker:
            return
        found, _ = worker.read(is_last=True)
        for item in found:
            self._on_frame[item[0]](worker, item)
        code = worker.reap(_ENDING_S)
        self._hear(worker)
        loss, begun = worker.loss(code), worker.begun()
        self._freight.bury(worker)
        if not self._is_closing:
            log.debug("%s %s", worker.name, loss.summary)
            self._act(self._scheduler.lost(worker.number, loss, begun, self._clock.now()))

    # what the nursery says

    def on_exit(self, number: int) -> None:
        """A forked worker has ended, and its exit code is known if it ever will be."""
        worker = self.roster.get(number)
        if worker is not None:
            self._bury(worker)

    def on_stillborn(self, number: int) -> None:
        """The template ended before it forked this worker: it is started in its own right."""
        worker = self.roster[number]
        if self._scheduler.is_ready(number):  # it was forked after all, and works: it ends with us
            self._bury(worker)
            return
        self.roster.remove(worker)
        if not self._is_closing:
            self._act([worker.start])

    def flush(self, worker: Worker) -> None:
        """Send what was noted for a template."""
        self.roster.flush(worker)

    # ends

    def _end_all(self, error: PoolError) -> None:
        """Every task that is open ends with this error."""
        self.ended_by = self.ended_by or error
        self.open_tasks.end_all(error)

    def _release_everything(self) -> None:
        self.roster.end(self.cargo.is_leased)
        self._nursery.close()
        self.ended_by = self.ended_by or PoolClosed("the pool was closed")
        self._board.close()
        self._board.read_inbox()  # tasks that came too late are answered
        self.open_tasks.hand_over()
        self.cargo.close()


def _cure_of(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return "too many files are open: raise the limit (ulimit -n), or hold fewer results"
    return None
