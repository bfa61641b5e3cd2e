"""Tables whose heads go on in the lines below, as narrow columns of PDF files have them.

::

    股东名称    本次质押数    占其所持    质押        质押
                量（股）      股份比例    起始日      到期日
    李明        5,000,000     11.45%      2022-06-07  2023-06-06

Cells are parted by tabs or wide gaps. The first line has the beginning of each head; those below it
have no more cells, each with the same number of tabs before it as the head that it goes on, or
below that. Some heads are known labels; rows below have as many cells, and numbers among them.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from featpipe.extraction.tables.grouped_heads import of_sums
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.text_tables import is_label, touches
from featpipe.extraction.values.text import STROKE, fold_width, placed_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Table = tuple[int, int, list[LabelledSpan]]
    #: Start and end in the text, and where the cell begins and ends in its line.
    Piece = tuple[int, int, int, int]

_LEAST_COLUMNS, _MOST_COLUMNS, _MOST_LINES, _LEAST_KNOWN = 4, 16, 6, 2
#: Characters of a line of a head, and of a head.
_LONGEST_PIECE, _LONGEST_HEAD = 12, 40
_piece = re.compile(r"[^\s]+(?:[^\S\n\t][^\s]+)*")
_no_head = re.compile(r"[\d:：。;；]")
_digit = re.compile(r"\d")
_gap = re.compile(r"\t|[^\S\n]{2}")


def wrapped_tables(text: str, others: Sequence[tuple[int, int]] = ()) -> Iterator[Table]:
    """Those of a text, (start, end, cells with their headers), in order.

    Args:
        text: of a document, as it is.
        others: character spans of tables that are known already; none is found there.

    """
    lines = [(start, line.rstrip()) for start, line in placed_lines(text)]
    rows = [_pieces(start, line) if _gap.search(line) else [] for start, line in lines]
    behind = 0
    for at in range(len(rows) - 2):
        spans = _table_at(text, rows, at) if at >= behind and rows[at] else []
        if spans and not touches([(rows[at][0][0], spans[-1].end)], others):
            behind = next(
                (n for n in range(at, len(lines)) if lines[n][0] > spans[-1].end), len(lines)
            )
            yield rows[at][0][0], spans[-1].end, spans


def _pieces(start: int, line: str) -> list[Piece]:
    """The cells of a line that are not empty, and the tabs or the width before them.

    Of more than a table has, one too many: each costs what is before it.
    """
    if STROKE.search(line):
        return []
    found = []
    for piece in islice(_piece.finditer(line), _MOST_COLUMNS + 1):
        if "\t" in line:
            low = line.count("\t", 0, piece.start())
            high = low + 1
        else:
            low = _width(line[: piece.start()])
            high = low + _width(piece[0])
        found.append((start + piece.start(), start + piece.end(), low, high))
    return found


def _width(words: str) -> int:
    return sum(1 if character < "\u1100" else 2 for character in words)


def _table_at(text: str, rows: Sequence[list[Piece]], top: int) -> list[LabelledSpan]:
    """The cells of a table whose heads begin in a line."""
    first = rows[top]
    heads, below = _heads_at(text, rows, top)
    spans: list[LabelledSpan] = []
    while heads and below < len(rows) and _is_row(text, first, rows[below]):
        spans += [
            LabelledSpan(a, b, head) for (a, b, *_), head in zip(rows[below], heads, strict=True)
        ]
        below += 1
    return spans


def _heads_at(text: str, rows: Sequence[list[Piece]], top: int) -> tuple[list[str], int]:
    """The heads that begin in a line, and the number of the line behind them; none for others."""
    n = len(rows[top])
    heads = [text[a:b] for a, b, *_ in rows[top]]
    if not _LEAST_COLUMNS <= n <= _MOST_COLUMNS or not all(map(_may_be_piece, heads)):
        return [], top
    below = top + 1
    while below < min(top + _MOST_LINES, len(rows)) and rows[below]:
        pieces = rows[below]
        words = [text[a:b] for a, b, *_ in pieces]
        if len(pieces) > n or not all(map(_may_be_piece, words)):
            break
        for own, piece in zip(words, pieces, strict=True):
            column = _column_of(rows[top], piece)
            if column is None:
                return [], top
            heads[column] += own
        below += 1
    is_table = below > top + 1 and max(map(len, heads)) <= _LONGEST_HEAD and _are_heads(heads)
    return (of_sums(heads) if is_table else []), below


def _may_be_piece(words: str) -> bool:
    return len(words) <= _LONGEST_PIECE and not _no_head.search(fold_width(words))


def _column_of(heads: Sequence[Piece], piece: Piece) -> int | None:
    """The head that a cell below has most in common with."""
    common = [min(piece[3], head[3]) - max(piece[2], head[2]) for head in heads]
    best = max(range(len(heads)), key=lambda column: common[column])
    return best if common[best] > 0 else None


def _are_heads(heads: Sequence[str]) -> bool:
    return sum(map(is_label, heads)) >= _LEAST_KNOWN


def _is_row(text: str, heads: Sequence[Piece], row: Sequence[Piece]) -> bool:
    """Whether a line has a cell below each head, and numbers."""
    return len(row) == len(heads) and any(_digit.search(text[a:b]) for a, b, *_ in row)
