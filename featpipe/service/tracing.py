"""OpenTelemetry spans; a tracer that is off imports nothing and records nothing.

A program that embeds featpipe and has configured tracing keeps its own provider.
`configure_tracing` makes a provider from the ``OTEL_*`` variables for featpipe's own commands.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from featpipe.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

_HINT = "pip install 'featpipe[otel]'"


class Tracer:
    """Makes spans when it is on; otherwise it imports nothing of OpenTelemetry.

    Raises:
        MissingExtra: it is on, and OpenTelemetry is not installed.

    """

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        if is_on:
            try:
                from opentelemetry import propagate, trace
            except ImportError as error:
                raise MissingExtra("tracing needs opentelemetry", hint=_HINT) from error
            self._extract = propagate.extract
            self._trace = trace
            self._tracer = trace.get_tracer("featpipe")

    @contextmanager
    def serving(self, name: str, headers: Mapping[str, str]) -> Iterator[Span | None]:
        """The span of a request, below the caller's if its headers name one (``traceparent``)."""
        if not self.is_on:
            yield None
            return
        with self._tracer.start_as_current_span(
            name, context=self._extract(dict(headers)), kind=self._trace.SpanKind.SERVER
        ) as span:
            yield span

    def record(
        self, name: str, began_ns: int, ended_ns: int, attributes: Mapping[str, str | int | float]
    ) -> None:
        """A span inside the current one that has ended; nanoseconds since the epoch."""
        if self.is_on:
            span = self._tracer.start_span(name, start_time=began_ns, attributes=dict(attributes))
            span.end(ended_ns)


def configure_tracing() -> None:
    """Set a provider that exports to ``OTEL_TRACES_EXPORTER``: ``otlp`` (default) or ``console``.

    Raises:
        MissingExtra: the packages are not installed.
        UsageError: another exporter.

    """
    chosen = os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

        processor = (
            SimpleSpanProcessor(_console()) if chosen == "console" else BatchSpanProcessor(_otlp())
        )
    except ImportError as error:
        raise MissingExtra("tracing needs opentelemetry's SDK and exporter", hint=_HINT) from error
    if chosen not in {"otlp", "console"}:
        raise UsageError(f"OTEL_TRACES_EXPORTER is {chosen!r}", hint="use otlp or console")
    # OTEL_RESOURCE_ATTRIBUTES are added by Resource.create.
    name = os.environ.get("OTEL_SERVICE_NAME", "featpipe")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)


def _console() -> SpanExporter:
    import sys

    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    return ConsoleSpanExporter(out=sys.stderr)


def _otlp() -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()
