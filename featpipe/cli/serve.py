"""``featpipe serve``: the extraction service over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_FATAL

if TYPE_CHECKING:
    from featpipe.service.settings import ServiceSettings

_MIB = 1 << 20


@click.command("serve")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", metavar="PATH", help="A template, or a folder of them.")
@click.option("--model", metavar="PATH|NAME", help="Encoder; by default the built-in zh-small.")
@click.option("--ner", metavar="PATH|NAME|none", help="Entity model; by default the built-in one.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("--analyser", metavar="NAME", help="Whose terms, where the cache holds several.")
@click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; one worker each.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--api-key-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Holds the key that callers need; else $FEATPIPE_API_KEY.")  # fmt: skip
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
@click.option("--log-json", is_flag=True, help="One JSON object per line of the log.")
@click.option("--trace", is_flag=True, help="OpenTelemetry spans, as OTEL_* variables say.")
def command(**options: object) -> None:
    """Serve extraction, search and embeddings from a cache until SIGTERM.

    Models are held by worker processes; templates may be changed while the service runs. Without
    a key it listens to this machine only.
    """
    from featpipe.cli.json_log import configure_logging
    from featpipe.errors import MissingExtra

    settings = _settings(options)
    try:
        from featpipe.service.engine import Engine
        from featpipe.service.server import serve
    except ImportError as error:
        raise MissingExtra(
            f"the service needs {error.name}", hint="pip install 'featpipe[serve]'"
        ) from error
    configure_logging(as_json=bool(options["log_json"]))
    if settings.is_traced:
        from featpipe.service.tracing import configure_tracing

        configure_tracing()
    engine = Engine(settings)
    for note in engine.chosen.notes:
        click.echo(note, err=True)
    if not serve(engine):
        raise SystemExit(EXIT_FATAL)


def _settings(options: dict[str, object]) -> ServiceSettings:
    from featpipe.service.settings import ServiceSettings, find_key

    names = ("model", "ner", "space", "analyser", "host", "port", "max_waiting")
    same = {name: options[name] for name in names}
    templates, key_file = options["templates"], options["api_key_file"]
    return ServiceSettings(
        cache=Path(str(options["cache"])),
        templates=Path(str(templates)) if templates else None,
        devices=tuple(options["device"]),  # type: ignore[arg-type]  # click gives strings
        api_key=find_key(key_file if isinstance(key_file, Path) else None),
        allowed_hosts=tuple(options["allow_host"]),  # type: ignore[arg-type]  # as above
        is_insecure=bool(options["insecure"]),
        deadline_s=float(str(options["deadline"])),
        document_deadline_s=float(str(options["document_deadline"])),
        drain_s=float(str(options["drain"])),
        notice_s=float(str(options["notice"])),
        max_body_bytes=int(str(options["max_body"])) * _MIB,
        is_traced=bool(options["trace"]),
        **same,  # type: ignore[arg-type]  # as click has checked them
    )
