"""The hub: the thread that talks to every child.

It waits for sockets, processes and alarms, and never for one child while others could be served.
The scheduler decides; the hub carries its decisions out.
"""

from __future__ import annotations

import errno
import logging
import signal
import threading
from collections import deque
from typing import TYPE_CHECKING, cast

from featpipe.errors import FeatpipeError, PoolBroken, PoolClosed, PoolError
from featpipe.pool import frames
from featpipe.pool.event_loop import OUT, EventLoop
from featpipe.pool.forkserver import Forkservers
from featpipe.pool.open_tasks import OpenTasks
from featpipe.pool.payload_store import PayloadStore
from featpipe.pool.scheduler import (
    Action,
    Break,
    Finish,
    Halve,
    Kill,
    RequestStack,
    Scheduler,
    Send,
    Start,
    State,
)
from featpipe.pool.spawn import boot_record, environment_of, start_fresh
from featpipe.pool.task import Ended
from featpipe.pool.watchdog import Clock, Watchdog
from featpipe.pool.workers import Worker, WorkerTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from featpipe.pool.frames import Frame
    from featpipe.pool.role import Role
    from featpipe.pool.task import Task

log = logging.getLogger("featpipe.pool")

#: A process whose socket has closed is given this long to end by itself.
_ENDING_S = 0.2
#: At a close, a worker in the middle of a task is given this long.
_BUSY_GRACE_S = 0.5


class Hub:
    """Owns the children. Other threads post to it. Args: ``arguments`` are each role's, pickled."""

    def __init__(
        self, roles: Mapping[str, Role], arguments: Mapping[str, bytes], numbers: Iterator[int]
    ) -> None:
        self._roles, self._arguments = roles, arguments
        self._scheduler = Scheduler(roles.values())
        self._loop = EventLoop()
        self.workers = WorkerTable(self._loop)
        self._forkservers = Forkservers(
            self._loop, self.workers, self._on_fork_exit, self._on_never_forked
        )
        self._clock = Clock()
        self._watchdog = Watchdog(roles, self._scheduler, self.workers, self._forkservers)
        self.payloads = PayloadStore(self._loop, self.workers)
        self.open_tasks = OpenTasks(roles, self.payloads, numbers)
        self._is_closing = False
        self._to_do: deque[Action] = deque()
        self._is_acting = False
        self.ended_by: PoolError | None = None
        self.thread = threading.Thread(target=self._run, name="featpipe-hub", daemon=True)
        self._do: dict[type, Callable[..., None]] = {
            Start: self._start,
            Send: self._send,
            RequestStack: self._request_stack,
            Kill: self._kill,
            Finish: self._finish_lost,
            Halve: self._halve,
            Break: self._break,
        }
        self._on_frame: dict[int, Callable[[Worker, Frame], None]] = {
            frames.DONE: self._answered,
            frames.ERROR: self._answered,
            frames.READY: self._ready,
            frames.START_ERROR: Worker.note_failed_start,
            frames.LOG: Worker.relay_log,
            frames.SEGMENT: self.payloads.add_segment,
            frames.DROP: self.payloads.drop_segment,
            frames.RELEASED: self.payloads.release_held,
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
        """Accept a task. It ends in ``task.into``, whatever happens."""
        self._loop.post(self._submit, task)
        if self._loop.is_closed:  # while the task was posted
            self._loop.read_inbox()
            self.open_tasks.hand_over()

    def close(self, grace_s: float) -> None:
        """Stop the children: idle ones at once, busy ones soon, all of them within the grace."""
        self._loop.post(self._close, grace_s)

    def worker_states(self) -> list[tuple[Worker | None, str, int, State, int]]:
        """(worker, role, slot, state, tasks it holds); the worker is None once it has ended."""
        while True:
            try:
                return [
                    (self.workers.get(number), role, slot, state, n_tasks)
                    for number, role, slot, state, n_tasks in self._scheduler.workers()
                ]
            except RuntimeError:  # the hub's thread changed the table during the iteration
                continue

    def forget_after_fork(self) -> None:
        """In a forked child: close the parent's descriptors, above all the lifelines.

        A lifeline held here would keep the parent's workers alive after the parent's death.
        """
        self.workers.forget_after_fork(self.payloads.is_referenced)
        self._forkservers.forget_after_fork()
        self.payloads.forget_after_fork()
        self._loop.close()
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
            while not self._is_closing or self.workers:
                self._take_turn()
        except BaseException as error:
            log.exception("the hub failed")
            self._end_all(PoolBroken(f"the pool failed: {error!r}", hint=_hint_for(error)))
        finally:
            self._release_everything()

    def _take_turn(self) -> None:
        self.workers.send_all()
        self.open_tasks.hand_over()
        began = self._clock.now()
        at = self._wake_at(began)
        patience_s = None if at is None else max(0.0, at - began)
        self._loop.take_turn(patience_s)
        if patience_s is not None:
            self._clock.forgive(began, patience_s)
        self._handle_alarms(self._clock.now())

    def _wake_at(self, now: float) -> float | None:
        if self._is_closing:
            return self.workers.kill_at()
        times = (self._watchdog.wake_at(now), self._scheduler.wake_at())
        return min((at for at in times if at is not None), default=None)

    def _handle_alarms(self, now: float) -> None:
        if self._is_closing:
            self._watchdog.kill_due(now)
            return
        self._act(self._scheduler.tick(now))
        self._watchdog.check(now)

    def _act(self, decided: Iterable[Action]) -> None:
        # An action may lead to new facts, and these to new actions. They come last: a worker
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

    # posted by other threads

    def _submit(self, task: Task) -> None:
        if self.ended_by is not None:
            self.open_tasks.put(task, Ended(task, error=self.ended_by))
            return
        self.open_tasks.add(task)
        self._act(self._scheduler.submit(task, self._clock.now()))

    def _close(self, grace_s: float) -> None:
        if self._is_closing:
            return
        now = self._clock.now()
        for number, _, _, state, n_tasks in self._scheduler.workers():
            worker = self.workers[number]
            if state is State.READY:
                self.workers.write(worker, frames.frame(frames.STOP))
                worker.kill_at = now + (min(grace_s, _BUSY_GRACE_S) if n_tasks else grace_s)
            else:
                worker.kill_at = now
        self._end_all(PoolClosed("the pool was closed"))
        self._is_closing = True

    # the scheduler's actions

    def _start(self, action: Start) -> None:
        role = self._roles[action.role]
        level = logging.getLogger().getEffectiveLevel()
        record = boot_record(role, action.slot, action.worker, self._arguments[role.name], level)
        environment = environment_of(role, action.slot)
        try:
            if self._forkservers.takes(role, action.slot):
                started = self._forkservers.start(action.worker, role, record, environment)
            else:
                started = start_fresh(record, environment)
        except FeatpipeError as error:
            message = f"{record['name']} cannot be started: {error.message}"
            self._break_with(PoolBroken(message, hint=error.hint))
            return
        worker = Worker(action.worker, record["name"], started)
        self.workers.add(worker, self._on_socket, self._on_stderr, self._on_exit)

    def _send(self, action: Send) -> None:
        self.payloads.send(self.workers[action.worker], action.task)

    def _request_stack(self, action: RequestStack) -> None:
        worker = self.workers[action.worker]
        worker.is_condemned = True
        worker.tail.clear()
        worker.signal(signal.SIGUSR1)

    def _kill(self, action: Kill) -> None:
        worker = self.workers[action.worker]
        worker.signal(signal.SIGKILL)
        forkserver = self._forkservers.server_of(worker.number)
        if worker.pid is None and forkserver is not None:  # the worker was not even forked
            self._forkservers.give_up(forkserver)

    def _finish_lost(self, action: Finish) -> None:
        self.open_tasks.conclude(Ended(action.task, loss=action.loss))

    def _halve(self, action: Halve) -> None:
        pieces = self.open_tasks.halve(action.task)
        now = self._clock.now()
        if pieces is None:
            self._act(self._scheduler.cannot_halve(action.task, action.loss, now))
        else:
            self._act(self._scheduler.halved(pieces, now))

    def _break(self, action: Break) -> None:
        story = f"\n{action.loss.story}" if action.loss.story else ""
        error = PoolBroken(
            f"workers of role {action.role} cannot work: {action.loss.summary}{story}"
        )
        error.__cause__ = action.loss.original
        self._break_with(error)

    def _break_with(self, error: PoolBroken) -> None:
        self._end_all(error)
        for worker in self.workers:
            worker.kill_at = self._clock.now()
        self._is_closing = True

    # events of the children

    def _on_socket(self, worker: Worker, events: int) -> None:
        if events & OUT:
            self.workers.flush(worker)
        if events & ~OUT:
            found, is_open = worker.read()
            for message in found:
                self._on_frame[message.kind](worker, message)
            if not is_open:
                # It is ending, or has closed its socket by mistake: it cannot work any more. Its
                # exit code comes with the end of its process.
                worker.is_silent = True
                worker.signal(signal.SIGKILL)
                self._loop.ignore(worker.sock.fileno())

    def _ready(self, worker: Worker, _: Frame) -> None:
        if not self._is_closing:
            self._act(self._scheduler.ready(worker.number, self._clock.now()))

    def _answered(self, worker: Worker, message: Frame) -> None:
        if message.flags & frames.FATAL:
            worker.note_out_of_memory(message)
            return
        if self._is_closing or worker.is_condemned:
            return  # too late: the request for its stack may itself have ended a sleep
        now = self._clock.now()
        finish, *others = self._scheduler.answered(worker.number, message.number, now)
        task = cast("Finish", finish).task
        ended = Ended(task, worker.name, message.seconds, message.body, message.flags)
        if message.kind == frames.ERROR:
            ended.is_error = True
        elif message.flags & frames.OUT_OF_BAND:
            ended.reference = self.payloads.refer(
                worker, int.from_bytes(message.body[:8], "little")
            )
            ended.body = message.body[8:]
        if message.flags & frames.HOLDS:
            self.payloads.hold(worker, task)
        self.open_tasks.conclude(ended)
        self._act(others)

    def _on_stderr(self, worker: Worker) -> None:
        lines, is_open = worker.read_stderr()
        if not worker.is_condemned:
            for line in lines:
                log.info("%s: %s", worker.name, line)
        if not is_open:
            self._loop.ignore(worker.stderr)

    def _on_exit(self, worker: Worker) -> None:
        if self.workers.get(worker.number) is not worker:
            return
        found, _ = worker.read(is_last=True)
        for message in found:
            self._on_frame[message.kind](worker, message)
        code = worker.reap(_ENDING_S)
        self._on_stderr(worker)
        loss, begun = worker.loss(code), worker.begun()
        self.payloads.remove_worker(worker)
        if not self._is_closing:
            log.debug("%s %s", worker.name, loss.summary)
            self._act(self._scheduler.lost(worker.number, loss, begun, self._clock.now()))

    def _on_fork_exit(self, number: int) -> None:
        """A forked worker has ended; its exit code is known unless its fork server is gone."""
        worker = self.workers.get(number)
        if worker is not None:
            self._on_exit(worker)

    def _on_never_forked(self, number: int) -> None:
        """The fork server ended before it forked this worker: it is started again."""
        worker = self.workers[number]
        if self._scheduler.is_ready(number):  # it was forked, and ends with the fork server
            self._on_exit(worker)
            return
        self.workers.remove(worker)
        if not self._is_closing:
            self._act([self._scheduler.start_of(number)])

    # ends

    def _end_all(self, error: PoolError) -> None:
        self.ended_by = self.ended_by or error
        self.open_tasks.end_all(error)

    def _release_everything(self) -> None:
        self.workers.end(self.payloads.is_referenced)
        self._forkservers.close()
        self.ended_by = self.ended_by or PoolClosed("the pool was closed")
        self._loop.close()
        self._loop.read_inbox()  # tasks that came too late are answered
        self.open_tasks.hand_over()
        self.payloads.close()


def _hint_for(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return "too many files are open: raise the limit (ulimit -n), or hold fewer results"
    return None
