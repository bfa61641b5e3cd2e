"""Tables in plain text: lines of as many cells, parted by tabs or by wide gaps.

::

    序号  货物名称    数量      金额（元）
    1     控制电缆    5 米          162.50
    2     铠装电缆    260 米    101,920.00

Lines of two cells, or of four, between strokes or tabs are the rows of a form, where many of the
first, and of the third, are known labels: ``合同编号 | 2024-12``.

A table has a row of headers, without digits, and rows below it of as many cells, at least three:
one of them has digits in each row, or most headers, and no cells below, are known labels. Names
side by side, as of those who sign, make none. A row of more cells ends it, and one of fewer, unless
they are of the kinds of the last cells above: its first ones are merged with those above.

A label at the left of each row says what its other cells are, where each column is a record.

Upright strokes part the cells of a line, too, with or without strokes around all of them, and make
a table where a line of dashes parts the first from those below, as in Markdown:
``| 货物 | 数量 |``, ``| --- | --- |``, ``| 电缆 | 5 |``. So do the lines of boxes.

A row of any table that begins with 合计 holds sums of all kinds, of shares as well.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from featpipe.extraction.names.synonyms import in_brackets, is_known
from featpipe.extraction.values.text import (
    STROKE,
    STROKES,
    fold_width,
    line_starts,
    matches_at,
    placed_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    #: (row, column, start, end, rows spanned, columns spanned) of a table cell.
    Cell = tuple[int, int, int, int, int, int]
    Row = list[tuple[int, int]]

_LEAST_CELLS = 3
#: Rows above one whose first cells are merged: of headers, and of cells.
_LEAST_ABOVE = 2
#: Known labels that make a form, whatever else it has; else they are a third of its labels.
_MANY_KNOWN = 4
#: Rows with labels at their left, at least; and what heads a column of labels.
_LEAST_ROWS = 3
_of_rows = re.compile(r"\s*|项\s?目|指标|科目|内容|类别|事项|条款|要素")
#: Heads of columns that number the rows.
_counts = re.compile(
    r"(?:序|编|包|标段|行|项目?)\s?号|序列|序次|项次|no\.?|#|(?:item|lot)(?: no\.?)?|line"
)
#: Rows that the headers of a table are looked for in.
_MOST_ABOVE = 20
#: Characters of a header.
_LONGEST_HEADER = 24
_gap = re.compile(r"[^\S\n]*\t[^\S\n]*|[^\S\n]{2,}")
#: Between the rows of a table between strokes: | --- | --- |, +----+, ├────┼────┤.
_border = re.compile(
    r"(?=.*(?:-\s*\||\|\s*:?-|\+-|-\+|[─━═]))[|│┃+:\-\s─━═┌┬┐├┼┤└┴┘┏┳┓┣╋┫┗┻┛╔╦╗╠╬╣╚╩╝╭╮╰╯]+"
)
_parting = re.compile(rf"[\t{STROKES}]")
_no_header = re.compile(r"[:。;]")
_digit = re.compile(r"\d")
#: Of a cell that has no value.
NOTHING = r"[-—–/－]+"
_OPENS = frozenset("(（")
_unit_alone = re.compile(r"[(（](?:[元股%％万亿/]|美元|港元|人民币|单位[:：]){1,6}[)）]")
#: What a cell may have, as far as digits tell.
_CELLS = {
    "day": re.compile(r"(?:19|20)\d\d\s?[-/.年]\s?\d{1,2}\s?[-/.月]\s?\d{1,2}\s?日?"),
    "share": re.compile(r"\d[\d,.]*\s?[%％]"),
    "number": re.compile(r"[^\d\s]{0,3}\d[\d,.]*\s?[^\d\s]{0,3}"),
}
#: Digits of a header, in folded text: of a year with what tells its part, as 2023年1-6月, and of
#: RMB'000.
_in_header = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:年(?:度|末|底|初|\d{1,2}(?:[-~至]\d{1,2})?月(?:\d{1,2}日|[末底])?)?"
    r"|[-/.]\d{1,2}(?:[-/.]\d{1,2})?)?(?![\d,.])|'000s?(?!\d)"
)
#: Lines that may be rows of sums, of any width of letters: few are parted into cells.
_line_of_sums = re.compile(
    r"[^\S\n]*[|│┃]?[^\S\n]*(?:[合总小共]|sub|grand|total|sum|[\uff21-\uff5a])[^\n]*",
    re.IGNORECASE,
)
#: What such a line may begin with, where no blanks are before it.
_BEGIN_SUMS = frozenset(f"合总小共{STROKES}sſgtSGT").union(map(chr, range(0xFF21, 0xFF5B)))
#: First cells of rows of sums, in folded text.
_row_of_sums = re.compile(
    r"(?:(?:合|总|小|共)\s*计|(?:sub|grand\s)?total|sum)\s*(?:\([^()]*\))?\s*:?\s*"
)


def text_tables(
    text: str, others: Sequence[tuple[int, int]] = ()
) -> Iterator[tuple[int, int, list[Cell]]]:
    """Tables as documents have them, (start, end, cells), in order.

    Args:
        text: of a document, as it is.
        others: character spans of its tables that are known already; none is found there.

    """
    parted = list(_parted_tables(text)) if STROKE.search(text) else []
    parted = [table for table in parted if not touches([table[:2]], others)]
    yield from parted
    forms = list(_forms(text, [*others, *(table[:2] for table in parted)]))
    yield from forms
    known = {cell[2] for _, _, cells in (*parted, *forms) for cell in cells}
    rows: list[Row] = []
    for found in rows_of_cells(text):
        is_known = found[0][0] in known or touches(found, others)
        row = found if is_known else filled(text, rows, found)
        if rows and (len(row) != len(rows[0]) or is_known):
            yield from _table_of(text, rows)
            rows = []
        if len(row) >= _LEAST_CELLS and not is_known:
            rows.append(row)
    yield from _table_of(text, rows)


def filled(text: str, rows: Sequence[Row], row: Row) -> Row:
    """A row whose first cells are those above it, merged, with empty ones in their place.

    Its cells are of the kinds that the last ones of the row above are of, or tabs are before it.
    """
    if len(rows) < _LEAST_ABOVE or not 1 < len(row) < len(rows[-1]):
        return row
    own, above = (
        [_kind_of(text[start:end]) for start, end in one] for one in (row, rows[-1][-len(row) :])
    )
    begin, n_empty = row[0][0], len(rows[-1]) - len(row)
    has_tabs = text.endswith("\t" * n_empty, 0, begin)
    if not has_tabs and (own != above or set(own) == {""}):
        return row
    return [(begin, begin)] * n_empty + row


def _kind_of(words: str) -> str:
    """Which of these a cell has, or ""."""
    return next((kind for kind, pattern in _CELLS.items() if pattern.fullmatch(words)), "")


def numbers_rows(header: str) -> bool:
    """Whether a header is of a column that numbers the rows of its table: 序号."""
    return _counts.fullmatch(fold_width(header)) is not None


def rows_of_cells(text: str) -> Iterator[Row]:
    """Character spans of the cells of each line that is not empty."""
    for begin, words in lines_of(text):
        if words and not _border.fullmatch(words):
            row = row_of_line(text, begin, words)
            if row:
                yield row


def row_of_line(text: str, begin: int, words: str) -> Row:
    """The cells of a line, of those words."""
    if STROKE.search(words):
        return _row(text, begin, words)
    return list(_cells(text, begin, begin + len(words)))


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Each line without blanks at its edges, and where that begins; an empty one ends the text."""
    for start, line in (*placed_lines(text), (len(text), "\n")):
        yield start + len(line) - len(line.lstrip()), line.strip()


def lines_of_cells(text: str) -> Iterator[tuple[int, str]]:
    """As :func:`lines_of`, a unit in brackets together with the header that it goes on."""
    begin, words = -1, ""
    for start, line in lines_of(text):
        if words and line[:1] in _OPENS and _unit_alone.fullmatch(line):
            words = text[begin : start + len(line)]
            continue
        if begin >= 0:
            yield begin, words
        begin, words = start, line
    yield begin, words


def _parted_tables(text: str) -> Iterator[tuple[int, int, list[Cell]]]:
    """Tables between strokes, with a line of dashes below their headers."""
    rows: list[Row] = []
    is_parted = False
    for begin, words in lines_of(text):
        is_border = _border.fullmatch(words) is not None
        is_row = is_border or STROKE.search(words) is not None
        if is_border:
            is_parted = is_parted or len(rows) == 1
        elif is_row:
            row = _row(text, begin, words)
            rows = rows if is_parted else []
            rows += [row] if row else []
        if not is_row:
            if is_parted and len(rows) > 1:
                yield rows[0][0][0], rows[-1][-1][1], cells_of(rows)
            rows, is_parted = [], False


def cells_of(rows: Sequence[Row]) -> list[Cell]:
    """Cells of rows of spans, none of which goes over several rows or columns."""
    return [
        (number, column, start, end, 1, 1)
        for number, row in enumerate(rows)
        for column, (start, end) in enumerate(row)
    ]


def _row(text: str, start: int, words: str) -> Row:
    """The cells between strokes, without blanks at their edges; none is outside outer strokes."""
    end = start + len(words)
    strokes = [stroke.start() for stroke in STROKE.finditer(text, start, end)]
    edges = [start - 1] * (strokes[0] > start) + strokes + [end] * (strokes[-1] < end - 1)
    row = []
    for low, high in pairwise(edges):
        cell = text[low + 1 : high]
        first = min(low + 1 + len(cell) - len(cell.lstrip()), high)
        row.append((first, first + len(cell.strip())))
    return row


def rows_of_sums(text: str) -> Iterator[tuple[int, int]]:
    """Character spans of rows of several cells, the first of which is 合计, 小计, Total ..."""
    firsts = ((at, text[at : at + 1]) for at in line_starts(text))
    starts = (at for at, first in firsts if first in _BEGIN_SUMS or first.isspace())
    for line in matches_at(_line_of_sums, text, starts):
        for row in rows_of_cells(line[0]):
            start, end = (line.start() + edge for edge in row[0])
            if len(row) > 1 and is_sum(text[start:end]):
                yield start, line.start() + row[-1][1]


def _cells(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for gap in _gap.finditer(text, start, end):
        yield start, gap.start()
        start = gap.end()
    yield start, end


def touches(row: Row, others: Sequence[tuple[int, int]]) -> bool:
    """Whether spans in order have a place in common with any of some others."""
    return any(start < row[-1][1] and row[0][0] < end for start, end in others)


def _table_of(text: str, rows: Sequence[Row]) -> Iterator[tuple[int, int, list[Cell]]]:
    """The table of some lines of as many cells, from its first row of headers on."""
    words = [[text[start:end] for start, end in row] for row in rows]
    if have_labels_at_left(words):
        yield rows[0][0][0], rows[-1][-1][1], cells_of(rows)
        return
    for top, heads in enumerate(words[:-1][:_MOST_ABOVE]):
        if all(map(may_be_header, heads)) and _are_headed(heads, words[top + 1 :]):
            yield rows[top][0][0], rows[-1][-1][1], cells_of(rows[top:])
            return


def _are_pairs(text: str, row: Row) -> bool:
    """Whether strokes or tabs, but no gaps, part two cells, or known labels and their values."""
    if len(row) % 2 or not all(_parting.search(text, a[1], b[0]) for a, b in pairwise(row)):
        return False
    known = [is_label(text[start:end]) for start, end in row]
    return len(row) == 2 or (all(known[::2]) and not any(known[1::2]))


def _forms(text: str, others: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, list[Cell]]]:
    """Tables of pairs of cells, many of the first of which are known labels, and few others."""
    for pairs in _runs_of_pairs(text, others):
        labels, values = ([text[slice(*pair[side])] for pair in pairs] for side in (0, 1))
        n_known = sum(map(is_label, labels))
        n_others = sum(map(is_label, values))
        if (3 * n_known >= len(pairs) or n_known >= _MANY_KNOWN) and 4 * n_others < n_known:
            yield pairs[0][0][0], pairs[-1][-1][1], cells_of(pairs)


def _runs_of_pairs(text: str, others: Sequence[tuple[int, int]]) -> Iterator[list[Row]]:
    """Lines of two, four ... cells that follow each other, as pairs of cells."""
    pairs: list[Row] = []
    for row in rows_of_cells(text):
        if _are_pairs(text, row) and not touches(row, others):
            pairs += [row[at : at + 2] for at in range(0, len(row), 2)]
        elif pairs:
            yield pairs
            pairs = []
    if pairs:
        yield pairs


def may_be_header(words: str) -> bool:
    """Whether a cell may head others: it is short, and has no digits but those of a year."""
    if len(words) > _LONGEST_HEADER:
        return False
    folded = fold_width(words)
    words = _in_header.sub("", in_brackets.sub("", folded))
    return not (_no_header.search(folded) or _digit.search(words))


def _are_headed(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether labels head the rows, or a column of digits is below.

    A column of years below a year is one more of them.
    """
    columns = list(zip(*rows, strict=True))
    is_alike = any(
        _in_header.search(fold_width(head))
        and all(_digit.search(words) and may_be_header(words) for words in column)
        for head, column in zip(heads, columns, strict=True)
    )
    has_digits = any(all(map(_digit.search, column)) for column in columns)
    return not is_alike and (has_digits or _are_labels(heads, rows))


def have_labels_at_left(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first cell of each row is what the others are, a column for each record."""
    if len(rows) < _LEAST_ROWS or _of_rows.fullmatch(rows[0][0]):
        return False
    n_known = sum(is_label(row[0]) for row in rows)
    others = [words for row in rows for words in row[1:]]
    is_headed = any(_in_header.search(fold_width(words)) for words in rows[0][1:])
    return 2 * n_known >= len(rows) and not is_headed and not any(map(is_label, others))


def _are_labels(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether most heads are known labels, and nothing below them is."""
    n_known = sum(map(is_label, heads))
    return 2 * n_known > len(heads) and not any(is_label(words) for row in rows for words in row)


def is_sum(words: str) -> bool:
    """Whether a cell begins a row of sums."""
    return _row_of_sums.fullmatch(fold_width(words)) is not None


def is_label(words: str) -> bool:
    """Whether a cell is a known label, 本次 before it or not."""
    label = "".join(in_brackets.sub("", fold_width(words)).split())
    return is_known(label) or is_known(label.removeprefix("本次"))
