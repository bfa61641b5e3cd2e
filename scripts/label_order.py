"""Learning curves: F1 after n labelled documents, in some order.

A draw is a seed. Its candidates are 60 documents of a set's pool, the first of which has a label in
every arm; at 5, 10 and 20 labels the fields are fitted, and judged on other documents.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, Task, read_set

from featpipe.extraction.review_queue import doubt_of
from featpipe.extraction.scoring.field_model import (
    FieldModel,
    fit_field,
    sample_of,
    score_fields,
)
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.suggest import (
    choose_documents,
    compare,
    layout_of,
    weights_of,
)
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SETS = ("fddc_hetong", "fewfc_base", "sroie")
COUNTS = (5, 10, 20)
#: The order of the queue; the same without the doubt of values; chance.
ARMS = ("queue", "layout", "random")
#: Of the five templates of FewFC; all would take the time of all other sets together.
_CHOSEN = {"fewfc_base": ("减持",)}
_N_CANDIDATES = 60


@dataclass(frozen=True)
class Curve:
    """F1 at each of COUNTS labels, of one arm of one draw."""

    name: str
    arm: str
    seed: int
    f1: tuple[float, ...]


def tasks_of(data: Path, name: str, n_test: int) -> list[Task]:
    """The templates of a set that are measured."""
    chosen = _CHOSEN.get(name)
    return [t for t in read_set(data, name, n_test) if chosen is None or t.name in chosen]


def measure(
    data: Path, name: str, seeds: Sequence[int], n_test: int, arms: Sequence[str] = ARMS
) -> Iterator[Curve]:
    """Some arms of every draw of a set."""
    for task in tasks_of(data, name, n_test):
        pages = Pages(None, None)
        for seed in seeds:
            chance = random.Random(seed)  # noqa: S311  # a draw, no secret
            pool = chance.sample(task.pool, min(_N_CANDIDATES, len(task.pool)))
            drawn = Draw(replace(task, pool=pool), pages)
            for arm in arms:
                yield Curve(name, arm, seed, tuple(drawn.curve(arm)))


class Draw:
    """One draw: its pool is in random order."""

    def __init__(self, task: Task, pages: Pages) -> None:
        pages.prepare([*task.pool, *task.test])
        self.pool, self.test, self.pages = task.pool, task.test, pages
        self.names = sorted({name for row in task.test for name in row["fields"]})
        self.layouts = [layout_of(row["text"]) for row in self.pool]

    def curve(self, arm: str) -> Iterator[float]:
        """F1 after each number of labels."""
        order = [0]
        for n in COUNTS:
            if arm == "random":
                order = list(range(n))
            else:
                order = self.extend(order, n, is_doubt=arm == "queue")
            yield self.f1([self.pool[number] for number in order])

    def extend(self, order: list[int], n: int, *, is_doubt: bool) -> list[int]:
        """The labelled documents and the next ones of the queue, n together."""
        ahead = [number for number in range(len(self.pool)) if number not in order]
        weights = np.ones(len(ahead))
        if is_doubt:
            models = self.fit([self.pool[number] for number in order])
            weights = weights_of(self.doubts(models, [self.pool[number] for number in ahead]))
        likeness, covered = compare(
            [self.layouts[number] for number in ahead], [self.layouts[number] for number in order]
        )
        chosen = choose_documents(likeness, covered, weights, n - len(order))
        return [*order, *(ahead[number] for number in chosen)]

    def doubts(self, models: dict[str, FieldModel], rows: Sequence[dict]) -> list[float]:
        """Of each document, the mean over the fields."""
        found = []
        for row in rows:
            scored = score_fields(list(models.values()), self.pages[row["doc_id"]])
            found.append(
                [one.probabilities[model.choose(one)].tolist()
                 for model, one in zip(models.values(), scored, strict=True)]
            )  # fmt: skip
        filled = [np.mean([bool(row[at]) for row in found]) for at in range(len(models))]
        return [
            sum(doubt_of(p, share) for p, share in zip(row, filled, strict=True)) / len(self.names)
            for row in found
        ]

    def fit(self, rows: Sequence[dict]) -> dict[str, FieldModel]:
        """The fields that have a value in some sample."""
        models = {}
        for name in self.names:
            values = [(self.pages[r["doc_id"]], v) for r in rows for v in r["fields"].get(name, [])]
            if values:
                kind = infer_type(values)
                samples = [
                    sample_of(self.pages[r["doc_id"]], r["fields"].get(name, []), kind)
                    for r in rows
                ]
                models[name] = fit_field(samples, kind, (name,))
        return models

    def f1(self, rows: Sequence[dict]) -> float:
        """Over all fields and test documents, after learning from some documents."""
        models, n_right, n_values = self.fit(rows), 0, 0
        for row in self.test:
            scored = score_fields(list(models.values()), self.pages[row["doc_id"]])
            found = {
                name: [one.groups[number].value for number in model.choose(one)]
                for (name, model), one in zip(models.items(), scored, strict=True)
            }
            for name in self.names:
                given, own = row["fields"].get(name, []), found.get(name, [])
                n_values += len(given) + len(own)
                if name in models:
                    gold = [read_value(value, models[name].kind) for value in given]
                    n_right += sum(any(value.means(one) for one in own) for value in gold)
        return 2 * n_right / max(n_values, 1)


def arms_of(curves: Sequence[Curve]) -> list[str]:
    """Those that were measured."""
    return [arm for arm in ARMS if any(curve.arm == arm for curve in curves)]


def medians(curves: Sequence[Curve], arm: str, name: str | None = None) -> list[float]:
    """Median F1 at each count; the mean over the sets of their medians without a name."""
    if name is None:
        names = sorted({curve.name for curve in curves})
        return np.mean([medians(curves, arm, one) for one in names], axis=0).tolist()
    own = [curve.f1 for curve in curves if curve.arm == arm and curve.name == name]
    return [median(column) for column in zip(*own, strict=True)]
