"""Tables of HTML pages: of data, with cells in their places, or for the layout of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from featpipe.documents.builder import CELL_BREAK, Pieces, RawCell, count_of

_ATTRIBUTE = re.compile(
    r"""([^\s"'>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""", re.DOTALL
)


_FREE = (0, 0)


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, and where it stands in the source."""

    text: str
    pieces: Pieces
    level: int = 0


@dataclass(slots=True)
class OpenTable:
    """An open table; text before its first cell is its caption."""

    rows: list[list[OpenCell]] = field(default_factory=list)
    caption: list[Block | OpenTable] = field(default_factory=list)

    def sink(self) -> list[Block | OpenTable]:
        """The list that text at this point is added to."""
        return self.rows[-1][-1].blocks if self.rows and self.rows[-1] else self.caption

    def is_layout(self) -> bool:
        """Whether it is page layout: it has one column, or tables and prose in cells."""
        if all(len(row) <= 1 for row in self.rows):
            return True
        return any(cell.holds_prose() for row in self.rows for cell in row)


@dataclass(slots=True)
class OpenCell:
    """An open cell, with what it holds so far."""

    row_span: int
    column_span: int
    blocks: list[Block | OpenTable] = field(default_factory=list)

    def holds_prose(self) -> bool:
        """Whether it holds a table, or paragraphs of some length."""
        n_characters = 0
        for block in self.blocks:
            if isinstance(block, OpenTable):
                return True
            n_characters += len(block.text)
        return len(self.blocks) > 3 and n_characters > 600


def open_cell(raw: str) -> OpenCell:
    """A cell with the attributes of its tag."""
    if "span" not in raw:
        return OpenCell(1, 1)
    attributes = attributes_of(raw)
    return OpenCell(
        count_of(attributes.get("rowspan", ("", 0))[0]),
        count_of(attributes.get("colspan", ("", 0))[0]),
    )


def placed(table: OpenTable) -> list[RawCell]:
    """Every cell in the first free column of its row (HTML's table model)."""
    cells: list[RawCell] = []
    # Column -> first row in which it is free again, and the column behind the cell that covers it.
    taken: dict[int, tuple[int, int]] = {}
    for row, row_cells in enumerate(table.rows):
        column = 0
        for cell in row_cells:
            while (cover := taken.get(column, _FREE))[0] > row:
                column = cover[1]
            text, pieces = _joined(cell.blocks)
            cells.append(RawCell(row, column, text, pieces, cell.row_span, cell.column_span))
            if cell.row_span > 1:
                for covered in range(column, column + cell.column_span):
                    taken[covered] = (row + cell.row_span, column + cell.column_span)
            column += cell.column_span
    return cells


def _joined(blocks: list[Block | OpenTable]) -> tuple[str, Pieces]:
    """The blocks of a cell as one text, each a line."""
    texts: list[str] = []
    pieces: list[tuple[int, int, int]] = []
    for block in blocks:
        if isinstance(block, Block):
            if texts:
                texts.append(CELL_BREAK)
                pieces.append((1, pieces[-1][2], pieces[-1][2])) if pieces else None
            texts.append(block.text)
            pieces += block.pieces
    return "".join(texts), pieces


def attributes_of(raw: str) -> dict[str, tuple[str, int]]:
    """Name (lower case) -> (value, where it starts in ``raw``); the first wins."""
    found: dict[str, tuple[str, int]] = {}
    for match in _ATTRIBUTE.finditer(raw):
        group = next((g for g in (2, 3, 4) if match[g] is not None), 0)
        value = (match[group], match.start(group)) if group else ("", match.end())
        found.setdefault(match[1].lower(), value)
    return found
