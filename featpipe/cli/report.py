"""``featpipe report``: the evidence page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("cache", metavar="FILE")
@click.option("-o", "--output", required=True, metavar="PAGE", help="The HTML file to write.")
@click.option("--results", metavar="JSONL", help="Of `extract -o`; else what `reprocess` left.")
@click.option("--compare", metavar="RUN", help="Run of reprocess, `previous`, or a JSONL file.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N")
@click.option("--space", metavar="NAME", help="Vectors of the map, when FILE has several.")
def command(**options: object) -> None:
    """Write one page that shows the documents of FILE, what was extracted, and from where.

    The page opens in any browser and loads nothing: entities and values in the text, the fields
    of all documents, what changed since a run, the runs, and a map of the vectors. At most N
    documents are shown, those with values first.
    """
    from featpipe.cache.cache import Cache
    from featpipe.html_report import ReportSettings, write_report

    results, compare, space = (options[name] for name in ("results", "compare", "space"))
    settings = ReportSettings(
        results=Path(str(results)) if results else None,
        compare=str(compare) if compare else None,
        limit=int(str(options["limit"])),
        space=str(space) if space else None,
    )
    with Cache.open(str(options["cache"])) as cache:
        size = write_report(cache, str(options["output"]), settings)
    click.echo(
        f"{options['output']}: {size.n_documents} documents of {size.n_in_cache}, "
        f"{size.n_values} values, {size.n_bytes / 2**20:.1f} MiB"
    )
