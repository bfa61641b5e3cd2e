"""Amounts of a document as evidence: which is the largest, the sum, or repeated; how large it is.

A total is written again, is the sum of those before it, and what is larger is written once: what
was paid. A few samples show which of that holds for a field, in receipts as in contracts of several
lots, and whether its amounts are prices of a share or what all shares cost. Nothing is said of
currencies: amounts are compared by number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store.sorted_values import places_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

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
AMOUNT_MARKS = (_LAST_RANK + 2, 5, 5, 5, 4, 36)
#: Sizes told apart between powers of ten, and how far those of samples count for near ones.
_PER_POWER = 2
_NEAR = np.array([1.0, 2.0, 3.0, 2.0, 1.0]) / 9


def find_amounts(folded: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and value in hundredths of each number that is written as amounts are."""
    for match in _amount.finditer(folded):
        value = _value(folded, match)
        if value is not None:
            yield match.start(), match.end(), value


def marks_of_amounts(values: Ints, number: Ints, place: Ints, counts: Ints) -> Ints:
    """Marks (len(AMOUNT_MARKS), n), each from 1 on, of the amounts of a document.

    How many amounts are larger; whether this one is a sum of two others, and the larger part of a
    sum (bits); whether it is the largest that is written again; whether it is rounded; how large it
    is. How often it is written says no more than that, and counts twice.

    Args:
        values: (m,) the distinct amounts, ascending.
        number: (n,) of each amount among them.
        place: (m,) where each is first written.
        counts: (m,) how often.

    """
    marks = np.stack(
        [
            np.minimum(len(values) - 1 - np.arange(len(values)), _LAST_RANK) + 1,
            *(_parts_in_sums(values, place) + 1),
            _beside_repeated(values, counts),
            _rounding(values),
            np.rint(np.log10(np.maximum(values, 1)) * _PER_POWER).astype(np.int64) + 1,
        ]
    )
    return np.asarray(marks[:, number], np.int64)


def near_sizes(totals: Floats) -> None:
    """Let what is counted by size, the last of the marks (..., sum(AMOUNT_MARKS)), count nearby."""
    for sizes in totals[..., -AMOUNT_MARKS[-1] :]:
        sizes[:] = np.convolve(sizes, _NEAR, mode="same")


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
