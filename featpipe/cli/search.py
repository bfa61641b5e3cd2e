"""``featpipe search``: ranked sentences."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

import click

from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.cache.search import Hit, SentenceSearch


@click.command("search")
@click.argument("cache", metavar="FILE")
@click.argument("query")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits.")
@click.option("--level", type=click.Choice(["sentence", "document"]), default="sentence")
@click.option("--hybrid", is_flag=True, help="Vectors as well as words (loads the model).")
@click.option(
    "--weight",
    type=click.FloatRange(0, 1),
    help="For --hybrid: share of BM25 in the score, the rest is the vectors'; 0.8 by default.",
)
@click.option(
    "--model", metavar="PATH|NAME", help="For --hybrid; by default the one that filled FILE."
)
@click.option("--analyser", metavar="NAME", help="Whose terms, where the cache holds several.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per hit.")
def search(
    cache: str,
    query: str,
    k: int,
    level: Literal["sentence", "document"],
    hybrid: bool,
    weight: float | None,
    model: str | None,
    analyser: str | None,
    as_json: bool,
) -> None:
    """Print the best sentences of FILE for QUERY, with document, offsets and score."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.search import SentenceSearch

    _check_hybrid(level, weight, hybrid=hybrid)
    with Cache.open(cache) as opened:
        # For one query numba would take longer to load than numpy to answer.
        search = SentenceSearch(opened, analyser, backend="numpy")
        if hybrid:
            hits = _search_hybrid(cache, search, query, k, model, weight)
        else:
            hits = search.search(query, k, level=level)
    _print_hits(hits, as_json=as_json)


def _print_hits(hits: Sequence[Hit], *, as_json: bool) -> None:
    for hit in hits:
        echo(json.dumps(asdict(hit), ensure_ascii=False) if as_json else _line(hit))
    if not hits:
        echo("nothing found", err=True)


def _check_hybrid(level: str, weight: float | None, *, hybrid: bool) -> None:
    if hybrid and level != "sentence":
        raise click.UsageError("--hybrid ranks sentences; leave --level document out")
    if weight is not None and not hybrid:
        raise click.UsageError("--weight is for --hybrid")


def _search_hybrid(
    cache: str,
    search: SentenceSearch,
    query: str,
    k: int,
    model: str | None,
    weight: float | None,
) -> list[Hit]:
    from featpipe.cache.search import BM25_WEIGHT
    from featpipe.on_demand.text_encoder import TextEncoder

    share = BM25_WEIGHT if weight is None else weight
    with TextEncoder(cache, model) as encoder:
        vector = encoder.encode([query])[0]
        return search.search_hybrid(query, vector, encoder.dictionary, k, weight=share)


def _line(hit: Hit) -> str:
    return f"{hit.score:7.3f}  {hit.document}[{hit.start}:{hit.end}]  {hit.text}"
