"""``featpipe build-cache``: documents in, one cache out, in a file or in a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.build_options import build_options
from featpipe.cli.main import EXIT_INTERRUPTED, EXIT_LEFT_OUT, lock_option
from featpipe.cli.progress import open_view
from featpipe.cli.seat_options import also_option, scratch_folder, scratch_option, threads_option
from featpipe.cli.terminal import echo
from featpipe.errors import UsageError
from featpipe.pool import stopping_in_two_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.build.folder_pipeline import FolderPipeline
    from featpipe.build.jobs import Seat
    from featpipe.build.pipeline import Pipeline
    from featpipe.build.progress import Progress
    from featpipe.cli.build_options import Asked
    from featpipe.report import RunReport

    Listener = Callable[[Progress], None]

#: Quarantined documents listed one by one; the record in the cache holds all of them.
_MOST_LISTED = 50


@click.command("build-cache")
@click.argument("documents", nargs=-1, required=True, metavar="DOCS...")
@lock_option
@click.option("--cache", metavar="FILE|FOLDER", help="The HDF5 file; made when missing.")
@build_options
@click.option("--workers", type=click.IntRange(min=1), help="CPU workers, where no --device is.")
@also_option
@click.option("--shards", type=click.IntRange(min=1), help="Make the cache a folder of so many.")
@click.option("--on", metavar="ENGINE", default="local", help="Build the folder on a cluster: ray.")
@threads_option
@click.option("--gpus", type=click.IntRange(min=1), help="Cards of a job, on a cluster.")
@scratch_option
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
@click.option("--sync", is_flag=True, help="What is gone from DOCS leaves the cache.")
@click.option("--dry-run", is_flag=True, help="Count what would be done; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event, and per run.")
@click.pass_context
def build_cache(
    ctx: click.Context,
    documents: tuple[str, ...],
    cache: str | None,
    asked: Asked,
    workers: int | None,
    also: tuple[str, ...],
    shards: int | None,
    on: str,
    cpus: int | None,
    gpus: int | None,
    scratch: str | None,
    wait: float,
    sync: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make sure every paragraph, sentence and word of DOCS has its features in the cache.

    DOCS are files and folders (read to the bottom). What the cache holds is never computed again:
    run the command twice, or after an interruption, and only the rest is done. Files in folders
    that featpipe wrote, such as caches and results, are passed over; one that is named is an error.

    A cache alone, without --cache, gets the features of --model for all its texts: no document is
    read.
    """
    from featpipe.build.jobs import Seat
    from featpipe.store.object_store import is_url

    target = cache or _only_cache(documents)
    if dry_run and not cache:
        raise UsageError(
            f"--dry-run counts what documents need, and {target} is a cache",
            hint=f"featpipe inspect {target} says how many texts --model would encode",
        )
    chosen = _Chosen(documents if cache else (), asked.include, asked.exclude, sync)
    if shards or on != "local" or is_url(target) or Path(target).is_dir():
        _refuse_file(target)
        is_local = on == "local"
        devices = asked.devices or _devices_of(gpus, workers if is_local else None)
        # One machine with one disk has no use for scratch.
        place = scratch_folder(scratch or ("none" if is_local else None))
        seat = Seat(devices, cpus, scratch=place, also=also, wait_s=wait)
        engine = _Engine(on, None if is_local else workers, shards)
        folder = _open_folder(target, asked, seat, engine)
        if dry_run:
            n_unreadable = _dry_run(folder, chosen, as_json=as_json)
            ctx.exit(EXIT_LEFT_OUT if n_unreadable else 0)
        report = _build(folder, chosen, as_json=as_json)
    else:
        asked = replace(asked, devices=asked.devices or ("cpu",) * (workers or 0))
        with _open_pipeline(target, asked, also, wait) as pipeline:
            if dry_run:
                n_unreadable = _dry_run(pipeline, chosen, as_json=as_json)
                ctx.exit(EXIT_LEFT_OUT if n_unreadable else 0)
            report = _build(pipeline, chosen, as_json=as_json)
    ctx.exit(print_report(report, as_json=as_json))


def _only_cache(documents: tuple[str, ...]) -> str:
    """The cache that is named instead of documents.

    Raises:
        UsageError: something else is named, so that the cache is missing.

    """
    from featpipe.documents.own_files import describe_own_file
    from featpipe.store.folder_layout import DESCRIPTION
    from featpipe.store.object_store import is_url

    first, *others = documents
    is_file = describe_own_file(Path(first)) == "a cache"
    if others or not (is_file or is_url(first) or (Path(first) / DESCRIPTION).is_file()):
        raise UsageError("--cache is missing", hint="name the file that holds the features")
    return first


def _refuse_file(target: str) -> None:
    """Raises UsageError where a folder is to be made, and a file has its name."""
    if Path(target).is_file():
        raise UsageError(
            f"{target} is a file, and --shards and --on make a folder",
            hint=f"name another --cache; --also {target} has it take over what the file holds",
        )


def _devices_of(gpus: int | None, workers: int | None) -> tuple[str, ...]:
    return tuple(f"cuda:{number}" for number in range(gpus or 0)) or ("cpu",) * (workers or 0)


def print_report(report: RunReport, *, as_json: bool) -> int:
    """What was left out, and the summary; the exit code."""
    if not as_json:
        _print_left_out(report)
        echo(report.summary())
    if report.was_interrupted:
        return EXIT_INTERRUPTED
    return 0 if report.is_complete else EXIT_LEFT_OUT


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Documents of a run, as `Pipeline.build` takes them; none: the texts that are stored."""

    documents: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    sync: bool


@dataclass(frozen=True, slots=True)
class _Engine:
    """How the jobs of a folder get done."""

    on: str
    n_seats: int | None
    n_shards: int | None


def _open_pipeline(cache: str, asked: Asked, also: tuple[str, ...], wait_s: float) -> Pipeline:
    from featpipe.build.pipeline import Pipeline

    return Pipeline(
        cache,
        asked.model,
        asked.ner,
        devices=asked.devices or None,
        encoder=asked.encoder,
        tagger=asked.tagger,
        settings=asked.settings(wait_s),
        also=also,
    )


def _build(pipeline: Pipeline | FolderPipeline, chosen: _Chosen, *, as_json: bool) -> RunReport:
    def work(listen: Listener) -> RunReport:
        if not chosen.documents:
            return pipeline.encode_stored(listen=listen)
        return pipeline.build(
            chosen.documents,
            include=chosen.include,
            exclude=chosen.exclude,
            sync=chosen.sync,
            listen=listen,
        )

    return _watch(work, pipeline.stop_after_current, as_json=as_json)


def _open_folder(folder: str, asked: Asked, seat: Seat, engine: _Engine) -> FolderPipeline:
    from featpipe.build.folder_pipeline import FolderPipeline

    return FolderPipeline(
        folder,
        asked.models(),
        settings=asked.folder_settings(),
        n_shards=engine.n_shards,
        seat=seat,
        on=engine.on,
        n_seats=engine.n_seats,
    )


def _watch(
    work: Callable[[Listener], RunReport], stop: Callable[[], bool], *, as_json: bool
) -> RunReport:
    """Show the progress of a run, and let it be stopped."""
    with open_view(as_json=as_json) as view, stopping_in_two_steps(stop):
        report = work(view.show)
    if as_json:
        whole = {"event": "report", **report.as_dict(), "summary": report.summary()}
        echo(json.dumps(whole, ensure_ascii=False))
    return report


def _dry_run(pipeline: Pipeline | FolderPipeline, chosen: _Chosen, *, as_json: bool) -> int:
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
