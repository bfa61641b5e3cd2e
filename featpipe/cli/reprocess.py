"""``featpipe reprocess``: bring results up to date with changed templates, from the cache."""

from __future__ import annotations

import json
from pathlib import Path

import click

from featpipe.cli.main import EXIT_LEFT_OUT
from featpipe.cli.workers import choose_workers

#: From this many fields of documents on, processes are started for them unless told otherwise.
_MANY = 1000


@click.command("reprocess")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and why, and do nothing.")
@click.option("--diff", is_flag=True, help="Show the values that changed, old -> new.")
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Processes; 0: this one. By default one per core when there is much to do.",
)
@click.option("-o", "--output", metavar="FILE", help="All results: .jsonl, .csv or .parquet.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
@click.pass_context
def command(ctx: click.Context, /, **options: object) -> None:
    """Extract again exactly what a change of templates or documents touches; encode nothing."""
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.reprocess import plan_reprocess, read_results, reprocess
    from featpipe.extraction.results import write_extractions

    space = options["space"]
    with Extractor(
        str(options["templates"]), str(options["cache"]), space=str(space) if space else None
    ) as extractor:
        plan = plan_reprocess(extractor)
        if options["dry_run"]:
            click.echo("\n".join(plan.lines()))
            return
        given = options["workers"]
        workers = (
            choose_workers(extractor, plan.n_fields, _MANY) if given is None else int(str(given))
        )
        report = reprocess(extractor, plan, wait_s=float(str(options["wait"])), workers=workers)
        if options["diff"]:
            for change in report.changed:
                click.echo(f"{change.template}: {change}")
        if options["output"]:
            write_extractions(read_results(extractor), Path(str(options["output"])))
    if options["as_json"]:
        click.echo(json.dumps(report.as_dict(), ensure_ascii=False))
    else:
        click.echo(report.summary())
    for one in report.lost:
        click.echo(f"quarantined {one.reason}", err=True)
    ctx.exit(EXIT_LEFT_OUT if report.lost else 0)
