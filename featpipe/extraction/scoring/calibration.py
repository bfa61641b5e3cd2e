"""Calibration: from a value's score to the share of right values.

Learnt from documents that were left out of fitting; a prior stands in for the many that are not
there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.logistic import minimise, sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

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


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a field's samples show of it, each left out in turn."""

    accuracy: float = 0.0
    """Log odds that the best value of a sample is right, where the sample has one."""
    missing: float = 0.0
    """Log odds that a sample has no value."""
    several: float = 0.0
    """Log of the values of a sample that has any."""
    few: float = 1.0
    """One by the square root of the number of samples."""

    @classmethod
    def of(
        cls, scores: Sequence[Floats], labels: Sequence[Bools], n_wanted: Sequence[int]
    ) -> Evidence:
        """From scores, labels and numbers of values of each sample: see :func:`calibrate`."""
        has = sum(n > 0 for n in n_wanted)
        both = zip(scores, labels, strict=True)
        n_hits = min(sum(bool(truth[np.argmax(own)]) for own, truth in both if len(own)), has)
        return cls(
            float(np.log((n_hits + 1) / (has - n_hits + 1))),
            float(np.log((len(n_wanted) - has + 0.5) / (has + 0.5))),
            float(np.log(max(sum(n_wanted), 1) / max(has, 1))),
            max(len(n_wanted), 1) ** -0.5,
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curve of one field."""

    curve: Curve
    evidence: Evidence


def calibrate(
    scores: Sequence[Floats], labels: Sequence[Bools], n_wanted: Sequence[int]
) -> Calibration:
    """Learn from scores of models that did not know the document.

    Args:
        scores: per document (n_values,).
        labels: per document (n_values,) whether the value is right.
        n_wanted: per document how many values it has, found or not.

    """
    curve = fit_curve(scores, labels)
    gain = _GAIN if len(scores) > 1 else 0.0
    return Calibration(
        replace(curve, shift=curve.shift + gain), Evidence.of(scores, labels, n_wanted)
    )


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
