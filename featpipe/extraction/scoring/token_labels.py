"""Labels before colons: what the text behind each of them is called, and how far it reaches.

A label is the last words before a colon in their line, behind a mark or a gap that parts columns:
甲方 in ``甲　方（盖章）：X公司``, whose qualifier is 盖章.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.bare_labels import find_bare_labels
from featpipe.extraction.names.synonyms import is_known, is_party
from featpipe.extraction.values.codes import clock_colons
from featpipe.extraction.values.text import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Points = NDArray[np.uint32]

#: Blanks that part what stands side by side in one line.
WIDE = 3
#: Tokens of a label: words, or Chinese characters, of which a label has more.
_LABEL_TOKENS, _LABEL_CHARACTERS = 8, 12
_FIRST_HAN = 0x4E00
_QUALIFIER_TOKENS = 32
#: Tokens before a colon that are searched for a gap.
_GAP_TOKENS = 16
_COLON, _COMMA, _NEWLINE, _TAB, _OPENING, _CLOSING = map(ord, ":,\n\t()")
#: The number of a clause before a label.
_numbered = re.compile(r"^\.?\d{1,2}(?:\.\d{1,2})*\.?(?=[^\W\d])(?![年月日号個个a-z])")
_MARKS = np.sort(points_of("。;!?\n\t:,"))


@dataclass(slots=True)
class Label:
    """Words before a colon, folded and without blanks. Numbers are of tokens."""

    first: int
    """Where it may begin at the earliest: behind a mark or a gap."""
    colon: int
    """Its colon, or the first token behind a label without one."""
    value: int
    """The first token behind it."""
    until: int
    """Behind the last token that it is the label of; those from the colon on are."""
    words: str
    qualifier: str
    """What stands in brackets behind them, as 贷款人 in 甲方（贷款人）."""
    is_apart: bool
    """Whether it begins its line or table cell, or stands behind a value and a gap."""


def find_labels(folded: str, points: Points, start: Ints, end: Ints) -> list[Label]:
    """The labels of a page, in order; those without words, too, since they end others.

    A label reaches to the end of its line; where its line ends with the colon, to that of the next
    line, unless that has a label of its own.

    Args:
        folded: text of the page.
        points: (n_tokens,) first character of each token, folded.
        start: (n_tokens,) where tokens begin, in characters.
        end: (n_tokens,) where they end, half-open.

    """
    found: list[Label] = []
    current: Label | None = None
    since = 0
    passed = 0  # line ends before this mark are those that a label was found to go on behind
    is_mark = np.isin(points, _MARKS)
    is_mark[np.searchsorted(start, clock_colons(folded))] = False  # 14:30 has no label
    marks = np.flatnonzero(is_mark)
    kinds = points[marks].tolist()
    for number, (at, mark) in enumerate(zip(marks.tolist(), kinds, strict=True)):
        if current is not None:
            current.until = at
        if mark == _COLON:
            first = _behind_gap(start, end, since, at)
            if first == since and number and kinds[number - 1] == _COLON:
                first = _behind_blank(folded, start, end, since, at)
            is_apart = first > since or first == 0 or points[first - 1] in (_NEWLINE, _TAB)
            words, qualifier = _words(folded, points, start, end, (first, at))
            current = Label(first, at, at + 1, at, words, qualifier, bool(is_apart))
            found.append(current)
        elif mark == _NEWLINE and current is not None and number >= passed:
            passed = _goes_on(kinds, marks, number)
            current = current if passed else None
        elif mark not in {_COMMA, _NEWLINE}:
            current = None
        since = at + 1
    if current is not None:
        current.until = len(start)
    bare = _bare_labels(folded, start, marks[np.array(kinds) != _COMMA])
    return sorted((*found, *bare), key=lambda label: label.first) if bare else found


def _bare_labels(folded: str, start: Ints, ends: Ints) -> list[Label]:
    """Labels without a colon; they reach as far as others."""
    found = []
    for bare in find_bare_labels(folded):
        first, value = np.searchsorted(start, (bare.start, bare.value)).tolist()
        behind = int(np.searchsorted(ends, value))
        until = int(ends[behind]) if behind < len(ends) else len(start)
        found.append(Label(first, value, value, until, bare.words, bare.qualifier, True))
    return found


def _goes_on(kinds: Sequence[int], marks: Ints, number: int) -> int:
    """The mark behind a line's end and the blank lines behind it, where its label goes on there.

    That is where the colon is the last of the line; else 0.
    """
    back = number - 1
    if back < 0 or kinds[back] != _COLON or marks[back] + 1 != marks[number]:
        return 0  # the colon does not end its line
    ahead = number + 1
    while ahead < len(kinds) and kinds[ahead] == _NEWLINE and marks[ahead - 1] + 1 == marks[ahead]:
        ahead += 1
    at = ahead
    while at < len(kinds) and kinds[at] not in {_COLON, _NEWLINE}:
        at += 1
    return ahead if at == len(kinds) or kinds[at] == _NEWLINE else 0


def _behind_gap(start: Ints, end: Ints, since: int, at: int) -> int:
    """The token behind the widest gap before a colon, where it parts columns; else ``since``.

    The gaps of 电    话 and 开   户   行 part the characters of one label.
    """
    low = max(since, at - _GAP_TOKENS)
    gaps = start[low + 1 : at] - end[low : max(at - 1, low)]
    widest = int(gaps.max(initial=0))
    places = np.flatnonzero(gaps == widest)
    if widest < WIDE or len(places) > 1 or at - (behind := low + 1 + int(places[0])) < 2:
        return since
    return behind


def _behind_blank(folded: str, start: Ints, end: Ints, since: int, at: int) -> int:
    """The first token of a known label behind a value and a blank, else ``since``.

    Wide gaps are one blank in texts that were cleaned: 法定代表人:王伟 法定代表人:张桂超.
    """
    low = max(since, at - _LABEL_TOKENS)
    places = np.flatnonzero(start[low + 1 : at] > end[low : max(at - 1, low)]) + low + 1
    for place in places.tolist():
        words = re.sub(r"\(.*\)$", "", _joined(folded, start[place:at], end[place:at]))
        if is_known(words):
            return place
    return since


def _words(
    folded: str, points: Points, start: Ints, end: Ints, within: tuple[int, int]
) -> tuple[str, str]:
    """The label before a colon, and the words in brackets at its end; "" where there are none."""
    since, at = within
    qualifier = ""
    if at > since and points[at - 1] == _CLOSING:
        low = max(since, at - _QUALIFIER_TOKENS)
        opening = np.flatnonzero(points[low:at] == _OPENING)
        if len(opening):
            inside = low + int(opening[-1])
            qualifier = _joined(folded, start[inside + 1 : at - 1], end[inside + 1 : at - 1])
            at = inside
    is_han = at > since and points[at - 1] >= _FIRST_HAN
    low = max(since, at - (_LABEL_CHARACTERS if is_han else _LABEL_TOKENS))
    label = _after_marks(_joined(folded, start[low:at], end[low:at]))
    return (label, qualifier) if label else (qualifier, "")


def _after_marks(words: str) -> str:
    """The label itself: 甲方 of 致甲方 and of 1.2甲方, and what is behind a comma or a bracket."""
    label = _numbered.sub("", re.sub(r".*[,、\]()》\"]", "", words))
    addressed = label.removeprefix("致")
    return addressed if is_party(addressed) else label


def _joined(folded: str, start: Ints, end: Ints) -> str:
    return "".join(folded[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True))
