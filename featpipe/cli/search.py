"""``featpipe search``: ranked sentences."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

import click

from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.cache.search import Hit


@click.command("search")
@click.argument("cache", metavar="CACHE")
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
    "--model", metavar="PATH|NAME", help="For --hybrid; by default the one that filled CACHE."
)
@click.option(
    "--query-prompt",
    metavar="TEXT",
    help="For --hybrid: put before QUERY; by default what the model expects.",
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
    query_prompt: str | None,
    analyser: str | None,
    as_json: bool,
) -> None:
    """Print the best sentences of CACHE for QUERY, with document, offsets and score.

    With --hybrid, the prompt that was put before QUERY is named, as models for retrieval expect
    another before questions than before passages.
    """
    from featpipe.cache.cache import Cache
    from featpipe.cache.search import BM25_WEIGHT, SentenceSearch
    from featpipe.on_demand.text_encoder import TextEncoder

    _check_hybrid(level, hybrid=hybrid, weight=weight, query_prompt=query_prompt)
    with Cache.open(cache) as opened:
        # For one query numba would take longer to load than numpy to answer.
        search = SentenceSearch(opened, analyser, backend="numpy")
        if hybrid:
            share = BM25_WEIGHT if weight is None else weight
            with TextEncoder(cache, model, query_prompt=query_prompt) as encoder:
                echo(f"query prompt: {encoder.query_prompt!r} ({encoder.query_prompt_source})",
                     err=True)  # fmt: skip
                hits = search.search_encoded(query, encoder, k, weight=share)
        else:
            hits = search.search(query, k, level=level)
    _print_hits(hits, as_json=as_json)


def _print_hits(hits: Sequence[Hit], *, as_json: bool) -> None:
    for hit in hits:
        echo(json.dumps(asdict(hit), ensure_ascii=False) if as_json else _line(hit))
    if not hits:
        echo("nothing found", err=True)


def _check_hybrid(level: str, *, hybrid: bool, **of_hybrid: object) -> None:
    if hybrid and level != "sentence":
        raise click.UsageError("--hybrid ranks sentences; leave --level document out")
    for name, value in of_hybrid.items():
        if value is not None and not hybrid:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --hybrid")


def _line(hit: Hit) -> str:
    return f"{hit.score:7.3f}  {hit.document}[{hit.start}:{hit.end}]  {hit.text}"
