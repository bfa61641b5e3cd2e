"""``featpipe template evaluate`` and ``suggest``: how good it is, and what to label next."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT
from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from featpipe.extraction.evaluation import FieldScore, TemplateEvaluation
    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.template import Template


@click.command("evaluate")
@click.argument("template_file", metavar="TEMPLATE", type=click.Path(exists=True, dir_okay=False))
@click.option("--cache", metavar="CACHE", help="Where the sample documents are.")
@click.option("--gold", metavar="FILE", help="Judge these documents (as NAME.samples.jsonl).")
@click.option("--parts", default=10, show_default=True, type=click.IntRange(min=2),
              help="Parts of the samples that are left out in turn.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def evaluate(  # one argument per option
    ctx: click.Context,
    template_file: str,
    cache: str | None,
    gold: str | None,
    parts: int,
    as_json: bool,
) -> None:
    """Say how good TEMPLATE is: precision, recall and F1 by field, and every disagreement.

    Each sample is judged by the template without it. `sure` counts values with a probability of .9
    or more, and how many of them are right; ECE is the mean gap between probability and share of
    right values. With --gold, other documents whose values are known are judged by the whole
    template; one that is a sample, too, is left out. Without --cache, samples hold their texts or
    are files, and no vectors are used.
    """
    from featpipe.extraction.evaluate import evaluate_gold, evaluate_samples, find_gold
    from featpipe.extraction.template_file import load_template, read_samples

    loaded = load_template(template_file)
    with _prepared(template_file, cache) as prepare:
        fitted = prepare(loaded)
        if gold is None:
            found = evaluate_samples(fitted, parts)
        else:
            found = evaluate_gold(
                fitted, *find_gold(prepare, fitted, read_samples(loaded, Path(gold)))
            )
    if as_json:
        echo(json.dumps(found.as_dict()))
    else:
        _print(found)
    ctx.exit(EXIT_LEFT_OUT if found.left_out else 0)


@click.command("suggest")
@click.argument("template_file", metavar="TEMPLATE", type=click.Path(exists=True, dir_okay=False))
@click.option("--cache", required=True, metavar="CACHE", help="Where the documents are.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("-n", "n", default=10, show_default=True, type=click.IntRange(min=1),
              help="Documents to name.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object per document.")
@click.pass_context
def suggest(  # one argument per option
    ctx: click.Context, template_file: str, cache: str, space: str | None, n: int, as_json: bool
) -> None:
    """Name the documents of CACHE whose labels TEMPLATE would learn most from, the best first.

    They stand for many documents that are unlike its samples, and whose values are in doubt. The
    review of `featpipe serve --review` shows them in the same order.
    """
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.suggest import suggest_documents

    with Extractor(template_file, cache, space=space or None, checkpoints="none") as extractor:
        [fitted] = extractor.engine.templates.values()
        found = suggest_documents(extractor.engine, fitted, n)
        for one in found.documents:
            if as_json:
                echo(json.dumps(one.as_dict()))
            else:
                echo(str(one))
    for lost in found.lost:
        echo(f"left out: {lost.reason}", err=True)
    if not found.documents:
        echo("every document has a sample", err=True)
    ctx.exit(EXIT_LEFT_OUT if found.lost else 0)


@contextmanager
def _prepared(file: str, cache: str | None) -> Iterator[Callable[[Template], FittedTemplate]]:
    """What finds the sample documents of a template."""
    from featpipe.extraction.evaluate import prepare_texts
    from featpipe.extraction.extractor import Extractor

    if cache is None:
        yield partial(prepare_texts, folder=Path(file).parent)
        return
    with Extractor(file, cache) as extractor:
        yield extractor.engine.prepare


#: Why a field is not judged, by what it would be judged by.
_UNJUDGED = {
    "samples": "that takes two texts that were read for it",
    "gold": "no gold document that could be used was read for it",
}


def _print(found: TemplateEvaluation) -> None:
    for disagreement in found.disagreements:
        echo(str(disagreement))
    for left_out in found.left_out:
        echo(str(left_out))
    for name in found.unjudged:
        echo(f"{name}: not judged: {_UNJUDGED[found.source]}")
    rows = [_cells(one.field, one) for one in found.fields]
    whole = _cells("all fields", found.whole)
    echo(_aligned([_HEAD, *rows, *([whole] if len(rows) != 1 else [])]))
    one = found.whole
    if not one.n_documents:
        echo(f"{found.template}: none of the {_SOURCES[found.source]} could be judged")
        return
    echo(
        f"{found.template}: F1 {one.f1:.3f} (95 % interval {one.f1_low:.3f} to {one.f1_high:.3f}) "
        f"over {one.n_documents} {_SOURCES[found.source]}; "
        f"of {one.n_sure} sure values {one.n_sure_right} are right"
    )


_SOURCES = {"samples": "samples, each left out in turn", "gold": "gold documents"}
_HEAD = (
    "field", "documents", "stated", "found", "right", "precision", "recall", "F1", "sure",
    "sure and right", "ECE",
)  # fmt: skip


def _cells(name: str, one: FieldScore) -> tuple[str, ...]:
    counts = (one.n_documents, one.n_stated, one.n_found, one.n_right)
    measures = (f"{value:.3f}" for value in (one.precision, one.recall, one.f1))
    return (name, *map(str, counts), *measures, str(one.n_sure), str(one.n_sure_right),
            f"{one.ece:.3f}")  # fmt: skip


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column to the left, the others to the right."""
    from featpipe.documents.formats.text_tables import columns

    widths = [max(columns(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        gaps = [" " * (width - columns(cell)) for width, cell in zip(widths, row, strict=True)]
        rest = [gap + cell for gap, cell in zip(gaps[1:], row[1:], strict=True)]
        lines.append("  ".join([row[0] + gaps[0], *rest]))
    return "\n".join(lines)
