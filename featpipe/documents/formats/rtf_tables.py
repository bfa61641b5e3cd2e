"""Tables of the Rich Text Format: cells in the columns of their edges."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from featpipe.documents.builder import RawCell

#: Edges of cells closer than this are one column, in twips (1/1440 inch).
_SAME_EDGE = 30


@dataclass(slots=True)
class Row:
    """A row: the right edges of its cells, where it begins, and their texts."""

    edges: list[int] = field(default_factory=list)
    left: int = 0
    cells: list[str] = field(default_factory=list)


def placed(rows: list[Row]) -> list[RawCell]:
    """Every cell with its column: cells that end at one edge end in one column."""
    known: list[int] = []
    for edge in sorted(edge for row in rows for edge in row.edges):
        if not known or edge > known[-1] + _SAME_EDGE:
            known.append(edge)
    cells = []
    for number, row in enumerate(rows):
        column = 0
        for at, text in enumerate(row.cells):
            end = column + 1
            if len(row.edges) == len(row.cells):
                end = max(bisect_left(known, row.edges[at] - _SAME_EDGE) + 1, end)
            cells.append(RawCell(number, column, text, column_span=end - column))
            column = end
    return cells
