"""Ranking: the probability of each value of a document, from all of its mentions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.logistic import Logistic, fit_logistic, minimise, sigmoid
from featpipe.extraction.values.text import fold
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.values.values import FieldType, Value

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: Mentions of a document that are looked at: the best by their own score.
_MOST_MENTIONS = 60

VALUE_COLUMNS = (
    "mention", "second mention", "n mentions", "behind best", "is best", "log rank", "position",
    "in title", "inside better", "around better", "known value", "share", "log length",
    "log occurrences", "stands free", "extends",
)  # fmt: skip
_PRIOR = np.zeros(len(VALUE_COLUMNS))
_PRIOR[[VALUE_COLUMNS.index(n) for n in ("mention", "behind best", "is best", "inside better",
                                         "stands free", "extends")]] = (
    0.7, 0.3, 0.8, -0.5, 0.3, -0.5
)  # fmt: skip
_PRIOR_BIAS = -0.5
_FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One value of one document with its mentions; ``spans`` are character spans."""

    value: Value
    spans: tuple[tuple[int, int], ...]
    """Best mention first."""
    logits: tuple[float, ...]
    candidate: int
    """Number of the best mention among the candidates."""


def group_values(
    features: PageFeatures, found: Candidates, logits: Floats, kind: FieldType
) -> list[Group]:
    """The best mentions of a document by value, best value first."""
    tokens = features.tokens
    order = np.argsort(-logits, kind="stable")[:_MOST_MENTIONS]
    starts = tokens.start[found.first[order]].tolist()
    ends = tokens.end[found.last[order] - 1].tolist()
    groups: dict[str, list[int]] = {}
    values: dict[str, Value] = {}
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        value = read_value(features.page.text[start:end], kind)
        groups.setdefault(value.key, []).append(place)
        values.setdefault(value.key, value)
    best, numbers = logits[order].tolist(), order.tolist()
    return [
        Group(
            values[key],
            tuple((starts[place], ends[place]) for place in members),
            tuple(best[place] for place in members),
            numbers[members[0]],
        )
        for key, members in groups.items()
    ]


def value_rows(features: PageFeatures, groups: Sequence[Group], known: frozenset[str]) -> Floats:
    """Columns (n_groups, len(VALUE_COLUMNS)); ``known`` are folded values of samples."""
    if not groups:
        return np.empty((0, len(VALUE_COLUMNS)))
    text = features.page.text
    top = np.array([group.logits[0] for group in groups])
    share = np.exp(top - top.max())
    share /= share.sum()
    rest = [group.logits[1] if len(group.logits) > 1 else -12.0 for group in groups]
    best = np.array([group.spans[0] for group in groups])
    n_mentions = np.array([len(group.spans) for group in groups])
    ranks = np.arange(len(groups))
    repeats = [features.repeats(fold(text[start:end])) for start, end in best.tolist()]
    columns = [
        np.clip(top, -12, 12) / 2,
        np.clip(rest, -12, 12) / 12,
        np.log1p(n_mentions) / 2,
        np.clip(top - top[0], -8, 8) / 4,
        ranks == 0,
        np.log1p(ranks) / 3,
        best[:, 0] / max(len(text), 1),
        *_by_other_mentions(text, groups, best, n_mentions),
        [group.value.key in known for group in groups],
        share,
        np.log(np.maximum(best[:, 1] - best[:, 0], 1)) / 4,
        *zip(*repeats, strict=True),
    ]
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def _by_other_mentions(
    text: str, groups: Sequence[Group], best: Ints, n_mentions: Ints
) -> tuple[Bools, Bools, Bools]:
    """Whether each value is in the title; lies inside, or around, a mention of a better value."""
    spans = np.array([span for group in groups for span in group.spans])
    ends = np.cumsum(n_mentions)
    in_title = np.add.reduceat(spans[:, 0] < max(text.find("\n"), 0), ends - n_mentions) > 0
    is_better = np.arange(len(spans)) < (ends - n_mentions)[:, None]
    start, end = best[:, :1], best[:, 1:]
    inside = np.any((spans[:, 0] <= start) & (spans[:, 1] >= end) & is_better, axis=1)
    around = np.any((spans[:, 0] >= start) & (spans[:, 1] <= end) & is_better, axis=1)
    return in_title, np.asarray(inside), np.asarray(around)


@dataclass(frozen=True, slots=True, eq=False)
class ValueModel:
    """Second stage: calibrated probability of each value, and thresholds of reporting it."""

    model: Logistic
    first_threshold: float
    other_threshold: float
    ceiling: float = 1.0
    """Highest probability: samples contradict each other."""

    def probabilities(self, rows: Floats) -> Floats:
        """Rows (n_groups, len(VALUE_COLUMNS)) -> (n_groups,)."""
        return self.ceiling * sigmoid(self.model.logits(rows)) if len(rows) else np.empty(0)


def fit_values(
    rows: Sequence[Floats],
    labels: Sequence[Bools],
    n_wanted: Sequence[int],
    *,
    strength: float = 1.5,
) -> ValueModel:
    """Fit on mention scores of models that did not know the document.

    Probabilities are calibrated, and thresholds chosen, by cross-validation over the documents.
    Where the fitted weights do worse in it than the prior, the prior is kept.

    Args:
        rows: per document (n_groups, len(VALUE_COLUMNS)).
        labels: per document (n_groups,) whether the value is right.
        n_wanted: per document how many values it has, found or not.
        strength: of the prior.

    """
    model = _fit_rows(rows, labels, strength)
    logits = _cross_validated(rows, labels, strength)
    prior = Logistic(_PRIOR, _PRIOR_BIAS)
    by_prior = [prior.logits(part) for part in rows]
    if _loss(by_prior, labels) < _loss(logits, labels):
        model, logits = prior, by_prior
    curve = fit_curve(logits, labels)
    gain = _GAIN if len(rows) > 1 else 0.0
    model = Logistic(model.weights * curve.scale, model.bias * curve.scale + curve.shift + gain)
    ranked = [
        sorted(zip(curve(part).tolist(), truth.tolist(), strict=True))[::-1]
        for part, truth in zip(logits, labels, strict=True)
    ]
    # A single sample cannot be cross-validated: its probabilities are low.
    default = 0.2 if len(rows) > 1 else 0.06
    first = _best_threshold([part[:1] for part in ranked], sum(n > 0 for n in n_wanted), default)
    other = _best_threshold(
        [part[1:4] for part in ranked], sum(max(n - 1, 0) for n in n_wanted), 0.35
    )
    first, other = (_gained(p, curve.ceiling, gain) for p in (first, max(other, first)))
    return ValueModel(model, first, other, curve.ceiling)


def _gained(p: float, ceiling: float, gain: float) -> float:
    """A threshold that the same values pass when their log odds have grown."""
    share = min(p / ceiling, 1.0 - 1e-6)
    return ceiling * float(sigmoid(np.log(share / (1.0 - share)) + gain))


def _cross_validated(
    rows: Sequence[Floats], labels: Sequence[Bools], strength: float
) -> list[Floats]:
    """Logits (n_groups,) of each document, by a model fitted without it."""
    held_out = [
        _fit_rows(
            [part for n, part in enumerate(rows) if n % _FOLDS != fold],
            [part for n, part in enumerate(labels) if n % _FOLDS != fold],
            strength,
        )
        for fold in range(min(_FOLDS, len(rows)))
    ]
    return [held_out[n % _FOLDS].logits(part) for n, part in enumerate(rows)]


def _fit_rows(rows: Sequence[Floats], labels: Sequence[Bools], strength: float) -> Logistic:
    every = np.concatenate([np.empty((0, len(VALUE_COLUMNS))), *rows])
    truth = np.concatenate([np.empty(0, bool), *labels])
    return fit_logistic(
        every, truth, np.ones(len(truth)), strength=strength, prior=_PRIOR, prior_bias=_PRIOR_BIAS
    )


def _loss(logits: Sequence[Floats], labels: Sequence[Bools]) -> float:
    """Negative log likelihood."""
    return sum(
        float(np.logaddexp(0.0, np.where(truth, -part, part)).sum())
        for part, truth in zip(logits, labels, strict=True)
    )


#: A step away from the default must gain as much F1 as that divided by the number of values.
_THRESHOLD_STRENGTH = 30.0
_STEPS = (0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55)


def _best_threshold(
    ranked: Sequence[Sequence[tuple[float, bool]]], n_wanted: int, default: float
) -> float:
    """The step with the best F1 after the penalty for its distance from the default."""
    best, best_score = default, -1.0
    for step in _STEPS:
        taken = [is_true for part in ranked for p, is_true in part if p >= step]
        score = 2 * sum(taken) / max(len(taken) + n_wanted, 1)
        score -= abs(step - default) * _THRESHOLD_STRENGTH / max(n_wanted, 1)
        if score > best_score:
            best, best_score = step, score
    return best


# ---- calibration: from a score to the share of right values, on documents that were left out

#: Values of a document that the curve is fitted on; the others are plainly wrong.
_MOST_CALIBRATED = 3
#: Shift for a field with one sample, which was fitted on that very document.
_UNTESTED_SHIFT = -1.5
#: Log odds that a value gains by the samples that cross-validation left out: about the mean over
#: the parts for development of announcements, sentences and receipts (scripts/extraction_sets.py).
_GAIN = 0.2
_CEILINGS = (0.99, 0.96, 0.92, 0.87, 0.81, 0.74)
#: Precision of the prior of scale and shift.
_CURVE_STRENGTH = np.array([8.0, 2.0])
#: Prior counts of right and wrong values among those that look certain.
_SURE_RIGHT, _SURE_WRONG = 9.0, 1.0


@dataclass(frozen=True, slots=True)
class Curve:
    """``p = ceiling * sigmoid(scale * score + shift)``."""

    scale: float = 1.0
    shift: float = 0.0
    ceiling: float = 1.0

    def __call__(self, scores: Floats) -> Floats:
        """Probabilities, the shape kept."""
        return self.ceiling * sigmoid(scores * self.scale + self.shift)


def fit_curve(scores: Sequence[Floats], labels: Sequence[Bools]) -> Curve:
    """The calibration curve of one field (Platt 1999); a ceiling, as samples contradict each other.

    A prior holds scale, shift and ceiling to their usual values, more firmly for fewer documents.

    Args:
        scores: per document left out (n_values,), of a model that did not know the document.
        labels: per document (n_values,) whether the value is right.

    """
    ceiling_of_all = _SURE_RIGHT / (_SURE_RIGHT + _SURE_WRONG)
    if len(scores) < 2:
        return Curve(shift=_UNTESTED_SHIFT, ceiling=ceiling_of_all)
    best = [np.argsort(-part, kind="stable")[:_MOST_CALIBRATED] for part in scores]
    given = np.concatenate([part[at] for part, at in zip(scores, best, strict=True)])
    truth = np.concatenate([part[at] for part, at in zip(labels, best, strict=True)])
    fits = [_fit_under(ceiling, given, truth) for ceiling in _CEILINGS]
    return min(fits, key=lambda fit: fit[0])[1]


def _fit_under(ceiling: float, scores: Floats, truth: Bools) -> tuple[float, Curve]:
    """The best curve with a ceiling, and its loss (negative log posterior)."""
    # The prior gives a score of 0 a probability of a half, whatever the ceiling.
    usual = np.array([1.0, np.log(0.5 / (ceiling - 0.5))])

    def loss(point: Floats) -> tuple[float, Floats]:
        rise = sigmoid(point[0] * scores + point[1])
        p = np.clip(ceiling * rise, 1e-9, 1 - 1e-9)
        total = -float(np.log(np.where(truth, p, 1 - p)).sum())
        slope = np.where(truth, -1 / p, 1 / (1 - p)) * ceiling * rise * (1 - rise)
        off = point - usual
        total += 0.5 * float((_CURVE_STRENGTH * off * off).sum())
        return total, np.array([(slope * scores).sum(), slope.sum()]) + _CURVE_STRENGTH * off

    scale, shift = minimise(loss, usual, 40).tolist()
    total, _ = loss(np.array([scale, shift]))
    total -= _SURE_RIGHT * np.log(ceiling) + _SURE_WRONG * np.log(1 - ceiling)
    return total, Curve(max(scale, 0.1), shift, ceiling)
