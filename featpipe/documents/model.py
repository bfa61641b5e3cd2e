r"""What loading makes of one file: a text, and spans over it. Frozen, and free of foreign types.

The text is the only place where characters are kept; everything else is a half-open span
``[start, end)`` of Python string indices into it. Paragraphs are separated by one ``"\n"``, the
cells of a table row by one ``"\t"``; neither character occurs otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.documents.offsets import OffsetMap


@dataclass(frozen=True, slots=True)
class Page:
    """Page ``number`` (from 1, as a reader counts) holds ``text[start:end]``; may be empty.

    ``confidence`` is None for a text layer and OCR's mean confidence (0 to 1) for a read image.
    """

    number: int
    start: int
    end: int
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """``text[start:end]`` stands in ``row``, ``column`` (from 0) and covers the given spans.

    An empty cell has start == end. Text stands once, in the cell's first row and column.
    """

    row: int
    column: int
    start: int
    end: int
    row_span: int = 1
    column_span: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """``text[start:end]`` is the table, one line per row; ``cells`` in reading order."""

    start: int
    end: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """``text[start:end]`` is a heading of ``level`` 1 (highest) to 9."""

    start: int
    end: int
    level: int


@dataclass(frozen=True, slots=True)
class Document:
    """One file, read.

    Attributes:
        text: the cleaned text; never empty.
        source: the name it was handed in under.
        media_type: what its content says it is, such as ``text/html``.
        loader: name and version of what read it, such as ``html/1``.
        bytes_hash: blake2b (16 bytes, hex) of the file; equal for renamed and copied files.
        text_hash: blake2b (16 bytes, hex) of ``text`` in UTF-8.
        title: as the file states it, or "".
        encoding: character encoding of a text file, else None.
        notes: every doubt and loss, in words: guessed encodings, dropped parts, lines unread.
        pages, tables, headings: spans, in order; () where the format has none.
        origin: map to the decoded source (only if asked for, and only for text formats).
    """

    text: str
    source: str
    media_type: str
    loader: str
    bytes_hash: str
    text_hash: str
    title: str = ""
    encoding: str | None = None
    notes: tuple[str, ...] = ()
    pages: tuple[Page, ...] = ()
    tables: tuple[Table, ...] = ()
    headings: tuple[Heading, ...] = ()
    origin: OffsetMap | None = None

    def page_of(self, start: int) -> int | None:
        """The number of the page that holds the character ``start``, or None without pages."""
        at = bisect_right(self.pages, start, key=lambda page: page.start) - 1
        # Pages without text share their start with the next one: the last of them holds it.
        return self.pages[at].number if at >= 0 and start < self.pages[at].end else None


@dataclass(frozen=True, slots=True)
class Word:
    """One word: ``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: ``text[start:end]``; ``words`` only where a tokenizer was given."""

    start: int
    end: int
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph: ``text[start:end]``, and the sentences in it, in order."""

    start: int
    end: int
    sentences: tuple[Sentence, ...]
