"""Labels side by side in a line, with a value below each of them.

::

    CONSIGNEE                     FORWARDING AGENT
    Northmoor Foods Ltd           Baltic Agencies GmbH
    14 Quay Street, Hull          Hafenstr. 3, Hamburg

So forms are printed, and what reads them keeps their columns by blanks. Each cell of the line below
begins in the column of a label; what stands further below is more of the same, such as an address.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

from featpipe.extraction.names.synonyms import alternatives, is_known
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.text_tables import may_be_header, touches
from featpipe.extraction.values.text import STROKES, fold, placed_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A cell: words with one blank between them.
_cell = re.compile(r"\S+(?: \S+)*")
#: Between two labels, at least.
_blanks = "   "
_no_columns = re.compile(rf"[\t{STROKES}:：]")


def labels_above(text: str, others: Sequence[tuple[int, int]]) -> Iterator[LabelledSpan]:
    """Spans of values, each with the label above it.

    Args:
        text: of a document, as it is.
        others: character spans of its tables; none is found there.

    """
    if _blanks not in text:
        return
    lines = ((at, line.rstrip()) for at, line in placed_lines(text))
    for (start, above), (begin, below) in pairwise(lines):
        if _blanks not in above or "  " not in below or _no_columns.search(above):
            continue
        labels = _cells(above)
        if len(labels) < 2 or not _are_labels([words for _, words in labels.values()]):
            continue
        values = _cells(below)
        if len(values) < 2 or not values.keys() <= labels.keys():
            continue
        if any(_is_label(words) for _, words in values.values()):
            continue  # labels with their values beside them, below each other
        row = [(begin + at, begin + at + len(words)) for at, words in values.values()]
        head = [(start + at, start + at + len(words)) for at, words in labels.values()]
        if touches(row, others) or touches(head, others):
            continue
        for column, span in zip(values, row, strict=True):
            yield LabelledSpan(*span, labels[column][1])


def _cells(line: str) -> dict[int, tuple[int, str]]:
    """Cells of a line by the columns that they begin in: where in the line, and the words."""
    found, width, done = {}, 0, 0
    for cell in _cell.finditer(line):
        width += sum(1 + _is_wide(char) for char in line[done : cell.start()])
        done = cell.start()
        found[width] = (done, cell[0])
    return found


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _is_label(cell: str) -> bool:
    return any(map(is_known, map(fold, (cell, *alternatives(cell.lower())))))


def _are_labels(cells: Sequence[str]) -> bool:
    """Whether one is a known label, and each of the others that, or of capital letters."""
    known = [_is_label(cell) for cell in cells]
    return any(known) and all(
        is_one or (cell.isascii() and cell.isupper() and may_be_header(cell))
        for is_one, cell in zip(known, cells, strict=True)
    )
