"""``featpipe inspect``: what a cache holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import CacheSummary


@click.command("inspect")
@click.argument("cache", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
@click.option(
    "--explain",
    nargs=2,
    metavar="A B",
    help="Say in which parts two spaces, or two tables of entities, differ.",
)
def command(cache: str, as_json: bool, explain: tuple[str, str] | None) -> None:
    """Say what FILE holds: documents, units, spaces with the parts of their fingerprints."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import summarise

    with Cache.open(cache) as opened:
        if explain:
            _explain(opened, *explain)
            return
        summary = summarise(opened)
    if as_json:
        click.echo(json.dumps(summary.as_dict(), ensure_ascii=False, indent=2))
    else:
        _print(summary)


def _explain(cache: Cache, first: str, second: str) -> None:
    from featpipe.encoders.spec import explain_difference

    lines = list(explain_difference(cache.spec_of(first), cache.spec_of(second)))
    click.echo("\n".join(lines) or "the same in every part")


def _print(summary: CacheSummary) -> None:
    click.echo(f"{summary.path}: {summary.file_bytes / 2**20:.1f} MiB, {summary.runs} runs")
    click.echo(f"documents {summary.documents}, of {summary.contents} distinct contents")
    for level, count in summary.units_by_level.items():
        click.echo(f"  {level:<10} {count:>10,} units, {summary.unique_by_level[level]:>9,} unique")
    click.echo(f"  {'texts':<10} {summary.texts:>10,} distinct over all levels")
    for space in summary.spaces:
        click.echo(f"space {space.name}: {space.n_vectors:,} vectors, {space.dim} x {space.dtype}")
        for part, value in space.spec.items():
            click.echo(f"  {part:<13} {value}")
    for name, count in summary.entities.items():
        click.echo(f"entities {name}: {count:,}")
    for name, count in summary.terms.items():
        click.echo(f"terms {name}: {count:,} in the vocabulary")
