r"""Tokens: a document cut into characters, words and numbers, with what stands around each.

One Chinese character, one Latin word, one run of digits, one mark, one line break: one token; in a
pattern, ``[a-z]+(?:'[a-z]+)?|\d+|[\n\t]|\S`` over the folded text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.hashing import hash_of
from featpipe.extraction.values.text import (
    BLANK,
    BREAK,
    DECIMAL,
    DIGIT,
    LETTER,
    PLAIN,
    TRAITS,
    UPPER,
    CharacterTable,
    fold_width,
    points_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_LABEL_TOKENS = 8
_APOSTROPHE, _COLON, _COMMA, _NEWLINE = map(ord, "':,\n")


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Arrays of length n_tokens; ``start``/``end`` are characters, the rest numbers or hashes."""

    start: Ints
    end: Ints
    code: Ints
    """Hash of the folded token; digits by their count, so that any year looks like a year."""
    is_mark: Bools
    """Neither letter nor digit: a place where names begin and end."""
    is_latin: Bools
    is_capital: Bools
    is_word_start: Bools
    label: Ints
    """Hash of what stands before the last colon of the line, or of the table header; 0 if none."""
    label_text: Mapping[int, str]
    """The words of each such hash."""
    line: Ints
    sentence: Ints
    heading: Ints
    """Hash of the last numbered or short line above."""

    def __len__(self) -> int:
        return len(self.start)


def make_tokens(page: Page) -> Tokens:
    """For :attr:`Page.tokens`."""
    points = points_of(page.folded)
    traits = TRAITS.look_up(points)
    start, end = _cut(points, traits)
    first = points[start]
    kind = traits[start]
    latin = (kind & LETTER) > 0
    marks = (kind & PLAIN) == 0
    upper = TRAITS.look_up(points_of(page.text)[start])
    labels, label_text = _labels(page, first, start, end)
    sentence = np.searchsorted(page.sentences[:, 0], start, side="right") - 1
    breaks = first == _NEWLINE
    return Tokens(
        start=start,
        end=end,
        code=_codes(page.folded, first, kind, start, end),
        is_mark=marks,
        is_latin=latin,
        is_capital=(upper & UPPER) > 0,
        is_word_start=_word_starts(page, start, marks | latin),
        label=labels,
        label_text=label_text,
        line=np.cumsum(breaks),
        sentence=np.maximum(sentence, 0),
        heading=_headings(page.folded, breaks, start, end),
    )


def _cut(points: NDArray[np.uint32], traits: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Where tokens begin and end."""
    letter, decimal = (traits & LETTER) > 0, (traits & DECIMAL) > 0
    blank = ((traits & BLANK) > 0) & ((traits & BREAK) == 0)
    # Whether a character goes on with the token of the one before it.
    goes_on = np.zeros(len(points) + 1, bool)
    goes_on[1:-1] = (letter[1:] & letter[:-1]) | (decimal[1:] & decimal[:-1])
    joined = _joined_apostrophes(points, letter, goes_on)
    goes_on[joined] = goes_on[joined + 1] = True
    is_start = ~blank & ~goes_on[:-1]
    is_end = ~blank & ~goes_on[1:]
    return np.flatnonzero(is_start), np.flatnonzero(is_end) + 1


def _joined_apostrophes(points: NDArray[np.uint32], letter: Bools, goes_on: Bools) -> Ints:
    """Places of the apostrophes inside words: one in a word, the first from the left."""
    at = np.flatnonzero(points[1:-1] == _APOSTROPHE) + 1
    joined: list[int] = []
    for place in at[letter[at - 1] & letter[at + 1]].tolist():
        # Behind an apostrophe that is inside a word, up to here in one go: the same word.
        is_same = bool(joined) and bool(goes_on[joined[-1] + 2 : place].all())
        if not is_same:
            joined.append(place)
    return np.array(joined, np.int64)


def _codes(
    folded: str, first: NDArray[np.uint32], kind: NDArray[np.uint8], start: Ints, end: Ints
) -> Ints:
    codes = _CODES.look_up(first)
    is_digit = (kind & DIGIT) > 0
    codes[is_digit] = _digits_code[np.minimum((end - start)[is_digit], 9)]
    for at in np.flatnonzero((end - start > 1) & ~is_digit).tolist():
        codes[at] = hash_of(folded[start[at] : end[at]])
    return codes


_CODES = CharacterTable(hash_of, np.int64)
_digits_code = np.array([hash_of(f"digits {n}") for n in range(10)], np.int64)


def _word_starts(page: Page, start: Ints, plain: Bools) -> Bools:
    """Where words begin: marks, Latin words and what follows them always; else as they are cut."""
    begins = np.zeros(len(page.text) + 1, bool)
    begins[page.words[:, 0]] = True
    behind = np.concatenate(([True], plain[:-1]))
    return np.asarray(begins[start] | plain | behind)


_label_marks = np.sort(points_of("。;!?\n\t:,"))


def _labels(
    page: Page, first: NDArray[np.uint32], start: Ints, end: Ints
) -> tuple[Ints, dict[int, str]]:
    """Per token the label it stands behind: the words before a colon, or a table header."""
    labels = np.zeros(len(start), np.int64)
    texts: dict[int, str] = {}
    number, since, first_at = 0, 0, 0
    marks = np.flatnonzero(np.isin(first, _label_marks))
    for at, mark in zip(marks.tolist(), first[marks].tolist(), strict=True):
        if number:
            labels[first_at:at] = number
        first_at = at
        if mark == _COLON:
            low = max(since, at - _LABEL_TOKENS)
            current = _before_colon(_joined(page.folded, start[low:at], end[low:at]))
            number = hash_of(current) if current else 0
            texts[number] = current
        elif mark != _COMMA:
            number = 0
        since = at + 1
    labels[first_at:] = number
    for header in page.headers:
        low, high = np.searchsorted(start, (header.start, header.end))
        label = fold_width(header.label)[-24:]
        own = labels[low:high]
        own[own == 0] = hash_of(label)
        texts[hash_of(label)] = label
    return labels, texts


def _before_colon(words: str) -> str:
    """What of them is the label: nothing before a mark."""
    return re.sub(r".*[,、\]()》\"]", "", words)


def _headings(folded: str, breaks: Bools, start: Ints, end: Ints) -> Ints:
    """Per token a hash of the last line above that is short and ends without a stop."""
    headings = np.zeros(len(start), np.int64)
    current, first = 0, 0
    for at in [*np.flatnonzero(breaks).tolist(), len(start)]:
        if current:
            headings[first:at] = current
        # A line begins with the break before it, which is its first token.
        if 2 <= at - first <= 16 and folded[end[at - 1] - 1] not in "。;,:":
            words = [
                folded[a:b]
                for a, b in zip(start[first:at].tolist(), end[first:at].tolist(), strict=True)
            ]
            current = hash_of("".join([word for word in words if word.isalpha()][-6:]))
        first = at
    return headings


def _joined(folded: str, start: Ints, end: Ints) -> str:
    return "".join(folded[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True))
