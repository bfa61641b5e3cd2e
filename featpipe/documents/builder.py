r"""Puts one document's text together, paragraph by paragraph, and notes its spans.

Every loader writes through a builder: cleaning, separators, limits and the map to the source are in
one place. Paragraphs are separated by ``"\n"``, the cells of a row by ``"\t"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.documents.clean import WIDE, clean, clean_traced
from featpipe.documents.document import Cell, Heading, OffsetMap, Offsets, Page, Table
from featpipe.errors import DocumentTooLarge

if TYPE_CHECKING:
    from featpipe.documents.decode import Decoded
    from featpipe.documents.limits import LoadLimits

#: Pieces of the source a raw paragraph was put together from: (raw length, source start, end).
Pieces = Sequence[tuple[int, int, int]]
#: A line of a cell ends here, as it is shown; other line breaks in a cell are wraps.
CELL_BREAK = "\v"
_IS_SINGLE = re.compile(f"[{WIDE}]")
#: Rows or columns of a table that a cell may be said to span.
_MOST_SPANNED = 1000


@dataclass(slots=True)
class DocumentBuilder:
    """A text under construction.

    Attributes:
        limits: of the document.
        is_traced: pieces are given with every paragraph and become the map to the source.
        title, encoding, notes, pages, tables, headings: as of the document.
        hint: the next step, where the document is empty.
        length: of the text so far.
    """

    limits: LoadLimits
    is_traced: bool = False
    title: str = ""
    encoding: str | None = None
    notes: list[str] = field(default_factory=list)
    hint: str | None = None
    pages: list[Page] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    length: int = 0
    _parts: list[str] = field(default_factory=list)
    _starts: list[Offsets] = field(default_factory=list)
    _ends: list[Offsets] = field(default_factory=list)

    @classmethod
    def for_text(cls, decoded: Decoded, limits: LoadLimits, *, is_traced: bool) -> DocumentBuilder:
        """A builder for a decoded file, with its encoding and doubts."""
        return cls(limits, is_traced, encoding=decoded.encoding, notes=list(decoded.notes))

    def add(self, raw: str, pieces: Pieces = (), *, level: int = 0) -> bool:
        """Append a paragraph; False when nothing of it is left after cleaning.

        Args:
            raw: as found; line breaks in it are wraps, not paragraph ends.
            pieces: where the raw text stands in the source, when the builder is traced.
            level: 1 to 9 for a heading.

        Raises:
            DocumentTooLarge: beyond ``limits.max_characters``.
        """
        start = self.length + bool(self.length)
        if not self._append("\n" if self.length else "", raw, pieces):
            return False
        if level:
            self.headings.append(Heading(start, self.length, level))
        return True

    def add_table(self, cells: Iterable[RawCell]) -> None:
        """Append a table, one line per row; rows and cells without text add nothing to the text.

        Between the lines of a cell, which end in :data:`CELL_BREAK`, stands a blank.
        """
        spans: list[Cell] = []
        begin = self.length + bool(self.length)
        row = -1
        for cell in cells:
            separator = "\t" if cell.row == row else "\n"
            text = _with_blanks(cell.text) if CELL_BREAK in cell.text else cell.text
            has_text = self._append(separator if self.length else "", text, cell.pieces)
            row = cell.row if has_text else row
            start = self._last_start if has_text else self.length
            spans.append(
                Cell(cell.row, cell.column, start, self.length, cell.row_span, cell.column_span)
            )
        if self.length >= begin and any(span.end > span.start for span in spans):
            self.tables.append(Table(begin, self.length, tuple(spans)))

    def end_page(self, number: int, start: int, confidence: float | None = None) -> None:
        """Record that everything since the length ``start`` is page ``number``."""
        first = min(start + 1 if start and self.length > start else start, self.length)
        self.pages.append(Page(number, first, self.length, confidence))

    def add_page(self, number: int, start: int, end: int, confidence: float | None = None) -> None:
        """Record that ``text[start:end]`` is page ``number``."""
        self.pages.append(Page(number, start, end, confidence))

    def note(self, what: str) -> None:
        """Record a doubt or a loss, once."""
        if what not in self.notes:
            self.notes.append(what)

    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def origin(self) -> OffsetMap | None:
        """The map to the source, when it was asked for and pieces were given."""
        if not self.is_traced or not self._starts:
            return None
        return OffsetMap.from_characters(np.concatenate(self._starts), np.concatenate(self._ends))

    @property
    def _last_start(self) -> int:
        return self.length - len(self._parts[-1])

    def _append(self, separator: str, raw: str, pieces: Pieces) -> bool:
        is_traced = bool(self.is_traced and pieces)
        text = self._trace(separator, raw, pieces) if is_traced else clean(raw)
        if not text:
            return False
        if separator:
            self._parts.append(separator)
        self._parts.append(text)
        self.length += len(separator) + len(text)
        if self.length > self.limits.max_characters:
            limit = self.limits.max_characters
            raise DocumentTooLarge(f"the text is longer than {limit:,} characters")
        return True

    def _trace(self, separator: str, raw: str, pieces: Pieces) -> str:
        """The cleaned text; its source spans are kept."""
        starts, ends = _spread(pieces)
        text, starts, ends = clean_traced(raw, starts, ends)
        if text:
            at = self._ends[-1][-1:] if self._ends else starts[:1]
            self._starts += [at] * len(separator) + [starts]
            self._ends += [at] * len(separator) + [ends]
        return text


class RawCell(NamedTuple):
    """One cell as the loader found it: its text, with :data:`CELL_BREAK`, place and extent."""

    row: int
    column: int
    text: str
    pieces: Pieces = ()
    row_span: int = 1
    column_span: int = 1


def _with_blanks(text: str) -> str:
    """The text of a cell, as long as before, with blanks between its lines.

    Single characters below one another are a word from top to bottom, such as the head of a narrow
    column: their breaks stay, and are removed with other wraps.
    """
    lines = text.split(CELL_BREAK)
    parts = [_padded(lines[0])]
    for before, after in pairwise(map(str.strip, lines)):
        is_word = _IS_SINGLE.fullmatch(before) and _IS_SINGLE.fullmatch(after)
        parts.append(CELL_BREAK if is_word else " ")
        parts.append(_padded(lines[len(parts) // 2]))
    return "".join(parts)


def _padded(line: str) -> str:
    """A line with blanks for the white space around it: a wrap there would take the blank away."""
    left = line.lstrip()
    return " " * (len(line) - len(left)) + left.rstrip().ljust(len(left))


def count_of(value: str | None, least: int = 1) -> int:
    """Rows or columns that a file states, such as the span of a cell, within reason."""
    is_number = value is not None and value.strip().isdecimal()
    return min(max(int(value or 0), least), _MOST_SPANNED) if is_number else least


def _spread(pieces: Pieces) -> tuple[Offsets, Offsets]:
    """The source span of every raw character."""
    starts, ends = [], []
    for length, start, end in pieces:
        if length == end - start:
            starts.append(np.arange(start, end))
            ends.append(np.arange(start + 1, end + 1))
        else:
            starts.append(np.full(length, start))
            ends.append(np.full(length, end))
    return np.concatenate(starts), np.concatenate(ends)
