"""Outcomes of tasks, and the queues that a caller takes them from."""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from featpipe.errors import (
    CannotTravel,
    PoolBroken,
    PoolError,
    TaskFailed,
    TaskTimedOut,
    WorkerDied,
)
from featpipe.pool.task import FOREIGN, Cause, Ended, Failure, Loss, Task, load_exception

if TYPE_CHECKING:
    from collections.abc import Hashable

    from featpipe.pool.payload_store import PayloadStore


#: Tasks of a queue wait while results of so many bytes are to be taken from it.
MOST_WAITING_BYTES = 256 << 20
#: `Pool.submit` refuses while payloads of so many bytes wait for workers.
MOST_PAYLOAD_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exactly one is made for every task: a value, or the error in its place.

    A batch that was halved because it killed its workers has an error here (that of its first bad
    part) and one entry per part in ``parts``; any other outcome is its own only part. So
    ``for part in outcome.parts`` sees every value that was computed.
    """

    role: str
    tag: Hashable
    value: object
    error: PoolError | None
    attempts: int
    """Times the task was given to a worker."""
    seconds: float
    """Time spent inside the role's ``run``, by the worker's clock."""
    worker: str
    """Name of the worker that ended it, such as ``encode-0``; empty without one."""
    index: int
    """Place in the input of `Pool.map`; otherwise the number of the task."""
    payload: object = None
    """The payload, kept for roles that halve batches: what the value of a part belongs to."""
    halves: tuple[Outcome, ...] = ()
    is_foreign: bool = False
    """Whether the error is a worker killed or stopped from outside, as far as that can be seen:
    the task need not be to blame, and may be submitted again."""

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """Itself, or the outcomes of the pieces it was cut into, in order."""
        return self.halves or (self,)

    @property
    def has_value(self) -> bool:
        """Whether the role returned."""
        return self.error is None


class HubSide(Protocol):
    """What a queue of outcomes needs from the hub."""

    closed_by: Failure | None
    """Why tasks that arrive now are not seen any more; None while they are."""

    def wake(self) -> None:
        """Have the hub look for arriving tasks."""

    def resume(self, into: Completions) -> None:
        """Have tasks go on that waited for this queue to have room."""


class Completions:
    """A queue of outcomes for the tasks that were submitted into it.

    A pool may have any number of them at a time, each used by a thread of its own.

    What nobody takes is bounded: once results of 256 MiB wait in the queue, or so many that their
    descriptors run short, its tasks that no worker has yet wait until some were taken. Tasks of
    other queues go on.

    No outcome is lost to an interrupt (Ctrl-C) that is raised inside `get`, at whatever point and
    however often: it comes out of the next call. CPython raises the exceptions of signal handlers
    at calls, at the start of functions and at the ends of loops, so each change of state below is
    one store, or stores without a call between them.
    """

    def __init__(self, payloads: PayloadStore, hub: HubSide) -> None:
        self._payloads, self._hub = payloads, hub
        #: Appended to by submitters, taken from by the hub.
        self.arriving: deque[Task] = deque()
        self._n_accepted = 0
        self._n_put = 0
        self._n_bytes_put = 0
        #: A result in shared memory holds a descriptor or two: it counts as so many bytes at least.
        self._least_bytes = MOST_WAITING_BYTES // max(1, payloads.most_viewed)
        self._n_bytes_handed_on = 0
        self.n_bytes_submitted = self.n_bytes_ended = 0
        """Of the payloads of all tasks, counted by the submitter; and of those that have ended."""
        self.is_full = False
        """Whether its tasks wait; changed by the hub."""
        #: (count of the ends put before, the end, bytes of all results put so far), appended to by
        #: the hub.
        self._ends: deque[tuple[int, Ended, int]] = deque()
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._n_waiting = 0
        self._making = threading.Lock()
        #: Outcomes that were made and not yet returned; and the number of all that were made.
        self._ready: list[Outcome] = []
        self._n_made = 0
        self._n_bytes_made = 0

    @property
    def n_open(self) -> int:
        """Tasks submitted into this queue whose outcome has not been taken from it."""
        return self._n_accepted + len(self.arriving) - self._n_made + len(self._ready)

    @property
    def n_bytes_waiting(self) -> int:
        """Bytes of the results that have not been taken from it."""
        return self._n_bytes_put - self._n_bytes_made

    # for the hub's thread

    def accept(self) -> None:
        """The hub has seen the first of the arriving tasks: it will be put."""
        # Counted first: another thread may count one too many for an instant, never one too few.
        self._n_accepted += 1
        self.arriving.popleft()

    def put(self, ended: list[Ended]) -> None:
        """Every task is in one of the lists, once."""
        for one in ended:
            n_bytes = one.n_bytes
            if one.reference is not None and n_bytes < self._least_bytes:
                n_bytes = self._least_bytes
            self._n_bytes_put += n_bytes
            task = one.task
            if task.origin is not None:
                self._n_bytes_handed_on -= task.n_bytes
                task = task.origin
            self.n_bytes_ended += task.n_bytes
            self._ends.append((self._n_put, one, self._n_bytes_put))
            self._n_put += 1
        if self._n_bytes_put - self._n_bytes_made > MOST_WAITING_BYTES:
            self.is_full = True
        for _ in range(self._n_waiting):
            self._tokens.put(None)

    def hand_on(self, n_bytes: int) -> None:
        """So many more bytes are on their way from one role to the next."""
        self._n_bytes_handed_on += n_bytes
        if self._n_bytes_handed_on > MOST_WAITING_BYTES:
            self.is_full = True

    def has_drained(self) -> bool:
        """Whether it was full, and is not any more."""
        if self.is_full and self._has_room():
            self.is_full = False
            return True
        return False

    def wake(self) -> None:
        """Have waiting threads look again; called by submitters too."""
        for _ in range(self._n_waiting):
            self._tokens.put(None)

    # for the caller

    def get(self, timeout: float | None = None) -> list[Outcome]:
        """All outcomes that are ready, after waiting for the first.

        Empty when ``timeout`` seconds have passed, or at once when no task is open.

        Raises:
            PoolBroken: the workers cannot be started, or the pool failed: the run is over.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self.n_open > 0:
            has_news = self._n_put != self._n_made or self._hub.closed_by is not None
            broken = self._make_ready() if has_news else None
            if self.is_full and self._has_room():
                self._hub.resume(self)
            # No call, so no interrupt, from here to the caller.
            if self._ready:
                outcomes = self._ready
                self._ready = []
                return outcomes
            if broken is not None:
                self._n_made += 1
                raise broken
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            self._wait(left)
        return []

    def _has_room(self) -> bool:
        n_bytes = max(self._n_bytes_put - self._n_bytes_made, self._n_bytes_handed_on)
        return n_bytes <= MOST_WAITING_BYTES

    def _wait(self, timeout: float | None) -> None:
        """Wait for the hub, unless it has put something since."""
        if self.arriving:
            self._hub.wake()  # an interrupt may have come between a submit and its wake-up
        # Where an interrupt leaves the count too high, a needless token is put.
        self._n_waiting += 1
        try:
            if self._n_put == self._n_made and self._hub.closed_by is None:
                self._tokens.get(timeout=timeout)
        except Empty:
            return
        finally:
            self._n_waiting -= 1

    def _make_ready(self) -> PoolError | None:
        """Make outcomes of the ends that are there. The error where the first is a PoolBroken."""
        with self._making:
            if self._ready:
                return None
            outcomes: list[Outcome] = []
            n_made, n_bytes_made = self._n_made, self._n_bytes_made
            ends = list(self._ends) if self._hub.closed_by is None else self._last_ends()
            for number, ended, n_bytes in ends:
                if number < n_made:
                    continue
                if ended.failure is not None and isinstance(ended.failure.error, PoolBroken):
                    if not outcomes:
                        return ended.failure.raised()
                    break  # these are handed over first; the next call raises
                outcomes.append(self._outcome_of(ended))
                n_made, n_bytes_made = n_made + 1, n_bytes
            # One after the other without a call between them: an interrupt sees both or none.
            self._ready = outcomes
            self._n_made, self._n_bytes_made = n_made, n_bytes_made
            while self._ends and self._ends[0][0] < self._n_made:
                self._ends.popleft()
            return None

    def _last_ends(self) -> list[tuple[int, Ended, int]]:
        """Once the hub takes no more: those it has put, and those of tasks that came too late."""
        closed, ends = self._hub.closed_by, list(self._ends)
        if closed is None:
            return ends
        put, total = self._n_put, self._n_bytes_put
        late = [(put + n, Ended(t, failure=closed), total) for n, t in enumerate(self.arriving)]
        if not late and self._n_put == self._n_made < self._n_accepted:
            raise closed.raised()  # in a forked child: these end in the parent only
        return ends + late

    def _outcome_of(self, ended: Ended) -> Outcome:
        task = ended.task
        first = task.origin or task
        halves = tuple(map(self._outcome_of, ended.pieces))
        value, error = self._value_or_error(ended)
        if halves:
            error = next((half.error for half in halves if half.error is not None), None)
        return Outcome(
            role=task.role,
            tag=first.tag,
            value=value,
            error=error,
            attempts=task.n_sent,
            seconds=sum(half.seconds for half in halves) if halves else ended.seconds,
            worker=ended.worker,
            index=first.index,
            payload=first.payload if task.pickled is None else _loaded_or_none(task.pickled),
            halves=halves,
            is_foreign=ended.loss is not None and ended.loss.cause in FOREIGN,
        )

    def _value_or_error(self, ended: Ended) -> tuple[object, PoolError | None]:
        if ended.failure is not None:
            return None, ended.failure.raised()
        if ended.loss is not None:
            return None, _error_of_loss(ended.loss, ended.task)
        if ended.is_error:
            return None, _error_of_answer(ended)
        if ended.body is None:
            return None, None
        try:
            return self._payloads.unpack(ended.body, ended.flags, ended.reference), None
        except Exception as failure:  # any class may fail to unpickle
            return None, _error_of_unpickling(ended, failure)


def _loaded_or_none(pickled: bytes) -> object:
    """The payload of a piece; the worker that cut it could pickle it, and the next one load it."""
    try:
        return pickle.loads(pickled)
    except Exception:  # any class may fail to unpickle; the error of the piece is what counts
        return None


def _error_of_loss(loss: Loss, task: Task) -> PoolError:
    story = f"\n--- last words ---\n{loss.story}" if loss.story else ""
    if loss.cause is Cause.TIMED_OUT:
        return TaskTimedOut(f"{task.role} ran past its deadline of {task.deadline_s} s{story}")
    return WorkerDied(
        f"{task.role} lost {task.n_losses} worker{'s' * (task.n_losses != 1)} to this task:"
        f" the last one {loss.summary}{story}"
    )


def _error_of_answer(ended: Ended) -> PoolError:
    try:
        kind, message, text, data = pickle.loads(ended.body or b"")
    except Exception as failure:  # not what `child.describe` makes
        return _error_of_unpickling(ended, failure)
    cause = load_exception(data)
    if isinstance(cause, CannotTravel):
        return cause
    error = TaskFailed(
        f"{ended.task.role} failed with {kind}: {message}\n"
        f"--- traceback in {ended.worker} ---\n{text.rstrip()}"
    )
    error.__cause__ = cause
    return error


def _error_of_unpickling(ended: Ended, failure: Exception) -> PoolError:
    error = TaskFailed(
        f"the result of {ended.task.role} cannot be unpickled here: {failure!r}",
        hint="its class must be importable in this process as well",
    )
    error.__cause__ = failure
    return error
