"""``featpipe build-cache``: documents in, one cache file out."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_INTERRUPTED, EXIT_LEFT_OUT
from featpipe.cli.progress import open_view
from featpipe.pool import stopping_in_two_steps
from featpipe.settings import LEVELS, BuildSettings

if TYPE_CHECKING:
    from featpipe.build.pipeline import Pipeline
    from featpipe.encoders.spec import EncoderSettings, TaggerSettings
    from featpipe.report import RunReport

#: Quarantined documents listed one by one; the record in the cache holds all of them.
_MOST_LISTED = 50

#: Workers that read documents where OCR makes reading slow, each with its own copy of the engine.
_MOST_READERS = 4


@click.command("build-cache")
@click.argument("documents", nargs=-1, required=True, metavar="DOCS...")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file; made when missing.")
@click.option("--model", metavar="PATH|NAME", help="Encoder; by default the built-in zh-small.")
@click.option("--ner", metavar="PATH|NAME|none", help="Entity model; by default the built-in one.")
@click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; repeat for more.")
@click.option("--workers", type=click.IntRange(min=1), help="CPU workers, where no --device is.")
@click.option("--level", multiple=True, type=click.Choice(LEVELS), help="Default: all of them.")
@click.option("--pooling", type=click.Choice(["mean", "cls", "max", "last"]))
@click.option("--dtype", type=click.Choice(["float16", "float32", "bfloat16"]), default="float16")
@click.option(
    "--precision",
    type=click.Choice(["auto", "exact", "mixed", "approx"]),
    default="auto",
    help="auto: as the cache has it; else mixed where bfloat16 is 1.3 times as fast. "
    "approx: int8, measured on your texts.",
)
@click.option("--max-length", type=click.IntRange(min=8), help="Tokens per window.")
@click.option("--prompt", metavar="TEXT", help="Put before every text, such as 'passage: '.")
@click.option("--prompt-name", metavar="NAME", help="Instead: one of the model's own prompts.")
@click.option(
    "--on-truncate",
    type=click.Choice(["window", "error", "warn"]),
    default="window",
    help="Longer texts: read in windows, refused, or cut and counted.",
)
@click.option("--include", multiple=True, metavar="GLOB", help="Only such files inside folders.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No such files inside folders.")
@click.option("--ocr", is_flag=True, help="Read scans and pictures too (extra ocr; 2 s a page).")
@click.option("--deadline", type=click.FloatRange(min=0.1), metavar="SECONDS")
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
@click.option("--dry-run", is_flag=True, help="Count what would be done; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event, and per run.")
@click.pass_context
def build_cache(ctx: click.Context, /, **options: object) -> None:
    """Make sure every paragraph, sentence and word of DOCS has its features in the cache.

    DOCS are files and folders (read to the bottom). What the cache holds is never computed again:
    run the command twice, or after an interruption, and only the rest is done.
    """
    from featpipe.build.pipeline import Pipeline

    encoder = _encoder_settings(options)
    with Pipeline(
        cache=str(options["cache"]),
        model=_text(options["model"]),
        ner=_text(options["ner"]),
        devices=_devices(options),
        encoder=encoder,
        tagger=_tagger_settings(options),
        settings=_build_settings(options),
    ) as pipeline:
        if options["dry_run"]:
            ctx.exit(EXIT_LEFT_OUT if _preview(pipeline, options) else 0)
        report = _build(pipeline, options)
    if not options["as_json"]:
        _print_left_out(report)
        click.echo(report.summary())
    if report.was_interrupted:
        ctx.exit(EXIT_INTERRUPTED)
    ctx.exit(0 if report.is_complete else EXIT_LEFT_OUT)


def _build(pipeline: Pipeline, options: dict[str, object]) -> RunReport:
    view_of_run = open_view(as_json=bool(options["as_json"]))
    with view_of_run as view, stopping_in_two_steps(pipeline.stop_after_current):
        report = pipeline.build(
            _many(options["documents"]),
            include=_many(options["include"]),
            exclude=_many(options["exclude"]),
            listen=view.show,
        )
    if options["as_json"]:
        whole = {"event": "report", **report.as_dict(), "summary": report.summary()}
        click.echo(json.dumps(whole, ensure_ascii=False))
    return report


def _preview(pipeline: Pipeline, options: dict[str, object]) -> int:
    """Print what would be done; returns how many documents cannot be read."""
    found = pipeline.preview(
        _many(options["documents"]),
        include=_many(options["include"]),
        exclude=_many(options["exclude"]),
    )
    if options["as_json"]:
        click.echo(json.dumps(found.as_dict() | {"event": "preview"}, ensure_ascii=False))
        return len(found.quarantined)
    for lost in found.quarantined[:_MOST_LISTED]:
        click.echo(f"cannot be read: {lost.source}: {lost.reason}", err=True)
    click.echo(found.summary())
    return len(found.quarantined)


def _print_left_out(report: RunReport) -> None:
    for lost in report.quarantined[:_MOST_LISTED]:
        click.echo(f"quarantined {lost.source}: {lost.reason} [{lost.error}]", err=True)
    n_more = len(report.quarantined) - _MOST_LISTED
    if n_more > 0:
        click.echo(f"quarantined {n_more} more; see the run record", err=True)
    for note in report.notes[:_MOST_LISTED]:
        click.echo(f"note {note}", err=True)
    if len(report.notes) > _MOST_LISTED:
        click.echo(f"note {len(report.notes) - _MOST_LISTED} more; see the run record", err=True)
    for failed in report.failed:
        click.echo(
            f"failed {failed.n_units} units for {failed.table}: {failed.reason} "
            f"(such as {failed.example})",
            err=True,
        )
    if report.n_long:
        click.echo(_describe_long(report), err=True)


def _describe_long(report: RunReport) -> str:
    if report.n_cut_tokens:
        return (
            f"truncated {report.n_long} long texts: {report.n_cut_tokens} tokens were left out; "
            "--on-truncate window reads them"
        )
    return (
        f"windows {report.n_long} long texts were read in {report.n_extra_windows} further "
        f"windows with {report.n_long_tokens} tokens; nothing was truncated"
    )


def _encoder_settings(options: dict[str, object]) -> EncoderSettings:
    from featpipe.encoders.spec import EncoderSettings

    return EncoderSettings(
        pooling=options["pooling"],  # type: ignore[arg-type]  # click.Choice checked it
        dtype=options["dtype"],  # type: ignore[arg-type]  # likewise
        precision=options["precision"],  # type: ignore[arg-type]  # likewise
        max_length=options["max_length"],  # type: ignore[arg-type]  # likewise
        prompt=_text(options["prompt"]),
        prompt_name=_text(options["prompt_name"]),
        on_truncate=options["on_truncate"],  # type: ignore[arg-type]  # likewise
    )


def _tagger_settings(options: dict[str, object]) -> TaggerSettings:
    from featpipe.encoders.spec import TaggerSettings

    precision = "auto" if options["precision"] == "approx" else options["precision"]
    return TaggerSettings(
        precision=precision  # type: ignore[arg-type]  # likewise
    )


def _build_settings(options: dict[str, object]) -> BuildSettings:
    settings = BuildSettings(
        levels=tuple(level for level in LEVELS if level in _many(options["level"])) or LEVELS,
        lock_wait_s=float(str(options["wait"])),
        use_ocr=bool(options["ocr"]),
        n_prepare_workers=min(os.cpu_count() or 1, _MOST_READERS) if options["ocr"] else 1,
    )
    if options["deadline"] is None:
        return settings
    deadline_s = float(str(options["deadline"]))
    return replace(settings, document_deadline_s=deadline_s, ocr_deadline_s=deadline_s)


def _devices(options: dict[str, object]) -> list[str] | None:
    if options["device"]:
        return _many(options["device"])
    if options["workers"]:
        return ["cpu"] * int(str(options["workers"]))
    return None


def _many(value: object) -> list[str]:
    return list(value) if isinstance(value, tuple | list) else []


def _text(value: object) -> str | None:
    return None if value is None else str(value)
