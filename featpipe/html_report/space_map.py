"""Maps of a space: vectors along the two directions in which they differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache.nearest import unit_rows
from featpipe.html_report.contents import ValueRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument
    from featpipe.html_report.contents import Entry

_MOST_SENTENCES = 3000


def draw_maps(
    dictionary: Dictionary, documents: Sequence[CachedDocument], entries: Sequence[Entry]
) -> list[dict[str, object]]:
    """Map the documents, each the mean of its sentences, and the sentences with values.

    Args:
        dictionary: a space.
        documents: parallel to the first ``entries``.
        entries: of the documents; sentences are found by the start of each value.

    """
    means: list[NDArray[np.float32]] = []
    sentences: list[NDArray[np.float32]] = []
    of_document: list[list[object]] = []
    of_sentence: list[list[object]] = []
    for number, (document, entry) in enumerate(zip(documents, entries, strict=False)):
        stored, found = dictionary.lookup_keys(document.keys("sentence"))
        if not found.any():
            continue
        rows = unit_rows(stored)
        means.append(rows[found].mean(axis=0))
        of_document.append([number])
        starts = document.spans("sentence")[:, 0]
        for row in entry["values"]:
            if not isinstance(row, ValueRow) or len(sentences) >= _MOST_SENTENCES:
                continue
            at = int(np.searchsorted(starts, row.start, side="right")) - 1
            if at >= 0 and found[at]:
                sentences.append(rows[at])
                of_sentence.append([number, row.template, row.field, row.text[:60], row.start])
    both = (("documents", means, of_document), ("sentences", sentences, of_sentence))
    return [_map(kind, vectors, points) for kind, vectors, points in both if len(vectors) > 1]


def _map(
    kind: str, vectors: list[NDArray[np.float32]], points: list[list[object]]
) -> dict[str, object]:
    plane = project(np.stack(vectors))
    places = [[round(float(x), 4), round(float(y), 4)] for x, y in plane.points]
    return {
        "kind": kind,
        "shares": [round(share, 4) for share in plane.shares],
        "points": [place + point for place, point in zip(places, points, strict=True)],
    }


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Points (n, 2) in [-1, 1], and the share of the variance along each axis."""

    points: NDArray[np.float32]
    shares: tuple[float, float]


def project(vectors: NDArray[np.generic]) -> Plane:
    """Principal components (Pearson 1901) of vectors (n, dim), by an exact decomposition.

    The same vectors give the same points: each axis points where its largest part is positive.
    Fewer than two distinct vectors become points at (0, 0).
    """
    matrix = np.asarray(vectors, np.float64)
    if matrix.ndim != 2 or len(matrix) < 2:
        return Plane(np.zeros((len(matrix), 2), np.float32), (0.0, 0.0))
    centred = matrix - matrix.mean(axis=0)
    # dim x dim however many vectors there are; eigh sorts in ascending order.
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
