"""Tables of plain text: a file of comma-separated values, and lines whose cells stand in columns.

Guarantees: every cell is a span of the source; a text without tables is not changed; the time is
linear in the source. What may be no table is none: lines keep their place as paragraphs.

- A whole text is comma-separated (or separated by semicolons or tabs) if all its records have as
  many fields, and the first reads as names of columns. Quoted fields may hold line breaks.
- Lines one below the other are rows if they have as many cells, which are parted by tabs, or by two
  blanks and more; in a wrapped text, one edge of each column is below the other, too.

A number or a letter before its clause is no cell: ``1.`` and a tab begin an item of a list.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import groupby
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    #: Where a cell, or a line, starts and ends in the source.
    Span = tuple[int, int]
    Row = list[Span]

_SEPARATORS = "\t,;"
_FIELDS = {
    separator: re.compile(
        rf'[ ]*+"(?P<quoted>(?:[^"]|"")*+)"[ ]*+(?P<end>{separator}|\r\n|[\n\r]|\Z)'
        rf"|(?P<plain>[^{separator}\r\n]*+)(?P<stop>{separator}|\r\n|[\n\r]|\Z)"
    )
    for separator in _SEPARATORS
}
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|[\n\r]|\Z)")
#: Records and fields.
_LEAST = {"\t": 4, ",": 5, ";": 5}
#: A sentence with another one behind it, as no cell holds, and characters of a cell at most.
_PROSE = re.compile(r'[。！？；][^\s,;"]')
_LONGEST = 200
_STOP = re.compile("[。！？；]")
#: 1,000 may be one number; behind a comma of prose stands a blank.
_NUMBER = re.compile(r"\d,\d{3}(?!\d)")
_QUOTED = re.compile(r'"[^"]*+"')
_GAP = re.compile(r"[ \u3000\xa0]{2,}")
#: What a line of several cells holds.
_MARK = re.compile(r"[\t \u3000\xa0](?:(?<=\t)|(?<=\S.)[ \u3000\xa0])")
_LEAST_ROWS = 3
_LONGEST_CELL = 60
#: Marks before the two blanks that follow a sentence, and what a wide gap is written in: 甲  方 and
#: 2024年  5月  1日.
_ENDS = tuple(".!?,;。！？，；")
_PART = re.compile(r"[\u4e00-\u9fff]|\d{0,2}\s?[月日]")
_ITEM = re.compile(
    r"[（(]?(?:第[\d一二三四五六七八九十百零〇]{1,5}[章节条款编部分]|[\dA-Za-z]{1,3}(?:\.\d{1,3})*|[一二三四五六七八九十百]{1,4})[.、)）．]*|\W"
)


def read_separated(source: str, most: int) -> list[Row] | None:
    """The records of a text of separated values, with at most so many fields; None for others."""
    first = source.lstrip("\ufeff\r\n").partition("\n")[0]
    for separator in _SEPARATORS:
        if separator in first:
            records = _records(source, separator, most) or [[]]
            is_long = len(records) > 1 and len(records) + len(records[0]) >= _LEAST[separator]
            if is_long and _are_fields(source, separator, records):
                return records
    return None


def _are_fields(source: str, separator: str, records: Sequence[Row]) -> bool:
    """Whether commas part fields, rather than the thousands of a number or the parts of prose.

    Only the first record, which names the columns, may not read as prose: remarks may.
    """
    names = [source[start:end] for start, end in records[0]]
    if len(names) < 2 or any(len(name) > _LONGEST_CELL or _STOP.search(name) for name in names):
        return False
    if separator == "\t":
        return not _is_list(source, records)
    if any(source[a : a + 1] == " " for row in records for a, _ in row[1:]):
        return False
    bare = _QUOTED.sub("", source) if separator == "," else ""
    if not _NUMBER.search(bare):
        return True
    first = source[records[0][0][0] : records[0][-1][1]]
    return len(records[0]) > 2 and not _NUMBER.search(_QUOTED.sub("", first))


def _records(source: str, separator: str, most: int) -> list[Row] | None:
    """Records of as many fields each; None where one has more or fewer."""
    records: list[Row] = []
    at, n_left = 0, most
    while at < len(source):
        line = _LINE.match(source, at)
        start, end = line.span(1) if line else (at, at)
        if source.find('"', start, end) < 0:
            row, at = _split(source, separator, start, end), line.end() if line else at
        else:
            row, at = _quoted_record(source, separator, at)
        n_left -= len(row)
        if n_left <= 0:
            return None
        if len(row) > 1 or row[0][0] < row[0][1]:
            if records and len(row) != len(records[0]):
                return None
            records.append(row)
    return records


def _split(source: str, separator: str, start: int, end: int) -> Row:
    """The fields of a line without quotation marks."""
    row = []
    for field in source[start:end].split(separator):
        row.append((start, start + len(field)))
        start += len(field) + 1
    return row


def _quoted_record(source: str, separator: str, at: int) -> tuple[Row, int]:
    """The fields of a record that starts at some place, and where the next one starts."""
    row: Row = []
    for match in _FIELDS[separator].finditer(source, at):
        row.append(match.span("plain" if match["quoted"] is None else "quoted"))
        if (match["end"] or match["stop"]) != separator:
            return row, match.end()
    return row, len(source)


def _is_table(source: str, rows: Sequence[Row]) -> bool:
    """Whether rows have several cells, none of which reads as prose."""
    if len(rows[0]) < 2 or _PROSE.search(source, rows[0][0][0], rows[-1][-1][1]):
        return False
    return max(end - start for row in rows for start, end in row) <= _LONGEST


def _is_list(source: str, rows: Sequence[Row]) -> bool:
    """Whether most rows have one cell that is not empty, besides the number of an item."""
    is_pairs = len(rows[0]) == 2
    n_single = 0
    for row in rows:
        filled = [text for a, b in row if (text := source[a:b].strip())]
        is_item = is_pairs and bool(_ITEM.fullmatch(filled[0])) if filled else True
        n_single += len(filled) < 2 or is_item
    return n_single * 2 > len(rows)


def parts_of(
    source: str, lines: Sequence[Span], *, is_wrapped: bool
) -> Iterator[tuple[Sequence[Span], list[Row]]]:
    """The lines of a page in order: lines that are no table, or none, and the rows of a table.

    Args:
        source: the whole text.
        lines: of the page.
        is_wrapped: whether the text was wrapped at a margin, and may be justified with blanks.
    """
    done = 0
    for first, end in _marked_runs(source, lines):
        cells = [_cells_of(source, line) for line in lines[first:end]]
        at = first
        for (is_tabbed, n_cells), run in groupby((is_tabbed, len(row)) for is_tabbed, row in cells):
            last = at + len(list(run))
            rows = [row for _, row in cells[at - first : last - first]]
            is_table = n_cells > 1 and len(rows) > 1 and _is_table(source, rows)
            is_table = is_table and not _is_list(source, rows)
            if is_table and (
                is_tabbed or _are_columns(source, lines[at:last], rows, is_wrapped=is_wrapped)
            ):
                yield lines[done:at], rows
                done = last
            at = last
    yield lines[done:], []


def _marked_runs(source: str, lines: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """First and last line, half-open, of runs of lines that may have several cells."""
    begins = [start for start, _ in lines]
    ends = (begins[0], lines[-1][1]) if lines else (0, 0)
    marked = sorted({bisect_right(begins, m.start()) - 1 for m in _MARK.finditer(source, *ends)})
    for _, run in groupby(enumerate(marked), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        if len(numbers) > 1:
            yield numbers[0], numbers[-1] + 1


def _cells_of(source: str, line: Span) -> tuple[bool, Row]:
    """Whether tabs part the cells of a line, and the cells."""
    start, end = line
    text = source[start:end].rstrip()
    if "\t" in text:
        return True, _cut(text, start, re.finditer("\t", text))
    indent = len(text) - len(text.lstrip())
    return False, _cut(text, start, _GAP.finditer(text, indent), indent)


def _cut(text: str, start: int, gaps: Iterator[re.Match[str]], at: int = 0) -> Row:
    row = []
    for gap in gaps:
        row.append((start + at, start + gap.start()))
        at = gap.end()
    return [*row, (start + at, start + len(text))]


def _are_columns(
    source: str, lines: Sequence[Span], rows: Sequence[Row], *, is_wrapped: bool
) -> bool:
    """Whether blanks part the cells of a table, rather than the letters of a word or sentences."""
    texts = [[source[a:b] for a, b in row] for row in rows]
    if any(len(text) > _LONGEST_CELL for row in texts for text in row):
        return False
    if any(text[-1:] in _ENDS for row in texts for text in row[:-1]):
        return False
    if any(map(_PART.fullmatch, [*texts[0], *(row[0] for row in texts)])):
        return False
    return len(rows[0]) + len(rows) > 4 and (not is_wrapped or _are_below(source, lines, rows))


def _are_below(source: str, lines: Sequence[Span], rows: Sequence[Row]) -> bool:
    """Whether all cells of a column have one edge below the other."""
    for column in range(len(rows[0])):
        edges = [
            [
                columns(source[line[0] : row[column][side]])
                for line, row in zip(lines, rows, strict=True)
            ]
            for side in (0, 1)
        ]
        if min(max(edge) - min(edge) for edge in edges) > 1:
            return False
    return len(rows) >= _LEAST_ROWS


def columns(text: str) -> int:
    """Width of a text in a fixed-width font."""
    if text.isascii():
        return len(text)
    return len(text.translate(_WIDTHS))


class _Widths(dict[int, str]):
    """Code point -> as many characters as it has columns, computed when it is first met."""

    def __missing__(self, point: int) -> str:
        width = "  " if east_asian_width(chr(point)) in "WF" else " "
        self[point] = width
        return width


_WIDTHS = _Widths()
