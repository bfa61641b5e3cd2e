"""A batcher: one kind of work for the pool, shared by all requests.

Guarantees:

- Every `submit` ends: with an answer, with the item's own error, or at its deadline.
- Items of different requests travel in one batch; an item that kills its worker is found by halving
  and the others of its batch are answered all the same.
- What waits is bounded, in number and in weight; beyond it `submit` refuses at once.
- Workers that somebody kills cost time and no answer: what they had in hand is done again, as often
  as the item's deadline and `_MAX_REPEATS` allow. So does a pool that breaks: another is opened at
  once, what waits goes on waiting, and what was in hand is done again.
- Workers that repeatedly cannot be started (damaged model, no memory) do not end the batcher: it
  refuses requests with the reason and tries again after growing pauses.

All methods belong to the event loop's thread; one thread of the batcher waits for the pool.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any, cast

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

# The collector: one thread that carries the ends of a pool's tasks into an event loop.


class OutcomeThread:
    """Calls ``post`` from a thread of its own with every end of a task, and with the pool's own.

    Args:
        into: where the tasks end.
        post: must not block; called with an outcome, or with PoolBroken as the last.
        name: of the thread.

    """

    def __init__(
        self, into: Completions, post: Callable[[Outcome | PoolBroken], None], name: str
    ) -> None:
        self._into, self._post = into, post
        self._has_open = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"collect-{name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """A task was submitted."""
        self._has_open.set()

    def stop(self) -> None:
        """End the thread when the tasks that are open have ended; returns at once."""
        self._over.set()
        self._has_open.set()

    def _run(self) -> None:
        while True:
            self._has_open.wait()
            try:
                outcomes = self._into.get()
            except PoolBroken as error:
                self._post(error)
                return
            for outcome in outcomes:
                self._post(outcome)
            if self._into.n_open > 0:
                continue
            if self._is_over():
                return
            # In this order: what is submitted after the look sets it again.
            self._has_open.clear()
            if self._into.n_open > 0 or self._is_over():
                self._has_open.set()

    def _is_over(self) -> bool:
        return self._over.is_set()


logger = getLogger(__name__)

#: Seconds until workers that cannot be started are tried again: at once, then doubled each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0
#: Pools in a row that break before those who wait are told so.
_MAX_BROKEN = 3
#: Times that an item is done again whose workers were killed from outside, or whose pool broke in
#: the middle of it. Not without end: it may itself be what brings its workers to the end.
_MAX_REPEATS = 8


@dataclass(frozen=True, slots=True)
class Workload:
    """How items become tasks of a role, and its values become answers, one per item in order."""

    role: Role
    make: Callable[[Any, tuple[Any, ...]], object]
    """(group, items) -> payload; the role's ``bisect`` can halve it."""
    count: Callable[[Any], int]
    """Items in a payload."""
    answers: Callable[[Any], Sequence[object]]
    """A value's answers; an exception among them is that item's."""
    ping: object
    """A payload without items: answered as soon as a worker is ready."""


class Batcher:
    """One role's work for every request.

    Args:
        workload: what it does.
        limits: how much it takes on.
        metrics: where it counts.
        tracer: spans of queue and workers below that of each request, if there are to be any.
        is_eager: start workers at once, and be ready only when one is.

    """

    def __init__(
        self,
        workload: Workload,
        limits: BatcherLimits,
        metrics: ServiceMetrics,
        tracer: Tracer | None = None,
        *,
        is_eager: bool = True,
    ) -> None:
        self.name = workload.role.name
        self.is_ready = not is_eager
        self.problem = ""
        """Why there are no workers, while there are none."""
        self._workload, self._limits, self._metrics = workload, limits, metrics
        self._tracer = tracer or Tracer(is_on=False)
        self._is_eager = is_eager
        self._queue = RequestQueue(limits)
        self._batches: dict[int, list[Item]] = {}
        self._n_open = self._weight_open = 0
        self._next_batch = 1
        self._seconds_per_item = 0.05
        self._pool: Pool | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reopening: asyncio.TimerHandle | None = None
        self._n_broken = 0
        """Pools in a row that broke before they answered anything."""
        self._is_taking = False
        self._is_closed = False

    def open(self) -> None:
        """Start the pool. Returns at once; `is_ready` tells when a worker is."""
        self._loop = asyncio.get_running_loop()
        self._reopening = None
        if self._is_closed:
            return
        try:
            self._pool = Pool([self._workload.role])
        except (FeatpipeError, OSError) as error:
            self._break(error)
            return
        self._into = self._pool.completions()
        post = partial(_post, self._loop, self, self._pool)
        self._outcomes = OutcomeThread(self._into, post, self.name)
        self._is_taking = True
        if self._is_eager:
            self._submit_batch(0, self._workload.ping)
        self._pump()

    async def submit(
        self, item: object, *, group: Hashable = None, weight: int = 1, timeout_s: float
    ) -> Any:  # noqa: ANN401  # as various as the roles
        """The answer to one item.

        Args:
            item: one of the workload's.
            group: only items of one group share a batch.
            weight: in bytes, or whatever the limits count.
            timeout_s: what is left of the request's time.

        Raises:
            Failure: refused, failed or late; `failure_of` made it.

        """
        self._refuse_excess(weight)
        future: asyncio.Future[object] = self._loop.create_future()
        one = Item(item, weight, self._loop.time(), future, group)
        self._queue.add(one)
        self._n_open += 1
        self._weight_open += weight
        future.add_done_callback(partial(self._forget, one))
        self._pump()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await future
        except TimeoutError:
            self._metrics.refused.add(self.name, "deadline")
            raise Failure(
                504, "deadline_exceeded", f"no answer within {timeout_s:.1f} s",
                hint="ask again when the service is less busy, or send less at a time",
            ) from None  # fmt: skip
        finally:
            one.record_spans(self._tracer, self.name, self._loop.time())
        if isinstance(answer, BaseException):
            raise failure_of(answer) from answer
        return answer

    @property
    def n_open(self) -> int:
        """Items that wait for or are with workers."""
        return self._n_open

    @property
    def n_free(self) -> int:
        """Items that would be accepted now."""
        return max(0, self._limits.max_waiting - self._n_open)

    def workers(self) -> list[WorkerView]:
        """Processes of this batcher."""
        return self._pool.workers() if self._pool is not None else []

    def close(self) -> None:
        """Stop the workers; what is open fails. Blocks for a moment: call it from a thread."""
        self._is_closed = True
        self.is_ready = False
        if self._pool is not None:
            self._pool.close(grace_s=2.0)
            self._outcomes.stop()

    # ---- taking on

    def _refuse_excess(self, weight: int) -> None:
        if self._is_closed:
            raise failure_of(PoolClosed("closed"))
        if not self._is_taking:
            self._metrics.refused.add(self.name, "no_workers")
            raise Failure(
                503, "workers_unavailable", f"the workers for {self.name} cannot be started",
                hint="the log says why", retry_after_s=_pause_after(self._n_broken),
            )  # fmt: skip
        limits = self._limits
        is_full = self._n_open >= limits.max_waiting
        # One that is heavier than everything together may still come when it is alone.
        is_heavy = self._n_open and self._weight_open + weight > limits.max_waiting_weight
        if is_full or is_heavy:
            self._metrics.refused.add(self.name, "full")
            n_workers = len(self._workload.role.devices)
            raise Failure(
                429, "busy", f"{self._n_open} requests for {self.name} are waiting",
                hint="wait as long as Retry-After says",
                retry_after_s=min(60.0, self._n_open * self._seconds_per_item / n_workers),
            )  # fmt: skip

    def _forget(self, item: Item, _: asyncio.Future[object]) -> None:
        """An item ended, was given up or was cancelled."""
        self._n_open -= 1
        self._weight_open -= item.weight

    # ---- handing out

    def _pump(self) -> None:
        """Hand out what is ripe."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        n_workers = len(self._workload.role.devices)
        # A batch more than there are workers: the next one is there when the last is done.
        while self._pool is not None and len(self._batches) <= n_workers:
            is_idle = len(self._batches) < n_workers
            batch = self._queue.take(self._loop.time(), is_idle=is_idle)
            if not batch:
                ripe_at = self._queue.ripe_at()
                if ripe_at is not None:
                    self._timer = self._loop.call_at(ripe_at, self._pump)
                return
            self._send(batch)

    def _send(self, batch: list[Item]) -> None:
        number = self._next_batch
        self._next_batch += 1
        self._batches[number] = batch
        self._metrics.batch_items.observe(len(batch), self.name)
        for item in batch:
            item.sent, item.n_together = self._loop.time(), len(batch)
        payloads = tuple(item.payload for item in batch)
        self._submit_batch(number, self._workload.make(batch[0].group, payloads))

    def _submit_batch(self, number: int, payload: object) -> None:
        assert self._pool is not None  # noqa: S101  # `submit` refused where there is none
        try:
            self._pool.submit(self.name, payload, tag=number, into=self._into)
        except PoolBroken as error:
            self._break(error)
            return
        except PoolError as error:
            for item in self._batches.pop(number, []):
                item.settle(error)
            return
        self._outcomes.wake()

    # ---- taking answers

    def take_end(self, pool: Pool, end: Outcome | PoolBroken) -> None:
        """Called in the loop's thread with every end of a task, and with that of the pool."""
        if pool is not self._pool:
            return  # it broke before: what it had in hand is with another
        if isinstance(end, PoolBroken):
            self._break(end)
        else:
            self._take(end)

    def _take(self, outcome: Outcome) -> None:
        number = outcome.tag
        if number == 0:
            self._take_ping(outcome)
            return
        items = self._batches.pop(cast("int", number))
        self._note(outcome, len(items))
        repeated: list[Item] = []
        at = 0
        for part in outcome.parts:
            n = self._workload.count(part.payload)
            if part.error is None:
                answers = self._workload.answers(part.value)
                self._note_health()
            else:
                answers = [part.error] * n
                self._log_loss(part)
            for item, answer in zip(items[at : at + n], answers, strict=True):
                item.outcome = part
                if part.is_foreign and item.n_repeats < _MAX_REPEATS:
                    repeated.append(item)
                else:
                    item.settle(answer)
            at += n
        self._repeat(repeated)
        self._pump()

    def _take_ping(self, outcome: Outcome) -> None:
        if outcome.error is None:
            self._note_health()
            logger.info("%s is ready", self.name)
        elif outcome.is_foreign:
            self._submit_batch(0, self._workload.ping)
        elif not self._is_closed:
            self._break(outcome.error)

    def _note_health(self) -> None:
        """A worker answered."""
        self.is_ready, self.problem, self._n_broken = True, "", 0

    def _repeat(self, items: Sequence[Item]) -> None:
        """Whoever had these in hand was lost: they come first, one by one."""
        for item in items:
            item.n_repeats += 1
        self._queue.put_back(items)

    def _note(self, outcome: Outcome, n_items: int) -> None:
        self._metrics.batch_seconds.observe(outcome.seconds, self.name)
        n_lost = max(outcome.attempts - 1, 0) + sum(part.attempts for part in outcome.halves)
        if n_lost:
            self._metrics.repeated.add(self.name, by=n_lost)
        if n_items and outcome.error is None:
            each = outcome.seconds / n_items
            self._seconds_per_item += 0.1 * (each - self._seconds_per_item)

    def _log_loss(self, part: Outcome) -> None:
        if not isinstance(part.error, PoolClosed):
            logger.warning("%s: %s", self.name, part.error)

    def _break(self, error: Exception) -> None:
        """No workers: it is tried again, and if that keeps failing, whoever waits is told."""
        if self._is_closed or self._reopening is not None:
            return
        self.is_ready = False
        self.problem = str(getattr(error, "message", error)).splitlines()[0]
        logger.error("%s has no workers: %s", self.name, error)
        self._n_broken += 1
        in_hand = [item for batch in self._batches.values() for item in batch]
        self._batches.clear()
        self._keep_or_tell(in_hand)
        pool, self._pool = self._pool, None
        if pool is not None:
            self._outcomes.stop()
            threading.Thread(target=pool.close, args=(0.0,), daemon=True).start()
        self._reopening = self._loop.call_later(_pause_after(self._n_broken), self.open)

    def _keep_or_tell(self, in_hand: Sequence[Item]) -> None:
        broken = PoolBroken("workers cannot be started")
        if self._n_broken < _MAX_BROKEN:
            for item in in_hand:
                if item.n_repeats >= _MAX_REPEATS:
                    item.settle(broken)
            self._repeat([item for item in in_hand if not item.future.done()])
            return
        self._is_taking = False
        for item in (*self._queue.clear(), *in_hand):
            item.settle(broken)


def _pause_after(n_broken: int) -> float:
    """Seconds until the next pool, after so many in a row that broke."""
    if n_broken <= 1:
        return 0.0
    return float(min(_FIRST_PAUSE_S * 2 ** (n_broken - 2), _LONGEST_PAUSE_S))


def _post(
    loop: asyncio.AbstractEventLoop, batcher: Batcher, pool: Pool, end: Outcome | PoolBroken
) -> None:
    try:
        loop.call_soon_threadsafe(batcher.take_end, pool, end)
    except RuntimeError:  # the loop is closed: the service is over, and nobody waits
        return
