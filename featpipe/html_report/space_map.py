"""A map of a space: its vectors seen along the two directions in which they differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Points (n, 2) in [-1, 1], and the share of the variance that each axis shows."""

    points: NDArray[np.float32]
    shares: tuple[float, float]


def project(vectors: NDArray[np.generic]) -> Plane:
    """Principal components (Pearson 1901) of vectors (n, dim), by an exact decomposition.

    The same vectors give the same picture: each axis points where its largest part is positive.
    Fewer than two distinct vectors lie in the middle.
    """
    matrix = np.asarray(vectors, np.float64)
    if matrix.ndim != 2 or len(matrix) < 2:
        return Plane(np.zeros((len(matrix), 2), np.float32), (0.0, 0.0))
    centred = matrix - matrix.mean(axis=0)
    # dim x dim however many vectors there are; eigh sorts upwards.
    values, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1.0, 1.0)
    points = np.zeros((len(matrix), 2))
    points[:, : axes.shape[1]] = centred @ axes
    total = max(float(values.sum()), 1e-12)
    largest = np.abs(points).max()
    tops = [float(value) / total for value in values[::-1][:2]]
    shares = [*tops, 0.0, 0.0][:2]
    scaled = points / largest if largest > 1e-9 else np.zeros_like(points)
    return Plane(scaled.astype(np.float32), (max(shares[0], 0.0), max(shares[1], 0.0)))


def unit_rows(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    """Each vector (n, dim) at length 1, so that the map shows direction; zero stays zero."""
    matrix = np.asarray(vectors, np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    whole = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    return np.asarray(whole, np.float32)
