"""Logistic regression with a Gaussian prior: sparse and weighted.

With no samples the prior is the model; every sample moves it in proportion to its weight.

The same rows give the same bits on any number of threads: no sum is left to BLAS, whose order of
adding depends on the number of threads, and whose threads cost more here than they save.
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
    #: The last steps, the changes of the gradient along them, and their products.
    History = deque[tuple[Floats, Floats, float]]

#: Length of the history.
_MEMORY = 8
_TOLERANCE = 1e-6
_FLAT = 1e-5
#: Least weight of all true rows of a sample document together.
_TRUE_WEIGHT = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """``p = sigmoid(x @ weights + bias)``. Shape: ``weights`` (n_features,)."""

    weights: Floats
    bias: float

    def logits(self, rows: csr_matrix | Floats) -> Floats:
        """Rows (n, n_features) -> (n,)."""
        return np.asarray(rows @ self.weights).ravel() + self.bias


def fit_logistic(  # noqa: PLR0913  # each argument is a term of one formula
    rows: csr_matrix | Floats,
    labels: NDArray[np.bool_],
    weights: Floats,
    *,
    strength: float | Floats,
    prior: Floats | None = None,
    prior_bias: float = 0.0,
    n_steps: int = 60,
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

    """
    from scipy.sparse import csr_matrix

    rows = csr_matrix(rows)
    n_features = rows.shape[1]
    mean = np.zeros(n_features) if prior is None else prior
    sign = np.where(labels, 1.0, -1.0)
    transposed = rows.T.tocsr()

    def loss(point: Floats) -> tuple[float, Floats]:
        w, b = point[:-1], point[-1]
        margin = sign * (np.asarray(rows @ w).ravel() + b)
        total = float(np.sum(weights * np.logaddexp(0.0, -margin)))
        residual = -weights * sign * sigmoid(-margin)
        off = w - mean
        total += 0.5 * float(np.sum(strength * off * off)) + 0.005 * (b - prior_bias) ** 2
        slope = np.asarray(transposed @ residual).ravel() + strength * off
        slope_of_bias = residual.sum() + 0.01 * (b - prior_bias)
        return total, np.append(slope, slope_of_bias)

    point = minimise(loss, np.append(mean, prior_bias), n_steps)
    return Logistic(point[:-1], float(point[-1]))


def minimise(loss: Loss, start: Floats, n_steps: int) -> Floats:
    """Lowest point of a smooth convex function, by L-BFGS (Nocedal & Wright 2006, algorithm 7.5).

    Args:
        loss: point (n,) -> value and gradient (n,).
        start: (n,).
        n_steps: at most.

    """
    point, (value, gradient) = start, loss(start)
    history: History = deque(maxlen=_MEMORY)
    for _ in range(n_steps):
        if np.abs(gradient).max(initial=0.0) < _FLAT:
            break
        found = _line_search(loss, point, value, gradient, _direction(gradient, history))
        if found is None:
            break
        new_point, new_value, new_gradient = found
        step, change = new_point - point, new_gradient - gradient
        curvature = _dot(step, change)
        if curvature > 1e-12:
            history.append((step, change, curvature))
        gain = value - new_value
        point, value, gradient = new_point, new_value, new_gradient
        if gain <= _TOLERANCE * max(abs(value), 1.0):
            break
    return point


def _direction(gradient: Floats, history: History) -> Floats:
    """Direction of descent, by the two-loop recursion (algorithm 7.4)."""
    if not history:
        return np.asarray(-gradient / max(float(np.abs(gradient).sum()), 1.0))
    direction = -gradient
    alphas = []
    for step, change, curvature in reversed(history):
        alpha = _dot(step, direction) / curvature
        direction = direction - alpha * change
        alphas.append(alpha)
    _, change, curvature = history[-1]
    direction *= curvature / _dot(change, change)
    for (step, change, curvature), alpha in zip(history, reversed(alphas), strict=True):
        direction = direction + (alpha - _dot(change, direction) / curvature) * step
    return direction


def _line_search(
    loss: Loss, point: Floats, value: float, gradient: Floats, direction: Floats
) -> tuple[Floats, float, Floats] | None:
    """Backtrack to the first step with enough decrease; None when there is none."""
    slope = _dot(gradient, direction)
    length = 1.0
    for _ in range(20):
        new_point = point + length * direction
        new_value, new_gradient = loss(new_point)
        if new_value <= value + 1e-4 * length * slope:
            return new_point, new_value, new_gradient
        # The lowest point of the parabola through the known values, between a tenth and a half.
        lowest = -slope * length / (2 * (new_value - value - slope * length))
        length *= min(max(lowest, 0.1), 0.5)
    return None


def _dot(first: Floats, second: Floats) -> float:
    return float(np.einsum("i,i->", first, second))


def true_weight(labels: NDArray[np.bool_]) -> float:
    """Weight of each true row of a document: at least one, and together at least three."""
    return max(_TRUE_WEIGHT / max(int(labels.sum()), 1), 1.0)


def log_odds(probabilities: Floats) -> Floats:
    """The logits of probabilities, those of certain ones as of one in a million."""
    p = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p / (1 - p)))


def sigmoid(logits: Floats) -> Floats:
    """Probabilities, without overflow at either end."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)))
