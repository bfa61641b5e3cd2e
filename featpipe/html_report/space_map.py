"""Maps of a space: vectors along the two directions in which they differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache.nearest import unit_rows
from featpipe.html_report.contents import ValueRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument
    from featpipe.html_report.contents import Entry

    Vector = NDArray[np.float32]
    Point = list[object]
    """What the page shows at a place of a map: numbers of document, template and field, a text."""

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
    means: list[tuple[Vector, Point]] = []
    sentences: list[tuple[Vector, Point]] = []
    for number, (document, entry) in enumerate(zip(documents, entries, strict=False)):
        stored, found = dictionary.lookup_keys(document.keys("sentence"))
        if found.any():
            rows = unit_rows(stored)
            means.append((rows[found].mean(axis=0), [number]))
            starts = document.spans("sentence")[:, 0]
            for row, at in _sentences_of(entry, starts):
                if found[at] and len(sentences) < _MOST_SENTENCES:
                    point = [number, row.template, row.field, row.text[:60], row.start]
                    sentences.append((rows[at], point))
    both = (("documents", means), ("sentences", sentences))
    return [_map(kind, points) for kind, points in both if len(points) > 1]


def _sentences_of(entry: Entry, starts: NDArray[np.integer]) -> Iterator[tuple[ValueRow, int]]:
    """The values of a document, each with the place of the sentence it begins in."""
    for row in entry["values"]:
        if isinstance(row, ValueRow):
            at = int(np.searchsorted(starts, row.start, side="right")) - 1
            if at >= 0:
                yield row, at


def _map(kind: str, located: list[tuple[Vector, Point]]) -> dict[str, object]:
    plane = project(np.stack([vector for vector, _ in located]))
    places = [[round(float(x), 4), round(float(y), 4)] for x, y in plane.points]
    return {
        "kind": kind,
        "shares": [round(share, 4) for share in plane.shares],
        "points": [place + point for place, (_, point) in zip(places, located, strict=True)],
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
    largest = np.abs(points).max()
    scaled = points / largest if largest > 1e-9 else np.zeros_like(points)
    total = max(float(values.sum()), 1e-12)
    first, second, *_ = *(max(float(value) / total, 0.0) for value in values[:-3:-1]), 0.0, 0.0
    return Plane(scaled.astype(np.float32), (first, second))
