"""Tables whose cells single blanks part, as conversions of PDF files write them.

::

    股东名称 持股总数 持股比例 质权人
    某集团有限公司 52,170.96 万股 25.75% 某银行股份有限公司
    李明 1,200 万股 0.59% 某证券有限公司

A line of three words or more heads it, half of which are known labels and none of which has digits;
the lines below it have as many cells, numbers and days together with what they are of, or fewer
where the first are merged with those above. Any other line ends it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.names.name_patterns import HAN
from featpipe.extraction.tables.text_tables import (
    cells_of,
    filled,
    is_label,
    lines_of,
    may_be_header,
    touches,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.tables.text_tables import Cell, Row

_LEAST_COLUMNS, _MOST_COLUMNS = 3, 14
_LEAST_KNOWN = 2
#: What else parts cells, or ends a sentence.
_no_row = re.compile(r"[\t|│┃:：。;；]|[^\S\n]{2}")
_han = re.compile(HAN)
#: A day, a number with what it is of, or a word.
_cell = re.compile(
    r"(?:19|20)\d\d ?年 ?\d{1,2} ?月 ?\d{1,2} ?日(?= |\Z)"
    r"|(?:\d[\d,.]*) ?(?:[万亿千百]?(?:股|元|美元|港元|份|张|吨|台|套|个|人|天)|%|％)(?= |\Z)"
    r"|[^ ]+"
)


def tables_of_words(
    text: str, others: Sequence[tuple[int, int]] = ()
) -> Iterator[tuple[int, int, list[Cell]]]:
    """Those of a text, (start, end, cells), in order.

    Args:
        text: of a document, as it is.
        others: character spans of tables that are known already; none is found there.

    """
    rows: list[Row] = []
    for begin, words in lines_of(text):
        if rows:
            row = _cells(words, begin)
            row = filled(text, rows, row) if row else row
            if len(row) == len(rows[0]):
                rows.append(row)
                continue
            yield from _table_of(rows)
            rows = []
        if _heads(words) and not touches([(begin, begin + len(words))], others):
            rows = [_cells(words, begin)]
    yield from _table_of(rows)


def _table_of(rows: Sequence[Row]) -> Iterator[tuple[int, int, list[Cell]]]:
    if len(rows) > 1:
        yield rows[0][0][0], rows[-1][-1][1], cells_of(rows)


def _heads(words: str) -> bool:
    """Whether a line has the headers of a table."""
    heads = words.split(" ")
    if not _LEAST_COLUMNS <= len(heads) <= _MOST_COLUMNS or _no_row.search(words):
        return False
    if not all(map(_han.search, heads)):
        return False  # headers in English have blanks
    n_known = sum(is_label(head) or head.startswith("是否") for head in heads)
    return n_known >= max(_LEAST_KNOWN, len(heads) / 2) and all(map(may_be_header, heads))


def _cells(words: str, begin: int) -> Row:
    """The cells of a line; none if it is no row."""
    if _no_row.search(words):
        return []
    return [(begin + one.start(), begin + one.end()) for one in _cell.finditer(words)]
