"""The metrics of one service, in a registry of its own.

Several applications may run in one process: nothing is registered with the default registry of
``prometheus_client``.
"""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client import Metric

    from featpipe.pool import WorkerView

#: Upper bounds in seconds: from a cached document to the longest deadline.
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
#: Upper bounds for items of a batch.
_ITEMS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0)


class ServiceMetrics:
    """Counters of requests, batches and processes. The label ``lane`` holds a batcher's name."""

    def __init__(self) -> None:
        self.registry = registry = _Registry()
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.requests = counter(
            "featpipe_requests_total", "Requests by route and status.", ("route", "status")
        )
        self.seconds = histogram(
            "featpipe_request_seconds", "From the first byte to the last.", ("route",),
            buckets=_SECONDS,
        )  # fmt: skip
        self.in_flight = gauge("featpipe_in_flight", "Requests being answered.")
        self.refused = counter(
            "featpipe_refused_total", "Work that was not done, by reason.", ("lane", "reason")
        )
        self.repeated = counter(
            "featpipe_repeated_total", "Batches begun again after a lost worker.", ("lane",)
        )
        self.batch_items = histogram(
            "featpipe_batch_items", "Items that went to a worker together.", ("lane",),
            buckets=_ITEMS,
        )  # fmt: skip
        self.batch_seconds = histogram(
            "featpipe_batch_seconds", "Time of a batch inside its worker.", ("lane",),
            buckets=_SECONDS,
        )  # fmt: skip
        self.documents = counter(
            "featpipe_documents_total", "Documents by what became of them.", ("outcome",)
        )
        self.texts = counter("featpipe_texts_total", "Texts that were given a vector.")
        self.tokens = counter("featpipe_tokens_total", "Tokens of those texts.")
        build = gauge("featpipe_build_info", "The version.", ("version",))
        build.labels(version("featpipe")).set(1)

    def watch(self, batchers: Sequence[Watched]) -> None:
        """Export the state of these batchers and the memory of their processes."""
        self.registry.register(_BatcherCollector(batchers))


class _Registry(CollectorRegistry):
    """Leaves out the ``_created`` samples that the client adds to counters and histograms."""

    def collect(self) -> Iterator[Metric]:
        """The families, read now."""
        for family in super().collect():
            family.samples = [s for s in family.samples if not s.name.endswith("_created")]
            yield family


class Watched(Protocol):
    """The state of a `Batcher` that gauges read."""

    name: str
    is_ready: bool

    @property
    def n_open(self) -> int:
        """Items not answered yet."""

    def workers(self) -> list[WorkerView]:
        """Its processes."""


class _BatcherCollector(Collector):
    """Gauges that are read at each scrape."""

    def __init__(self, batchers: Sequence[Watched]) -> None:
        self._batchers = batchers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The three gauges."""
        open_items = GaugeMetricFamily(
            "featpipe_open_items", "Items not answered yet.", labels=("lane",)
        )
        ready = GaugeMetricFamily(
            "featpipe_ready", "1 when the lane has workers.", labels=("lane",)
        )
        for batcher in self._batchers:
            open_items.add_metric((batcher.name,), batcher.n_open)
            ready.add_metric((batcher.name,), int(batcher.is_ready))
        yield from (open_items, ready, self._collect_memory())

    def _collect_memory(self) -> GaugeMetricFamily:
        memory = GaugeMetricFamily(
            "featpipe_resident_bytes", "Memory of a process.", labels=("process",)
        )
        memory.add_metric(("service",), resident_bytes(os.getpid()))
        for batcher in self._batchers:
            for worker in batcher.workers():
                if worker.pid is not None:
                    memory.add_metric((worker.name,), resident_bytes(worker.pid))
        return memory


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 when it has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
