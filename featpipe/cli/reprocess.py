"""``featpipe reprocess``: bring results up to date with changed templates, from the cache."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("reprocess")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and why, and do nothing.")
@click.option("--diff", is_flag=True, help="Show the values that changed, old -> new.")
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
@click.option("-o", "--output", metavar="FILE", help="All results: .jsonl, .csv or .parquet.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
def command(**options: object) -> None:
    """Extract again exactly what a change of templates or documents touches; encode nothing."""
    from featpipe.templates.extraction import write_extractions
    from featpipe.templates.extractor import Extractor
    from featpipe.templates.reprocess import plan_reprocess, read_results, reprocess

    space = options["space"]
    with Extractor(
        str(options["templates"]), str(options["cache"]), space=str(space) if space else None
    ) as extractor:
        plan = plan_reprocess(extractor)
        if options["dry_run"]:
            click.echo("\n".join(plan.lines()))
            return
        report = reprocess(extractor, plan, wait_s=float(str(options["wait"])))
        if options["diff"]:
            for change in report.changed:
                click.echo(f"{change.template}: {change}")
        if options["output"]:
            write_extractions(read_results(extractor), Path(str(options["output"])))
    if options["as_json"]:
        click.echo(json.dumps(report.as_dict(), ensure_ascii=False))
    else:
        click.echo(report.summary())
