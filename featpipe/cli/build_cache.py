"""``featpipe build-cache``: documents in, one cache file out."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_INTERRUPTED, EXIT_LEFT_OUT, lock_option, ocr_option
from featpipe.cli.progress import open_view
from featpipe.cli.terminal import echo
from featpipe.pool import stopping_in_two_steps
from featpipe.settings import LEVELS, BuildSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.build.pipeline import Pipeline
    from featpipe.encoders.spec import Dtype, OnTruncate, Pooling, Precision
    from featpipe.report import RunReport

#: Quarantined documents listed one by one; the record in the cache holds all of them.
_MOST_LISTED = 50

#: Workers that read documents where OCR makes reading slow, each with its own copy of the engine.
_MOST_READERS = 4


@click.command("build-cache")
@click.argument("documents", nargs=-1, required=True, metavar="DOCS...")
@lock_option
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
    help="auto: as the cache has it; else mixed where bfloat16 is 1.3 times as fast and, on your "
    "texts, within .0001 of exact. "
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
@ocr_option
@click.option("--deadline", type=click.FloatRange(min=0.1), metavar="SECONDS")
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
@click.option("--sync", is_flag=True, help="What is gone from DOCS leaves the cache.")
@click.option("--dry-run", is_flag=True, help="Count what would be done; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event, and per run.")
@click.pass_context
def build_cache(
    ctx: click.Context,
    documents: tuple[str, ...],
    cache: str,
    model: str | None,
    ner: str | None,
    device: tuple[str, ...],
    workers: int | None,
    level: tuple[str, ...],
    pooling: Pooling | None,
    dtype: Dtype,
    precision: Precision,
    max_length: int | None,
    prompt: str | None,
    prompt_name: str | None,
    on_truncate: OnTruncate,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    ocr: bool,
    deadline: float | None,
    wait: float,
    sync: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make sure every paragraph, sentence and word of DOCS has its features in the cache.

    DOCS are files and folders (read to the bottom). What the cache holds is never computed again:
    run the command twice, or after an interruption, and only the rest is done. Files in folders
    that featpipe wrote, such as caches and results, are passed over; one that is named is an error.
    """
    from featpipe.build.pipeline import Pipeline
    from featpipe.encoders.spec import EncoderSettings, TaggerSettings

    encoder = EncoderSettings(
        pooling=pooling,
        dtype=dtype,
        precision=precision,
        max_length=max_length,
        prompt=prompt,
        prompt_name=prompt_name,
        on_truncate=on_truncate,
    )
    tagger = TaggerSettings(precision="auto" if precision == "approx" else precision)
    settings = _build_settings(level, wait, deadline, use_ocr=ocr)
    devices = device or ("cpu",) * (workers or 0) or None
    chosen = _Chosen(documents, include, exclude, sync)
    with Pipeline(
        cache, model, ner, devices=devices, encoder=encoder, tagger=tagger, settings=settings
    ) as pipeline:
        if dry_run:
            n_unreadable = _dry_run(pipeline, chosen, as_json=as_json)
            ctx.exit(EXIT_LEFT_OUT if n_unreadable else 0)
        report = _build(pipeline, chosen, as_json=as_json)
    if not as_json:
        _print_left_out(report)
        echo(report.summary())
    if report.was_interrupted:
        ctx.exit(EXIT_INTERRUPTED)
    ctx.exit(0 if report.is_complete else EXIT_LEFT_OUT)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Documents of a run, as `Pipeline.build` takes them."""

    documents: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    sync: bool


def _build_settings(
    level: tuple[str, ...], wait_s: float, deadline_s: float | None, *, use_ocr: bool
) -> BuildSettings:
    settings = BuildSettings(
        levels=tuple(name for name in LEVELS if name in level) or LEVELS,
        lock_wait_s=wait_s,
        use_ocr=use_ocr,
        n_prepare_workers=min(os.cpu_count() or 1, _MOST_READERS) if use_ocr else 1,
    )
    if deadline_s is None:
        return settings
    return replace(settings, document_deadline_s=deadline_s, ocr_deadline_s=deadline_s)


def _build(pipeline: Pipeline, chosen: _Chosen, *, as_json: bool) -> RunReport:
    with (
        open_view(as_json=as_json) as view,
        stopping_in_two_steps(pipeline.stop_after_current),
    ):
        report = pipeline.build(
            chosen.documents,
            include=chosen.include,
            exclude=chosen.exclude,
            sync=chosen.sync,
            listen=view.show,
        )
    if as_json:
        whole = {"event": "report", **report.as_dict(), "summary": report.summary()}
        echo(json.dumps(whole, ensure_ascii=False))
    return report


def _dry_run(pipeline: Pipeline, chosen: _Chosen, *, as_json: bool) -> int:
    """Print what a run would do; returns how many documents cannot be read."""
    found = pipeline.dry_run(
        chosen.documents, include=chosen.include, exclude=chosen.exclude, sync=chosen.sync
    )
    if as_json:
        echo(json.dumps(found.as_dict() | {"event": "preview"}, ensure_ascii=False))
        return len(found.quarantined)
    for lost in found.quarantined[:_MOST_LISTED]:
        echo(f"cannot be read: {lost.source}: {lost.reason}", err=True)
    _print_first("note", found.notes)
    echo(found.summary())
    return len(found.quarantined)


def _print_left_out(report: RunReport) -> None:
    quarantined = [f"{one.source}: {one.reason} [{one.error}]" for one in report.quarantined]
    _print_first("quarantined", quarantined)
    _print_first("note", report.notes)
    for failed in report.failed:
        echo(
            f"failed {failed.n_units} units for {failed.table}: {failed.reason} "
            f"(such as {failed.example})",
            err=True,
        )
    if report.n_long:
        echo(_describe_long(report), err=True)


def _print_first(name: str, lines: Sequence[str]) -> None:
    for line in lines[:_MOST_LISTED]:
        echo(f"{name} {line}", err=True)
    n_more = len(lines) - _MOST_LISTED
    if n_more > 0:
        echo(f"{name} {n_more} more; see the run record", err=True)


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
