"""``featpipe runs``: what was done to a cache, run by run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from featpipe.html_report.results import ResultsRun
    from featpipe.report import RunReport

#: Quarantined documents and notes printed one by one; ``--json`` gives all of them.
_MOST_LISTED = 100


@click.group("runs")
def command() -> None:
    """List the runs of a cache, or show one."""


@command.command("list", short_help="One line per run, oldest first.")
@click.argument("cache", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per run.")
def list_(cache: str, as_json: bool) -> None:
    """Print one line per run of build-cache and reprocess in FILE, oldest first."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import read_runs
    from featpipe.html_report.results import list_runs

    with Cache.open(cache) as opened:
        builds, extractions = read_runs(opened), list_runs(opened)
    lines = [(run.run_id, _record(run) if as_json else _line(run)) for run in builds]
    lines += [
        (run.run, _results_record(run) if as_json else _results_line(run)) for run in extractions
    ]
    for _, line in sorted(lines, key=lambda pair: pair[0]):
        click.echo(line)
    if not lines:
        click.echo("no runs", err=True)


@command.command("show", short_help="The record of one run.")
@click.argument("cache", metavar="FILE")
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--json", "as_json", is_flag=True, help="The whole record, as one JSON object.")
def show(cache: str, run: str, as_json: bool) -> None:
    """Show the record of one run of build-cache: RUN is its id, the beginning of it, or `last`."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import find_run, read_runs

    with Cache.open(cache) as opened:
        record = find_run(read_runs(opened), run)
    click.echo(_record(record) if as_json else "\n".join(_lines(record)))


def _record(run: RunReport) -> str:
    return json.dumps({"kind": "build-cache", **run.as_dict()}, ensure_ascii=False)


def _results_record(run: ResultsRun) -> str:
    record = {"kind": "reprocess", "run_id": run.run, "templates": run.templates}
    return json.dumps(record | {"n_documents": run.n_documents}, ensure_ascii=False)


def _line(run: RunReport) -> str:
    mark = " (interrupted)" if run.was_interrupted else ""
    return f"{run.run_id}  build-cache  {run.summary()}{mark}"


def _results_line(run: ResultsRun) -> str:
    return f"{run.run}  reprocess    documents {run.n_documents}; {', '.join(run.templates)}"


def _lines(run: RunReport) -> list[str]:
    rate = run.n_hits / run.n_unique if run.n_unique else 0.0
    speed = run.n_encoded / run.seconds if run.seconds else 0.0
    units = ", ".join(f"{level} {n:,}" for level, n in run.units_by_level.items())
    return [
        f"run         {run.run_id}{' (interrupted)' if run.was_interrupted else ''}",
        (
            f"documents   {run.n_documents:,} given, {run.n_loaded:,} loaded, of them "
            f"{run.n_unchanged:,} unchanged; {len(run.quarantined):,} quarantined"
        ),
        f"units       {run.n_units:,}: {units}",
        (
            f"texts       {run.n_unique:,} distinct: {run.n_hits:,} in the cache ({rate:.1%}), "
            f"{run.n_encoded:,} encoded, {sum(failed.n_units for failed in run.failed):,} failed"
        ),
        f"entities    {run.n_entities:,}",
        f"windows     {run.n_long:,} long texts in {run.n_extra_windows:,} further windows",
        f"time        {run.seconds:.1f} s, {speed:,.0f} texts/s",
        *_listed("quarantined", [f"{q.source}: {q.reason} [{q.error}]" for q in run.quarantined]),
        *_listed("failed", [f"{f.n_units} for {f.table}: {f.reason}" for f in run.failed]),
        *_listed("note", list(run.notes)),
    ]


def _listed(name: str, lines: list[str]) -> list[str]:
    n_more = len(lines) - _MOST_LISTED
    more = [f"{name:<11} {n_more:,} more; see --json"] if n_more > 0 else []
    return [f"{name:<11} {line}" for line in lines[:_MOST_LISTED]] + more
