"""Amounts of a document as evidence: which is the largest, the sum, or repeated; how large it is.

A total is written again, is the sum of those before it, and what is larger is written once: what
was paid. A few samples show which of that holds for a field, in receipts as in contracts of several
lots, and whether its amounts are prices of a share or what all shares cost. Nothing is said of
currencies: amounts are compared by number.
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
#: Ranks that are told apart.
_LAST_RANK = 4
#: Least coin that cash is rounded to, and the largest change by it: 14.63 to 14.65.
_COIN, _MOST_ROUNDED = 5, 2
#: Marks are numbered from 1: how many numbers there are for the rank, as a sum, as the larger part
#: of one, beside the largest repeated amount, for rounding, and for how large it is.
N_MARKS = (_LAST_RANK + 2, 5, 5, 5, 4, 36)
#: Sizes told apart between powers of ten, and how far those of samples count for near ones.
_PER_POWER = 2
_NEAR = np.array([1.0, 2.0, 3.0, 2.0, 1.0]) / 9
#: How much the marks of samples must differ from those of other amounts to tell anything.
_SMOOTH = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class AmountMarks:
    """The amounts of one document, in order.

    Shapes: ``first``, ``last`` (n,) tokens, half-open; ``value`` (n,) in hundredths; ``marks``
    (len(N_MARKS), n), each from 1 on: how many amounts are larger; whether this one is a sum of two
    others, and the larger part of a sum (bits); whether it is the largest that is written again;
    whether it is rounded; how large it is. How often it is written says no more than that, and
    counts twice.
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
        distinct, place, number, counts = np.unique(
            values, return_index=True, return_inverse=True, return_counts=True
        )
        marks = np.stack(
            [
                np.minimum(len(distinct) - 1 - number, _LAST_RANK) + 1,
                *(_parts_in_sums(distinct, place)[:, number] + 1),
                _beside_repeated(distinct, counts)[number],
                _rounding(distinct)[number],
                np.rint(np.log10(np.maximum(values, 1)) * _PER_POWER).astype(np.int64) + 1,
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
    totals = np.sum(known, axis=0)
    for sizes in totals[:, -N_MARKS[-1] :]:
        sizes[:] = np.convolve(sizes, _NEAR, mode="same")
    true, other = totals
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


def _parts_in_sums(distinct: Ints, place: Ints) -> Ints:
    """Bits (2, n) of ascending amounts, by the ``place`` where each is first written.

    As a sum of two others: 1 behind both, 2 before one of them. As the larger part of a sum: 1 if
    the sum stands behind it, 2 if before it. A total stands behind its parts, what was paid stands
    before the change.
    """
    parts = np.zeros((2, len(distinct)), np.int64)
    first = max(int(np.count_nonzero(distinct <= 0)), len(distinct) - _MOST_SUMMED)
    own, place = distinct[first:], place[first:]
    larger, smaller = np.tril_indices(len(own), -1)
    sums: Ints = own[larger] + own[smaller]
    at = places_in(sums, own)
    is_sum = at >= 0
    at, larger, smaller = at[is_sum], larger[is_sum], smaller[is_sum]
    is_behind_larger = place[at] > place[larger]
    is_behind_both = is_behind_larger & (place[at] > place[smaller])
    as_sum, as_larger = parts[:, first:]
    np.bitwise_or.at(as_sum, at, np.where(is_behind_both, 1, 2))
    np.bitwise_or.at(as_larger, larger, np.where(is_behind_larger, 1, 2))
    return parts


def _beside_repeated(distinct: Ints, counts: Ints) -> Ints:
    """Marks (n,) of ascending amounts: 2 for the largest that is written again, 3 above, 4 below.

    1 where none is.
    """
    repeated = np.flatnonzero((counts > 1) & (distinct > 0))
    if not len(repeated):
        return np.ones(len(distinct), np.int64)
    return np.asarray(np.array([4, 2, 3])[np.sign(np.arange(len(distinct)) - repeated[-1]) + 1])


def _rounding(distinct: Ints) -> Ints:
    """Marks (n,) of ascending amounts: 2 for one rounded to a coin, 3 for what it was, 1 others."""
    marks = np.ones(len(distinct), np.int64)
    is_coin = (distinct % _COIN == 0) & (distinct > 0)
    is_near = (np.diff(distinct) <= _MOST_ROUNDED) & (is_coin[1:] != is_coin[:-1])
    low = np.flatnonzero(is_near & (distinct[:-1] > _MOST_ROUNDED))
    for at in (low, low + 1):
        marks[at] = np.where(is_coin[at], 2, 3)
    return marks
