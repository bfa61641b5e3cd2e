"""ServiceMetrics: everything the service counts, under one registry."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from featpipe.metrics import COUNTS, Counter, Gauge, Histogram, Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.metrics import Sample
    from featpipe.pool import WorkerView


class Watched(Protocol):
    """The state of a `Batcher` that gauges read."""

    name: str
    is_ready: bool

    @property
    def n_open(self) -> int:
        """Items not answered yet."""

    def workers(self) -> list[WorkerView]:
        """Its processes."""


class ServiceMetrics:
    """Counters of requests, batchers and processes."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.requests = Counter(
            "featpipe_requests_total", "Requests by route and status.", ("route", "status")
        )
        self.seconds = Histogram(
            "featpipe_request_seconds", "From the first byte to the last.", ("route",)
        )
        self.refused = Counter(
            "featpipe_refused_total", "Work that was not done, by reason.", ("lane", "reason")
        )
        self.repeated = Counter(
            "featpipe_repeated_total", "Batches begun again after a lost worker.", ("lane",)
        )
        self.batch_items = Histogram(
            "featpipe_batch_items", "Items that went to a worker together.", ("lane",), COUNTS
        )
        self.batch_seconds = Histogram(
            "featpipe_batch_seconds", "Time of a batch inside its worker.", ("lane",)
        )
        self.documents = Counter(
            "featpipe_documents_total", "Documents by what became of them.", ("outcome",)
        )
        self.texts = Counter("featpipe_texts_total", "Texts that were given a vector.")
        self.tokens = Counter("featpipe_tokens_total", "Tokens of those texts.")
        self.in_flight = 0
        self.registry.add(
            self.requests, self.seconds, self.refused, self.repeated, self.batch_items,
            self.batch_seconds, self.documents, self.texts, self.tokens,
            Gauge("featpipe_in_flight", "Requests being answered.", self._read_in_flight),
            Gauge("featpipe_build_info", "The version.", _read_version, ("version",)),
        )  # fmt: skip

    def watch(self, batchers: Sequence[Watched]) -> None:
        """Show the state of these batchers and the memory of their processes."""

        def open_items() -> Iterator[Sample]:
            yield from (((batcher.name,), batcher.n_open) for batcher in batchers)

        def ready() -> Iterator[Sample]:
            yield from (((batcher.name,), int(batcher.is_ready)) for batcher in batchers)

        def memory() -> Iterator[Sample]:
            yield ("service",), resident_bytes(os.getpid())
            for batcher in batchers:
                for worker in batcher.workers():
                    if worker.pid is not None:
                        yield (worker.name,), resident_bytes(worker.pid)

        self.registry.add(
            Gauge("featpipe_open_items", "Items not answered yet.", open_items, ("lane",)),
            Gauge("featpipe_ready", "1 when the lane has workers.", ready, ("lane",)),
            Gauge("featpipe_resident_bytes", "Memory of a process.", memory, ("process",)),
        )  # fmt: skip

    def _read_in_flight(self) -> Iterator[Sample]:
        yield (), self.in_flight


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 when it is gone."""
    try:
        words = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except OSError:
        return 0
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE")


def _read_version() -> Iterator[Sample]:
    yield (version("featpipe"),), 1
