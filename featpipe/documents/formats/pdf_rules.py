"""The ruled cells of a PDF page: which lines of text stand in one, and where it ends.

A table is drawn as thin strokes, thin filled rectangles, or frames. Two vertical rules on either
side of a line, and the next rule below it that reaches from one to the other, are its cell. A rule
that reaches less far, such as the line under a word, is none of them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from numpy.typing import NDArray

#: A rule is at most so thick, and at least so long, in points.
_THICK, _LONG = 3.0, 5.0
#: Ends of rules that are so near meet.
_NEAR = 3.0
#: Objects and segments of paths beyond which a page is a drawing; a frame has four to six.
_MOST_OBJECTS, _MOST_SEGMENTS = 20_000, 20_000
_FRAME_SEGMENTS = 6

#: Left, bottom, right and top, and whether its edges are drawn.
Box = tuple[float, float, float, float, bool]


class Cell(NamedTuple):
    """The inner edges of a cell, and of the rule below it, in points, y upwards."""

    left: float
    right: float
    floor: float


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The rules of a page, in points, y upwards.

    Shapes: upright (n, 3), as x, lower end, upper end; level (m, 3), as y, left end, right end.
    """

    upright: NDArray[np.float64]
    level: NDArray[np.float64]

    def cell_at(self, x: float, y: float) -> Cell | None:
        """The cell around a point; None where no rule is on one of its sides."""
        at, low, high = self.upright.T
        beside = at[(low <= y) & (y <= high)]
        left, right = beside[beside <= x], beside[beside > x]
        if not len(left) or not len(right):
            return None
        start, end = float(left.max()), float(right.min())
        at, low, high = self.level.T
        below = at[(at < y) & (low <= start + _NEAR) & (high >= end - _NEAR)]
        return Cell(start, end, float(below.max())) if len(below) else None


def rules_of(boxes: Iterable[Box]) -> Rules | None:
    """The rules in some boxes (left, bottom, right, top, is a frame), joined where they meet."""
    upright: list[tuple[float, float, float]] = []
    level: list[tuple[float, float, float]] = []
    for left, bottom, right, top, is_frame in boxes:
        width, height = right - left, top - bottom
        if width <= _THICK and height >= _LONG:
            upright.append(((left + right) / 2, bottom, top))
        elif height <= _THICK and width >= _LONG:
            level.append(((bottom + top) / 2, left, right))
        elif is_frame:
            upright += [(left, bottom, top), (right, bottom, top)]
            level += [(bottom, left, right), (top, left, right)]
    if len(upright) < 2 or not level:
        return None
    return Rules(_joined(upright), _joined(level))


def _joined(rules: list[tuple[float, float, float]]) -> NDArray[np.float64]:
    """Rules with those that continue one another as one: most are drawn cell by cell."""
    found: list[list[float]] = []
    for at, low, high in sorted((round(at), low, high) for at, low, high in rules):
        if found and found[-1][0] == at and low <= found[-1][2] + _NEAR:
            found[-1][2] = max(found[-1][2], high)
        else:
            found.append([at, low, high])
    return np.array(found, np.float64).reshape(-1, 3)


class RuleReader:
    """Reads the rules of pages through PDFium."""

    def __init__(self) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium: ModuleType = pdfium
        pointer, number = ctypes.c_void_p, ctypes.c_int
        # Most objects are pieces of text: the functions that pass over them have no conversions.
        self._count = declared(pdfium.FPDFPage_CountObjects, number, pointer)
        self._get = declared(pdfium.FPDFPage_GetObject, pointer, pointer, number)
        self._kind = declared(pdfium.FPDFPageObj_GetType, number, pointer)

    def read(self, page: object) -> Rules | None:
        """The rules of an open page; None where it has none, or is a drawing."""
        start = ctypes.cast(page, ctypes.c_void_p).value  # type: ignore[arg-type]
        n_objects = self._count(start)
        if n_objects > _MOST_OBJECTS:
            return None
        get, kind, is_path = self._get, self._kind, self._pdfium.FPDF_PAGEOBJ_PATH
        things = (get(start, number) for number in range(n_objects))
        places = [thing for thing in things if kind(thing) == is_path]
        paths = [ctypes.cast(place, self._pdfium.FPDF_PAGEOBJECT) for place in places]
        n_segments = list(map(self._pdfium.FPDFPath_CountSegments, paths))
        if not paths or sum(n_segments) > _MOST_SEGMENTS:
            return None
        return rules_of(
            box
            for path, n in zip(paths, n_segments, strict=True)
            for box in self._boxes_of(path, n)
        )

    def _boxes_of(self, path: object, n_segments: int) -> Iterator[Box]:
        pdfium = self._pdfium
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
        if n_segments <= _FRAME_SEGMENTS:
            left, bottom, right, top = (ctypes.c_float() for _ in range(4))
            pdfium.FPDFPageObj_GetBounds(path, left, bottom, right, top)
            is_frame = bool(stroke.value) and n_segments >= _FRAME_SEGMENTS - 2
            yield left.value, bottom.value, right.value, top.value, is_frame
        else:
            yield from self._subpaths(path, n_segments, is_stroke=bool(stroke.value))

    def _subpaths(self, path: object, n_segments: int, *, is_stroke: bool) -> Iterator[Box]:
        """The boxes of the lines and rectangles in a path of several."""
        pdfium = self._pdfium
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFPageObj_GetMatrix(path, matrix)
        a, b, c, d, e, f = (getattr(matrix, name) for name in "abcdef")
        points: list[tuple[float, float]] = []
        x, y = ctypes.c_float(), ctypes.c_float()
        for number in range(n_segments):
            segment = pdfium.FPDFPath_GetPathSegment(path, number)
            if points and pdfium.FPDFPathSegment_GetType(segment) == pdfium.FPDF_SEGMENT_MOVETO:
                yield _box_of(points, is_stroke=is_stroke)
                points = []
            pdfium.FPDFPathSegment_GetPoint(segment, x, y)
            points.append((a * x.value + c * y.value + e, b * x.value + d * y.value + f))
        yield _box_of(points, is_stroke=is_stroke)


def _box_of(points: list[tuple[float, float]], *, is_stroke: bool) -> Box:
    xs, ys = zip(*points, strict=True)
    is_frame = is_stroke and _FRAME_SEGMENTS - 2 <= len(points) <= _FRAME_SEGMENTS
    return min(xs), min(ys), max(xs), max(ys), is_frame


def declared(function: object, *kinds: object) -> Callable[..., int]:
    """A function of PDFium whose pointers are plain numbers: its result, then its arguments.

    Without kinds of arguments they are passed on as they are.
    """
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    return ctypes.CFUNCTYPE(*kinds)(address or 0)  # type: ignore[arg-type]
