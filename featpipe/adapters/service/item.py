"""An item: one thing that one request asked a lane for, and what became of it when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Hashable

    from featpipe.adapters.tracing import Tracer
    from featpipe.pool import Outcome


@dataclass(slots=True, eq=False)
class Item:
    """Times are those of the event loop, in seconds."""

    payload: object
    weight: int
    arrived: float
    future: asyncio.Future[object]
    group: Hashable
    n_repeats: int = 0
    """Times that it was begun again, as those who had it in hand were lost."""
    sent: float | None = None
    """When it went to the pool last."""
    n_together: int = 0
    """Items of its batch."""
    outcome: Outcome | None = None
    """Of its batch, or of its part of one that was halved."""

    def settle(self, answer: object) -> None:
        """Give it its answer, or its error, unless nobody waits any more."""
        if not self.future.done():
            self.future.set_result(answer)

    def record_spans(self, tracer: Tracer, lane: str, now: float) -> None:
        """Two spans below that of the request: in the queue, and with the workers until ``now``."""
        if not tracer.is_on:
            return
        zero = time.time_ns() - int(now * 1e9)
        arrived, ended = zero + int(self.arrived * 1e9), zero + int(now * 1e9)
        sent = ended if self.sent is None else zero + int(self.sent * 1e9)
        tracer.record(f"{lane} queue", arrived, sent, {"featpipe.repeats": self.n_repeats})
        if self.sent is None:
            return
        facts: dict[str, str | int | float] = {"featpipe.batch_items": self.n_together}
        if self.outcome is not None:
            facts["featpipe.worker"] = self.outcome.worker
            facts["featpipe.attempts"] = self.outcome.attempts
            facts["featpipe.worker_seconds"] = round(self.outcome.seconds, 6)
            if self.outcome.error is not None:
                facts["error.type"] = type(self.outcome.error).__name__
        tracer.record(f"{lane} run", sent, ended, facts)
