"""Learning curves: F1 after n labelled documents, in some order.

A draw is a seed. Its candidates are 60 documents of a set, the first of which has a label in every
arm; at 5, 10 and 20 labels the fields are fitted, and judged on test documents, the same in every
draw.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np
from eval_extraction import Pages, Task, read_set

from featpipe.extraction.review_queue import doubt_of
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.field_model import FieldModel, score_fields
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.suggest import choose_documents, compare, layout_of
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]

SETS = ("fddc_hetong", "fewfc_base", "sroie")
COUNTS = (5, 10, 20)


@dataclass(frozen=True)
class Rule:
    """How the next document is chosen: its weight, its points, and how far they are to spread.

    Attributes:
        weight: of a document: ``one``, or the ``doubt`` of its values.
        points: what documents are compared by: ``layout``, or the built-in encoder's ``vectors``.
        spread: ``cover``: the weighted nearness of all documents to the labelled ones grows most
            (facility location); ``far``: weight times distance to the nearest labelled document is
            largest (farthest first, of which k-center is the case of equal weights); ``none``: the
            weight is largest.

    """

    weight: Literal["one", "doubt"] = "one"
    points: Literal["layout", "vectors"] = "layout"
    spread: Literal["cover", "far", "none"] = "cover"


#: Every rule that was compared; ``queue`` is the one of `featpipe template suggest`.
RULES: dict[str, Rule | None] = {
    "queue": Rule("doubt"),
    "layout": Rule(),
    "far": Rule(spread="far"),
    "vectors": Rule(points="vectors", spread="far"),
    "doubt": Rule("doubt", spread="none"),
    "random": None,
}
ARMS = tuple(RULES)
#: Of the five templates of FewFC; all would take the time of all other sets together.
_CHOSEN = {"fewfc_base": ("减持",)}
#: Of the six fields of announcements, for the same reason: a party, a name, and an amount.
_FIELDS = {"fddc_hetong": ("乙方", "合同名称", "合同金额上限")}
_N_CANDIDATES = 60
_LEAST_WEIGHT = 0.05
_ALL = 1_000_000


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
    for task in tasks_of(data, name, _ALL):
        pool, test = [*task.pool, *task.test[n_test:]], task.test[:n_test]
        for seed in seeds:
            chance = random.Random(seed)  # noqa: S311  # a draw, no secret
            drawn = Draw(chance.sample(pool, _N_CANDIDATES), test, _FIELDS.get(name))
            for arm in arms:
                yield Curve(name, arm, seed, tuple(drawn.curve(arm)))


class Draw:
    """One draw: documents in random order, and those to test on."""

    def __init__(
        self, pool: list[dict], test: list[dict], fields: Sequence[str] | None = None
    ) -> None:
        self.pool, self.test, self.pages = pool, test, Pages(None, None)
        self.pages.prepare([*pool, *test])
        self.names = sorted(fields or {name for row in test for name in row["fields"]})
        self._fitted: dict[tuple[int, ...], dict[str, FieldModel]] = {}

    @cached_property
    def likeness(self) -> dict[str, Floats]:
        """(n, n) of the pool to itself, by what documents are compared by."""
        texts = [row["text"] for row in self.pool]
        layouts, _ = compare([layout_of(text) for text in texts], [])
        return {"layout": layouts, "vectors": _by_vectors(texts)}

    def curve(self, arm: str) -> Iterator[float]:
        """F1 after each number of labels."""
        order, rule = [0], RULES[arm]
        for n in COUNTS:
            order = list(range(n)) if rule is None else self.extend(order, n, rule)
            yield self.f1(order)

    def extend(self, order: list[int], n: int, rule: Rule) -> list[int]:
        """The labelled documents and the next ones of a rule, n together."""
        ahead = [number for number in range(len(self.pool)) if number not in order]
        weights = self.weigh(rule.weight, order, ahead)
        alike = self.likeness[rule.points][ahead]
        covered = alike[:, order].max(axis=1)
        if rule.spread == "cover":
            chosen = choose_documents(alike[:, ahead], covered, weights, n - len(order))
        else:
            chosen = _choose_one_by_one(alike[:, ahead], covered, weights, n - len(order), rule)
        return [*order, *(ahead[number] for number in chosen)]

    def weigh(self, weight: str, order: list[int], ahead: list[int]) -> Doubles:
        """The weights of documents under a rule, by the fields fitted to those labelled."""
        if weight == "one":
            return np.ones(len(ahead))
        models = self.fit(order)
        found = []
        for number in ahead:
            scored = score_fields(list(models.values()), self.pages[self.pool[number]["doc_id"]])
            found.append(
                [one.probabilities[model.choose(one)].tolist()
                 for model, one in zip(models.values(), scored, strict=True)]
            )  # fmt: skip
        filled = [np.mean([bool(row[at]) for row in found]) for at in range(len(models))]
        sums = [sum(map(doubt_of, rows, filled)) for rows in found]
        return np.maximum(np.array(sums) / len(self.names), _LEAST_WEIGHT)

    def fit(self, order: Sequence[int]) -> dict[str, FieldModel]:
        """The fields that have a value in some of the pool's documents."""
        key = tuple(order)
        if key not in self._fitted:
            self._fitted[key] = self._fit([self.pool[number] for number in order])
        return self._fitted[key]

    def _fit(self, rows: Sequence[dict]) -> dict[str, FieldModel]:
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

    def f1(self, order: Sequence[int]) -> float:
        """Over all fields and test documents, after learning from some of the pool."""
        models, n_right, n_values = self.fit(order), 0, 0
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


def _by_vectors(texts: Sequence[str]) -> Floats:
    """Cosines of the built-in encoder's vectors of whole texts."""
    from featpipe.encoders.builtin import find_builtin_model
    from featpipe.encoders.encoder import Encoder

    vectors = Encoder.load(find_builtin_model()).encode(texts).vectors.astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.round(vectors @ vectors.T, 5)


def _choose_one_by_one(
    alike: Floats, covered: Floats, weights: Doubles, n: int, rule: Rule
) -> list[int]:
    """The rules ``far`` and ``none`` of :class:`Rule`."""
    nearest, chosen = covered.astype(np.float64), list[int]()
    for _ in range(min(n, len(alike))):
        gains = weights * (1.0 - nearest) if rule.spread == "far" else weights.copy()
        gains[chosen] = -1.0
        chosen.append(int(np.argmax(gains)))
        nearest = np.maximum(nearest, alike[:, chosen[-1]])
    return chosen


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
