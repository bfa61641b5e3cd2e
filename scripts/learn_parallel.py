"""Learns the weights of parallel places: how likely a value is one beside a field's first.

::

    python scripts/learn_parallel.py --data ../shared/data [--sets SET ...] [--keep FILE]
    python scripts/learn_parallel.py --merge FILE ...

For each set, number of samples and draw, fields are fitted on samples of the set's part for
development and values are ranked in its other documents, as `eval_extraction.py` does, with the
entities of the built-in model, as a cache has them by default; the part held out is not read. Of
each field of which a first value is reported, the others that do not overlap it count. A logistic
regression on the terms of `featpipe.extraction.scoring.parallel`, beside the first alone, is fitted
to which of them are right; every set and number of samples has the same weight. Pretrained fields
have seen the part for development: with them, each half of it (``--part dev-a``) is measured with
fields pretrained on the other, and merged with the halves measured without any. The last lines are
the weights to write there.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, fit_all, read_pretrained, template_of
from extraction_sets import DEV_PARTS, LEARNT_SETS, SHORT, read_set
from harness import finish, make_parser, measure_or_merge
from learn_confidence import FIRST_DRAW

from featpipe.extraction.scoring.field_model import score_fields
from featpipe.extraction.scoring.logistic import fit_logistic, sigmoid
from featpipe.extraction.scoring.parallel import LEAST, TERMS, terms_of
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from extraction_sets import Task

    from featpipe.extraction.scoring.field_model import FieldModel, Scored
    from featpipe.extraction.scoring.pretrained import PretrainedFields

#: What a set and number of samples counts, in values.
_N_VALUES = 3000.0


@dataclass(frozen=True)
class Others:
    """Values other than the first of one set, number of samples and draw: terms, and the right."""

    name: str
    k: int
    draw: int
    terms: list[list[float]]
    right: list[bool]


def collect(
    task: Task, k: int, draw: int, pages: Pages, pretrained: PretrainedFields
) -> Iterator[tuple[list[float], bool]]:
    """The terms of each value of one template other than its field's first, and whether right."""
    chance = random.Random(FIRST_DRAW + draw)  # noqa: S311  # a draw, no secret
    samples = chance.sample(task.pool, min(k, len(task.pool)))
    pages.prepare([*samples, *task.test])
    names = sorted({name for row in task.test for name in row["fields"]})
    models = fit_all(template_of(task, names, samples), samples, pages, pretrained)
    for row in task.test:
        scored = score_fields(list(models.values()), pages[row["doc_id"]])
        for (name, model), own in zip(models.items(), scored, strict=True):
            yield from judged(model, own, row["fields"].get(name, []))


def judged(
    model: FieldModel, scored: Scored, given: Sequence[str]
) -> Iterator[tuple[list[float], bool]]:
    """Values apart from a reported first one: terms, and whether each is right."""
    if model.choose(scored)[:1] != [0]:
        return
    gold = [read_value(value, model.kind) for value in given]
    start, end = scored.groups[0].spans[0]
    n = len(scored.parallel)
    if n < 2:
        return
    terms = terms_of(model.ranked(scored), scored.parallel[:, 0]).round(4).tolist()
    for group, own in zip(scored.groups[:n], terms, strict=True):
        a, b = group.spans[0]
        if b <= start or end <= a:
            yield own, any(one.means(group.value) for one in gold)


def measure(options: argparse.Namespace) -> Iterator[Others]:
    """Every set, number of samples and draw."""
    pretrained = read_pretrained(options.pretrained)
    for name in options.sets:
        tasks = read_set(options.data, name, options.documents, options.part)
        pages = Pages(None, None, with_entities=name != "sroie")  # the model knows no English
        for k, draw in product(options.samples, range(options.draws)):
            pairs = [pair for task in tasks for pair in collect(task, k, draw, pages, pretrained)]
            terms, right = ([pair[side] for pair in pairs] for side in (0, 1))
            yield Others(name, k, draw, terms, right)


def main() -> None:
    """Read the options, collect or merge, learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--sets", nargs="+", choices=LEARNT_SETS, default=("fddc_hetong", "fewfc_base", "sroie")
    )
    parser.add_argument("--samples", nargs="+", type=int, default=(5, 20))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--part", choices=DEV_PARTS, default="dev")
    parser.add_argument("--pretrained", default="none", help="none, or a file of pretrained fields")
    parser.add_argument("--keep", type=Path, help="add a line for every piece to this file")
    parser.add_argument("--merge", nargs="+", type=Path, help="kept pieces; nothing is collected")
    options = parser.parse_args()
    pieces = measure_or_merge(
        options,
        lambda: measure(options),
        lambda line: Others(**json.loads(line)),
        lambda piece: json.dumps(asdict(piece)),
    )
    n_values = {(p.name, p.k): 0 for p in pieces}
    for piece in pieces:
        n_values[piece.name, piece.k] += len(piece.right)
    terms = np.array([row for p in pieces for row in p.terms])
    right = np.array([one for p in pieces for one in p.right], bool)
    counts = np.array([n_values[p.name, p.k] for p in pieces for _ in p.right])
    weights = _N_VALUES / np.maximum(counts, _N_VALUES / 2)
    learnt = fit_logistic(terms, right, weights, strength=1.0, n_steps=400)
    names = np.array([p.name for p in pieces for _ in p.right])
    figures = {}
    p = sigmoid(learnt.logits(terms))
    for name in sorted(set(names.tolist())):
        sure = (names == name) & (p >= LEAST)
        share = float(right[sure].mean()) if sure.any() else 0.0
        print(
            f"{name:<12} p >= {LEAST}: {sure.sum()} of {(names == name).sum()}, right {share:.3f}"
        )
        figures[f"{SHORT.get(name, name)}_further_precision"] = round(share, 4)
    for term, weight in zip(TERMS, learnt.weights, strict=True):
        print(f"{term:<20} {weight:.2f}")
    print(f"BIAS = {learnt.bias:.2f}")
    finish("learn_parallel", options, figures)


if __name__ == "__main__":
    main()
