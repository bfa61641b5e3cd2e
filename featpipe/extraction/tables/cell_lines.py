"""Tables whose cells have a line each, as many conversions of PDF and Word files write them.

::

    标段
    中标人
    中标金额（元）
    一标段
    X公司
    11,427,305.60
    二标段
    Y公司
    4,865,218.44

Lines that follow each other without a blank one, short and without colons, are a table where the
first n are headers, half of them known labels, and those below make rows of n: one column at least
has numbers in every row, none has them in some rows alone, and no cell is a known label. Lines
behind the last whole row, as those of a sum, are left out where there are two rows or more.

So are lines where every n-th is a label, most of them known, and none of the others is: those of
one row all have digits, or none has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.tables.text_tables import (
    NOTHING,
    cells_of,
    is_label,
    is_sum,
    lines_of_cells,
    may_be_header,
    numbers_rows,
    touches,
)
from featpipe.extraction.values.text import fold_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.tables.text_tables import Cell

    Line = tuple[int, int]

_LEAST_COLUMNS, _MOST_COLUMNS = 3, 12
_LEAST_KNOWN = 2
#: Lines of a row with its label, at most, and how many such rows there are.
_MOST_OF_ROW, _LEAST_ROWS, _MOST_ROWS = 4, 4, 60
#: Characters of a cell.
_LONGEST_CELL = 60
#: What no line of a cell has: a label with its value, the end of a sentence, several cells, a
#: heading in brackets.
_no_cell = re.compile(r"[:：。;；\t|│【】]|\S[^\S\n]{2,}\S")
_digit = re.compile(r"\d")
_nothing = re.compile(NOTHING)
#: A head of names of rows, 一标段, that no field is called.
_LOT = "标段"
#: Of a part of the document.
_heading = re.compile(r"[一二三四五六七八九十]{1,3}、|[(（][一二三四五六七八九十]{1,3}[)）]")


def tables_of_lines(
    text: str, others: Sequence[tuple[int, int]] = ()
) -> Iterator[tuple[int, int, list[Cell]]]:
    """Those of a text, (start, end, cells), in order.

    Args:
        text: of a document, as it is.
        others: character spans of tables that are known already; none is found there.

    """
    for lines in _runs(text):
        if len(lines) >= 2 * _LEAST_COLUMNS and not touches(lines, others):
            words = [text[a:b] for a, b in lines]
            known, heads = ([f(one) for one in words] for f in (is_label, may_be_header))
            table = _labelled_rows(words, lines, known, heads)
            yield from [table] if table else _tables_in(words, lines, known, heads)


def _runs(text: str) -> Iterator[list[Line]]:
    """Lines that may be cells, without blanks at their edges, as far as they follow each other."""
    run: list[Line] = []
    for begin, words in lines_of_cells(text):
        if words and len(words) <= _LONGEST_CELL and not _no_cell.search(words):
            run.append((begin, begin + len(words)))
        elif run:
            yield run
            run = []


def _labelled_rows(
    words: Sequence[str], lines: Sequence[Line], known: Sequence[bool], heads: Sequence[bool]
) -> tuple[int, int, list[Cell]] | None:
    """The table of lines where every second, third ... is a label; None for none.

    Args:
        words: of the lines.
        lines: where they begin and end.
        known: whether each is a known label.
        heads: whether each may be a header.

    """
    firsts = [at for at, is_known in enumerate(known) if is_known]
    for top, n in ((at, n) for at in firsts for n in range(2, _MOST_OF_ROW + 1)):
        n_rows = 0
        for at in range(top, min(len(words) - n + 1, top + n * _MOST_ROWS), n):
            others = words[at + 1 : at + n]
            are_alike = len({_digit.search(one) is None for one in others}) == 1
            has_heading = any(map(_heading.match, words[at : at + n]))
            is_row = heads[at] and are_alike and not has_heading
            if not is_row or any(known[at + 1 : at + n]):
                break
            n_rows += 1
        for end in range(n_rows, _LEAST_ROWS - 1, -1):
            labels = known[top : top + n * end : n]
            # The last row begins with a known label, too.
            if labels[-1] and 3 * sum(labels) >= 2 * end:
                cells = lines[top : top + n * end]
                rows = [list(cells[at : at + n]) for at in range(0, len(cells), n)]
                return cells[0][0], cells[-1][1], cells_of(rows)
    return None


def _tables_in(
    words: Sequence[str], lines: list[Line], labels: Sequence[bool], heads: Sequence[bool]
) -> Iterator[tuple[int, int, list[Cell]]]:
    """Those with headers above; arguments as of :func:`_labelled_rows`."""
    known = [
        is_known or numbers_rows(one) or one == _LOT
        for one, is_known in zip(words, labels, strict=True)
    ]
    # At each line, the next one that is a known label.
    label_at = [len(words)] * (len(words) + 1)
    for number in range(len(words) - 1, -1, -1):
        is_other = known[number] and not is_sum(words[number])
        label_at[number] = number if is_other else label_at[number + 1]
    for top in range(len(words) - 2 * _LEAST_COLUMNS + 1):
        end = min(top + _MOST_COLUMNS, len(words))
        n_headers = next((n for n in range(top, end) if not heads[n]), end) - top
        for n in range(_LEAST_COLUMNS, n_headers + 1):
            n_known, below = sum(known[top : top + n]), top + n
            n_rows = (len(words) - below) // n
            is_headed = n_known >= _LEAST_KNOWN and 2 * n_known >= n and n_rows > 0
            is_whole = n_rows > 1 or len(words) == below + n
            has_labels = label_at[below] < below + n * n_rows
            if is_headed and is_whole and not has_labels and _are_rows(words[below:], n):
                cells = lines[top : below + n * n_rows]
                rows = [cells[at : at + n] for at in range(0, len(cells), n)]
                yield cells[0][0], cells[-1][1], cells_of(rows)
                return


def _are_rows(words: Sequence[str], n: int) -> bool:
    """Whether lines make rows of n cells: some columns of numbers, the others without."""
    n_rows = len(words) // n
    have = [_is_number(fold_width(cell)) for cell in words[:n]]
    return any(have) and all(
        _is_number(fold_width(cell := words[row * n + column])) == have[column]
        or _nothing.fullmatch(cell)
        for row in range(1, n_rows)
        for column in range(n)
    )


def _is_number(cell: str) -> bool:
    """Whether most of what a cell has are digits, as in 5,200,000股."""
    return 2 * len(_digit.findall(cell)) >= len(cell)
