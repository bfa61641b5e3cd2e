"""Outcomes of tasks, and the queues that a caller takes them from."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from featpipe.errors import (
    CannotTravel,
    PoolBroken,
    PoolError,
    TaskFailed,
    TaskTimedOut,
    WorkerDied,
)
from featpipe.pool.task import FOREIGN, Cause, Ended, Loss, Task, load_exception

if TYPE_CHECKING:
    from collections.abc import Hashable

    from featpipe.pool.payload_store import PayloadStore


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


class Completions:
    """A queue of outcomes for the tasks that were submitted into it.

    A pool may have any number of them at a time, each used by a thread of its own.
    """

    def __init__(self, payloads: PayloadStore) -> None:
        self._queue: SimpleQueue[list[Ended]] = SimpleQueue()
        self._payloads = payloads
        self._n_submitted = 0
        self._n_taken = 0

    @property
    def n_open(self) -> int:
        """Tasks submitted into this queue whose outcome has not been taken from it."""
        return self._n_submitted - self._n_taken

    def expect(self) -> None:
        """One more task will end here."""
        self._n_submitted += 1

    def put(self, ended: list[Ended]) -> None:
        """Called by the hub: every task is in one of the lists, once."""
        self._queue.put(ended)

    def get(self, timeout: float | None = None) -> list[Outcome]:
        """All outcomes that are ready, after waiting for the first.

        Empty when ``timeout`` seconds have passed, or at once when no task is open.

        Raises:
            PoolBroken: the workers cannot be started, or the pool failed: the run is over.
        """
        outcomes: list[Outcome] = []
        if not self.n_open:
            return outcomes
        try:
            batch = self._queue.get(timeout=timeout)
            while True:
                self._take(batch, outcomes)
                batch = self._queue.get_nowait()
        except Empty:
            return outcomes

    def _take(self, batch: list[Ended], outcomes: list[Outcome]) -> None:
        for place, ended in enumerate(batch):
            if isinstance(ended.error, PoolBroken):
                if outcomes:  # these are handed over first; the next call raises
                    self._queue.put(batch[place:])
                    raise Empty
                self._n_taken += 1
                if rest := batch[place + 1 :]:  # an empty list would be taken for a time-out
                    self._queue.put(rest)
                raise copy_error(ended.error) from ended.error.__cause__
            self._n_taken += 1
            outcomes.append(self._outcome_of(ended))

    def _outcome_of(self, ended: Ended) -> Outcome:
        task = ended.task
        halves = tuple(self._outcome_of(piece) for piece in ended.pieces)
        value, error = self._value_or_error(ended)
        if halves:
            error = next((half.error for half in halves if half.error is not None), None)
        return Outcome(
            role=task.role,
            tag=task.tag,
            value=value,
            error=error,
            attempts=task.n_sent,
            seconds=sum(half.seconds for half in halves) if halves else ended.seconds,
            worker=ended.worker,
            index=task.index,
            payload=task.payload,
            halves=halves,
            is_foreign=ended.loss is not None and ended.loss.cause in FOREIGN,
        )

    def _value_or_error(self, ended: Ended) -> tuple[object, PoolError | None]:
        if ended.error is not None:
            return None, copy_error(ended.error)
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


def copy_error(error: PoolError) -> PoolError:
    """A copy to raise: frames that raise an error, and all they refer to, stay alive with it."""
    copy = type(error)(error.message, hint=error.hint)
    copy.__cause__ = error.__cause__
    return copy


def _error_of_loss(loss: Loss, task: Task) -> PoolError:
    story = f"\n--- last words ---\n{loss.story}" if loss.story else ""
    if loss.cause is Cause.TIMED_OUT:
        return TaskTimedOut(f"{task.role} ran past its deadline of {task.deadline_s} s{story}")
    return WorkerDied(
        f"{task.role} lost {task.n_losses} worker{'s' * (task.n_losses != 1)} to this task:"
        f" the last one {loss.summary}{story}"
    )


def _error_of_answer(ended: Ended) -> PoolError:
    kind, message, text, data = pickle.loads(ended.body or b"")
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
