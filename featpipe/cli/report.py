"""``featpipe report``: the HTML page of what was extracted."""

from __future__ import annotations

from pathlib import Path

import click

from featpipe.cli.terminal import echo


@click.command("report")
@click.argument("cache", metavar="CACHE")
@click.option("-o", "--output", required=True, metavar="PAGE", help="The HTML file to write.")
@click.option("--results", metavar="JSONL", help="Of `extract -o`; else what `reprocess` left.")
@click.option("--templates", metavar="PATH", help="Tells samples and types; else `reprocess` did.")
@click.option("--compare", metavar="RUN", help="Run of reprocess, `previous`, or a JSONL file.")
@click.option("--evaluation", metavar="JSONL", help="Of `template evaluate --json`; a line each.")
@click.option(
    "--alternatives",
    "has_alternatives",
    is_flag=True,
    help="With --templates: other candidates of the first 500 questions of the review.",
)
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N")
@click.option("--space", metavar="NAME", help="Vectors, when CACHE has several.")
def report(
    cache: str,
    output: str,
    results: str | None,
    templates: str | None,
    compare: str | None,
    evaluation: str | None,
    limit: int,
    space: str | None,
    *,
    has_alternatives: bool,
) -> None:
    """Write one page that shows the documents of CACHE, what was extracted, and from where.

    The page opens in any browser and loads nothing: entities and values in the text, the fields
    of all documents, what changed since a run, how good the templates are, the runs, and a map of
    the vectors. At most N documents are shown, those with values first.
    """
    from featpipe.cache.cache import Cache
    from featpipe.html_report import ReportSettings, write_report

    settings = ReportSettings(
        results=Path(results) if results else None,
        compare=compare or None,
        limit=limit,
        space=space or None,
        templates=Path(templates) if templates else None,
        evaluation=Path(evaluation) if evaluation else None,
        has_alternatives=has_alternatives,
    )
    with Cache.open(cache) as opened:
        size = write_report(opened, output, settings)
    echo(
        f"{output}: {size.n_documents} documents of {size.n_in_cache}, "
        f"{size.n_values} values, {size.n_bytes / 2**20:.1f} MiB"
    )
    if size.stale:
        n = len(size.stale)
        echo(
            f"values of {n} document{'s' * (n != 1)} are of another version, such as of "
            f"{size.stale[0]}, and left out; featpipe reprocess (or extract) finds them anew",
            err=True,
        )
