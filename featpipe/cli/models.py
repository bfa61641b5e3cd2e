"""``featpipe models``: the models of this machine, and how each would be loaded."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT
from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.encoders.inventory import ModelFacts

_HEADINGS = ("model", "family", "forward", "tokenizer", "auto", "dim", "window", "pooling", "query")


@click.command("models")
@click.argument("names", nargs=-1, metavar="[PATH|NAME]...")
@click.option("--json", "is_json", is_flag=True, help="One JSON object per model.")
@click.pass_context
def models(ctx: click.Context, names: tuple[str, ...], *, is_json: bool) -> None:
    """List the built-in model and those of the local hub cache, or the named ones.

    For each: its family; whether its forward and its tokenizer are featpipe's own (fast) or those
    of transformers and tokenizers; what --precision auto is here; numbers in a vector, tokens in a
    window, pooling, and the prompt before queries. One that cannot be loaded is listed with the
    reason; exit code 1 if it was named. featpipe doctor --model loads one and measures it.
    """
    from featpipe.encoders.inventory import list_models

    facts = list(list_models(names))
    if is_json:
        for one in facts:
            echo(json.dumps(asdict(one), ensure_ascii=False))
    else:
        _print(facts)
    ctx.exit(EXIT_LEFT_OUT if names and any(one.problem for one in facts) else 0)


def _print(facts: Sequence[ModelFacts]) -> None:
    good = [one for one in facts if not one.problem]
    for line in _table([_HEADINGS, *map(_row, good)] if good else []):
        echo(line)
    for one in facts:
        for note in one.notes:
            echo(f"{one.name}: {note}")
        if one.problem:
            echo(f"{one.name}: cannot be loaded: {one.problem}")


def _row(one: ModelFacts) -> tuple[str, ...]:
    pooling = f"{one.pooling}, length 1" if one.is_normalised else one.pooling
    query = "as passages" if one.query_prompt is None else repr(one.query_prompt)
    return (
        one.name, one.family, one.forward, one.tokenizer, one.precision, str(one.dim),
        str(one.window), pooling, query,
    )  # fmt: skip


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their longest entry; the last one is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False))
        + f"  {row[-1]}"
        for row in rows
    ]
