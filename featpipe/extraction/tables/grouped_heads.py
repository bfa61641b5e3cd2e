"""Tables whose last columns are headed in two rows: what they are of, and what they have of it.

::

    股东名称  股份性质      本次减持前持有股份          本次减持后持有股份
                            股数（股）  占总股本比例    股数（股）  占总股本比例
    某基金    合计持有股份  9,870,000   6.10%           8,252,000   5.10%

Cells are parted by tabs, gaps or strokes, by single blanks, or have a line each. The second row has
the same heads again below each head of the first that groups columns. A cell's header is both:
``本次减持后持有股份`` and ``占总股本比例``. Rows below have numbers in all grouped columns, and may
lack their first cells, which are merged with those above.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.names.synonyms import in_brackets
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.text_tables import (
    NOTHING,
    lines_of_cells,
    may_be_header,
    row_of_line,
    touches,
)
from featpipe.extraction.values.text import STROKES, fold_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.tables.text_tables import Row

    Table = tuple[int, int, list[LabelledSpan]]
    _Found = tuple[int, list[LabelledSpan]]

#: Columns of a group, columns before the groups, and groups.
_MOST_OF_GROUP, _MOST_BEFORE, _LEAST_GROUPS, _MOST_GROUPS = 4, 4, 2, 4
_number = re.compile(rf"[^\d\s]{{0,3}}\d[\d,.]*\s?[^\d\s]{{0,2}}|{NOTHING}|无")
_blank = re.compile(r"[^ ]+")
_parting = re.compile(rf"[\s{STROKES}]+")
#: Heads of what share something is, of numbers of shares pledged, and of those of all of them.
_share = re.compile(r"占.*(?:比例?|占比|%|总股本)\Z")
_pledged = re.compile(r"质押.*[股数]|[股数].*质押|解质.*股")
_all_pledged = re.compile(r"(?:累计|剩余|尚|已|[前后]).*质押")
#: Characters of a row of heads.
_LONGEST_HEADS = 200


def grouped_tables(text: str, others: Sequence[tuple[int, int]] = ()) -> Iterator[Table]:
    """Those of a text, (start, end, cells with their headers), in order.

    Args:
        text: of a document, as it is.
        others: character spans of tables that are known already; none is found there.

    """
    lines = [(begin, words) for begin, words in lines_of_cells(text) if words]
    places = _places_of_heads([words for _, words in lines])
    rows = [_cells(text, begin, words) for begin, words in lines] if places else []
    behind = 0
    for at in places:
        table = _below(text, rows, at) or _in_lines(text, rows, at)
        if table is None:
            continue
        above, found = table
        start, end = rows[at - above][0][0], found[-1].end
        if start >= behind and not touches([(start, end)], others):
            behind = end
            yield start, end, found


def _places_of_heads(lines: Sequence[str]) -> list[int]:
    """Where the second row of heads may begin: few words again, or one that comes again below."""
    places = []
    for at in range(1, len(lines)):
        words = lines[at]
        if len(words) > _LONGEST_HEADS:
            continue
        if words in lines[at + 2 : at + _MOST_OF_GROUP + 1]:
            places.append(at)
        elif len(words) >= 2 * _LEAST_GROUPS:
            parts = [part for part in _parting.split(words) if part]
            if len(parts) >= 2 * _LEAST_GROUPS and 2 * len({*parts}) <= len(parts):
                places.append(at)
    return places


def _cells(text: str, begin: int, words: str) -> Row:
    row = row_of_line(text, begin, words)
    if len(row) == 1 and " " in words:
        row = [(begin + one.start(), begin + one.end()) for one in _blank.finditer(words)]
    filled = [(start, end) for start, end in row if end > start]
    return filled or row


def _below(text: str, rows: Sequence[Row], at: int) -> _Found | None:
    """The cells below two rows of heads, the second of which is the one at a place.

    The number is of rows above that place.
    """
    if len(rows[at]) < 2 * _LEAST_GROUPS:
        return None
    top, heads = ([text[a:b] for a, b in row] for row in rows[at - 1 : at + 1])
    n_groups = _groups_of(heads)
    if not n_groups or len(top) <= n_groups or not all(map(may_be_header, top)):
        return None
    labels = _labels(top, heads, n_groups)
    found: list[LabelledSpan] = []
    for row in rows[at + 1 :]:
        own = _labelled(text, row, labels, len(heads))
        if not own:
            break
        found += own
    return (1, found) if found else None


def _in_lines(text: str, rows: Sequence[Row], at: int) -> _Found | None:
    """The same where each cell has a line; the one at a place is the first of the second heads."""
    few = _words_of_lines(text, rows[at : at + _MOST_OF_GROUP + 1])
    if not few[0] or few[0] not in few[2:]:
        return None
    first = max(at - _MOST_GROUPS - _MOST_BEFORE, 0)
    above = _words_of_lines(text, rows[first:at])
    below = _words_of_lines(text, rows[at : at + _MOST_GROUPS * _MOST_OF_GROUP])
    for n_heads in range(2 * _LEAST_GROUPS, len(below) + 1):
        n_groups = _groups_of(heads) if all(heads := below[:n_heads]) else 0
        most = min(_MOST_BEFORE, len(above) - n_groups) if n_groups else 0
        for n_before in range(1, most + 1):
            top = above[-n_groups - n_before :]
            if not all(top) or not all(map(may_be_header, top)):
                break
            labels = _labels(top, heads, n_groups)
            lines = rows[at + n_heads : at + n_heads + len(labels)]
            cells = [row[0] for row in lines if len(row) == 1]
            if len(cells) == len(labels) and (found := _labelled(text, cells, labels, n_heads)):
                return len(top), found
    return None


def _words_of_lines(text: str, rows: Sequence[Row]) -> list[str]:
    """What lines of one cell say; "" for others."""
    return [text[slice(*row[0])] if len(row) == 1 else "" for row in rows]


def _groups_of(heads: Sequence[str]) -> int:
    """How many times a row has the same heads; 0 for any other row."""
    for n in range(2, _MOST_OF_GROUP + 1):
        n_groups = len(heads) // n
        are_told_apart = n_groups >= _LEAST_GROUPS and len({*heads[:n]}) == n
        if are_told_apart and list(heads) == list(heads[:n]) * n_groups:
            return n_groups if all(map(may_be_header, heads[:n])) else 0
    return 0


def _labels(top: Sequence[str], heads: Sequence[str], n_groups: int) -> list[str]:
    n = len(heads) // n_groups
    groups = [in_brackets.sub("", fold_width(group)) for group in top[-n_groups:]]
    return [*top[:-n_groups], *(groups[at // n] + head for at, head in enumerate(heads))]


def _labelled(text: str, row: Row, labels: Sequence[str], n_numbers: int) -> list[LabelledSpan]:
    """Cells of a row with their headers; none unless its last cells are numbers, and no others."""
    if not n_numbers < len(row) <= len(labels):
        return []
    are_numbers = [_number.fullmatch(text[start:end]) is not None for start, end in row]
    if not all(are_numbers[-n_numbers:]) or any(are_numbers[:-n_numbers]):
        return []
    return [
        LabelledSpan(start, end, label)
        for (start, end), label in zip(row, labels[-len(row) :], strict=True)
    ]


def of_sums(heads: Sequence[str]) -> list[str]:
    """Heads of columns; shares behind the number of all shares pledged are of that: 累计占股本."""
    found, is_of_sum = [], False
    for head in heads:
        words = "".join(in_brackets.sub("", fold_width(head)).split())
        is_share = _share.match(words) is not None
        if not is_share and _pledged.search(words):
            is_of_sum = _all_pledged.search(words) is not None
        found.append(f"累计{words}" if is_share and is_of_sum else head)
    return found
