"""Plain text: every line that is not blank is a paragraph, unless the file was wrapped at a margin.

A file counts as wrapped if most lines that another follows are so long that the next line's first
word would not have fitted. Form feeds separate pages. Tables are told by `text_tables`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, Pieces, RawCell
from featpipe.documents.decode import Decoded, decode
from featpipe.documents.formats.text_tables import columns, parts_of, read_separated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.documents.formats.text_tables import Row, Span
    from featpipe.documents.limits import LoadLimits

_ITEM = re.compile(
    r"\s*(?:第[一二三四五六七八九十百零〇\d]{1,5}[章节条款编部分]"
    r"|[（(][一二三四五六七八九十百\d]{1,4}[）)]|[一二三四五六七八九十]{1,3}[、.．]"
    r"|\d{1,3}(?:\.\d{1,3}){0,5}[、.．)）](?!\d)|\d{1,2}(?:\.\d{1,3}){1,5}\s"
    r"|[①-⑳•●○◆■□▪▶➢✓·※\uf0b7\uf06c\uf0d8]|[-–—*]\s"
    r"|\(?[a-zA-Z]\)\s|\([ivxIVX]{1,5}\)|(?:Article|Section|ARTICLE|SECTION|Chapter|Exhibit)\s+[\dIVX])"
)
_LOUD = re.compile(r"\([a-z]\)|\d{1,2}(?:\.\d{1,3}){1,5}\s+[^\W\d]")
_ENDS = "。！？；：.!?;:"
_CLOSERS = "”’」』）)】\"' "
_FIRST_WORD = re.compile(r"\s*([^\s\u2e80-\u9fff\uff00-\uffef]+|.)")


_LINE = re.compile("[^\n\r\x0b\x0c\x85\u2028\u2029]*(\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]|\\Z)")
#: A margin is between these columns; a wide character takes two.
_NARROWEST, _WIDEST = 50, 130
_LEAST_FULL = 5
_FULL_SHARE = 0.6


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a text file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    return _read(decode(data), limits, is_traced=is_traced)


def load_given(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """As :func:`load`, for a text that was given as one: in UTF-8."""
    return _read(Decoded(data.decode(errors="replace"), "utf-8"), limits, is_traced=is_traced)


def _read(decoded: Decoded, limits: LoadLimits, *, is_traced: bool) -> DocumentBuilder:
    builder = DocumentBuilder.for_text(decoded, limits, is_traced=is_traced)
    source = decoded.text
    records = read_separated(source, limits.max_cells)
    if records:
        _add_table(builder, source, records, is_quoted=True)
        return builder
    margin = find_margin(source)
    number, page_start = 1, 0
    for page in _pages(source):
        for lines, rows in parts_of(source, page, is_wrapped=margin > 0):
            for spans in _paragraphs(source, lines, margin):
                _add(builder, source, spans)
            if rows:
                _add_table(builder, source, rows)
        if "\f" in source:
            builder.end_page(number, page_start)
            number, page_start = number + 1, builder.length
    if margin:
        builder.note(f"lines wrapped at column {margin} are joined")
    return builder


def _add(builder: DocumentBuilder, source: str, spans: Sequence[Span]) -> None:
    """Add one paragraph; whatever separates two of its lines in the source is one line break."""
    start, end = spans[0][0], spans[-1][1]
    if len(spans) == 1:
        builder.add(source[start:end], ((end - start, start, end),))
        return
    pieces = []
    for (first, last), (following, _) in zip(spans, [*spans[1:], (end, end)], strict=True):
        pieces += [(last - first, first, last), (1, last, max(following, last))]
    builder.add("\n".join(source[a:b] for a, b in spans), pieces[:-1])


def _add_table(
    builder: DocumentBuilder, source: str, rows: Sequence[Row], *, is_quoted: bool = False
) -> None:
    """Add a table; in separated values, a quotation mark in a quoted field is written twice."""
    builder.add_table(_cells(source, rows, is_traced=builder.is_traced, is_quoted=is_quoted))


def _cells(
    source: str, rows: Sequence[Row], *, is_traced: bool, is_quoted: bool
) -> Iterator[RawCell]:
    for number, row in enumerate(rows):
        for column, (start, end) in enumerate(row):
            text = source[start:end].replace("\n", CELL_BREAK)
            pieces: Pieces = ((end - start, start, end),) if is_traced else ()
            if is_quoted and '""' in text:
                text, pieces = _unquoted(text, start)
            yield RawCell(number, column, text, pieces)


def _unquoted(text: str, at: int) -> tuple[str, Pieces]:
    """A quoted field that starts at some place of the source, and where it comes from."""
    pieces = []
    parts = text.split('""')
    for part in parts:
        pieces += [(len(part), at, at + len(part)), (1, at + len(part), at + len(part) + 2)]
        at += len(part) + 2
    return '"'.join(parts), pieces[:-1]


def _pages(source: str) -> Iterator[list[Span]]:
    """The lines of each page."""
    lines: list[Span] = []
    for match in _LINE.finditer(source):
        lines.append((match.start(), match.start(1)))
        if match[1] == "\f":
            yield lines
            lines = []
    if any(start < end for start, end in lines):
        yield lines


def _paragraphs(source: str, lines: Sequence[Span], margin: int) -> Iterator[list[Span]]:
    waiting: list[Span] = []
    for start, end in lines:
        text = source[start:end]
        if waiting and not (margin and _goes_on(source[slice(*waiting[-1])], text, margin)):
            yield waiting
            waiting = []
        if text.strip():
            waiting.append((start, end))
    if waiting:
        yield waiting


def _goes_on(line: str, following: str, margin: int) -> bool:
    """Whether a line ended only because the next word did not fit."""
    if not following.strip() or begins_item(following, line):
        return False
    deeper = len(following) - len(following.lstrip()) > len(line) - len(line.lstrip())
    return _is_full(line, following, margin) and not (deeper and is_ended(line))


def _is_full(line: str, following: str, margin: int) -> bool:
    return columns(line.rstrip()) + 1 + columns(first_word(following)) > margin


def find_margin(source: str) -> int:
    """The column at which a text was wrapped, or 0 for one that was not."""
    lines = source.splitlines()
    widths = sorted(columns(line.rstrip()) for line in lines if line.strip())
    if len(widths) <= _LEAST_FULL:
        return 0
    margin = widths[-1 - len(widths) // 50]  # a few may stick out
    if not _NARROWEST <= margin <= _WIDEST or widths[-1] > 2 * margin:
        return 0
    pairs = [(a, b) for a, b in pairwise(lines) if a.strip() and b.strip()]
    full = [(a, b) for a, b in pairs if _is_full(a, b, margin)]
    n_prose = sum(_reads_on(a, b) for a, b in full)
    is_wrapped = len(full) >= max(_LEAST_FULL, _FULL_SHARE * len(pairs))
    return margin if is_wrapped and n_prose > len(full) / 2 else 0


def _reads_on(line: str, following: str) -> bool:
    """Whether two lines read like one sentence, unlike those of a list or of records."""
    last, first = line.rstrip()[-1], following.lstrip()[0]
    is_wide = east_asian_width(last) in "WF" and east_asian_width(first) in "WF"
    return not is_ended(line) and (first.islower() or is_wide)


def begins_item(text: str, before: str) -> bool:
    """Whether a line begins a clause or an item, rather than continuing with a number.

    Args:
        text: the line.
        before: the line before it.
    """
    return bool(_ITEM.match(text)) and (is_ended(before) or _is_loud(text))


def is_ended(text: str) -> bool:
    """Whether a line ends in a mark that ends a sentence or announces a list."""
    return text.rstrip(_CLOSERS)[-1:] in _ENDS


def first_word(text: str) -> str:
    """A line's first Latin word, or its first wide character."""
    match = _FIRST_WORD.match(text)
    return match[1] if match else ""


def _is_loud(text: str) -> bool:
    """Whether a line begins with the mark of an item, which a wrapped sentence hardly ever does."""
    return text.lstrip()[:1] in "第（①•●○◆■□▪▶➢✓※" or bool(_LOUD.match(text.lstrip()))
