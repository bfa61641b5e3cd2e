"""Marks of the amounts and dates of a document, and what they say of those of a field.

A mark is what an amount or a date is among the others: the largest, the sum, the first, the day
before another. The marks of samples are counted, by what is a value and by what is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.amount_marks import (
    AMOUNT_MARKS,
    find_amounts,
    marks_of_amounts,
    near_sizes,
)
from featpipe.extraction.scoring.date_marks import DATE_MARKS, find_days, marks_of_days
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens
    from featpipe.extraction.values.values import Found

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: How many numbers each mark has: 0 for what has no such mark, the others as they are given.
N_MARKS = (*AMOUNT_MARKS, *DATE_MARKS)
_STARTS = np.cumsum((0, *N_MARKS[:-1]))[:, None]
#: Where the marks of amounts are among all, and those of dates; and how much they count. Ranks and
#: gaps of dates say much the same: in full, they outweighed the words around days in rows.
_OF_AMOUNTS, _OF_DATES = slice(sum(AMOUNT_MARKS)), slice(sum(AMOUNT_MARKS), sum(N_MARKS))
_WEIGHTS = ((_OF_AMOUNTS, 1.0), (_OF_DATES, 0.5))
#: How much the marks of samples must differ from those of others to tell anything.
_SMOOTH = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The amounts and whole dates of one document, in order; none overlaps another.

    Shapes: ``first``, ``last`` (n,) tokens, half-open; ``value`` (n,) amounts in hundredths, or
    minus the number of a day; ``marks`` (len(N_MARKS), n).
    """

    first: Ints
    last: Ints
    value: Ints
    marks: Ints

    @classmethod
    def of(cls, folded: str, tokens: Tokens, dates: Iterable[Found]) -> Marks:
        """From folded text, its tokens and the dates in it."""
        days = [(start, end, -day) for start, end, day in find_days(dates)]
        found = _apart([*days, *find_amounts(folded)])
        first = np.searchsorted(tokens.end, [a for a, _, _ in found], side="right")
        last = np.searchsorted(tokens.start, [b for _, b, _ in found], side="left")
        value = np.array([value for *_, value in found], np.int64)
        marks = np.zeros((len(N_MARKS), len(found)), np.int64)
        amounts, dated = value >= 0, value < 0
        marks[: len(AMOUNT_MARKS), amounts] = _of_amounts(value[amounts])
        distinct, number = np.unique(-value[dated], return_inverse=True)
        marks[len(AMOUNT_MARKS) :, dated] = marks_of_days(distinct, number)
        return cls(first, last, value, marks)

    def numbers(self, first: Ints, last: Ints) -> Ints:
        """The number (n,) of the one amount or date that each span of tokens holds, or -1."""
        low = np.searchsorted(self.first, first)
        is_one = np.searchsorted(self.last, last, side="right") - low == 1
        return np.where(is_one, low, -1)

    def shares(self, first: Ints, last: Ints) -> tuple[Floats, Floats]:
        """Shares (sum(N_MARKS),) of marks among the values in some spans, and among the others."""
        numbers = self.numbers(first, last)
        is_true = is_in(self.value, np.unique(self.value[numbers[numbers >= 0]]))
        _, distinct = np.unique(self.value, return_index=True)
        is_true, marks = is_true[distinct], self.marks[:, distinct]
        return _shares(marks[:, is_true]), _shares(marks[:, ~is_true])

    def likeness(self, first: Ints, last: Ints, log_odds: Floats) -> Floats:
        """Sum (n,) of the log odds of the marks of what stands in each span, 0 for others."""
        known = log_odds[self.marks + _STARTS].sum(axis=0)
        return np.asarray(np.append(known, 0.0)[self.numbers(first, last)])


def _apart(found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """In order, without what begins inside another."""
    apart: list[tuple[int, int, int]] = []
    for one in sorted(found, key=lambda own: (own[0], -own[1])):
        if not apart or one[0] >= apart[-1][1]:
            apart.append(one)
    return apart


def _of_amounts(values: Ints) -> Ints:
    distinct, place, number, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    return marks_of_amounts(distinct, number, place, counts)


def _shares(marks: Ints) -> Floats:
    """Among the amounts, or the dates, that have such marks."""
    counts = [np.bincount(own, minlength=n) for own, n in zip(marks, N_MARKS, strict=True)]
    for own in counts:
        own[0] = 0
    return np.concatenate([own / max(own.sum(), 1) for own in counts])


def log_odds_of_marks(shares: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Log odds (sum(N_MARKS),) that what has a mark is a value, from shares of samples.

    0 for the marks of amounts where no sample has an amount as value, and likewise for dates.
    """
    odds = np.zeros(sum(N_MARKS))
    for part, weight in _WEIGHTS:
        known = [(own[part], other[part]) for own, other in shares]
        known = [one for one in known if one[0].any() and one[1].any()]
        if known:
            totals = np.sum(known, axis=0)
            if part is _OF_AMOUNTS:
                near_sizes(totals)
            true, other = totals
            odds[part] = weight * np.log((true + _SMOOTH) / (other + _SMOOTH))
    return odds
