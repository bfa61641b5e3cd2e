"""Calibration: from a score to how often it is right, fitted on documents that were left out.

A logistic curve with a ceiling. Scale and shift are Platt's (1999); the ceiling is there because
samples contradict one another: of the values that look certain some are still not what a person
would have given. All three are held to what is usual, the firmer the fewer documents there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.templates.logistic import minimise, sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

#: Values of a document that its probabilities are judged by: the others are plainly wrong.
_JUDGED = 3
#: Shift of a score that nothing was left out for: one sample knows its own document too well.
_UNTESTED = -1.5
_CEILINGS = (0.99, 0.96, 0.92, 0.87, 0.81, 0.74)
#: How firmly scale and shift are held to what is usual.
_HOLD = np.array([8.0, 2.0])
#: Sure values seen before any sample is: right ones and wrong ones.
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
    """The curve of one field.

    Args:
        scores: per document left out (n_values,), of a model that did not know the document.
        labels: per document (n_values,) whether the value is right.

    """
    ceiling_of_all = _SURE_RIGHT / (_SURE_RIGHT + _SURE_WRONG)
    if len(scores) < 2:
        return Curve(shift=_UNTESTED, ceiling=ceiling_of_all)
    best = [np.argsort(-part, kind="stable")[:_JUDGED] for part in scores]
    given = np.concatenate([part[at] for part, at in zip(scores, best, strict=True)])
    truth = np.concatenate([part[at] for part, at in zip(labels, best, strict=True)])
    fits = [_fit_under(ceiling, given, truth) for ceiling in _CEILINGS]
    return min(fits, key=lambda fit: fit[0])[1]


def _fit_under(ceiling: float, scores: Floats, truth: Bools) -> tuple[float, Curve]:
    """The best curve with a ceiling, and its loss (negative log posterior)."""
    # A score of 0 is a probability of a half, whatever the ceiling.
    usual = np.array([1.0, np.log(0.5 / (ceiling - 0.5))])

    def loss(point: Floats) -> tuple[float, Floats]:
        rise = sigmoid(point[0] * scores + point[1])
        p = np.clip(ceiling * rise, 1e-9, 1 - 1e-9)
        total = -float(np.log(np.where(truth, p, 1 - p)).sum())
        pull = np.where(truth, -1 / p, 1 / (1 - p)) * ceiling * rise * (1 - rise)
        off = point - usual
        total += 0.5 * float((_HOLD * off * off).sum())
        return total, np.array([(pull * scores).sum(), pull.sum()]) + _HOLD * off

    scale, shift = minimise(loss, usual, 40).tolist()
    total, _ = loss(np.array([scale, shift]))
    total -= _SURE_RIGHT * np.log(ceiling) + _SURE_WRONG * np.log(1 - ceiling)
    return total, Curve(max(scale, 0.1), shift, ceiling)
