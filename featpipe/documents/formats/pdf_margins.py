"""The lines of a PDF page and their right margins: how far a line may reach before it is wrapped.

A line may reach as far as the longest line that begins at about the same place. Where a page is set
in two columns, lines of the left one end before the right one, also below a headline that goes over
both.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOWHERE = float("-inf")
#: Lines of a column of text at least, and the share of them that are full.
_LEAST_LINES, _FULL = 5, 0.6
#: Width of a column, and where the right one begins, as shares of the width of the text.
_LEAST_WIDTH, _MIDDLE = 0.3, (0.4, 0.65)
#: Columns begin at the same place within so many points; a full line ends so near, in font sizes.
_SAME, _NEAR = 4.0, 2.0


class Line(NamedTuple):
    """One line of text with its box, in points, y upwards; ``size`` is the font's height.

    A line that was typed into the page ends before it begins: nothing is wrapped at its end.
    """

    text: str
    left: float
    right: float
    bottom: float
    size: float


def right_limits(lines: Sequence[Line]) -> list[float]:
    """By line, how far it may reach to the right."""
    limits: dict[int, float] = {}
    bins = [int(line.left // 24) for line in lines]
    for line, column in zip(lines, bins, strict=True):
        # Overlapping bins of 48 points: an indented line shares one with its column.
        if line.right > limits.get(column, _NOWHERE):
            limits[column] = line.right
        if line.right > limits.get(column + 1, _NOWHERE):
            limits[column + 1] = line.right
    found = [max(limits[column], limits[column + 1]) for column in bins]
    gutter = _find_gutter(lines) if len(lines) > 2 * _LEAST_LINES else None
    if gutter is None:
        return found
    end, begin = gutter
    return [
        min(limit, end) if line.right < begin else limit
        for line, limit in zip(lines, found, strict=True)
    ]


def _find_gutter(lines: Sequence[Line]) -> tuple[float, float] | None:
    """Where the left column of a page in two columns ends, and the right one begins."""
    first = min(line.left for line in lines)
    width = max(line.right for line in lines) - first
    low, high = (first + share * width for share in _MIDDLE)
    begins = Counter(line.left // _SAME for line in lines if low < line.left < high)
    if not begins or begins.most_common(1)[0][1] < _LEAST_LINES:
        return None
    begin = begins.most_common(1)[0][0] * _SAME
    right = [line for line in lines if -_SAME <= line.left - begin < 2 * _SAME]
    left = [line for line in lines if line.right < begin]
    is_beside = left and right and min(a.bottom for a in left) < max(b.bottom for b in right)
    if not is_beside or not all(_is_text(one, width) for one in (left, right)):
        return None
    return max(line.right for line in left), begin


def _is_text(lines: Sequence[Line], width: float) -> bool:
    """Whether lines are those of a column of text, most of which reach its end; no table's."""
    end = max(line.right for line in lines)
    n_full = sum(line.right > end - _NEAR * line.size for line in lines)
    is_wide = end - min(line.left for line in lines) >= _LEAST_WIDTH * width
    return is_wide and len(lines) >= _LEAST_LINES and n_full >= _FULL * len(lines)
