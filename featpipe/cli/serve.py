"""``featpipe serve`` and ``featpipe consume``: extraction over HTTP and from a message queue."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_FATAL, ocr_option
from featpipe.cli.terminal import echo, printable
from featpipe.pool import stopping_in_two_steps

if TYPE_CHECKING:
    from featpipe.encoders.query_backend import QueryBackend
    from featpipe.service.settings import ServiceSettings

_BROKER_VARIABLE = "FEATPIPE_BROKER"


@click.command("serve")
@click.option("--cache", required=True, metavar="CACHE", help="A file, or a folder.")
@click.option("--templates", metavar="PATH", help="A template, or a folder of them.")
@click.option(
    "--model", metavar="PATH|NAME", help="Encoder; by default the one that filled the cache."
)
@click.option("--ner", metavar="PATH|NAME|none", help="Entity model; likewise.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("--analyser", metavar="NAME", help="Whose terms, where the cache holds several.")
@click.option("--query-prompt", metavar="TEXT",
              help="Put before queries; by default what the model expects.")  # fmt: skip
@click.option("--query-backend", type=click.Choice(["torch", "onnx"]), default="torch",
              show_default=True, help="What computes queries; onnx: onnxruntime.")  # fmt: skip
@click.option("--token-ids", metavar="NAME",
              help="Take token ids for texts; clients use this model's tokenizer.")  # fmt: skip
@ocr_option
@click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; one worker each.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--api-key-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="A key, or lines NAME:RIGHTS:KEY; else $FEATPIPE_API_KEY.")  # fmt: skip
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Certificate and chain, PEM: connections are HTTPS.")  # fmt: skip
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Private key of the certificate, PEM.")  # fmt: skip
@click.option("--cors-origin", multiple=True, metavar="ORIGIN",
              help="Whose pages may call from a browser; '*': all.")  # fmt: skip
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without a key.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Name the service goes by.")
@click.option("--deadline", type=click.FloatRange(min=0.1), default=30.0, metavar="SECONDS",
              show_default=True, help="Of a request.")  # fmt: skip
@click.option("--document-deadline", type=click.FloatRange(min=0.1), default=10.0,
              metavar="SECONDS", show_default=True, help="Of a document.")  # fmt: skip
@click.option("--drain", type=click.FloatRange(min=0), default=30.0, metavar="SECONDS",
              show_default=True, help="Longest wait for what is in flight.")  # fmt: skip
@click.option("--notice", type=click.FloatRange(min=0), default=0.0, metavar="SECONDS",
              help="From denying readiness to the end.")  # fmt: skip
@click.option("--max-body", type=click.IntRange(min=1), default=32, metavar="MIB",
              show_default=True, help="Of a request.")  # fmt: skip
@click.option("--max-waiting", type=click.IntRange(min=1), default=256, show_default=True,
              help="Requests that may wait; others are told to come again.")  # fmt: skip
@click.option("--review", is_flag=True, help="Let people correct values; writes beside templates.")
@click.option("--log-json", is_flag=True, help="One JSON object per line of the log.")
@click.option("--trace", is_flag=True, help="OpenTelemetry spans, as OTEL_* variables say.")
def serve(
    cache: str,
    templates: str | None,
    model: str | None,
    ner: str | None,
    space: str | None,
    analyser: str | None,
    query_prompt: str | None,
    query_backend: QueryBackend,
    token_ids: str | None,
    ocr: bool,
    device: tuple[str, ...],
    host: str,
    port: int,
    api_key_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    cors_origin: tuple[str, ...],
    insecure: bool,
    allow_host: tuple[str, ...],
    deadline: float,
    document_deadline: float,
    drain: float,
    notice: float,
    max_body: int,
    max_waiting: int,
    review: bool,
    log_json: bool,
    trace: bool,
) -> None:
    """Serve extraction, search and embeddings from a cache until SIGTERM.

    Models are held by worker processes; templates may be changed while the service runs. Without
    a key it listens to this machine only.
    """
    from featpipe.documents import LoadLimits
    from featpipe.service.keys import load_keys
    from featpipe.service.settings import MIB, ServiceSettings

    settings = ServiceSettings(
        cache=Path(cache),
        templates=Path(templates) if templates else None,
        model=model,
        ner=ner,
        space=space,
        analyser=analyser,
        query_prompt=query_prompt,
        query_backend=query_backend,
        token_ids=token_ids,
        limits=LoadLimits(use_ocr=ocr),
        devices=device,
        host=host,
        port=port,
        keys=load_keys(api_key_file),
        tls_cert=tls_cert,
        tls_key=tls_key,
        cors_origins=cors_origin,
        allowed_hosts=allow_host,
        is_insecure=insecure,
        deadline_s=deadline,
        document_deadline_s=document_deadline,
        drain_s=drain,
        notice_s=notice,
        max_body_bytes=max_body * MIB,
        max_waiting=max_waiting,
        is_traced=trace,
        is_review=review,
    )
    _serve(settings, log_json=log_json)


def _serve(settings: ServiceSettings, *, log_json: bool) -> None:
    from featpipe.errors import MissingExtra
    from featpipe.html_report import service_page

    try:
        from featpipe.service import server
        from featpipe.service.engine import Engine
    except ImportError as error:
        raise MissingExtra(
            f"the service needs {error.name}", hint="pip install 'featpipe[serve]'"
        ) from error
    configure_logging(as_json=log_json)
    if settings.is_traced:
        from featpipe.service.tracing import configure_tracing

        configure_tracing()
    engine = Engine(settings)
    for note in engine.chosen.notes:
        echo(note, err=True)
    if not server.serve(engine, service_page(has_review=settings.is_review)):
        raise SystemExit(EXIT_FATAL)


@click.command("consume")
@click.option("--cache", required=True, metavar="CACHE", help="A file, or a folder.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option("--broker", metavar="URL", help=f"amqp://host//; better in ${_BROKER_VARIABLE}.")
@click.option("--queue", default="featpipe.documents", show_default=True, help="To take from.")
@click.option("--results", default="featpipe.results", show_default=True, help="For answers.")
@click.option("--dead", default="featpipe.dead", show_default=True, help="For what has none.")
@click.option("--journal", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Keeps answers, so that nothing is computed twice.")  # fmt: skip
@click.option(
    "--model", metavar="PATH|NAME", help="Encoder; by default the one that filled the cache."
)
@click.option("--ner", metavar="PATH|NAME|none", help="Entity model; likewise.")
@ocr_option
@click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; one worker each.")
@click.option("--document-deadline", type=click.FloatRange(min=0.1), default=60.0,
              metavar="SECONDS", show_default=True, help="Of a document.")  # fmt: skip
@click.option("--prefetch", type=click.IntRange(1, 1000), default=16, show_default=True,
              help="Messages held at a time.")  # fmt: skip
@click.option("--log-json", is_flag=True, help="One JSON object per line of the log.")
def consume(
    cache: str,
    templates: str,
    broker: str | None,
    queue: str,
    results: str,
    dead: str,
    journal: Path | None,
    model: str | None,
    ner: str | None,
    ocr: bool,
    device: tuple[str, ...],
    document_deadline: float,
    prefetch: int,
    log_json: bool,
) -> None:
    """Answer messages such as {"id": 1, "text": "...", "template": "lease"} until SIGTERM.

    A message is acknowledged when its answer is with the broker; one that has none goes to the
    dead-letter queue with its reason.
    """
    from featpipe.consumer import Consumer, ConsumerSettings
    from featpipe.documents import LoadLimits

    broker = broker or os.environ.get(_BROKER_VARIABLE)
    if not broker:
        raise click.UsageError(f"name a broker with --broker, or set {_BROKER_VARIABLE}")
    configure_logging(as_json=log_json)
    consumer = Consumer(
        ConsumerSettings(
            broker=broker,
            cache=Path(cache),
            templates=Path(templates),
            queue=queue,
            results=results,
            dead=dead,
            journal=journal,
            model=model,
            ner=ner,
            limits=LoadLimits(use_ocr=ocr),
            devices=device,
            document_deadline_s=document_deadline,
            prefetch=prefetch,
        )
    )

    with stopping_in_two_steps(consumer.stop):
        consumer.run()


def configure_logging(*, as_json: bool, level: int = logging.INFO) -> None:
    """Send the log of this process and its workers to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter()
        if as_json
        else PlainFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


#: Facts of a record that find its request.
_MARKS = ("request_id", "caller")


class PlainFormatter(logging.Formatter):
    """Lines that a terminal may show: names of documents are printed, never obeyed.

    The first line of a record ends with its request's id and the name of the caller's key.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The lines of one record."""
        head, *rest = super().format(record).split("\n")
        marks = [f" {name}={record.__dict__[name]}" for name in _MARKS if name in record.__dict__]
        return printable("\n".join(["".join([head, *marks]), *rest]))


#: Attributes that every record has; the others came from ``extra=``.
_COMMON = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
#: uvicorn's second copy of its messages, in colours.
_UNWANTED = frozenset({"color_message"})


class JsonFormatter(logging.Formatter):
    """``{"time", "level", "logger", "message", ...extra}``, time in UTC with milliseconds.

    One JSON object per line. The fields of ``extra=`` keep their names; they can neither break a
    line nor replace one of the four fields above.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        made = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "time": made.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in record.__dict__.items():
            if name not in _COMMON and name not in _UNWANTED:
                fields.setdefault(name, value)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)
