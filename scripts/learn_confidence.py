"""Learns the weights of confidence: how often a reported value is right, over many templates.

::

    python scripts/learn_confidence.py --data ../shared/data [--sets SET ...] [--keep FILE]
    python scripts/learn_confidence.py --merge FILE ...

For each set, number of samples and draw, fields are fitted on samples of the set's part for
development and values are reported for its other documents, as `eval_extraction.py` does; the part
held out is not read. A logistic regression on the terms of `featpipe.extraction.scoring.confidence`
is fitted to which of them are right; every set and number of samples has the same weight. The last
lines are the weights to write there. Left-out figures are of weights learnt from the other sets.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, fit, precision_above, template_of
from extraction_sets import SETS, SHORT, read_set
from harness import finish, make_parser, measure_or_merge

from featpipe.extraction.evaluation import calibration_error
from featpipe.extraction.parties import choose_distinct, rivals_of
from featpipe.extraction.scoring.confidence import TERMS, columns_of, terms_of
from featpipe.extraction.scoring.field_model import score_fields
from featpipe.extraction.scoring.logistic import Logistic, fit_logistic, sigmoid
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from extraction_sets import Task
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.field_model import FieldModel, Scored

    Floats = NDArray[np.float64]

#: Numbers of samples, and how much each counts.
SAMPLE_COUNTS = {1: 0.25, 3: 0.5, 5: 1.0, 10: 0.7, 20: 1.0}
#: Draws of other samples than those of the evaluation.
FIRST_DRAW = 1000
#: Precision of the prior of the weights of standardised terms.
_STRENGTH = 3.0
#: What a set and number of samples counts, in values.
_N_VALUES = 2000.0


@dataclass(frozen=True)
class Reported:
    """Reported values of one set, number of samples and draw: columns, and which are right."""

    name: str
    k: int
    draw: int
    columns: list[list[float]]
    right: list[bool]


def report(task: Task, k: int, draw: int, pages: Pages) -> Iterator[tuple[list[float], bool]]:
    """The columns of each reported value of one template, and whether it is right."""
    chance = random.Random(FIRST_DRAW + draw)  # noqa: S311  # a draw, no secret
    samples = chance.sample(task.pool, min(k, len(task.pool)))
    pages.prepare([*samples, *task.test])
    names = sorted({name for row in task.test for name in row["fields"]})
    models = {name: model for name in names if (model := fit(name, samples, pages)) is not None}
    rivals = rivals_of(template_of(task, names, samples))
    for row in task.test:
        scored = score_fields(list(models.values()), pages[row["doc_id"]])
        found = dict(zip(models, zip(models.values(), scored, strict=True), strict=True))
        chosen = choose_distinct(found, rivals)
        for name, (model, own) in found.items():
            yield from judged(model, own, chosen[name].numbers, row["fields"].get(name, []))


def judged(
    model: FieldModel, scored: Scored, numbers: Sequence[int], given: Sequence[str]
) -> Iterator[tuple[list[float], bool]]:
    """The columns of each reported value of one field of one document, and whether it is right."""
    if not numbers:
        return
    gold = [read_value(value, model.kind) for value in given]
    columns = columns_of(model, scored)
    for number in numbers:
        value = scored.groups[number].value
        yield columns[number].round(4).tolist(), any(one.means(value) for one in gold)


def measure(options: argparse.Namespace) -> Iterator[Reported]:
    """Every set, number of samples and draw."""
    for name in options.sets:
        is_long = name == "cuad"
        tasks = read_set(options.data, name, 12 if is_long else options.documents, "dev")
        pages = Pages(None, None)
        for k in options.samples:
            for draw in range(1 if is_long and k != 5 else options.draws):
                pairs = [pair for task in tasks for pair in report(task, k, draw, pages)]
                columns, right = ([pair[side] for pair in pairs] for side in (0, 1))
                yield Reported(name, k, draw, columns, right)


@dataclass(frozen=True)
class Table:
    """All reported values: columns, which are right, how much each counts, and its origin."""

    columns: Floats
    right: NDArray[np.bool_]
    weights: Floats
    names: NDArray[np.str_]
    ks: NDArray[np.int64]

    @classmethod
    def of(cls, pieces: Sequence[Reported]) -> Table:
        """Every set and number of samples has the same weight, but for that of the number."""
        names = np.array([p.name for p in pieces for _ in p.right])
        ks = np.array([p.k for p in pieces for _ in p.right])
        weights = np.zeros(len(ks))
        for name in set(names.tolist()):
            for k in set(ks.tolist()):
                own = (names == name) & (ks == k)
                weights[own] = SAMPLE_COUNTS.get(k, 1.0) * _N_VALUES / max(own.sum(), _N_VALUES / 4)
        columns = np.array([row for p in pieces for row in p.columns])
        right = np.array([one for p in pieces for one in p.right], bool)
        return cls(columns, right, weights, names, ks)


def learn(terms: Floats, right: NDArray[np.bool_], weights: Floats) -> Logistic:
    """Logistic regression on terms (n_values, n_terms), held by their spread."""
    size = np.maximum(terms.std(axis=0), 1e-6)
    fitted = fit_logistic(terms / size, right, weights, strength=_STRENGTH, n_steps=400)
    return Logistic(fitted.weights / size, fitted.bias)


def print_fit(table: Table, p: Floats, what: str) -> Iterator[tuple[str, float]]:
    """Calibration error and precision of sure values, by set and number of samples."""
    for name in sorted(set(table.names.tolist())):
        for k in sorted(set(table.ks.tolist())):
            own = (table.names == name) & (table.ks == k)
            if not own.any():
                continue
            pairs = list(zip(p[own].tolist(), table.right[own].tolist(), strict=True))
            gap, sure = calibration_error(pairs), precision_above(pairs, 0.9)
            share = float((p[own] >= 0.9).mean())
            print(f"{what:<9} {name:<12} K={k:<3} ECE {gap:.3f}  p >= .9: {share:.2f} of values, "
                  f"right {sure if sure is not None else float('nan'):.3f}")  # fmt: skip
            yield f"{SHORT.get(name, name)}_k{k}_{what}_ece", gap


def main() -> None:
    """Read the options, collect or merge, learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--samples", nargs="+", type=int, default=tuple(SAMPLE_COUNTS))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="add a line for every piece to this file")
    parser.add_argument("--merge", nargs="+", type=Path, help="kept pieces; nothing is collected")
    options = parser.parse_args()
    pieces = measure_or_merge(
        options,
        lambda: measure(options),
        lambda line: Reported(**json.loads(line)),
        lambda piece: json.dumps(asdict(piece)),
    )
    table = Table.of(pieces)
    terms = terms_of(table.columns)
    learnt = learn(terms, table.right, table.weights)
    figures = dict(print_fit(table, sigmoid(learnt.logits(terms)), "seen"))
    left_out = np.zeros(len(terms))
    for name in sorted(set(table.names.tolist())):
        own = table.names == name
        others = learn(terms[~own], table.right[~own], table.weights[~own])
        left_out[own] = sigmoid(others.logits(terms[own]))
    figures |= dict(print_fit(table, left_out, "left-out"))
    for (first, second, _), weight in zip(TERMS, learnt.weights.tolist(), strict=True):
        print(f'    ("{first}", "{second}", {weight:.4f}),')
    print(f"BIAS = {learnt.bias:.4f}")
    finish("learn_confidence", options, {key: round(value, 4) for key, value in figures.items()})


if __name__ == "__main__":
    main()
