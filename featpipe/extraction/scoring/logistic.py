"""Logistic regression with a prior: sparse, weighted, and pulled to the prior where data is scarce.

With no samples the prior is the model; every sample moves it as far as its evidence goes, so that
few samples cannot run away and many are free to disagree.

The same rows give the same bits on any number of threads: no sum is left to BLAS, whose order of
adding depends on them, and whose threads cost more here than they bring.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    Floats = NDArray[np.float64]
    Loss = Callable[[Floats], tuple[float, Floats]]

#: Steps that the optimiser remembers.
_MEMORY = 8
_TOLERANCE = 1e-6
_FLAT = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """``p = sigmoid(x @ weights + bias)``. Shape: ``weights`` (n_features,)."""

    weights: Floats
    bias: float

    def logits(self, rows: csr_matrix | Floats) -> Floats:
        """Rows (n, n_features) -> (n,)."""
        return np.asarray(rows @ self.weights).ravel() + self.bias


def fit_logistic(  # noqa: PLR0913  # the parts of one formula
    rows: csr_matrix | Floats,
    labels: NDArray[np.bool_],
    weights: Floats,
    *,
    strength: float | Floats,
    prior: Floats | None = None,
    prior_bias: float = 0.0,
    n_steps: int = 60,
    is_biased: bool = True,
) -> Logistic:
    """Maximum a posteriori under a Gaussian prior.

    Args:
        rows: (n, n_features).
        labels: (n,) bool.
        weights: (n,) how much each row counts.
        strength: precision of the prior, one number or (n_features,).
        prior: (n_features,) its mean; zero when None.
        prior_bias: mean of the bias, held loosely.
        n_steps: most steps of the optimiser.
        is_biased: whether the bias is fitted too; it stays ``prior_bias`` otherwise.

    """
    from scipy.sparse import csr_matrix

    rows = csr_matrix(rows)
    n_features = rows.shape[1]
    mean = np.zeros(n_features) if prior is None else prior
    sign = np.where(labels, 1.0, -1.0)
    turned = rows.T.tocsr()

    def loss(point: Floats) -> tuple[float, Floats]:
        w, b = point[:-1], point[-1]
        margin = sign * (np.asarray(rows @ w).ravel() + b)
        total = float(np.sum(weights * np.logaddexp(0.0, -margin)))
        pull = -weights * sign * _sigmoid(-margin)
        off = w - mean
        total += 0.5 * float(np.sum(strength * off * off)) + 0.005 * (b - prior_bias) ** 2
        slope = np.asarray(turned @ pull).ravel() + strength * off
        turn = pull.sum() + 0.01 * (b - prior_bias) if is_biased else 0.0
        return total, np.append(slope, turn)

    point = minimise(loss, np.append(mean, prior_bias), n_steps)
    return Logistic(point[:-1], float(point[-1]))


def minimise(loss: Loss, start: Floats, n_steps: int) -> Floats:
    """Lowest point of a smooth convex function, by L-BFGS (Nocedal & Wright 2006, algorithm 7.5).

    Args:
        loss: point (n,) -> value and slope (n,).
        start: (n,).
        n_steps: at most.

    """
    point, (value, slope) = start, loss(start)
    steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    for _ in range(n_steps):
        if np.abs(slope).max(initial=0.0) < _FLAT:
            break
        way = _direction(slope, steps)
        found = _descend(loss, point, value, slope, way)
        if found is None:
            break
        new_point, new_value, new_slope = found
        step, turn = new_point - point, new_slope - slope
        curvature = _dot(step, turn)
        if curvature > 1e-12:
            steps.append((step, turn, curvature))
        gain = value - new_value
        point, value, slope = new_point, new_value, new_slope
        if gain <= _TOLERANCE * max(abs(value), 1.0):
            break
    return point


def _direction(slope: Floats, steps: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Down, bent by what the last steps told of the curvature (two loops)."""
    if not steps:
        return np.asarray(-slope / max(float(np.abs(slope).sum()), 1.0))
    way = -slope
    pulls = []
    for step, turn, curvature in reversed(steps):
        pull = _dot(step, way) / curvature
        way = way - pull * turn
        pulls.append(pull)
    _, turn, curvature = steps[-1]
    way *= curvature / _dot(turn, turn)
    for (step, turn, curvature), pull in zip(steps, reversed(pulls), strict=True):
        way = way + (pull - _dot(turn, way) / curvature) * step
    return way


def _descend(
    loss: Loss, point: Floats, value: float, slope: Floats, way: Floats
) -> tuple[Floats, float, Floats] | None:
    """The first of ever shorter steps that goes down enough; None when there is none."""
    fall = _dot(slope, way)
    length = 1.0
    for _ in range(20):
        new_point = point + length * way
        new_value, new_slope = loss(new_point)
        if new_value <= value + 1e-4 * length * fall:
            return new_point, new_value, new_slope
        # Where a parabola through what is known is lowest, but no less than a tenth.
        lowest = -fall * length / (2 * (new_value - value - fall * length))
        length *= min(max(lowest, 0.1), 0.5)
    return None


def _dot(first: Floats, second: Floats) -> float:
    return float(np.einsum("i,i->", first, second))


def sigmoid(logits: Floats) -> Floats:
    """Probabilities; no overflow at either end."""
    return _sigmoid(logits)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
