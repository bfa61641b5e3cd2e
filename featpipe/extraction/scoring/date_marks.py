"""Dates of a document as evidence: which is the first, which the day before another.

The day of record is the one before the day without dividend, a loan is older than the judgment, and
a notice is dated last. A few samples show which of that holds for a field.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from featpipe.extraction.values.values import Found

    Ints = NDArray[np.int64]

#: Ranks that are told apart.
_LAST_RANK = 4
#: Days between two dates from which on they are told apart: the next day, a week, month, year.
_GAPS = np.array([1, 2, 8, 32, 367])
#: Marks are numbered from 1: how many numbers there are for the rank from the first date on and
#: from the last, for the days since the date before and until the next, and from the date that is
#: written last.
DATE_MARKS = (_LAST_RANK + 2, _LAST_RANK + 2, 7, 7, 12)


def find_days(found: Iterable[Found]) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of each whole day among the dates of a text."""
    for one in found:
        day = _day(one.value.key)
        if day is not None:
            yield one.start, one.end, day


def _day(key: str) -> int | None:
    """None without year, month or day, and for 2023-02-30."""
    try:
        return date.fromisoformat(key).toordinal()
    except ValueError:
        return None


def marks_of_days(days: Ints, number: Ints) -> Ints:
    """Marks (len(DATE_MARKS), n), each from 1 on, of the dates of a document.

    Args:
        days: (m,) the distinct days, ascending.
        number: (n,) of each date among them, in the order of the text.

    """
    ranks = np.arange(len(days))
    gaps = _size(np.diff(days)) + 1
    from_last = days - days[number[-1:]]
    marks = np.stack(
        [
            np.minimum(ranks, _LAST_RANK) + 1,
            np.minimum(ranks[::-1], _LAST_RANK) + 1,
            np.append(1, gaps)[: len(days)],
            np.append(gaps, 1)[: len(days)],
            np.sign(from_last) * _size(np.abs(from_last)) + len(_GAPS) + 1,
        ]
    )
    return np.asarray(marks[:, number], np.int64)


def _size(days: Ints) -> Ints:
    """0 for the same day, 1 for the next, and so on."""
    return np.searchsorted(_GAPS, days, side="right")
