"""``featpipe shard``: the jobs of a folder cache, one by one, for any scheduler."""

from __future__ import annotations

import json
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING

import click

from featpipe.cli.build_cache import print_report
from featpipe.cli.build_options import build_options
from featpipe.cli.main import EXIT_LEFT_OUT, lock_option
from featpipe.cli.progress import open_view
from featpipe.cli.seat_options import (
    also_option,
    scratch_folder,
    scratch_option,
    take_share,
    threads_option,
)
from featpipe.cli.terminal import echo
from featpipe.errors import UsageError
from featpipe.pool import stopping_in_two_steps

if TYPE_CHECKING:
    from featpipe.build.jobs import Job, JobReport, Seat
    from featpipe.build.shards.status import FolderStatus, SpaceStatus
    from featpipe.cli.build_options import Asked

job_option = click.option(
    "--job",
    "share",
    metavar="I/N",
    help="Every N-th job from number I on, counted from 0; by default all of them.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object per job.")

#: Numbers of missing jobs that are printed.
_MOST_LISTED = 20


@click.group("shard")
def shard() -> None:
    """Plan a folder cache, do its jobs, and see what is left."""


@shard.command("plan", short_help="Settle everything, and list the documents.")
@click.argument("folder", metavar="FOLDER")
@click.argument("documents", nargs=-1, metavar="[DOCS]...")
@build_options
@click.option("--shards", type=click.IntRange(min=1), help="A power of two; 64 by default.")
@click.option("--parts", metavar="N|auto", default="auto", help="Jobs that read the documents.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def plan(
    folder: str,
    documents: tuple[str, ...],
    asked: Asked,
    shards: int | None,
    parts: str,
    as_json: bool,
) -> None:
    """Settle models, precision and shards of FOLDER, and list DOCS as parts; prints the job counts.

    Nothing is read or encoded. Without DOCS, --model is planned for all texts that FOLDER holds.
    --device names the kind of device that will encode; it need not be of this machine.
    """
    from featpipe.build.folder_pipeline import FolderPipeline
    from featpipe.build.jobs import Seat

    pipeline = FolderPipeline(
        folder,
        asked.models(),
        settings=asked.folder_settings(),
        n_shards=shards,
        seat=Seat(asked.devices),
    )
    if not documents:
        space = pipeline.plan_space()
        found: dict[str, object] = {"space": space, "encode": pipeline.plan_of_folder().n_shards}
        echo(json.dumps(found) if as_json else f"space {space}: {found['encode']} jobs encode")
        return
    run = pipeline.plan_documents(
        documents,
        include=asked.include,
        exclude=asked.exclude,
        n_parts=_read_parts(parts),
    )
    made = pipeline.plan_of_folder()
    notes = [note for note in (*run.notes, made.encoder.note) if note]
    if as_json:
        counts = {"run": run.id, "prepare": run.n_parts, "encode": made.n_shards}
        echo(json.dumps(counts | {"files": run.n_files, "notes": notes}, ensure_ascii=False))
        return
    for note in notes:
        echo(f"note {note}", err=True)
    echo(f"run {run.id}: {run.n_files} files; jobs: prepare {run.n_parts}, encode {made.n_shards}")


@shard.command("prepare", short_help="Read documents; needs no card.")
@click.argument("folder", metavar="FOLDER")
@lock_option
@job_option
@threads_option
@click.option("--memory", type=click.IntRange(min=1), metavar="MIB", help="Of all its workers.")
@scratch_option
@json_option
@click.pass_context
def prepare(
    ctx: click.Context,
    folder: str,
    share: str | None,
    cpus: int | None,
    memory: int | None,
    scratch: str | None,
    as_json: bool,
) -> None:
    """Read and cut the documents of every part of FOLDER that is left to do."""
    from featpipe.build.jobs import Seat, list_jobs

    jobs = take_share(list_jobs(folder, "prepare"), share)
    of_all = memory and memory << 20
    seat = Seat(("cpu",), cpus, memory=of_all, scratch=scratch_folder(scratch))
    ctx.exit(_do(folder, jobs, seat, as_json=as_json))


@shard.command("encode", short_help="Compute features; on any device.")
@click.argument("folder", metavar="FOLDER")
@lock_option
@job_option
@click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; repeat for more.")
@threads_option
@scratch_option
@also_option
@click.option("--space", metavar="NAME", help="Of a further model; by default every planned one.")
@click.option(
    "--publish-every",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="MINUTES",
    help="On scratch: publish what a longer job has computed, and go on; inf: at its end.",
)
@json_option
@click.pass_context
def encode(
    ctx: click.Context,
    folder: str,
    share: str | None,
    device: tuple[str, ...],
    cpus: int | None,
    scratch: str | None,
    also: tuple[str, ...],
    space: str | None,
    publish_every: float,
    as_json: bool,
) -> None:
    """Compute the features of every shard of FOLDER that lacks some.

    Texts of parts that are not prepared yet are left for a later call, and the exit code is 1.
    """
    from featpipe.build.jobs import Seat, list_jobs
    from featpipe.build.publish import open_folder
    from featpipe.build.shards.status import list_missing_parts

    jobs = take_share(list_jobs(folder, "encode", space=space), share)
    missing = list_missing_parts(open_folder(folder))
    place = scratch_folder(scratch)
    seat = Seat(device, cpus, scratch=place, also=also, publish_every_s=60 * publish_every)
    code = _do(folder, jobs, seat, as_json=as_json)
    if missing:
        echo(f"note {len(missing)} parts were not prepared: {_some(missing)}", err=True)
    ctx.exit(code or (EXIT_LEFT_OUT if missing else 0))


@shard.command("status", short_help="What is missing, and what it will cost.")
@click.argument("folder", metavar="FOLDER")
@click.option("--cost", is_flag=True, help="Count the texts and tokens that are left to encode.")
@click.option("--rate", metavar="DEVICE", help="Measure tokens a second on a device, for hours.")
@click.option(
    "--tokens-per-s", type=click.FloatRange(min=0, min_open=True), help="Instead: this rate."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def status(
    ctx: click.Context,
    folder: str,
    cost: bool,
    rate: str | None,
    tokens_per_s: float | None,
    as_json: bool,
) -> None:
    """Say which jobs of FOLDER are left, and what they will cost; exit code 1 while any is."""
    from featpipe.build.publish import open_folder
    from featpipe.build.shards.status import measure_rate, read_status

    opened = open_folder(folder)
    found = read_status(opened, with_costs=bool(cost or rate or tokens_per_s))
    speed = tokens_per_s
    if rate is not None and any(space.n_texts for space in found.spaces):
        speed = measure_rate(opened, rate)
    if as_json:
        echo(json.dumps(found.as_dict() | {"tokens_per_s": speed}, ensure_ascii=False))
    else:
        _print_status(found, speed)
    ctx.exit(0 if found.is_done else EXIT_LEFT_OUT)


def _do(folder: str, jobs: list[Job], seat: Seat, *, as_json: bool) -> int:
    """Do the jobs with warm workers; the exit code."""
    from featpipe.build.jobs import SeatJobs
    from featpipe.build.shards.job import Total

    total, started, n_ended = Total(folder), monotonic(), 0
    with (
        open_view(as_json=False) as view,
        SeatJobs(folder, seat, None if as_json else view.show) as opened,
        stopping_in_two_steps(opened.stop_after_current),
    ):
        for job in jobs:
            if opened.is_stopping:
                break
            report = opened.run(job)
            n_ended += 1
            total.add(report)
            _print_job(report, as_json=as_json)
    total.n_unfinished += len(jobs) - n_ended
    return print_report(total.finish(monotonic() - started), as_json=as_json)


def _print_job(report: JobReport, *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(asdict(report), ensure_ascii=False))
        return
    what = "had been done" if report.was_done else report.run.summary()
    echo(f"{report.job}: {what}{'' if report.is_done else ' (stopped: run it again)'}")


def _print_status(found: FolderStatus, speed: float | None) -> None:
    n_done = found.n_parts - len(found.missing_parts)
    echo(f"parts: {n_done} of {found.n_parts} prepared{_missing(found.missing_parts)}")
    for space in found.spaces:
        n_done = found.n_shards - len(space.missing)
        width = len(f"{found.n_shards - 1:x}")
        names = [f"{number:0{width}x}" for number in space.missing]
        echo(f"shards of {space.name}: {n_done} of {found.n_shards} done{_missing(names)}")
        if space.n_texts is not None:
            echo(f"  to encode: {_cost(space, speed, is_whole=not found.missing_parts)}")


def _cost(space: SpaceStatus, speed: float | None, *, is_whole: bool) -> str:
    words = f"{space.n_texts:,} texts, {space.n_tokens:,} tokens"
    if speed is not None:
        words += f"; {space.hours(speed):.3g} device-hours at {speed:,.0f} tokens a second"
    return words if is_whole else f"{words}, and those of the parts that are not prepared"


def _missing(names: tuple[str, ...] | list[str]) -> str:
    return f"; missing: {_some(names)}" if names else ""


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _read_parts(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdigit() or not int(text):
        raise UsageError(f"--parts {text!r} is no number of parts", hint="such as 100, or auto")
    return int(text)
