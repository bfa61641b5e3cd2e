"""Logistic regression with a prior: sparse, weighted, and pulled to the prior where data is scarce.

With no samples the prior is the model; every sample moves it as far as its evidence goes, so that
few samples cannot run away and many are free to disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    Floats = NDArray[np.float64]


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
    from scipy.optimize import minimize

    n_features = rows.shape[1]
    mean = np.zeros(n_features) if prior is None else prior
    sign = np.where(labels, 1.0, -1.0)

    turned = rows.T.tocsr() if hasattr(rows, "tocsr") else rows.T

    def loss(point: Floats) -> tuple[float, Floats]:
        w, b = point[:-1], point[-1]
        margin = sign * (np.asarray(rows @ w).ravel() + b)
        total = float(weights @ np.logaddexp(0.0, -margin))
        pull = -weights * sign * _sigmoid(-margin)
        off = w - mean
        total += 0.5 * float(np.sum(strength * off * off)) + 0.005 * (b - prior_bias) ** 2
        slope = np.asarray(turned @ pull).ravel() + strength * off
        return total, np.append(slope, pull.sum() + 0.01 * (b - prior_bias))

    start = np.append(mean, prior_bias)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": n_steps, "ftol": 1e-6}
    )
    return Logistic(found.x[:-1], float(found.x[-1]))


def sigmoid(logits: Floats) -> Floats:
    """Probabilities; no overflow at either end."""
    return _sigmoid(logits)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
