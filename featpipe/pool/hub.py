"""The hub: the thread that talks to every child.

It sleeps until a socket, a process or an alarm has something to say, and it never waits for one
child while others could speak. What to do is decided by the scheduler; here it is done.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from featpipe.errors import FeatpipeError, PoolBroken, PoolClosed, PoolError
from featpipe.pool import frames, scheduler
from featpipe.pool.cargo import Cargo
from featpipe.pool.completions import Completions, Ended
from featpipe.pool.launch import boot_record, environment_of, start_fresh
from featpipe.pool.loss import Cause, Loss, cause_of
from featpipe.pool.memory import count_oom_kills
from featpipe.pool.nursery import Nursery
from featpipe.pool.scheduler import Action, Scheduler, State
from featpipe.pool.slabs import Slab
from featpipe.pool.switchboard import OUT, Switchboard
from featpipe.pool.task import Family, Task
from featpipe.pool.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from featpipe.pool.frames import Frame
    from featpipe.pool.leases import Lease
    from featpipe.pool.role import Role

log = logging.getLogger("featpipe.pool")

#: A process whose socket has closed is given this long to end by itself.
_ENDING_S = 0.2
#: At a close, a worker in the middle of a task is given this long.
_BUSY_GRACE_S = 0.5
#: What was killed is gone after this long, or it is killed again.
_KILL_AGAIN_S = 1.0


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
        self._roles, self._arguments, self._halve = roles, arguments, halve
        self._scheduler = Scheduler(roles.values())
        self._board = Switchboard()
        self._nursery = Nursery(self._board, self)
        self._workers: dict[int, Worker] = {}
        self._tasks: dict[int, Task] = {}
        self._is_closing = False
        self._to_do: deque[Action] = deque()
        self._unsent: set[Worker] = set()
        self._ended: dict[Completions, list[Ended]] = {}
        self._is_acting = False
        self.cargo = Cargo(self._withdraw)
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
        self._board.post(self._submit, task)
        if self._board.is_closed:  # it was closed while we posted
            self._board.read_inbox()
            self._hand_over()

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
                    (self._workers.get(number), role, slot, state, n_tasks)
                    for number, role, slot, state, n_tasks in self._scheduler.workers()
                ]
            except RuntimeError:  # the hub changed the table under us: look again
                continue

    def forget_after_fork(self) -> None:
        """In a forked child: give up the parent's descriptors, above all the lifelines.

        A lifeline held here would keep the parent's workers alive after the parent's death.
        """
        for worker in (*self._workers.values(), *self._nursery.workers()):
            worker.slabs = {u: s for u, s in worker.slabs.items() if not self.cargo.is_leased(s)}
            worker.forget_after_fork()
        self._workers.clear()
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
            self._act(self._scheduler.open(time.monotonic()))
            while not self._is_closing or self._workers:
                self._hand_over()
                self._board.take_turn(self._patience())
                self._look_at_the_clock(time.monotonic())
        except BaseException as error:
            log.exception("the hub failed")
            self._end_all(PoolBroken(f"the pool failed: {error!r}"))
        finally:
            self._release_everything()

    def _hand_over(self) -> None:
        """What this turn brought, in one go: one wake of another thread instead of many."""
        for worker in self._unsent:
            self.flush(worker)
        self._unsent.clear()
        while self._ended:
            into, ended = self._ended.popitem()
            into.put(ended)

    def _patience(self) -> float | None:
        if self._is_closing:
            at: float | None = min((w.kill_at for w in self._workers.values()), default=0.0)
        else:
            at = self._scheduler.wake_at()
        return None if at is None else max(0.0, at - time.monotonic())

    def _look_at_the_clock(self, now: float) -> None:
        if not self._is_closing:
            self._act(self._scheduler.tick(now))
            return
        for worker in self._workers.values():
            if worker.kill_at <= now:
                worker.signal(signal.SIGKILL)
                worker.kill_at = now + _KILL_AGAIN_S

    def _act(self, actions: Iterable[Action]) -> None:
        # Acting may give the scheduler new facts, and that new actions. They come last: a worker
        # must get its tasks in the order in which the scheduler handed them out.
        self._to_do.extend(actions)
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
            if state is State.READY:
                self._write(worker, frames.frame(frames.STOP))
                worker.kill_at = now + (min(grace_s, _BUSY_GRACE_S) if n_tasks else grace_s)
            else:
                worker.kill_at = now
        self._end_all(PoolClosed("the pool was closed"))
        self._is_closing = True

    def _free(self, worker: int, uid: int) -> None:
        slab, may_reuse = self.cargo.end_lease(uid)
        record = self._workers.get(worker)
        if record is not None:
            flags = 0 if may_reuse else frames.FOR_GOOD
            self._write(record, frames.frame(frames.FREE, uid, flags=flags))
        elif slab is not None:  # its maker died before its reader
            self.cargo.retire(slab)

    # what the scheduler decided

    def _start(self, action: scheduler.Start) -> None:
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
        self._workers[worker.number] = worker
        self._unsent.add(worker)
        self._board.listen(worker.sock.fileno(), lambda events: self._speak(worker, events))
        self._board.listen(worker.stderr, lambda _: self._hear(worker))
        if worker.process.pidfd >= 0:
            self._board.listen(worker.process.pidfd, lambda _: self._bury(worker))

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
        pieces = self._halve(task, self.cargo)
        if pieces is None:
            self._act(self._scheduler.cannot_halve(task, action.loss, time.monotonic()))
            return
        family = task.family = task.family or Family(task, 1, [])
        if task is not family.whole:
            del self._tasks[task.number]
        self.cargo.release(task)
        family.n_open += len(pieces) - 1
        for piece in pieces:
            piece.family = family
            self._tasks[piece.number] = piece
        self._act(self._scheduler.halved(pieces, time.monotonic()))

    def _break(self, action: scheduler.Break) -> None:
        story = f"\n{action.loss.story}" if action.loss.story else ""
        error = PoolBroken(
            f"workers of role {action.role} cannot work: {action.loss.summary}{story}"
        )
        error.__cause__ = action.loss.original
        self._break_with(error)

    def _break_with(self, error: PoolBroken) -> None:
        self._end_all(error)
        for worker in self._workers.values():
            worker.kill_at = time.monotonic()
        self._is_closing = True

    # what the children say

    def _speak(self, worker: Worker, events: int) -> None:
        if events & OUT:
            self.flush(worker)
        if events & ~OUT:
            found, is_open = worker.read()
            for item in found:
                self._on_frame[item[0]](worker, item)
            if not is_open:
                # It is ending, or has closed what it must not close: either way it has no more to
                # say. How it ended we are told by the process itself.
                worker.signal(signal.SIGKILL)
                self._board.ignore(worker.sock.fileno())
                if not hasattr(os, "pidfd_open"):
                    self._bury(worker)

    def _answered(self, worker: Worker, item: Frame) -> None:
        kind, flags, number, seconds, body, _ = item
        if flags & frames.FATAL:
            _, message, text, _ = pickle.loads(body)  # noqa: S301  # from our own child
            worker.reason = Loss(Cause.OUT_OF_MEMORY, f"ran out of memory: {message}", text)
            return
        if self._is_closing or worker.is_condemned:
            return  # too late: the request for its stack may itself have ended a sleep
        lease = None
        if kind == frames.DONE and flags & frames.PARCEL:
            lease = self._lease(worker, int.from_bytes(body[:8], "little"))
            body = body[8:]
        finish, *actions = self._scheduler.answered(worker.number, number, time.monotonic())
        assert isinstance(finish, scheduler.Finish)  # noqa: S101  # the scheduler's contract
        task = finish.task
        if flags & frames.HOLDS:
            self.cargo.hold(worker.number, task)
        is_error = kind == frames.ERROR
        self._conclude(
            Ended(task, worker.name, seconds, body, flags, is_error=is_error, lease=lease)
        )
        self._act(actions)

    def _lease(self, worker: Worker, uid: int) -> Lease | None:
        if not uid:
            return None
        number, post, free = worker.number, self._board.post_quietly, self._free
        # Quietly: a slab that comes back late costs its worker a fresh one, a wake a switch.
        return self.cargo.lease(worker.slabs[uid], lambda: post(free, number, uid))

    def _ready(self, worker: Worker, _: Frame) -> None:
        if not self._is_closing:
            self._act(self._scheduler.ready(worker.number, time.monotonic()))

    def _start_failed(self, worker: Worker, item: Frame) -> None:
        kind, message, text, pickled = pickle.loads(item[4])  # noqa: S301  # from our own child
        summary = f"{worker.name} could not start: {kind}: {message}"
        worker.reason = Loss(Cause.START_FAILED, summary, text, pickled)

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
        self.cargo.retire(worker.slabs.pop(item[2]))

    def _let_go(self, worker: Worker, item: Frame) -> None:
        self.cargo.let_go(worker.number, item[2])

    def _hear(self, worker: Worker) -> None:
        lines, is_open = worker.read_stderr()
        if not worker.is_condemned:
            for line in lines:
                log.info("%s: %s", worker.name, line)
        if not is_open:
            self._board.ignore(worker.stderr)

    def _bury(self, worker: Worker) -> None:
        """A worker has ended."""
        if worker.number not in self._workers:
            return
        found, _ = worker.read(is_last=True)
        for item in found:
            self._on_frame[item[0]](worker, item)
        code = worker.reap(_ENDING_S)
        self._hear(worker)
        loss, begun = self._loss_of(worker, code), worker.begun()
        del self._workers[worker.number]
        for descriptor in (worker.sock.fileno(), worker.stderr, worker.process.pidfd):
            self._board.ignore(descriptor)
        for slab in worker.close():
            if not self.cargo.is_leased(slab):
                self.cargo.retire(slab)
        self.cargo.let_all_go(worker.number)
        if not self._is_closing:
            log.debug("%s %s", worker.name, loss.summary)
            self._act(self._scheduler.lost(worker.number, loss, begun, time.monotonic()))

    def _loss_of(self, worker: Worker, code: int | None) -> Loss:
        if worker.is_condemned:
            return Loss(Cause.TIMED_OUT, "took too long", worker.last_words())
        if worker.reason is not None:
            return worker.reason
        is_starved = code == -signal.SIGKILL and count_oom_kills() > worker.n_oom_kills
        cause, words = cause_of(code, is_out_of_memory=is_starved)
        return Loss(cause, f"({worker.name}, pid {worker.pid}) {words}", worker.last_words())

    # what the nursery says

    def on_exit(self, number: int) -> None:
        """A forked worker has ended, and its exit code is known if it ever will be."""
        worker = self._workers.get(number)
        if worker is not None:
            self._bury(worker)

    def on_stillborn(self, number: int) -> None:
        """The template ended before it forked this worker: it is started in its own right."""
        worker = self._workers.pop(number)
        for descriptor in (worker.sock.fileno(), worker.stderr):
            self._board.ignore(descriptor)
        worker.close()
        if not self._is_closing:
            self._act([worker.start])

    def on_log(self, worker: Worker, item: Frame) -> None:
        """A template logs."""
        self._log(worker, item)

    # ends

    def _conclude(self, ended: Ended) -> None:
        task, family = ended.task, ended.task.family
        self._tasks.pop(task.number, None)
        self.cargo.release(task)
        if family is None:
            self._put(task, ended)
            return
        family.ended.append(ended)
        family.n_open -= 1
        if not family.n_open:
            self._tasks.pop(family.whole.number, None)
            pieces = sorted(family.ended, key=lambda piece: piece.task.place)
            self._put(family.whole, Ended(family.whole, pieces=tuple(pieces)))

    def _put(self, task: Task, ended: Ended) -> None:
        self.n_ended[task.role] += 1
        self.weight_ended[task.role] += task.weight
        if task.into is not None:
            self._ended.setdefault(task.into, []).append(ended)

    def _end_all(self, error: PoolError) -> None:
        """Every task that is open ends with this error."""
        self.ended_by = self.ended_by or error
        wholes = [task for task in self._tasks.values() if not task.place]
        self._tasks.clear()
        for task in wholes:
            self.cargo.release(task)
            self._put(task, Ended(task, error=error))

    def _release_everything(self) -> None:
        for worker in self._workers.values():
            worker.signal(signal.SIGKILL)
            worker.reap(0)
            for slab in worker.close():
                if not self.cargo.is_leased(slab):
                    slab.close()
        self._workers.clear()
        self._nursery.close()
        self.ended_by = self.ended_by or PoolClosed("the pool was closed")
        self._board.close()
        self._board.read_inbox()  # tasks that came too late are answered
        self._hand_over()
        self.cargo.close()

    # to the children

    def _write(self, worker: Worker, data: bytes, descriptor: int = -1) -> None:
        worker.send(data, descriptor)
        self._unsent.add(worker)

    def flush(self, worker: Worker) -> None:
        """Send what was noted; what the socket does not take now is sent when it does."""
        is_sent = worker.flush()
        if is_sent == worker.is_full and not worker.is_closed:
            worker.is_full = not is_sent
            self._board.listen_for_room(worker.sock.fileno(), is_wanted=worker.is_full)

    def _withdraw(self, uid: int) -> None:
        for worker in self._workers.values():
            if uid in worker.known:
                worker.known.discard(uid)
                self._write(worker, frames.frame(frames.DROP, uid))
