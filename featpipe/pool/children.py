"""The children of a pool, at the parent's end: their starts, their messages, their ends.

What one child does ends that child at most: a frame that no child sends ends its sender, and its
task is charged.
"""

from __future__ import annotations

import errno
import logging
import signal
from typing import TYPE_CHECKING, Protocol

from featpipe.errors import FeatpipeError, PoolBroken, TaskFailed
from featpipe.pool import frames
from featpipe.pool.actions import Halve
from featpipe.pool.event_loop import OUT
from featpipe.pool.forkserver import Forkservers
from featpipe.pool.frames import ProtocolError
from featpipe.pool.log_thread import LogThread, log
from featpipe.pool.open_tasks import OpenTasks
from featpipe.pool.payload_store import PayloadStore
from featpipe.pool.spawn import boot_record, environment_of, start_fresh
from featpipe.pool.task import FOREIGN, Cause, Ended, Failure, Loss
from featpipe.pool.watchdog import state_of_process
from featpipe.pool.workers import LOST_S, Worker, WorkerTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from featpipe.pool.actions import Action, Kill, RequestStack, Start
    from featpipe.pool.event_loop import EventLoop
    from featpipe.pool.frames import Frame
    from featpipe.pool.role import Role
    from featpipe.pool.scheduler import Scheduler

#: A process whose socket has closed is given this long to end by itself.
_ENDING_S = 0.2
#: A start refused for one of these may succeed a moment later.
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC})


class HubCalls(Protocol):
    """What the children need from the hub."""

    is_open: bool
    """Whether tasks are still given out and taken back."""
    now: float
    """Seconds of the scheduler's clock, at the beginning of this turn."""

    def act(self, decided: Iterable[Action]) -> None:
        """Carry out the scheduler's decisions."""

    def fail(self, error: PoolBroken) -> None:
        """The pool cannot go on."""


class Children:
    """Used in the hub's thread. Args: ``arguments`` are each role's, pickled."""

    def __init__(
        self,
        roles: Mapping[str, Role],
        arguments: Mapping[str, bytes],
        numbers: Iterator[int],
        *,
        loop: EventLoop,
        scheduler: Scheduler,
        hub: HubCalls,
    ) -> None:
        self._roles, self._arguments = roles, arguments
        self._loop, self._scheduler, self._hub = loop, scheduler, hub
        self.workers = WorkerTable(loop)
        self.logs = LogThread()
        self.payloads = PayloadStore(loop, self.workers)
        self.open_tasks = OpenTasks(roles, self.payloads, numbers)
        self.forkservers = Forkservers(
            loop, self.workers, self.logs, self._on_fork_exit, self._on_never_forked
        )
        self._on_frame: dict[int, Callable[[Worker, Frame], None]] = {
            frames.DONE: self._answered,
            frames.ERROR: self._answered,
            frames.READY: self._ready,
            frames.START_ERROR: self._failed_to_start,
            frames.LOG: self._relay_log,
            frames.SEGMENT: self.payloads.add_segment,
            frames.DROP: self.payloads.drop_segment,
            frames.RELEASED: self.payloads.release_held,
        }

    # the scheduler's actions

    def start(self, action: Start) -> None:
        """Start a worker, from a fork server or afresh."""
        role = self._roles[action.role]
        level = logging.getLogger().getEffectiveLevel()
        record = boot_record(role, action.slot, action.worker, self._arguments[role.name], level)
        environment = environment_of(role, action.slot)
        try:
            if self.forkservers.takes(role, action.slot):
                started = self.forkservers.start(action.worker, role, record, environment)
            else:
                started = start_fresh(record, environment)
        except FeatpipeError as error:
            self._not_started(action, f"{record['name']} cannot be started: {error.message}", error)
            return
        worker = Worker(action.worker, record["name"], started)
        self.workers.add(worker, self._on_socket, self._on_stderr, self._on_exit)

    def _not_started(self, action: Start, message: str, error: FeatpipeError) -> None:
        """Try again soon where the machine refused; the others go on meanwhile."""
        if getattr(error.__cause__, "errno", None) not in _PASSING:
            self._hub.fail(PoolBroken(message, hint=error.hint))
            return
        log.warning("%s", message)
        loss = Loss(Cause.NOT_STARTED, message, hint=error.hint)
        self._hub.act(self._scheduler.lost(action.worker, loss, 0, self._hub.now))

    def request_stack(self, action: RequestStack) -> None:
        """Have a worker write its stack, and take no more answers from it."""
        worker = self.workers[action.worker]
        worker.is_condemned = True
        worker.tail.clear()
        if worker.pid is not None and state_of_process(worker.pid) == "T":
            self.workers.kill(worker)  # it is stopped, and could not write
        else:
            worker.signal(signal.SIGUSR1)

    def kill(self, action: Kill) -> None:
        """Kill a worker."""
        worker = self.workers[action.worker]
        self.workers.kill(worker)
        forkserver = self.forkservers.server_of(worker.number)
        if worker.pid is None and forkserver is not None:  # the worker was not even forked
            self.forkservers.give_up(forkserver)

    # events of the children

    def _on_socket(self, worker: Worker, events: int) -> None:
        if events & OUT:
            self.workers.flush(worker)
        if events & ~OUT and not self._receive(worker):
            # It is ending, has closed its socket by mistake, or has written to it: it cannot work
            # any more. Its exit code comes with the end of its process.
            worker.is_silent = True
            self.workers.kill(worker)
            self._loop.ignore(worker.sock.fileno())

    def _receive(self, worker: Worker, *, is_last: bool = False) -> bool:
        """Handle what has arrived; whether more may come."""
        found, is_open = worker.read(is_last=is_last)
        try:
            for message in found:
                self._on_frame.get(message.kind, _refuse)(worker, message)
            if not is_open:
                worker.check_stream()
        except ProtocolError as error:
            worker.break_off(str(error))
            return False
        return is_open

    def _relay_log(self, worker: Worker, message: Frame) -> None:
        self.logs.relay(worker.name, worker.pid, message.body)

    def _failed_to_start(self, worker: Worker, message: Frame) -> None:
        if self._scheduler.is_ready(worker.number):
            raise ProtocolError("it could not start, after it had started")
        worker.note_failed_start(message)

    def _ready(self, worker: Worker, _: Frame) -> None:
        if self._hub.is_open:
            self._hub.act(self._scheduler.ready(worker.number, self._hub.now))

    def _answered(self, worker: Worker, message: Frame) -> None:
        if not self._hub.is_open or worker.is_condemned:
            return  # too late: the request for its stack may itself have ended a sleep
        task = self._scheduler.first_task_of(worker.number)
        if task is None or task.number != message.number:
            raise ProtocolError(f"it answered task {message.number}, which is not its turn")
        if message.flags & frames.FATAL:
            worker.note_out_of_memory(message)
            return
        is_error, flags = message.kind == frames.ERROR, message.flags
        ended = Ended(task, worker.name, message.seconds, message.body, flags, is_error)
        if flags & frames.OUT_OF_BAND and not is_error:
            self._take_result(worker, message, ended)
        first, *others = self._scheduler.answered(
            worker.number, message.number, self._hub.now, message.seconds
        )
        if isinstance(first, Halve):
            self._halve(first, self._pieces_in(ended))
        elif flags & frames.HOLDS or self._roles[task.role].then is not None:
            self._hand_on(worker, ended)
        else:
            self.open_tasks.conclude(ended)
        if others:
            self._hub.act(others)

    def _hand_on(self, worker: Worker, ended: Ended) -> None:
        """The payload goes on, as a view of the worker's, or the value, as another's payload."""
        if ended.flags & frames.HOLDS:
            self.payloads.hold(worker, ended.task)
        then = self._roles[ended.task.role].then
        if then is None or ended.is_error or ended.failure is not None:
            self.open_tasks.conclude(ended)
            return
        successor = self.open_tasks.hand_on(ended, self._roles[then])
        self._hub.act(self._scheduler.submit(successor, self._hub.now))

    def _take_result(self, worker: Worker, message: Frame, ended: Ended) -> None:
        """Refer to the segment that a result lies in."""
        uid, ended.body = int.from_bytes(message.body[:8], "little"), message.body[8:]
        try:
            ended.reference = self.payloads.refer(worker, uid)
        except OSError as error:
            words = f"the result of {ended.task.role} could not be taken: {error}"
            hint = "return less at a time, or raise the limits (ulimit -v -n)"
            ended.body, ended.failure = None, Failure(TaskFailed(words, hint=hint))

    def _pieces_in(self, ended: Ended) -> Sequence[bytes]:
        """The pickled pieces in the answer to a cut; none where it cannot be cut."""
        if ended.is_error or ended.body is None:
            log.warning("a batch of %s cannot be halved: its bisect failed", ended.task.role)
            return ()
        found = self.payloads.unpack(ended.body, ended.flags, ended.reference)  # plain bytes
        return found if isinstance(found, list) else ()

    def _halve(self, action: Halve, pickled: Sequence[bytes]) -> None:
        """A worker has cut the task; into nothing where it cannot be cut."""
        now = self._hub.now
        if pickled:
            self._hub.act(
                self._scheduler.halved(self.open_tasks.replace(action.task, pickled), now)
            )
        else:
            self._hub.act(self._scheduler.cannot_halve(action.task, action.loss, now))

    def _on_stderr(self, worker: Worker) -> None:
        data = worker.read_stderr()
        if data is None:
            self._loop.ignore(worker.stderr)
        elif worker.is_condemned:
            self._scheduler.spoke(worker.number, self._hub.now, is_much=worker.has_full_tail)
        else:
            self.logs.output(worker.name, data)

    def _on_exit(self, worker: Worker) -> None:
        if self.workers.get(worker.number) is not worker:
            return
        if worker.reason is None or worker.reason.cause is not Cause.BROKEN:
            self._receive(worker, is_last=True)
        code = worker.reap(_ENDING_S)
        for data in (*worker.read_last_stderr(), b""):
            if not worker.is_condemned:
                self.logs.output(worker.name, data)
        self._remove(worker, code)

    def _remove(self, worker: Worker, code: int | None) -> None:
        loss, begun = worker.loss(code), worker.begun()
        self.payloads.remove_worker(worker)
        if self._hub.is_open:
            is_silent = loss.cause in FOREIGN or loss.cause is Cause.OUT_OF_MEMORY
            # What it had is run again, or a part at a time: no error need tell of it.
            note = log.warning if is_silent and worker.pid is not None else log.debug
            note("%s is lost: %s", worker.name, loss.summary)
            self._hub.act(self._scheduler.lost(worker.number, loss, begun, self._hub.now))

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
        if self._hub.is_open:
            self._hub.act([self._scheduler.start_of(number)])

    def give_up_lost(self) -> None:
        """Go on without workers that were killed and have not ended."""
        for worker in self.workers.take_lost():
            log.warning(
                "%s (pid %s) was killed %.0f s ago and has not ended (frozen, or waiting in the"
                " kernel): the pool goes on without it",
                *(worker.name, worker.pid, LOST_S),
            )
            if self.workers.get(worker.number) is worker:
                worker.process.abandon()
                self._remove(worker, None)
            else:
                self.forkservers.go_on_without(worker)


def _refuse(_: Worker, message: Frame) -> None:
    raise ProtocolError(f"it sent a frame of kind {message.kind}")
