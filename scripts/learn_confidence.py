"""Learns the weights of confidence: how often a value is right, over many templates.

::

    python scripts/learn_confidence.py --data ../shared/data [--sets SET ...] [--keep FILE]
    python scripts/learn_confidence.py --sets institutions thefts --pretrained shipped [--keep FILE]
    python scripts/learn_confidence.py --merge FILE ...

For each set, number of samples and draw, fields are fitted on samples of the set's part for
development and values are found in its other documents, as `eval_extraction.py` does: those to
test on, and as many of those that samples are drawn from. The likeliest value of each document
counts, reported or not, since confidence decides it: how likely the others are tells their place
beside it. Once with the entities of the built-in model, once without; the part held out is not
read. Pretrained fields have seen the part for development: with them, each half of it (``--part
dev-a``) is measured with fields pretrained on the other, and merged with the whole measured without
any. The others are ours: freezes, thefts, trades and repurchases, and documents of other
institutions (``eval_institutions.py``), of the kinds that were looked at, with the fields that the
package ships, which none of them has taught. A logistic regression on the terms of
`featpipe.extraction.scoring.confidence` is fitted to which of them are right; every set and number
of samples has the same weight. The last lines are the weights to write there.

Figures of a set or template left out are of weights learnt from the others: what a new template may
expect. Beside each term stands their log loss without it, by which the terms were chosen; a term is
worth its place if the log loss grows by .001.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, fit_all, precision_above, read_pretrained, template_of
from eval_institutions import LEARNT_FROM, institutions_of, read_kind, task_of
from extraction_sets import DEV_PARTS, LEARNT_SETS, SETS, SHORT, read_set
from harness import add_piece_options, finish, make_parser, measure_or_merge

from featpipe.extraction.evaluation import calibration_error
from featpipe.extraction.scoring.confidence import TERMS, columns_of, moderated, terms_of
from featpipe.extraction.scoring.field_model import score_fields
from featpipe.extraction.scoring.logistic import Logistic, fit_logistic, sigmoid
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from extraction_sets import Task
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.field_model import FieldModel, Scored
    from featpipe.extraction.scoring.pretrained import PretrainedFields

    Floats = NDArray[np.float64]

INSTITUTIONS = "institutions"
#: The set whose documents are long.
LONG = "cuad"
#: Numbers of samples, and how much each counts.
SAMPLE_COUNTS = {1: 0.25, 3: 0.5, 5: 1.0, 10: 0.7, 20: 1.0}
#: Draws of other samples than those of the evaluation.
FIRST_DRAW = 1000
#: Precision of the prior of the weights of standardised terms.
_STRENGTH = 30.0
#: Contracts take a hundred times the time of announcements: several draws of so few samples only.
SHORT_DRAWS = 5
#: What a set and number of samples counts, in values.
_N_VALUES = 2000.0


@dataclass(frozen=True)
class Judged:
    """Values of one template and draw of k samples: columns, and which are right."""

    name: str
    template: str
    k: int
    draw: int
    entities: bool
    columns: list[list[float]]
    right: list[bool]


def report(
    task: Task, k: int, draw: int, pages: Pages, pretrained: PretrainedFields
) -> Iterator[tuple[list[float], bool]]:
    """The columns of each value of one template that counts, and whether it is right."""
    chance = random.Random(FIRST_DRAW + draw)  # noqa: S311  # a draw, no secret
    shuffled = chance.sample(task.pool, len(task.pool))
    samples, others = shuffled[:k], shuffled[k : k + len(task.test)]
    pages.prepare([*samples, *task.test, *others])
    names = sorted({name for row in task.test for name in row["fields"]})
    template = template_of(task, names, samples)
    models = fit_all(template, samples, pages, pretrained)
    for row in [*task.test, *others]:
        scored = score_fields(list(models.values()), pages[row["doc_id"]])
        for (name, model), own in zip(models.items(), scored, strict=True):
            if own.groups and not model.is_untaught:
                yield judged(model, own, row["fields"].get(name, []))


def judged(model: FieldModel, scored: Scored, stated: Sequence[str]) -> tuple[list[float], bool]:
    """The columns of the likeliest value of one field of one document, and whether it is right."""
    columns = columns_of(
        model, scored.rows, scored.measured, scored.probabilities, scored.fills_cell
    )
    value = scored.groups[0].value
    is_right = any(read_value(one, model.kind).means(value) for one in stated)
    return columns[0].round(4).tolist(), is_right


def tasks_in(options: argparse.Namespace, name: str) -> list[Task]:
    """The templates of a set; of other institutions one for any two that samples are of."""
    if name != INSTITUTIONS:
        n_test = 12 if name == LONG else options.documents
        return read_set(options.data, name, n_test, options.part)
    return [
        task_of(kind, rows, chosen)
        for kind in LEARNT_FROM
        for rows in [read_kind(kind)]
        for chosen in combinations(institutions_of(rows), 2)
    ]


def measure(options: argparse.Namespace) -> Iterator[Judged]:
    """Every template, number of samples and draw, without entities and with them."""
    pretrained = read_pretrained(options.pretrained)
    for name in options.sets:
        tasks = tasks_in(options, name)
        for entities in (False, True) if name != LONG else (False,):
            pages = Pages(None, None, with_entities=entities)
            for k, draw in product(options.samples, range(options.draws)):
                if name == LONG and draw and k != SHORT_DRAWS:
                    continue
                for task in tasks:
                    if len(task.pool) < k:
                        continue
                    pairs = list(report(task, k, draw, pages, pretrained))
                    columns, right = ([pair[side] for pair in pairs] for side in (0, 1))
                    yield Judged(name, task.name, k, draw, entities, columns, right)


@dataclass(frozen=True)
class Table:
    """All values: columns, which are right, how much each counts, and their origin."""

    columns: Floats
    right: NDArray[np.bool_]
    weights: Floats
    names: NDArray[np.str_]
    templates: NDArray[np.str_]
    ks: NDArray[np.int64]
    entities: NDArray[np.bool_]

    @classmethod
    def of(cls, pieces: Sequence[Judged]) -> Table:
        """Every set and number of samples has the same weight, but for that of the number."""
        names, templates, ks, entities = (
            np.array([getattr(p, what) for p in pieces for _ in p.right])
            for what in ("name", "template", "k", "entities")
        )
        weights = np.zeros(len(ks))
        for name, k in product(set(names.tolist()), set(ks.tolist())):
            own = (names == name) & (ks == k)
            weights[own] = SAMPLE_COUNTS.get(k, 1.0) * _N_VALUES / max(own.sum(), _N_VALUES / 4)
        columns = np.array([row for p in pieces for row in p.columns])
        right = np.array([one for p in pieces for one in p.right], bool)
        return cls(columns, right, weights, names, templates, ks, entities)


def learn(terms: Floats, right: NDArray[np.bool_], weights: Floats) -> Logistic:
    """Logistic regression on terms (n_values, n_terms), held by their spread."""
    size = np.maximum(terms.std(axis=0), 1e-6)
    fitted = fit_logistic(terms / size, right, weights, strength=_STRENGTH, n_steps=400)
    return Logistic(fitted.weights / size, fitted.bias)


def learn_without(table: Table, terms: Floats, groups: NDArray[np.str_]) -> Floats:
    """Logits of each value by weights learnt from the other groups."""
    logits = np.zeros(len(terms))
    for group in sorted(set(groups.tolist())):
        own = groups == group
        others = learn(terms[~own], table.right[~own], table.weights[~own])
        logits[own] = others.logits(terms[own])
    return logits


def log_loss(table: Table, logits: Floats) -> float:
    """Mean over the sets of the negative log likelihood of a value."""
    losses = np.logaddexp(0.0, np.where(table.right, -logits, logits))
    own = [table.names == name for name in sorted(set(table.names.tolist()))]
    return float(np.mean([np.average(losses[o], weights=table.weights[o]) for o in own]))


def print_fit(table: Table, logits: Floats, what: str) -> Iterator[tuple[str, float]]:
    """Calibration error and precision of sure values, by set and number of samples."""
    p = sigmoid(moderated(logits))
    cells = sorted(set(zip(table.names, table.entities, table.ks, strict=True)))
    for name, entities, k in cells:
        own = (table.names == name) & (table.ks == k) & (table.entities == entities)
        pairs = list(zip(p[own].tolist(), table.right[own].tolist(), strict=True))
        gap, sure = calibration_error(pairs), precision_above(pairs, 0.9)
        short = SHORT.get(str(name), str(name)) + ("_entities" if entities else "")
        right, said = table.right[own].mean(), p[own].mean()
        share, of_sure = (p[own] >= 0.9).mean(), float("nan") if sure is None else sure
        print(f"{what:<12} {short:<14} K={k:<3} ECE {gap:.3f}  right {right:.2f}, said {said:.2f}  "
              f"p >= .9: {share:.2f} of values, right {of_sure:.3f}")  # fmt: skip
        yield f"{short}_k{k}_{what}_ece", gap
    yield f"{what}_log_loss", log_loss(table, logits)


def print_terms(table: Table, terms: Floats, learnt: Logistic) -> None:
    """The weights as they are to be written, and the log loss on sets left out without each."""
    loss = log_loss(table, learn_without(table, terms, table.names))
    print(f"log loss with all terms {loss:.4f}, without each beside it:")
    for number, (first, second, _) in enumerate(TERMS):
        others = np.delete(terms, number, axis=1)
        loss = log_loss(table, learn_without(table, others, table.names))
        print(f'    ("{first}", "{second}", {learnt.weights[number]:.4f}),  # {loss:.4f}')
    print(f"BIAS = {learnt.bias:.4f}")


def main() -> None:
    """Read the options, collect or merge, learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=(*SETS, INSTITUTIONS), default=LEARNT_SETS)
    parser.add_argument("--samples", nargs="+", type=int, default=tuple(SAMPLE_COUNTS))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--part", choices=DEV_PARTS, default="dev")
    parser.add_argument(
        "--pretrained", default="none", help="none, shipped, or a file of pretrained fields"
    )
    add_piece_options(parser)
    options = parser.parse_args()
    pieces = measure_or_merge(
        options,
        lambda: measure(options),
        lambda line: Judged(**json.loads(line)),
        lambda piece: json.dumps(asdict(piece)),
    )
    table = Table.of(pieces)
    terms = terms_of(table.columns)
    learnt = learn(terms, table.right, table.weights)
    figures = dict(print_fit(table, learnt.logits(terms), "seen"))
    # One set alone is measured to be merged with others: nothing is left out of it.
    if len(set(table.names.tolist())) > 1:
        for groups, what in ((table.templates, "template-out"), (table.names, "set-out")):
            figures |= dict(print_fit(table, learn_without(table, terms, groups), what))
        print_terms(table, terms, learnt)
    finish("learn_confidence", options, {key: round(value, 4) for key, value in figures.items()})


if __name__ == "__main__":
    main()
