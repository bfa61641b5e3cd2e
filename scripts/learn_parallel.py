"""Learns the weights of parallel places: how likely a value is one beside a field's first.

::

    python scripts/learn_parallel.py --data ../shared/data [--sets SET ...] [--keep FILE]
    python scripts/learn_parallel.py --merge FILE ...

For each set, number of samples and draw, fields are fitted on samples of the set's part for
development and values are ranked in its other documents, as `eval_extraction.py` does; the part
held out is not read. Of each field of which a first value is reported, the others that do not
overlap it count. A logistic regression on the terms of `featpipe.extraction.scoring.parallel` is
fitted to which of them are right; every set and number of samples has the same weight. The last
lines are the weights to write there.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, fit_all
from extraction_sets import SETS, SHORT, read_set
from harness import finish, make_parser, measure_or_merge
from learn_confidence import FIRST_DRAW

from featpipe.extraction.scoring.field_model import score_fields
from featpipe.extraction.scoring.logistic import fit_logistic, sigmoid
from featpipe.extraction.scoring.parallel import LEAST_OWN, PARALLEL, terms_of
from featpipe.extraction.scoring.pretrained import PretrainedFields
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from extraction_sets import Task

    from featpipe.extraction.scoring.field_model import FieldModel, Scored

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


def collect(task: Task, k: int, draw: int, pages: Pages) -> Iterator[tuple[list[float], bool]]:
    """The terms of each value of one template other than its field's first, and whether right."""
    chance = random.Random(FIRST_DRAW + draw)  # noqa: S311  # a draw, no secret
    samples = chance.sample(task.pool, min(k, len(task.pool)))
    pages.prepare([*samples, *task.test])
    names = sorted({name for row in task.test for name in row["fields"]})
    # Pretrained fields have seen these documents.
    models = fit_all(names, samples, pages, PretrainedFields())
    for row in task.test:
        scored = score_fields(list(models.values()), pages[row["doc_id"]])
        for (name, model), own in zip(models.items(), scored, strict=True):
            yield from judged(model, own, row["fields"].get(name, []))


def judged(
    model: FieldModel, scored: Scored, given: Sequence[str]
) -> Iterator[tuple[list[float], bool]]:
    """Values apart from a reported first one: terms, and whether each is right."""
    if not model.choose(scored):
        return
    gold = [read_value(value, model.kind) for value in given]
    start, end = scored.groups[0].spans[0]
    terms = terms_of(scored.probabilities, scored.parallel).round(4).tolist()
    for group, p, own in zip(scored.groups, scored.probabilities.tolist(), terms, strict=True):
        a, b = group.spans[0]
        if p >= LEAST_OWN and (b <= start or end <= a):
            yield own, any(one.means(group.value) for one in gold)


def measure(options: argparse.Namespace) -> Iterator[Others]:
    """Every set, number of samples and draw."""
    for name in options.sets:
        is_long = name == "cuad"
        tasks = read_set(options.data, name, 12 if is_long else options.documents, "dev")
        pages = Pages(None, None)
        for k in options.samples:
            for draw in range(1 if is_long else options.draws):
                pairs = [pair for task in tasks for pair in collect(task, k, draw, pages)]
                terms, right = ([pair[side] for pair in pairs] for side in (0, 1))
                yield Others(name, k, draw, terms, right)


def main() -> None:
    """Read the options, collect or merge, learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, default=("fddc_hetong", "fewfc_base", "sroie")
    )
    parser.add_argument("--samples", nargs="+", type=int, default=(3, 5, 20))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--documents", type=int, default=200)
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
    prior = np.array([1.0, *[0.0] * len(PARALLEL)])
    learnt = fit_logistic(terms, right, weights, strength=1.0, prior=prior, n_steps=400)
    names = np.array([p.name for p in pieces for _ in p.right])
    figures = {}
    p = sigmoid(learnt.logits(terms))
    for name in sorted(set(names.tolist())):
        sure = (names == name) & (p >= 0.25)
        share = float(right[sure].mean()) if sure.any() else 0.0
        print(f"{name:<12} p >= .25: {sure.sum()} of {(names == name).sum()}, right {share:.3f}")
        figures[f"{SHORT.get(name, name)}_further_precision"] = round(share, 4)
    print(f"WEIGHTS = {learnt.weights.round(2).tolist()}\nBIAS = {learnt.bias:.2f}")
    finish("learn_parallel", options, figures)


if __name__ == "__main__":
    main()
