"""Ranking: the probability of each value of a document, from all of its mentions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.calibration import Evidence, calibrate
from featpipe.extraction.scoring.logistic import Logistic, fit_logistic, sigmoid
from featpipe.extraction.scoring.parallel import LEAST_OWN, PARALLEL, parallel_places
from featpipe.extraction.values.text import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.rejected import RejectedValues
    from featpipe.extraction.values.values import FieldType, Value

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: Mentions of a document that are looked at: so many of the best by their own score, and as many
#: more as are likely by it, which a long table may have.
_MENTIONS, _MOST_MENTIONS = 30, 200
#: Log odds of a likely mention.
_LIKELY = -1.0
#: Mentions of each value that the places of the others are compared with.
_MOST_COMPARED = 4

VALUE_COLUMNS = (
    "mention", "second mention", "n mentions", "behind best", "is best", "log rank", "position",
    "in title", "inside better", "around better", "known value", "share", "log length",
    "log occurrences", "stands free", "extends", "rejected",
)  # fmt: skip
_PRIOR = np.zeros(len(VALUE_COLUMNS))
_PRIOR[[VALUE_COLUMNS.index(n) for n in ("mention", "behind best", "is best", "inside better",
                                         "stands free", "extends", "rejected")]] = (
    0.7, 0.3, 0.8, -0.5, 0.3, -0.5, -1.0
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
    n = max(_MENTIONS, min(int(np.count_nonzero(logits > _LIKELY)), _MOST_MENTIONS))
    order = np.argsort(-logits, kind="stable")[:n]
    starts = tokens.start[found.first[order]].tolist()
    ends = tokens.end[found.last[order] - 1].tolist()
    groups: dict[str, list[int]] = {}
    values: dict[str, Value] = {}
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        value = features.value_at(kind, start, end)
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


def value_rows(
    features: PageFeatures,
    groups: Sequence[Group],
    known: frozenset[str],
    rejected: RejectedValues,
) -> Floats:
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
        rejected.of_values([group.value.key for group in groups]),
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


def parallel_columns(
    features: PageFeatures, groups: Sequence[Group], probabilities: Floats
) -> Floats:
    """How far a document's values stand in like places: (n, n, len(PARALLEL)).

    Of the n that are likely enough for one of several; values come likeliest first.
    """
    # A name may put a value before others that are likelier by themselves.
    n = int(np.flatnonzero(probabilities >= LEAST_OWN).max(initial=-1)) + 1
    if n < 2:
        return np.zeros((n, n, len(PARALLEL)))
    mentions = [group.spans[:_MOST_COMPARED] for group in groups[:n]]
    return parallel_places(
        features.lists,
        features.tokens.spans([span for own in mentions for span in own]),
        [len(own) for own in mentions],
    )


@dataclass(frozen=True, slots=True, eq=False)
class ValueModel:
    """Second stage: calibrated probability of each value."""

    model: Logistic
    ceiling: float
    """Highest probability: samples contradict each other."""
    evidence: Evidence
    """Of the samples, for :mod:`featpipe.extraction.scoring.confidence`."""

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

    Probabilities are calibrated by cross-validation over the documents.
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
    calibration = calibrate(logits, labels, n_wanted)
    curve = calibration.curve
    model = Logistic(model.weights * curve.scale, model.bias * curve.scale + curve.shift)
    return ValueModel(model, curve.ceiling, calibration.evidence)


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
