"""Amounts of a document as each other's evidence: which is the largest, the sum, or repeated.

A total is written again, is the sum of others, and little is larger; a few samples show which of
that holds for a field, in receipts as in contracts of several lots. Nothing is said of currencies:
amounts are compared by number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store.sorted_values import is_in, places_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: What joins a number to more of a code, a date or a share is matched too, so that no number is
#: tried again from within.
_amount = re.compile(
    r"(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)(?: ?(?P<scale>万|亿|百万|千万|million|billion))?"
    r"(?P<unit>元|圆)?(?P<more>[\d%‰/:-]|[.,]\d)?"
)
_SCALES = {
    "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8, "million": 10**6, "billion": 10**9,
}  # fmt: skip
#: Characters of a number.
_LONGEST = 20
#: In hundredths: sums of two are still exact.
_MOST = 10**17
_SIGNS = ("¥", "$", "rm", "€", "£")
_NOT_BEHIND = frozenset("0123456789.,/:-")
#: Beyond so many distinct amounts, the smaller ones are in no sum.
_MOST_SUMMED = 48
#: Ranks and counts that are told apart.
_LAST_RANK, _LAST_COUNT = 4, 4
#: Marks are numbered from 1: for rank, part in sums and count, how many numbers there are.
N_MARKS = (_LAST_RANK + 2, 9, _LAST_COUNT + 1)
#: How much the marks of samples must differ from those of other amounts to tell anything.
_SMOOTH = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class AmountMarks:
    """The amounts of one document, in order.

    Shapes: ``first``, ``last`` (n,) tokens, half-open; ``value`` (n,) in hundredths; ``marks``
    (len(N_MARKS), n), each from 1 on: how many amounts are larger, which part this one has in sums
    of two others (bits), how often it is written.
    """

    first: Ints
    last: Ints
    value: Ints
    marks: Ints

    @classmethod
    def of(cls, folded: str, tokens: Tokens) -> AmountMarks:
        """From folded text and its tokens."""
        found = list(_find(folded))
        first = np.searchsorted(tokens.end, [a for a, _, _ in found], side="right")
        last = np.searchsorted(tokens.start, [b for _, b, _ in found], side="left")
        values = np.array([value for *_, value in found], np.int64)
        distinct, number, counts = np.unique(values, return_inverse=True, return_counts=True)
        marks = np.stack(
            [
                np.minimum(len(distinct) - 1 - number, _LAST_RANK) + 1,
                _parts_in_sums(distinct)[number] + 1,
                np.minimum(counts[number], _LAST_COUNT),
            ]
        )
        return cls(first, last, values, marks)

    def numbers(self, first: Ints, last: Ints) -> Ints:
        """The number (n,) of the one amount that each span of tokens holds, -1 for others."""
        low = np.searchsorted(self.first, first)
        is_one = np.searchsorted(self.last, last, side="right") - low == 1
        return np.where(is_one, low, -1)

    def shares(self, first: Ints, last: Ints) -> tuple[Floats, Floats]:
        """Shares (sum(N_MARKS),) of marks among the amounts in some spans, and among the others."""
        numbers = self.numbers(first, last)
        is_true = is_in(self.value, np.unique(self.value[numbers[numbers >= 0]]))
        _, distinct = np.unique(self.value, return_index=True)
        is_true, marks = is_true[distinct], self.marks[:, distinct]
        return _shares(marks[:, is_true]), _shares(marks[:, ~is_true])


def _shares(marks: Ints) -> Floats:
    counts = [np.bincount(own, minlength=n) for own, n in zip(marks, N_MARKS, strict=True)]
    return np.asarray(np.concatenate(counts) / max(marks.shape[1], 1), np.float64)


def log_odds_of_marks(shares: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Log odds (sum(N_MARKS),) that an amount with a mark is a value, from shares of samples."""
    known = [one for one in shares if one[0].any() and one[1].any()]
    if not known:
        return np.zeros(sum(N_MARKS))
    true, other = np.sum(known, axis=0)
    return np.asarray(np.log((true + _SMOOTH) / (other + _SMOOTH)))


def likeness_of_amounts(marks: AmountMarks, first: Ints, last: Ints, log_odds: Floats) -> Floats:
    """Sum (n,) of the log odds of the marks of the amount in each span, 0 for others."""
    starts = np.cumsum((0, *N_MARKS[:-1]))[:, None]
    known = log_odds[marks.marks + starts].sum(axis=0)
    return np.asarray(np.append(known, 0.0)[marks.numbers(first, last)])


def _find(folded: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and value in hundredths of each number that is written as amounts are."""
    for match in _amount.finditer(folded):
        value = _value(folded, match)
        if value is not None:
            yield match.start(), match.end(), value


def _value(folded: str, match: re.Match[str]) -> int | None:
    """None for a number without sign of being an amount: decimals, thousands, scale, currency."""
    start, number = match.start(), match["number"]
    is_part = match["more"] or folded[start - 1 : start] in _NOT_BEHIND
    if is_part or len(number) > _LONGEST:
        return None
    before = folded[max(start - 3, 0) : start].rstrip()
    if number.isdecimal() and not (match["scale"] or match["unit"] or before.endswith(_SIGNS)):
        return None
    value = round(float(number.replace(",", "")) * _SCALES.get(match["scale"], 1) * 100)
    return value if value < _MOST else None


def _parts_in_sums(distinct: Ints) -> Ints:
    """Bits (n,) of ascending amounts: sum of two others, larger part of one, smaller part."""
    parts = np.zeros(len(distinct), np.int64)
    own = distinct[distinct > 0][-_MOST_SUMMED:]
    larger, smaller = np.tril_indices(len(own), -1)
    sums: Ints = own[larger] + own[smaller]
    at = places_in(sums, own)
    is_sum = at >= 0
    numbers = parts[len(parts) - len(own) :]
    numbers[at[is_sum]] |= 1
    numbers[larger[is_sum]] |= 2
    numbers[smaller[is_sum]] |= 4
    return parts
