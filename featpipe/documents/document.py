r"""A loaded document: one text, and spans over it. Frozen, and free of foreign types.

The text is the only place where characters are kept; everything else is a half-open span
``[start, end)`` of Python string indices into it. Paragraphs are separated by one ``"\n"``, the
cells of a table row by one ``"\t"``; neither character occurs otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Document:
    """One loaded file.

    Attributes:
        text: the cleaned text; never empty.
        source: the name it was loaded under.
        media_type: by its content, such as ``text/html``.
        loader: name and version of the loader, such as ``html/1``.
        bytes_hash: blake2b (16 bytes, hex) of the file; equal for renamed and copied files.
        text_hash: blake2b (16 bytes, hex) of ``text`` in UTF-8.
        title: as the file states it, or "".
        encoding: character encoding of a text file, else None.
        notes: every doubt and loss, in words: guessed encodings, dropped parts.
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


@dataclass(frozen=True, slots=True, eq=False)
class OffsetMap:
    """The two-way map between a cleaned text and the source it was made from, as runs.

    Guarantees, for a map of n characters:
    - every character of the text has a source span; spans never run backwards;
    - ``to_text(*to_source(a, b))`` covers [a, b), for every non-empty span;
    - ``from_characters(...)`` and ``characters()`` are inverse to one another.

    Shapes: runs (r, 4) int64: text start, text end, source start, source end. Runs tile the
    text. A run whose two lengths are equal maps character by character; any other is atomic:
    each of its characters maps to the whole source span (an entity, a ligature, an inserted
    separator with the empty span).
    """

    runs: Offsets

    @classmethod
    def from_characters(cls, starts: Offsets, ends: Offsets) -> OffsetMap:
        """Compress the source span of every single character. Shapes: starts, ends (n,)."""
        n = len(starts)
        if n == 0:
            return cls(np.zeros((0, 4), np.int64))
        is_plain = ends - starts == 1
        follows = (starts[1:] == ends[:-1]) & is_plain[1:] & is_plain[:-1]
        is_shared = (starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])
        first = np.flatnonzero(np.concatenate(([True], ~(follows | is_shared))))
        after = np.append(first[1:], n)
        return cls(np.stack([first, after, starts[first], ends[after - 1]], axis=1))

    @property
    def n_characters(self) -> int:
        """Length of the text."""
        return int(self.runs[-1, 1]) if len(self.runs) else 0

    def characters(self) -> tuple[Offsets, Offsets]:
        """The source span of every character: starts (n,), ends (n,)."""
        text_start, text_end, source_start, source_end = self.runs.T
        counts = text_end - text_start
        within = np.arange(counts.sum()) - np.repeat(text_start, counts)
        is_moved = np.repeat(counts == source_end - source_start, counts)
        starts = np.repeat(source_start, counts) + np.where(is_moved, within, 0)
        ends = np.where(is_moved, starts + 1, np.repeat(source_end, counts))
        return starts, ends

    def to_source(self, start: int, end: int) -> tuple[int, int]:
        """The smallest source span that ``text[start:end]`` was made from.

        Raises:
            ValueError: for an empty span or one outside the text.
        """
        if not 0 <= start < end <= self.n_characters:
            raise ValueError(f"[{start}, {end}) is no span of {self.n_characters} characters")
        first = self._run_of(start)
        last = self._run_of(end - 1)
        return self._source_start(first, start), self._source_end(last, end)

    def to_text(self, start: int, end: int) -> tuple[int, int]:
        """The span of all characters made from ``source[start:end]``; (i, i) when there are none.

        Inserted characters (empty source span) are included when inside.
        """
        starts, ends = self.runs[:, 2], self.runs[:, 3]
        first = int(np.searchsorted(ends, start, side="right"))
        first -= self._is_inserted_at(first - 1, start)
        last = int(np.searchsorted(starts, end, side="left")) - 1
        if first > last:
            at = int(self.runs[first, 0]) if first < len(self.runs) else self.n_characters
            return at, at
        return self._text_start(first, start), self._text_end(last, end)

    def _is_inserted_at(self, run: int, at: int) -> bool:
        return run >= 0 and bool(self.runs[run, 2] == self.runs[run, 3] == at)

    def _run_of(self, character: int) -> int:
        return int(np.searchsorted(self.runs[:, 1], character, side="right"))

    def _is_moved(self, run: int) -> bool:
        text_start, text_end, source_start, source_end = self.runs[run]
        return bool(text_end - text_start == source_end - source_start)

    def _source_start(self, run: int, start: int) -> int:
        text_start, _, source_start, _ = (int(v) for v in self.runs[run])
        return source_start + (start - text_start if self._is_moved(run) else 0)

    def _source_end(self, run: int, end: int) -> int:
        _, text_end, _, source_end = (int(v) for v in self.runs[run])
        return source_end - (text_end - end if self._is_moved(run) else 0)

    def _text_start(self, run: int, start: int) -> int:
        text_start, _, source_start, _ = (int(v) for v in self.runs[run])
        return text_start + (max(0, start - source_start) if self._is_moved(run) else 0)

    def _text_end(self, run: int, end: int) -> int:
        _, text_end, _, source_end = (int(v) for v in self.runs[run])
        return text_end - (max(0, source_end - end) if self._is_moved(run) else 0)
