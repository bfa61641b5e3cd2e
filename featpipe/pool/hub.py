"""The hub: one thread that talks to every child.

It sleeps in epoll until a socket, a process or an alarm has something to say; it never polls, and
it never waits for one child while others could speak. What to do is decided by the scheduler; here
it is done.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import select
import signal
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from featpipe.errors import FeatpipeError, PoolBroken, PoolClosed, PoolError
from featpipe.pool import frames, scheduler
from featpipe.pool.atlas import Atlas
from featpipe.pool.completions import Ended
from featpipe.pool.launch import boot_record, environment_of, start_fresh
from featpipe.pool.leases import Lease
from featpipe.pool.loss import Cause, Loss, cause_of
from featpipe.pool.scheduler import Action, Scheduler
from featpipe.pool.slabs import Slab, SlabStore
from featpipe.pool.task import Family, Task
from featpipe.pool.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from featpipe.pool.frames import Frame
    from featpipe.pool.parcels import Parcel
    from featpipe.pool.role import Role

log = logging.getLogger("featpipe.pool")

#: A process whose socket has closed is given this long to end by itself.
_ENDING_S = 0.2
#: At a close, a worker in the middle of a task is given this long.
_BUSY_GRACE_S = 0.5
_IN = select.EPOLLIN
_OUT = select.EPOLLOUT


class Hub:
    """Owns the children. Other threads only ever append to its inbox and wake it.

    Args:
        roles: by name.
        arguments: each role's arguments, pickled.
        halve: cuts a task that kills workers in two, or says that it cannot be cut.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        arguments: Mapping[str, bytes],
        halve: Callable[[Task], Sequence[Task] | None],
    ) -> None:
        self._roles, self._arguments, self._halve = roles, arguments, halve
        self._scheduler = Scheduler(roles.values())
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, _IN)
        self._on_event: dict[int, Callable[[int], None]] = {self._wake: self._woken}
        self._inbox: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._is_asleep = False
        self._is_done = False
        self._workers: dict[int, Worker] = {}
        self._tasks: dict[int, Task] = {}
        self._held: dict[tuple[int, int], Parcel] = {}
        self._leased: dict[int, Slab] = {}
        self._is_closing = False
        self.store = SlabStore(0, lambda _: None, self._withdraw)
        self.atlas = Atlas()
        self.ended_by: PoolError | None = None
        self.n_ended = dict.fromkeys(roles, 0)
        self.weight_ended = dict.fromkeys(roles, 0)
        self.thread = threading.Thread(target=self._run, name="featpipe-hub", daemon=True)
        self._do: dict[type, Callable[..., None]] = {
            scheduler.Start: self._start,
            scheduler.Send: self._send,
            scheduler.Question: self._question,
            scheduler.Kill: self._kill,
            scheduler.Finish: self._finish_lost,
            scheduler.Halve: self._cut,
            scheduler.Break: self._break,
        }
        self._on_frame: dict[int, Callable[[Worker, Frame], None]] = {
            frames.DONE: self._answered,
            frames.ERROR: self._answered,
            frames.READY: self._ready,
            frames.START_ERROR: self._start_failed,
            frames.LOG: self._log,
            frames.SLAB: self._slab,
            frames.DROP: self._drop,
            frames.LET_GO: self._let_go,
        }

    # for other threads

    def submit(self, task: Task) -> None:
        """Accept a task. It is concluded in ``task.into``, whatever happens."""
        self._post(self._submit, task)

    def cancel_waiting(self, roles: Iterable[str], why: str) -> None:
        """End the tasks of these roles that no worker has been given."""
        self._post(self._cancel, tuple(roles), why)

    def close(self, grace_s: float) -> None:
        """Stop the children: idle ones at once, busy ones soon, all of them within the grace."""
        self._post(self._close, grace_s)

    def workers(self) -> list[tuple[Worker | None, str, int, scheduler.State, int]]:
        """(worker, role, slot, state, tasks it holds) of every process there should be."""
        while True:
            try:
                return [
                    (self._workers.get(number), role, slot, state, n_tasks)
                    for number, role, slot, state, n_tasks in self._scheduler.workers()
                ]
            except RuntimeError:  # the hub changed the table under us: look again
                continue

    @property
    def n_leases(self) -> int:
        """Slabs of the children that somebody here still looks at."""
        return len(self._leased)

    def _post(self, what: Callable[..., None], *arguments: object) -> None:
        self._inbox.append((what, arguments))
        # The hub says that it goes to sleep before it looks into its inbox a last time: one of us
        # two sees the other.
        if self._is_asleep:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(self._wake, 1)
        elif self._is_done:
            self._answer_the_late()

    # the loop

    def _run(self) -> None:
        # Children inherit the mask: none of them prints a KeyboardInterrupt while it imports.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self._act(self._scheduler.open(time.monotonic()))
            while not self._is_closing or self._workers:
                self._turn()
        except BaseException as error:
            log.exception("the hub failed")
            self._end_all(PoolBroken(f"the pool failed: {error!r}"))
        finally:
            self._release_everything()

    def _turn(self) -> None:
        self._is_asleep = True
        for descriptor, events in self._epoll.poll(self._patience()):
            on_event = self._on_event.get(descriptor)
            if on_event is not None:  # a worker buried a moment ago
                on_event(events)
        self._is_asleep = False
        while self._inbox:
            what, arguments = self._inbox.popleft()
            what(*arguments)
        now = time.monotonic()
        if not self._is_closing:
            self._act(self._scheduler.tick(now))
            return
        for worker in self._workers.values():
            if worker.kill_at <= now:
                worker.signal(signal.SIGKILL)
                worker.kill_at = now + 1.0

    def _patience(self) -> float:
        if self._inbox:
            return 0.0
        if self._is_closing:
            at: float | None = min((w.kill_at for w in self._workers.values()), default=0.0)
        else:
            at = self._scheduler.wake_at()
        return -1.0 if at is None else max(0.0, at - time.monotonic())

    def _act(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self._do[type(action)](action)

    def _woken(self, _: int) -> None:
        os.eventfd_read(self._wake)

    # from other threads, in this one

    def _submit(self, task: Task) -> None:
        if self.ended_by is not None:
            self._put(task, Ended(task, error=self.ended_by))
            return
        self._tasks[task.number] = task
        self._act(self._scheduler.submit(task, time.monotonic()))

    def _cancel(self, roles: Iterable[str], why: str) -> None:
        self._act(self._scheduler.cancel_waiting(roles, Loss(Cause.CANCELLED, why)))

    def _close(self, grace_s: float) -> None:
        if self._is_closing:
            return
        now = time.monotonic()
        for number, _, _, state, n_tasks in self._scheduler.workers():
            worker = self._workers[number]
            if state is scheduler.State.READY:
                self._write(worker, frames.frame(frames.STOP))
                worker.kill_at = now + (min(grace_s, _BUSY_GRACE_S) if n_tasks else grace_s)
            else:
                worker.signal(signal.SIGKILL)
                worker.kill_at = now + 1.0
        self._end_all(PoolClosed("the pool was closed before this task had ended"))
        self._is_closing = True

    def _free(self, worker: int, uid: int) -> None:
        slab = self._leased.pop(uid, None)
        record = self._workers.get(worker)
        if record is not None:
            self._write(record, frames.frame(frames.FREE, uid))
        elif slab is not None:  # its maker died before its reader
            self._retire(slab)

    # what the scheduler decided

    def _start(self, action: scheduler.Start) -> None:
        role = self._roles[action.role]
        level = logging.getLogger().getEffectiveLevel()
        record = boot_record(role, action.slot, action.worker, self._arguments[role.name], level)
        try:
            started = start_fresh(record, environment_of(role, action.slot))
        except FeatpipeError as error:
            self._break_with(
                PoolBroken(f"{role.name} cannot start: {error.message}", hint=error.hint)
            )
            return
        device = role.devices[action.slot]
        worker = Worker(action.worker, str(record["name"]), device, role.name, started)
        self._workers[worker.number] = worker
        self._listen(worker.sock.fileno(), _IN, lambda events: self._speak(worker, events))
        self._listen(worker.stderr, _IN, lambda _: self._hear(worker))
        if worker.pidfd >= 0:
            self._listen(worker.pidfd, _IN, lambda _: self._bury(worker))

    def _send(self, action: scheduler.Send) -> None:
        worker, task = self._workers[action.worker], action.task
        parcel = task.parcel
        if parcel is None:
            raise AssertionError(f"task {task.number} was sent after its end")
        for slab in parcel.slabs:
            if slab.uid not in worker.known:
                worker.known.add(slab.uid)
                size = slab.size.to_bytes(8, "little")
                data = frames.frame_with_descriptor(frames.SLAB, slab.uid, size)
                self._write(worker, data, slab.descriptor)
        self._write(worker, frames.frame(frames.TASK, task.number, parcel.body, parcel.flags))

    def _question(self, action: scheduler.Question) -> None:
        worker = self._workers[action.worker]
        worker.is_condemned = True
        worker.tail.clear()
        worker.signal(signal.SIGUSR1)

    def _kill(self, action: scheduler.Kill) -> None:
        self._workers[action.worker].signal(signal.SIGKILL)

    def _finish_lost(self, action: scheduler.Finish) -> None:
        self._conclude(Ended(action.task, loss=action.loss))

    def _cut(self, action: scheduler.Halve) -> None:
        task = action.task
        pieces = self._halve(task)
        if pieces is None:
            task.can_halve = False
            self._conclude(Ended(task, loss=action.loss))
            return
        if task.family is None:
            task.family = Family(task, 0, [])
            self._release(task)
        else:
            task.family.n_open -= 1
            del self._tasks[task.number]
            self._release(task)
        task.family.n_open += len(pieces)
        for piece in pieces:
            piece.family = task.family
            piece.n_losses = 1
            self._tasks[piece.number] = piece
        self._act(self._scheduler.halved(pieces, time.monotonic()))

    def _break(self, action: scheduler.Break) -> None:
        story = f"\n{action.loss.story}" if action.loss.story else ""
        self._break_with(
            PoolBroken(f"workers of role {action.role} cannot work: {action.loss.summary}{story}")
        )

    def _break_with(self, error: PoolBroken) -> None:
        self._end_all(error)
        for worker in self._workers.values():
            worker.signal(signal.SIGKILL)
            worker.kill_at = time.monotonic() + 1.0
        self._is_closing = True

    # what the children say

    def _speak(self, worker: Worker, events: int) -> None:
        if events & _OUT and worker.flush():
            self._epoll.modify(worker.sock.fileno(), _IN)
        if events & ~_OUT:
            found, is_open = worker.read()
            for item in found:
                self._on_frame[item[0]](worker, item)
            if not is_open:
                self._bury(worker)

    def _answered(self, worker: Worker, item: Frame) -> None:
        kind, flags, number, seconds, body, _ = item
        if flags & frames.FATAL:
            _, message, text, _ = pickle.loads(body)  # noqa: S301  # from our own child
            worker.reason = (f"ran out of memory: {message}", text)
            return
        if self._is_closing:
            return
        lease = None
        if kind == frames.DONE and flags & frames.PARCEL:
            lease = self._lease(worker, int.from_bytes(body[:8], "little"))
            body = body[8:]
        finish, *actions = self._scheduler.answered(worker.number, number, time.monotonic())
        assert isinstance(finish, scheduler.Finish)  # noqa: S101  # the scheduler's contract
        task = finish.task
        if flags & frames.HOLDS and task.parcel is not None:
            self._held[worker.number, number] = task.parcel
            task.parcel = None
        self._conclude(
            Ended(
                task, worker.name, seconds, body, flags, is_error=kind == frames.ERROR, lease=lease
            )
        )
        self._act(actions)

    def _lease(self, worker: Worker, uid: int) -> Lease | None:
        if not uid:
            return None
        slab = worker.slabs[uid]
        self._leased[uid] = slab
        number, inbox, free = worker.number, self._inbox, self._free
        # No wake: a slab that comes back late costs its worker a fresh one, a wake costs a switch.
        return Lease(slab, lambda: inbox.append((free, (number, uid))))

    def _ready(self, worker: Worker, _: Frame) -> None:
        if not self._is_closing:
            self._act(self._scheduler.ready(worker.number, time.monotonic()))

    def _start_failed(self, worker: Worker, item: Frame) -> None:
        kind, message, text, _ = pickle.loads(item[4])  # noqa: S301  # from our own child
        worker.reason = (f"{worker.name} could not start: {kind}: {message}", text)

    def _log(self, worker: Worker, item: Frame) -> None:
        name, level, path, line, message, failure, function, created = pickle.loads(item[4])  # noqa: S301  # as above
        logger = logging.getLogger(name)
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(name, level, path, line, message, (), None, function)
        record.created, record.exc_text = created, failure
        record.processName, record.process = worker.name, worker.pid
        logger.handle(record)

    def _slab(self, worker: Worker, item: Frame) -> None:
        _, _, uid, _, body, descriptor = item
        worker.slabs[uid] = Slab(uid, int.from_bytes(body, "little"), descriptor, is_mine=False)

    def _drop(self, worker: Worker, item: Frame) -> None:
        self._retire(worker.slabs.pop(item[2]))

    def _let_go(self, worker: Worker, item: Frame) -> None:
        parcel = self._held.pop((worker.number, item[2]), None)
        if parcel is not None and parcel.own is not None:
            self.store.give_back(parcel.own.uid)

    def _hear(self, worker: Worker) -> None:
        lines, is_open = worker.read_stderr()
        if not worker.is_condemned:
            for line in lines:
                log.info("%s: %s", worker.name, line)
        if not is_open:
            self._ignore(worker.stderr)

    def _bury(self, worker: Worker) -> None:
        """A worker has ended, or closed its socket, which it never does alive."""
        if worker.number not in self._workers:
            return
        # A result that is already in the socket counts: the task was done.
        found, _ = worker.read()
        for item in found:
            self._on_frame[item[0]](worker, item)
        code = worker.reap(_ENDING_S)
        self._hear(worker)
        loss = self._loss_of(worker, code)
        begun = worker.begun()
        del self._workers[worker.number]
        for descriptor in (worker.sock.fileno(), worker.stderr, worker.pidfd):
            self._ignore(descriptor)
        for slab in worker.close():
            if slab.uid not in self._leased:
                self._retire(slab)
        for key in [key for key in self._held if key[0] == worker.number]:
            self._give_back(self._held.pop(key))
        if not self._is_closing:
            log.debug("%s %s", worker.name, loss.summary)
            self._act(self._scheduler.lost(worker.number, loss, begun, time.monotonic()))

    def _loss_of(self, worker: Worker, code: int | None) -> Loss:
        if worker.is_condemned:
            return Loss(Cause.TIMED_OUT, "took too long", worker.last_words())
        if worker.reason is not None:
            summary, story = worker.reason
            is_memory = summary.startswith("ran out of memory")
            return Loss(Cause.OUT_OF_MEMORY if is_memory else Cause.START_FAILED, summary, story)
        cause, words = cause_of(code, is_out_of_memory=False)
        return Loss(cause, f"({worker.name}, pid {worker.pid}) {words}", worker.last_words())

    # ends

    def _conclude(self, ended: Ended) -> None:
        task = ended.task
        self._tasks.pop(task.number, None)
        self._release(task)
        family = task.family
        if family is None:
            self._put(task, ended)
            return
        family.ended.append(ended)
        family.n_open -= 1
        if not family.n_open:
            whole = family.whole
            self._tasks.pop(whole.number, None)
            pieces = sorted(family.ended, key=lambda piece: piece.task.place)
            self._put(whole, Ended(whole, pieces=tuple(pieces)))

    def _put(self, task: Task, ended: Ended) -> None:
        self.n_ended[task.role] += 1
        self.weight_ended[task.role] += task.weight
        if task.into is not None:
            task.into.put(ended)

    def _release(self, task: Task) -> None:
        """The payload has served: its slabs may be written to again."""
        parcel, task.parcel = task.parcel, None
        if parcel is not None:
            self._give_back(parcel)

    def _give_back(self, parcel: Parcel) -> None:
        if parcel.own is not None:
            self.store.give_back(parcel.own.uid)

    def _end_all(self, error: PoolError) -> None:
        """Every task that is open ends with this error."""
        self.ended_by = self.ended_by or error
        wholes = [task for task in self._tasks.values() if not task.place]
        self._tasks.clear()
        for task in wholes:
            self._release(task)
            self._put(task, Ended(task, error=error))

    # descriptors

    def _write(self, worker: Worker, data: bytes, descriptor: int = -1) -> None:
        if not worker.send(data, descriptor):
            self._epoll.modify(worker.sock.fileno(), _IN | _OUT)

    def _listen(self, descriptor: int, events: int, on_event: Callable[[int], None]) -> None:
        self._on_event[descriptor] = on_event
        self._epoll.register(descriptor, events)

    def _ignore(self, descriptor: int) -> None:
        if self._on_event.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _withdraw(self, uid: int) -> None:
        for worker in self._workers.values():
            if uid in worker.known:
                worker.known.discard(uid)
                self._write(worker, frames.frame(frames.DROP, uid))

    def _retire(self, slab: Slab) -> None:
        self._withdraw(slab.uid)
        self.atlas.forget(slab)
        slab.close()

    def _release_everything(self) -> None:
        for worker in self._workers.values():
            worker.signal(signal.SIGKILL)
            worker.reap(0)
            for slab in worker.close():
                slab.close()
        self._workers.clear()
        self.ended_by = self.ended_by or PoolClosed("the pool is closed")
        self._is_asleep = False
        self._is_done = True
        self._answer_the_late()
        for slab in self._leased.values():
            self.atlas.forget(slab)
            slab.close()
        self.store.close()
        self._epoll.close()
        os.close(self._wake)

    def _answer_the_late(self) -> None:
        """Tasks that came after the end get their answer; anything else is moot."""
        with contextlib.suppress(IndexError):
            while True:
                what, arguments = self._inbox.popleft()
                if what == self._submit:
                    what(*arguments)
