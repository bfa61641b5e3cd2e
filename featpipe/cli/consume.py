"""``featpipe consume``: extract what arrives in a message queue."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import FrameType

_VARIABLE = "FEATPIPE_BROKER"


@click.command("consume")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option("--broker", metavar="URL", help=f"amqp://host//; better in ${_VARIABLE}.")
@click.option("--queue", default="featpipe.documents", show_default=True, help="To take from.")
@click.option("--results", default="featpipe.results", show_default=True, help="For answers.")
@click.option("--dead", default="featpipe.dead", show_default=True, help="For what has none.")
@click.option("--journal", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Keeps answers, so that nothing is computed twice.")  # fmt: skip
@click.option("--model", metavar="PATH|NAME", help="Encoder; by default the built-in zh-small.")
@click.option("--ner", metavar="PATH|NAME|none", help="Entity model; by default the built-in one.")
@click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; one worker each.")
@click.option("--document-deadline", type=click.FloatRange(min=0.1), default=60.0,
              metavar="SECONDS", show_default=True, help="Of a document.")  # fmt: skip
@click.option("--prefetch", type=click.IntRange(1, 1000), default=16, show_default=True,
              help="Messages held at a time.")  # fmt: skip
@click.option("--log-json", is_flag=True, help="One JSON object per line of the log.")
def command(**options: object) -> None:
    """Answer messages such as {"id": 1, "text": "...", "template": "lease"} until SIGTERM.

    A message is acknowledged when its answer is with the broker; one that has none goes to the
    dead-letter queue with its reason.
    """
    from featpipe.cli.json_log import configure_logging
    from featpipe.consumer import Consumer, ConsumerSettings

    broker = options["broker"] or os.environ.get(_VARIABLE)
    if not broker:
        raise click.UsageError(f"name a broker with --broker, or set {_VARIABLE}")
    configure_logging(as_json=bool(options["log_json"]))
    consumer = Consumer(
        ConsumerSettings(
            broker=str(broker),
            cache=Path(str(options["cache"])),
            templates=Path(str(options["templates"])),
            queue=str(options["queue"]),
            results=str(options["results"]),
            dead=str(options["dead"]),
            journal=options["journal"],  # type: ignore[arg-type]  # click gives a path or None
            model=options["model"],  # type: ignore[arg-type]  # click gives a string or None
            ner=options["ner"],  # type: ignore[arg-type]  # as above
            devices=tuple(options["device"]),  # type: ignore[arg-type]  # as above
            document_deadline_s=float(str(options["document_deadline"])),
            prefetch=int(str(options["prefetch"])),
        )
    )

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a handler's signature
        consumer.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    consumer.run()
