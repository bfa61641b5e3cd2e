"""Learns the weights of parallel places: how likely a value is one beside a field's first.

::

    python scripts/learn_parallel.py --data ../shared/data [--sets SET ...] [--keep FILE]
    python scripts/learn_parallel.py --merge FILE ...

For each set, number of samples and draw, fields are fitted on samples of the set's part for
development and values are ranked in its other documents, as `eval_extraction.py` does, with the
entities of the built-in model, as a cache has them by default; the part held out is not read. Of
each field of which a first value is reported, the others that do not overlap it count. A logistic
regression on the terms of `featpipe.extraction.scoring.parallel`, beside the first alone, is fitted
to which of them are right; every set and number of samples has the same weight. Another is fitted
to which of those are right that are reported, by the weights as they are: write the first, and run
it again. Pretrained fields have seen the part for development of four sets: with them, each half of
it (``--part dev-a``) is measured with fields pretrained on the other; the other sets are measured
with those that are ``shipped``. The last lines are the weights to write there.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, fit_all, read_pretrained, template_of
from extraction_sets import DEV_PARTS, SETS, SHORT, read_set
from harness import add_piece_options, finish, make_parser, measure_or_merge
from learn_confidence import FIRST_DRAW

from featpipe.extraction.scoring.field_model import score_fields
from featpipe.extraction.scoring.logistic import fit_logistic, sigmoid
from featpipe.extraction.scoring.parallel import FURTHER_TERMS, LEAST, TERMS, terms_of
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from extraction_sets import Task

    from featpipe.extraction.scoring.field_model import FieldModel, Scored
    from featpipe.extraction.scoring.logistic import Logistic
    from featpipe.extraction.scoring.pretrained import PretrainedFields

#: The sets that the weights were learnt from.
LEARNT_FROM = ("fddc_hetong", "fewfc_base", "sroie", "freezes", "thefts", "trades")
#: What a set and number of samples counts, in values.
_N_VALUES = 3000.0


@dataclass(frozen=True)
class Others:
    """Values other than the first of one set, number of samples and draw: terms, and the right.

    First all, then those that are reported.
    """

    name: str
    k: int
    draw: int
    terms: list[list[float]]
    right: list[bool]
    further_terms: list[list[float]]
    further_right: list[bool]

    def add(self, model: FieldModel, scored: Scored, stated: Sequence[str]) -> None:
        """Values apart from the reported first one of a field of a document."""
        chosen, n = model.choose(scored), len(scored.parallel)
        if chosen[:1] != [0] or n < 2:
            return
        gold = [read_value(value, model.kind) for value in stated]
        is_right = [any(one.means(group.value) for one in gold) for group in scored.groups[:n]]
        start, end = scored.groups[0].spans[0]
        terms = terms_of(model.ranked(scored), scored.parallel[:, 0]).round(4).tolist()
        for group, own, right in zip(scored.groups[:n], terms, is_right, strict=True):
            a, b = group.spans[0]
            if b <= start or end <= a:
                self.terms.append(own)
                self.right.append(right)
        if model.is_further_ranked(scored, chosen):
            self.further_terms.extend(model.further_terms(scored, chosen).round(4).tolist())
            self.further_right.extend(is_right[number] for number in chosen[1:])


def collect(task: Task, pages: Pages, pretrained: PretrainedFields, others: Others) -> None:
    """The values of one template other than its fields' first."""
    chance = random.Random(FIRST_DRAW + others.draw)  # noqa: S311  # a draw, no secret
    samples = chance.sample(task.pool, min(others.k, len(task.pool)))
    pages.prepare([*samples, *task.test])
    names = sorted({name for row in task.test for name in row["fields"]})
    models = fit_all(template_of(task, names, samples), samples, pages, pretrained)
    for row in task.test:
        scored = score_fields(list(models.values()), pages[row["doc_id"]])
        for (name, model), own in zip(models.items(), scored, strict=True):
            others.add(model, own, row["fields"].get(name, []))


def measure(options: argparse.Namespace) -> Iterator[Others]:
    """Every set, number of samples and draw."""
    pretrained = read_pretrained(options.pretrained)
    for name in options.sets:
        tasks = read_set(options.data, name, options.documents, options.part)
        pages = Pages(None, None, with_entities=name != "sroie")  # the model knows no English
        for k, draw in product(options.samples, range(options.draws)):
            others = Others(name, k, draw, [], [], [], [])
            for task in tasks:
                collect(task, pages, pretrained, others)
            yield others


def learn(
    pieces: Sequence[tuple[str, int, list[list[float]], list[bool]]], figures: dict[str, float]
) -> Logistic:
    """From names of sets, numbers of samples, terms, and the right: with figures by set."""
    n_values = {(name, k): 0 for name, k, *_ in pieces}
    for name, k, _, right in pieces:
        n_values[name, k] += len(right)
    terms = np.array([row for _, _, own, _ in pieces for row in own])
    right = np.array([one for *_, own in pieces for one in own], bool)
    counts = np.array([n_values[name, k] for name, k, _, own in pieces for _ in own])
    weights = _N_VALUES / np.maximum(counts, _N_VALUES / 2)
    learnt = fit_logistic(terms, right, weights, strength=1.0, n_steps=400)
    names = np.array([name for name, _, _, own in pieces for _ in own])
    p = sigmoid(learnt.logits(terms))
    for name in sorted(set(names.tolist())):
        own = names == name
        sure = own & (p >= LEAST)
        share = float(right[sure].mean()) if sure.any() else 0.0
        print(f"{name:<12} right {right[own].mean():.3f}, said {p[own].mean():.3f}  "
              f"p >= {LEAST}: {sure.sum()} of {own.sum()}, right {share:.3f}")  # fmt: skip
        figures[f"{SHORT.get(name, name)}_further_precision"] = round(share, 4)
    return learnt


def print_weights(names: Sequence[str], learnt: Logistic) -> None:
    """As they are to be written."""
    for name, weight in zip(names, learnt.weights, strict=True):
        print(f"{name:<20} {weight:.2f}")
    print(f"BIAS = {learnt.bias:.2f}")


def main() -> None:
    """Read the options, collect or merge, learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=LEARNT_FROM)
    parser.add_argument("--samples", nargs="+", type=int, default=(5, 20))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--part", choices=DEV_PARTS, default="dev")
    parser.add_argument(
        "--pretrained", default="none", help="none, shipped, or a file of pretrained fields"
    )
    add_piece_options(parser)
    options = parser.parse_args()
    pieces = measure_or_merge(
        options,
        lambda: measure(options),
        lambda line: Others(**json.loads(line)),
        lambda piece: json.dumps(asdict(piece)),
    )
    figures = {}
    learnt = learn([(p.name, p.k, p.terms, p.right) for p in pieces], figures)
    print_weights(TERMS, learnt)
    further = [(p.name, p.k, p.further_terms, p.further_right) for p in pieces if p.further_right]
    if further:
        print_weights(FURTHER_TERMS, learn(further, {}))
    finish("learn_parallel", options, figures)


if __name__ == "__main__":
    main()
