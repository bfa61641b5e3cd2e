"""A batcher: one kind of work for a pool of workers, shared by all requests.

Guarantees:

- Every `submit` ends: with an answer, with the item's own error, or at its deadline.
- Items of different requests share a batch. An item that kills its worker is found by bisection,
  and the others of its batch are answered.
- The queue is bounded in number and in weight; beyond it `submit` refuses at once.
- A worker that is killed from outside costs time and no answer: its items are run again, as often
  as their deadlines and `_MAX_REPEATS` allow. The same holds for a pool that breaks: another one is
  opened at once, and queued items stay queued.
- Workers that repeatedly cannot be started (damaged model, no memory) do not end the batcher: it
  refuses requests with the reason and tries again after growing pauses.

All methods belong to the event loop's thread; one thread per pool waits for its outcomes.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from featpipe.errors import FeatpipeError, PoolBroken, PoolClosed, PoolError
from featpipe.pool import Pool
from featpipe.service.errors import Failure, failure_of
from featpipe.service.request_queue import Item, RequestQueue
from featpipe.service.tracing import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from featpipe.pool import Completions, Outcome, Role, WorkerView
    from featpipe.service.metrics import ServiceMetrics
    from featpipe.service.request_queue import BatcherLimits

logger = getLogger(__name__)

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

#: A group, a task's payload or a task's result: the pool passes them on untyped.
Untyped = Any

#: Seconds until workers that cannot be started are tried again: at once, then doubled each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0
#: Pools in a row that break before queued items fail.
_MAX_BROKEN = 3
#: Times that an item is run again after its workers were killed from outside or its pool broke.
#: Bounded, because the item itself may be the cause.
_MAX_REPEATS = 8
#: Tag of the task that finds out when a worker is ready; batches count from 1.
_PING = 0


@dataclass(frozen=True, slots=True)
class Workload(Generic[ItemT, AnswerT]):
    """How items become tasks of a role, and a task's result becomes one answer per item."""

    role: Role
    make: Callable[[Untyped, tuple[ItemT, ...]], object]
    """(group, items) -> payload, which the role's ``bisect`` can halve."""
    count: Callable[[Untyped], int]
    """Items in a payload."""
    answers: Callable[[Untyped], Sequence[object]]
    """The answers in a result, in the order of the items; an exception is that item's error."""
    ping: object
    """A payload without items: answered as soon as a worker is ready."""


class Batcher(Generic[ItemT, AnswerT]):
    """One workload for all requests.

    Args:
        workload: role, and the way from items to tasks and back.
        limits: of the queue and of a batch.
        metrics: counted into.
        tracer: makes spans for the queue and the workers below that of each request.
        is_eager: start workers at once, and be ready only when one is.

    Attributes:
        problem: why there are no workers, "" while there are.

    """

    def __init__(
        self,
        workload: Workload[ItemT, AnswerT],
        limits: BatcherLimits,
        metrics: ServiceMetrics,
        tracer: Tracer | None = None,
        *,
        is_eager: bool = True,
    ) -> None:
        self.name = workload.role.name
        self.is_ready = not is_eager
        self.problem = ""
        self._workload, self._limits, self._metrics = workload, limits, metrics
        self._tracer = tracer or Tracer(is_on=False)
        self._is_eager = is_eager
        self._queue = RequestQueue(limits)
        self._batches: dict[int, list[Item]] = {}
        self._n_open = self._weight_open = 0
        self._next_batch = _PING + 1
        self._seconds_per_item = 0.05
        self._pool: Pool | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reopening: asyncio.TimerHandle | None = None
        self._n_broken = 0
        """Pools in a row that broke before they answered anything."""
        self._is_accepting = False
        self._is_closed = False

    def open(self) -> None:
        """Start the pool. Returns at once; `is_ready` becomes true when a worker is ready."""
        self._loop = asyncio.get_running_loop()
        self._reopening = None
        if self._is_closed:
            return
        try:
            self._pool = Pool([self._workload.role])
        except (FeatpipeError, OSError) as error:
            self._break(error)
            return
        self._completions = self._pool.completions()
        post = partial(_post, self._loop, self, self._pool)
        self._outcomes = OutcomeThread(self._completions, post, self.name)
        self._is_accepting = True
        if self._is_eager:
            self._run(self._pool, _PING, self._workload.ping)
        self._pump()

    async def submit(
        self, payload: ItemT, *, group: Hashable = None, weight: int = 1, timeout_s: float
    ) -> AnswerT:
        """Queue one item and wait for its answer.

        Args:
            payload: the item.
            group: only items of one group share a batch.
            weight: in the unit of the limits (bytes or characters).
            timeout_s: rest of the request's time.

        Raises:
            Failure: refused, failed or late.

        """
        self._refuse_excess(weight)
        item = self._add(payload, group, weight)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await item.future
        except TimeoutError:
            self._metrics.refused.labels(self.name, "deadline").inc()
            raise _late(timeout_s) from None
        finally:
            item.record_spans(self._tracer, self.name, self._loop.time())
        if isinstance(answer, BaseException):
            raise failure_of(answer) from answer
        return cast("AnswerT", answer)

    @property
    def n_open(self) -> int:
        """Items in the queue or with workers."""
        return self._n_open

    def workers(self) -> list[WorkerView]:
        """The processes of its pool."""
        return self._pool.workers() if self._pool is not None else []

    def close(self) -> None:
        """Stop the workers; open items fail. Blocks for up to seconds: call it from a thread."""
        self._is_closed = True
        self.is_ready = False
        if self._pool is not None:
            self._pool.close(grace_s=2.0)
            self._outcomes.stop()

    # ---- accepting

    def _add(self, payload: ItemT, group: Hashable, weight: int) -> Item:
        future: asyncio.Future[object] = self._loop.create_future()
        item = Item(payload, weight, self._loop.time(), future, group)
        self._queue.add(item)
        self._n_open += 1
        self._weight_open += weight
        future.add_done_callback(partial(self._forget, item))
        self._pump()
        return item

    def _refuse_excess(self, weight: int) -> None:
        if self._is_closed:
            raise failure_of(PoolClosed("closed"))
        if not self._is_accepting:
            self._metrics.refused.labels(self.name, "no_workers").inc()
            raise self._unavailable()
        if not self._has_room_for(weight):
            self._metrics.refused.labels(self.name, "full").inc()
            raise self._busy()

    def _has_room_for(self, weight: int) -> bool:
        """Whether the limits hold with another item; one alone may be heavier than the limit."""
        if self._n_open >= self._limits.max_waiting:
            return False
        return not self._n_open or self._weight_open + weight <= self._limits.max_waiting_weight

    def _unavailable(self) -> Failure:
        message = f"the workers for {self.name} cannot be started"
        hint = "the log says why"
        if not self.problem:  # it was not opened yet: templates are being fitted
            message = f"the workers for {self.name} are not started yet"
            hint = "/readyz tells when they are; if they never are, the log says why"
        return Failure(
            503, "workers_unavailable", message,
            hint=hint, retry_after_s=_pause_after(self._n_broken),
        )  # fmt: skip

    def _busy(self) -> Failure:
        n_workers = len(self._workload.role.devices)
        return Failure(
            429, "busy", f"{self._n_open} requests for {self.name} are waiting",
            hint="wait as long as Retry-After says",
            retry_after_s=min(60.0, self._n_open * self._seconds_per_item / n_workers),
        )  # fmt: skip

    def _forget(self, item: Item, _: asyncio.Future[object]) -> None:
        """The item ended, was given up or was cancelled."""
        self._n_open -= 1
        self._weight_open -= item.weight

    # ---- sending

    def _pump(self) -> None:
        """Send the batches that are due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        n_workers = len(self._workload.role.devices)
        # One batch more than workers, so that a worker that ends one can begin the next at once.
        while self._pool is not None and len(self._batches) <= n_workers:
            is_idle = len(self._batches) < n_workers
            batch = self._queue.take(self._loop.time(), is_idle=is_idle)
            if not batch:
                due_at = self._queue.due_at()
                if due_at is not None:
                    self._timer = self._loop.call_at(due_at, self._pump)
                return
            self._send(self._pool, batch)

    def _send(self, pool: Pool, batch: list[Item]) -> None:
        number = self._next_batch
        self._next_batch += 1
        self._batches[number] = batch
        self._metrics.batch_items.labels(self.name).observe(len(batch))
        for item in batch:
            item.sent, item.n_together = self._loop.time(), len(batch)
        payloads = cast("tuple[ItemT, ...]", tuple(item.payload for item in batch))
        self._run(pool, number, self._workload.make(batch[0].group, payloads))

    def _run(self, pool: Pool, number: int, payload: object) -> None:
        try:
            pool.submit(self.name, payload, tag=number, into=self._completions)
        except PoolBroken as error:
            self._break(error)
            return
        except PoolError as error:
            for item in self._batches.pop(number, []):
                item.settle(error)
            return
        self._outcomes.wake()

    # ---- taking outcomes

    def take_end(self, pool: Pool, end: Outcome | PoolBroken) -> None:
        """Called in the loop's thread with every end of a task, and with that of the pool."""
        if pool is not self._pool:
            return  # that pool broke before, and its items are in the queue again
        if isinstance(end, PoolBroken):
            self._break(end)
        elif end.tag == _PING:
            self._take_ping(pool, end)
        else:
            self._take_batch(end)

    def _take_ping(self, pool: Pool, outcome: Outcome) -> None:
        if outcome.error is None:
            self._note_health()
            logger.info("%s is ready", self.name)
        elif outcome.is_foreign:
            self._run(pool, _PING, self._workload.ping)
        elif not self._is_closed:
            self._break(outcome.error)

    def _take_batch(self, outcome: Outcome) -> None:
        items = self._batches.pop(cast("int", outcome.tag))
        self._count(outcome, len(items))
        repeated: list[Item] = []
        at = 0
        for part in outcome.parts:
            n = self._workload.count(part.payload)
            for item, answer in zip(items[at : at + n], self._answers(part, n), strict=True):
                item.outcome = part
                if part.is_foreign and item.n_repeats < _MAX_REPEATS:
                    repeated.append(item)
                else:
                    item.settle(answer)
            at += n
        self._repeat(repeated)
        self._pump()

    def _answers(self, part: Outcome, n: int) -> Sequence[object]:
        if part.error is None:
            answers = self._workload.answers(part.value)
            self._note_health()
            return answers
        if not isinstance(part.error, PoolClosed):
            logger.warning("%s: %s", self.name, part.error)
        return [part.error] * n

    def _note_health(self) -> None:
        """A worker answered."""
        self.is_ready, self.problem, self._n_broken = True, "", 0

    def _repeat(self, items: Sequence[Item]) -> None:
        """Queue items whose workers were lost again: first, and each in a batch of its own."""
        for item in items:
            item.n_repeats += 1
        self._queue.put_back(items)

    def _count(self, outcome: Outcome, n_items: int) -> None:
        self._metrics.batch_seconds.labels(self.name).observe(outcome.seconds)
        n_lost = max(outcome.attempts - 1, 0) + sum(part.attempts for part in outcome.halves)
        if n_lost:
            self._metrics.repeated.labels(self.name).inc(n_lost)
        if n_items and outcome.error is None:
            each = outcome.seconds / n_items
            self._seconds_per_item += 0.1 * (each - self._seconds_per_item)

    # ---- losing the pool

    def _break(self, error: Exception) -> None:
        """There are no workers: open another pool later, and fail items if that keeps failing."""
        if self._is_closed or self._reopening is not None:
            return
        self.is_ready = False
        self.problem = str(getattr(error, "message", error)).splitlines()[0]
        logger.error("%s has no workers: %s", self.name, error)
        self._n_broken += 1
        sent = [item for batch in self._batches.values() for item in batch]
        self._batches.clear()
        self._keep_or_fail(sent)
        pool, self._pool = self._pool, None
        if pool is not None:
            self._outcomes.stop()
            threading.Thread(target=pool.close, args=(0.0,), daemon=True).start()
        self._reopening = self._loop.call_later(_pause_after(self._n_broken), self.open)

    def _keep_or_fail(self, sent: Sequence[Item]) -> None:
        broken = PoolBroken("workers cannot be started")
        if self._n_broken < _MAX_BROKEN:
            for item in sent:
                if item.n_repeats >= _MAX_REPEATS:
                    item.settle(broken)
            self._repeat([item for item in sent if not item.future.done()])
            return
        self._is_accepting = False
        for item in (*self._queue.clear(), *sent):
            item.settle(broken)


class OutcomeThread:
    """Calls ``post`` from a thread of its own with every end of a task, and with the pool's own.

    Args:
        completions: of the pool.
        post: must not block; called with an outcome, or with PoolBroken as the last.
        name: of the thread.

    """

    def __init__(
        self, completions: Completions, post: Callable[[Outcome | PoolBroken], None], name: str
    ) -> None:
        self._completions, self._post = completions, post
        self._has_open = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"collect-{name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """A task was submitted."""
        self._has_open.set()

    def stop(self) -> None:
        """End the thread when the tasks that are open have ended; returns at once."""
        self._is_over.set()
        self._has_open.set()

    def _run(self) -> None:
        while True:
            self._has_open.wait()
            try:
                outcomes = self._completions.get()
            except PoolBroken as error:
                self._post(error)
                return
            for outcome in outcomes:
                self._post(outcome)
            if self._completions.n_open > 0:
                continue
            if self._is_over.is_set():
                return
            # Cleared before the second look: a task submitted after that look sets it again.
            self._has_open.clear()
            if self._completions.n_open > 0 or self._is_over.is_set():
                self._has_open.set()


def _late(timeout_s: float) -> Failure:
    return Failure(
        504, "deadline_exceeded", f"no answer within {timeout_s:.1f} s",
        hint="ask again when the service is less busy, or send less at a time",
    )  # fmt: skip


def _pause_after(n_broken: int) -> float:
    """Seconds until the next pool, after so many in a row that broke."""
    if n_broken <= 1:
        return 0.0
    return float(min(_FIRST_PAUSE_S * 2 ** (n_broken - 2), _LONGEST_PAUSE_S))


def _post(
    loop: asyncio.AbstractEventLoop,
    batcher: Batcher[ItemT, AnswerT],
    pool: Pool,
    end: Outcome | PoolBroken,
) -> None:
    try:
        loop.call_soon_threadsafe(batcher.take_end, pool, end)
    except RuntimeError:  # the loop is closed: no request waits any more
        return
