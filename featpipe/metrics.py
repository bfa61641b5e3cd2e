"""Counters, gauges and histograms, and their text for Prometheus (format 0.0.4).

Guarantees: any thread may count; a scrape sees every number whole; label values are escaped, so
that nothing a client sends can break a line. Needs no package beyond the standard library.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Labels = tuple[str, ...]
    Sample = tuple[Labels, float]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Upper bounds in seconds: from a cached document to the longest deadline.
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
#: Upper bounds for counts of things in a batch.
COUNTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0)


class Counter:
    """A number per combination of labels that only grows.

    Args:
        name: ends in ``_total``.
        text: what is counted.
        labels: names of the labels, in the order in which `add` is given their values.

    """

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self.name, self.text, self.labels = name, text, tuple(labels)
        self._values: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def add(self, *labels: str, by: float = 1.0) -> None:
        """Count."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        """What was counted so far."""
        with self._lock:
            return self._values.get(labels, 0.0)

    def lines(self) -> Iterator[str]:
        """Its samples."""
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            yield _line(self.name, self.labels, labels, value)


class Gauge:
    """Numbers that are read when somebody looks: ``read`` gives (label values, number)."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        text: str,
        read: Callable[[], Iterable[Sample]],
        labels: Sequence[str] = (),
    ) -> None:
        self.name, self.text, self.labels = name, text, tuple(labels)
        self._read = read

    def lines(self) -> Iterator[str]:
        """Its samples, as they are now."""
        for labels, value in self._read():
            yield _line(self.name, self.labels, labels, value)


class Histogram:
    """How often a quantity was at most each of some ``bounds``, per combination of labels."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        bounds: Sequence[float] = SECONDS,
    ) -> None:
        self.name, self.text, self.labels = name, text, tuple(labels)
        self.bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def observe(self, value: float, *labels: str) -> None:
        """Take one measurement."""
        place = bisect_left(self.bounds, value)
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self.bounds) + 1))
            counts[place] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        """Its samples: cumulative buckets, sum and count."""
        with self._lock:
            found = [(key, list(counts), self._sums[key]) for key, counts in self._counts.items()]
        for labels, counts, total in sorted(found):
            sums = list(accumulate(counts))
            for bound, n in zip((*map(_number, self.bounds), "+Inf"), sums, strict=True):
                yield _line(f"{self.name}_bucket", (*self.labels, "le"), (*labels, bound), n)
            yield _line(f"{self.name}_sum", self.labels, labels, total)
            yield _line(f"{self.name}_count", self.labels, labels, sums[-1])


class Registry:
    """The metrics of one program."""

    def __init__(self) -> None:
        self._metrics: list[Counter | Gauge | Histogram] = []

    def add(self, *metrics: Counter | Gauge | Histogram) -> None:
        """Show them in `render`."""
        self._metrics.extend(metrics)

    def render(self) -> str:
        """All of them as Prometheus reads them."""
        lines: list[str] = []
        for metric in self._metrics:
            lines += [
                f"# HELP {metric.name} {_escape(metric.text)}",
                f"# TYPE {metric.name} {metric.kind}",
                *metric.lines(),
            ]
        return "\n".join(lines) + "\n"


def _line(name: str, names: Sequence[str], values: Sequence[str], value: float) -> str:
    pairs = ",".join(
        f'{label}="{_escape(text, quoted=True)}"' for label, text in zip(names, values, strict=True)
    )
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escape(text: str, *, quoted: bool = False) -> str:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    return escaped.replace('"', r"\"") if quoted else escaped


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
