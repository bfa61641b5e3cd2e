"""The hub: the thread that talks to every child.

It waits for sockets, processes and alarms, and never for one child while others could be served.
The scheduler decides; the hub carries its decisions out.

Guarantees:

- What one child does ends that child at most. A frame that no child sends ends its sender.
- No code of a role, of a log handler or of an exception's class runs in this thread.
- Whatever ends the pool, every task that was accepted is put into its queue first.
"""

from __future__ import annotations

import errno
import signal
import threading
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from featpipe.errors import PoolBroken, PoolClosed
from featpipe.pool import frames
from featpipe.pool.actions import Action, Break, Finish, Kill, RequestStack, Send, Start
from featpipe.pool.children import Children
from featpipe.pool.event_loop import EventLoop
from featpipe.pool.log_thread import log
from featpipe.pool.payload_store import most_viewed
from featpipe.pool.scheduler import Scheduler, State
from featpipe.pool.task import Ended, Failure
from featpipe.pool.watchdog import LATE_S, Clock, Watchdog, state_of_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from featpipe.pool.outcomes import Completions
    from featpipe.pool.role import Role
    from featpipe.pool.task import Task
    from featpipe.pool.workers import Worker

#: At a close, a worker in the middle of a task is given this long.
_BUSY_GRACE_S = 0.5


class HubState(Enum):
    """It only ever moves down this list."""

    OPEN = "open"
    CLOSING = "closing"
    """A close was asked for: open tasks have ended, the children get their time to stop."""
    FAILED = "failed"
    """The pool cannot go on: open tasks have ended with the cause, the children are killed."""
    CLOSED = "closed"
    """No child is left, and no task that arrives is seen any more."""


class Hub:
    """Owns the children. Other threads post to it. Args: ``arguments`` are each role's, pickled."""

    def __init__(
        self, roles: Mapping[str, Role], arguments: Mapping[str, bytes], numbers: Iterator[int]
    ) -> None:
        self._scheduler = Scheduler(roles.values(), most_viewed())
        self._loop = EventLoop()
        self._clock = Clock()
        self._children = Children(
            roles, arguments, numbers, loop=self._loop, scheduler=self._scheduler, hub=self
        )
        self.workers, self.logs = self._children.workers, self._children.logs
        self.payloads, self.open_tasks = self._children.payloads, self._children.open_tasks
        self._forkservers = self._children.forkservers
        self._watchdog = Watchdog(roles, self._scheduler, self.workers, self._forkservers)
        self._state = HubState.OPEN
        self.is_open = True
        """Whether tasks are given out and taken back."""
        self.now = self._clock.now()
        """Seconds of the scheduler's clock, at the beginning of this turn."""
        self._to_do: deque[Action] = deque()
        self._is_acting = False
        self.ended_by: Failure | None = None
        self.closed_by: Failure | None = None
        """Why tasks that arrive now are not seen any more; None while they are."""
        self.thread = threading.Thread(target=self._run, name="featpipe-hub", daemon=True)
        self._do: dict[type, Callable[..., None]] = {
            Start: self._children.start,
            Send: self.payloads.send,
            RequestStack: self._children.request_stack,
            Kill: self._children.kill,
            Finish: self._finish_lost,
            Break: self._break,
        }

    def start(self) -> None:
        """Begin. Raises PoolBroken where no thread can be started."""
        try:
            self.logs.start()
            self.thread.start()
        except RuntimeError as error:
            self._release_everything()
            raise PoolBroken(
                f"the pool cannot begin: {error}",
                hint="make it before the program ends (Python 3.12 starts no threads in exit "
                "handlers), or allow more threads (ulimit -u)",
            ) from error

    # for other threads

    def submit(self, task: Task, into: Completions) -> None:
        """Accept a task. It ends in ``into``, whatever happens."""
        notes = (self.open_tasks.arriving[task.role], into.arriving)
        self._loop.post_noted(self._submit, task, notes)
        if self._state is HubState.CLOSED:
            into.wake()

    def wake(self) -> None:
        """Have the hub look for arriving tasks."""
        self._loop.wake()

    def resume(self, into: Completions) -> None:
        """Have tasks go on that waited for this queue to have room."""
        self._loop.post(self._resume, into)

    def n_unfinished(self, role: str) -> int:
        """Tasks of the role that have not ended."""
        return 0 if self._state is HubState.CLOSED else self.open_tasks.n_unfinished(role)

    def window(self, role: str) -> int:
        """Tasks of the role that are worth having unfinished at a time."""
        return self._scheduler.window(role)

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
        error = PoolClosed(
            "this pool belongs to the process that forked this one",
            hint="make the pool after the fork",
        )
        self.ended_by = self.closed_by = Failure(error)
        self._state, self.is_open = HubState.CLOSED, False

    # the loop

    def _run(self) -> None:
        # Children inherit the mask: none of them prints a KeyboardInterrupt while it imports.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        self.logs.becomes_current()
        try:
            self.act(self._scheduler.open(self.now))
            while self.is_open or self.workers:
                self._take_turn()
        except BaseException as error:
            log.failure("the hub failed", error)
            self.fail(PoolBroken(f"the pool failed: {error!r}", hint=_hint_for(error)))
        finally:
            self._release_everything()

    def _take_turn(self) -> None:
        # Most turns are short and every task takes two of them: what has nothing to do is not
        # called at all.
        if self.workers.unsent:
            self.workers.send_all()
        if self.open_tasks.ended and self.open_tasks.hand_over():
            self.act(self._scheduler.resume(self.now))
            self.workers.send_all()
        clock = self._clock
        began = clock.read() - clock.missed_s
        at = self._watchdog.next_check
        if at is None or self._scheduler.alarms or not self.is_open:
            at = self._wake_at(began)
        patience_s = None if at is None else max(0.0, at - began)
        if self.workers.killed:
            lost_in_s = self.workers.lost_in_s()
            if lost_in_s is not None:
                patience_s = lost_in_s if patience_s is None else min(lost_in_s, patience_s)
        self._loop.wait(patience_s)
        self.now = clock.read() - clock.missed_s
        if patience_s is not None and self.now - began > patience_s + LATE_S:
            clock.forgive(began, patience_s)
            self.now = clock.now()
        self._loop.handle_events()
        if self.workers.killed:
            self._children.give_up_lost()
        if at is not None and self.now >= at:
            self._handle_alarms(self.now)

    def _wake_at(self, now: float) -> float | None:
        if not self.is_open:
            return self.workers.kill_at()
        first = self._watchdog.next_check
        if first is None:
            first = self._watchdog.wake_at(now)
        second = self._scheduler.wake_at()
        return min(first, second) if first is not None and second is not None else first or second

    def _handle_alarms(self, now: float) -> None:
        if not self.is_open:
            self._watchdog.kill_due(now)
            return
        self.act(self._scheduler.tick(now))
        self._watchdog.check(now)

    def act(self, decided: Iterable[Action]) -> None:
        """Carry out the scheduler's decisions."""
        # An action may lead to new facts, and these to new actions. They come last: a worker
        # must get its tasks in the order in which the scheduler handed them out.
        self._to_do.extend(decided)
        if self._is_acting:
            return
        self._is_acting = True
        try:
            while self._to_do and self.is_open:
                action = self._to_do.popleft()
                self._do[type(action)](action)
        finally:
            self._is_acting = False

    # posted by other threads

    def _submit(self, task: Task) -> None:
        self.open_tasks.add(task)
        if self.ended_by is not None:
            self.open_tasks.conclude(Ended(task, failure=self.ended_by))
            return
        self.act(self._scheduler.submit(task, self.now))

    def _resume(self, into: Completions) -> None:
        if into.has_drained() and self.is_open:
            self.act(self._scheduler.resume(self.now))

    def _close(self, grace_s: float) -> None:
        if not self.is_open:
            return
        self._end_all(HubState.CLOSING, Failure(PoolClosed("the pool was closed")))
        now = self.now
        for number, _, _, state, n_tasks in self._scheduler.workers():
            worker = self.workers.get(number)
            if worker is None:  # it has ended, or was never started
                continue
            if state is State.READY and state_of_process(worker.pid or 0) != "T":
                self.workers.write(worker, frames.frame(frames.STOP))
                worker.kill_at = now + (min(grace_s, _BUSY_GRACE_S) if n_tasks else grace_s)
            else:
                worker.kill_at = now

    def _finish_lost(self, action: Finish) -> None:
        self.open_tasks.conclude(Ended(action.task, loss=action.loss))

    def _break(self, action: Break) -> None:
        loss = action.loss
        story = f"\n{loss.story}" if loss.story else ""
        message = f"workers of role {action.role} cannot work: {loss.summary}{story}"
        self.fail(PoolBroken(message, hint=loss.hint), loss.pickled)

    def fail(self, error: PoolBroken, cause: bytes | None = None) -> None:
        """The pool cannot go on: open tasks end with the error, and the children are killed."""
        self._end_all(HubState.FAILED, Failure(error, cause))
        for worker in self.workers:
            worker.kill_at = self.now

    # ends

    def _end_all(self, state: HubState, failure: Failure) -> None:
        """Every open task ends with this; the first to come stays the cause."""
        if self.is_open:
            self.is_open, self._state, self.ended_by = False, state, failure
        self.open_tasks.end_all(self.ended_by or failure)

    def _release_everything(self) -> None:
        self._end_all(HubState.CLOSING, Failure(PoolClosed("the pool was closed")))
        # Outcomes first: nothing that fails after this can keep a caller waiting.
        for step in (
            self.open_tasks.hand_over,
            lambda: self.workers.end(self.payloads.is_referenced),
            self._forkservers.close,
            self._loop.close,
            self._loop.read_inbox,  # of tasks that came too late
            self.open_tasks.hand_over,
            self.payloads.close,
        ):
            try:
                step()
            except BaseException as error:
                log.failure("the hub failed at its end", error)
        self._state, self.closed_by = HubState.CLOSED, self.ended_by
        self.open_tasks.wake_the_late()
        self.logs.stop()


def _hint_for(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return "too many files are open: raise the limit (ulimit -n), or hold fewer results"
    return None
