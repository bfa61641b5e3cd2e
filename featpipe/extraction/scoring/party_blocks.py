"""Party blocks: the party whose details a token stands among.

A contract lists the address, the bank and the representative of each of its parties, and a judgment
their lawyers, under the same labels: whose they are, the label of the party above or beside tells.
Parties may have columns of their own, side by side in the same lines.

A block begins with the label of a party, or with a line of its name alone, and goes on over the
lines that have labels. A line without any ends it, unless it is short, as the rest of an address
is; so does the number of a clause.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.names.synonyms import is_party, party_and_rest, party_named
from featpipe.extraction.scoring.token_labels import WIDE
from featpipe.extraction.tables.table_headers import party_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.token_labels import Label

    Ints = NDArray[np.int64]
    #: First and last token (half-open) of a piece of a block, and what its party is called.
    Piece = tuple[int, int, str]

#: Characters of a line without a label that goes on with the one above.
_LONGEST_REST = 40
#: Characters of a line of nothing but parties.
_LONGEST_HEAD = 120
#: Details that begin a party's list of them: 甲方联系人：张三  联系电话：139.
_BEGINS = frozenset(["联系人", "经办人", "代表", "法定代表人", "负责人", "委托代理人"])
_clause = re.compile(r"\s*(?:第[^\s第]{1,5}[条章节]|[一二三四五六七八九十]{1,3}[、.])")
#: What heads a list of details: 2.采购代理机构信息, 3.3 乙方收款信息.
_heading = re.compile(
    r"\s*(?:\(?(?:\d{1,2}(?:\.\d{1,2})*|[一二三四五六七八九十]{1,2})[.、)]?\s*)?"
    r"(?P<words>[^\s\d:,。;()]{2,12}?)的?(?:收款|付款|开票|开户|银行|账户|基本)*(?:信息|资料|联系方式)\s*\Z"
)
#: Words side by side, as in a table whose blanks were cleaned; 出 卖 人 is one.
_several = re.compile(r"[^\s()]{2,}\s+[^\s()]|[^\s()]\s+[^\s()]{2,}")
_cell = re.compile(rf"[^\s](?:[^\n\t](?!\s{{{WIDE}}}))*[^\n\t]?")


class _Line(NamedTuple):
    """One line: its tokens without its break, its place in the text, and its labels."""

    first: int
    last: int
    start: int
    text: str
    labels: list[Label]


class _Columns(NamedTuple):
    """The parties of a block from left to right."""

    parties: tuple[str, ...]
    places: tuple[int, ...] = ()
    """How far each begins from its line's start, where gaps part them."""


def party_blocks(
    labels: Sequence[Label], folded: str, start: Ints, end: Ints, line: Ints
) -> Iterator[Piece]:
    """The blocks of a page in pieces, in order.

    Args:
        labels: of the page.
        folded: its text.
        start: (n_tokens,) where tokens begin, in characters.
        end: (n_tokens,) where they end, half-open.
        line: (n_tokens,) numbers of their lines; a break begins the line behind it.

    """
    able = [label for label in labels if label.words]
    block: _Columns | None = None
    for own in _lines(able, folded, end, line):
        named = ((label, _party_of(label.words)) for label in own.labels)
        parties = [replace(label, words=party) for label, party in named if party]
        if parties:
            yield from _first_pieces(own, parties)
            block = _columns_of(own, parties, start)
        elif not own.labels and (alone := _alone(own)) is not None:
            block = alone
        elif not own.labels and (heading := _heading.match(own.text)) is not None:
            block = _Columns((heading["words"],)) if is_party(heading["words"]) else None
        elif block is not None:
            if _clause.match(own.text) or not (own.labels or _goes_on(own.text)):
                block = None
            else:
                yield from _further_pieces(own, block, start)


def _lines(labels: Sequence[Label], folded: str, end: Ints, line: Ints) -> Iterator[_Line]:
    """The lines that are not empty."""
    of_line: dict[int, list[Label]] = {}
    for label in labels:
        of_line.setdefault(int(line[label.colon]), []).append(label)
    edges = [*np.flatnonzero(np.diff(line, prepend=-1)).tolist(), len(line)]
    for at, last in pairwise(edges):
        number = int(line[at])
        first = at + (number > 0)  # behind its break
        if first < last:
            begin = int(end[at]) if number else 0
            text = folded[begin : int(end[last - 1])]
            yield _Line(first, last, begin, text, of_line.get(number, []))


def _party_of(label: str) -> str:
    """The party that a label begins the block of: 购买方名称, or 甲方联系人; "" for none."""
    if is_party(label):
        return label
    party, rest = party_and_rest(label) or ("", "")
    return party_named(label) or (party if rest in _BEGINS else "")


def _goes_on(text: str) -> bool:
    return len(text.strip()) <= _LONGEST_REST and text.rstrip()[-1:] not in "。;"


def _first_pieces(line: _Line, parties: Sequence[Label]) -> Iterator[Piece]:
    """Each party of a line from its label to the next one's."""
    ends = [*(label.first for label in parties[1:]), line.last]
    for label, until in zip(parties, ends, strict=True):
        yield label.first, until, label.words


def _columns_of(line: _Line, parties: Sequence[Label], start: Ints) -> _Columns:
    """Parties that stand apart have columns; of others the last goes on."""
    if not all(label.is_apart for label in parties):
        parties = parties[-1:]
    places = [int(start[label.first]) - line.start for label in parties]
    return _Columns(tuple(label.words for label in parties), _apart(line.text, places))


def _apart(text: str, places: Sequence[int]) -> tuple[int, ...]:
    """The places of columns in a line, none unless wide gaps are before all but the first."""
    gaps = [text[max(place - WIDE, 0) : place] for place in places[1:]]
    return tuple(places) if all(gap == " " * WIDE for gap in gaps) else ()


def _alone(line: _Line) -> _Columns | None:
    """The parties of a line of nothing but parties, and places for their seals: 甲方(盖章)."""
    if len(line.text) > _LONGEST_HEAD or "。" in line.text:
        return None
    cells = list(_cell.finditer(line.text))
    names = [party_in(cell[0]) for cell in cells]
    if not all(names) or any(_several.search(cell[0]) for cell in cells):
        return None
    return _Columns(tuple(names), _apart(line.text, [cell.start() for cell in cells]))


def _further_pieces(line: _Line, block: _Columns, start: Ints) -> Iterator[Piece]:
    """A line of a block: of its party, or each of its columns of the party above."""
    n = len(block.parties)
    if n == 1:
        yield line.first, line.last, block.parties[0]
        return
    heads = [label for label in line.labels if label.is_apart]
    ends = [*(label.first for label in heads[1:]), line.last]
    for number, (label, until) in enumerate(zip(heads, ends, strict=False)):
        place = int(start[label.first]) - line.start
        column = number if len(heads) == n else _column_at(line, block, place)
        if column is not None:
            yield label.first, until, block.parties[column]


def _column_at(line: _Line, block: _Columns, place: int) -> int | None:
    """The column of a label in a line that has fewer than there are parties; None if unknown."""
    if "\t" in line.text:
        return min(line.text.count("\t", 0, place), len(block.parties) - 1)
    if not block.places:
        return None
    # Behind a gap at the line's beginning the first column is empty.
    low = int(place >= WIDE and not line.text[:place].strip())
    return low + int(np.argmin([abs(place - other) for other in block.places[low:]]))
