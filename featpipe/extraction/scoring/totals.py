"""Totals: either a total or the parts that it is the sum of are values of a field.

"中标价 300 万元，其中设备 200 万元，服务 100 万元" has one price, "一标段 200 万元，二标段 100
万元，合计 300 万元" has two: a total that stands before its parts begins a breakdown, one behind
them ends a list. Where it stands and how likely the amounts are decides, and where that is unclear
all stay.

A total that is reported alone gives way to its parts, by the same odds, in fields of which
documents have several values.

Guarantee: but for such parts no value is added, and no document loses all of its values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.logistic import log_odds

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.ranking import Group

    Floats = NDArray[np.float64]

#: Log odds for the parts, where the total stands behind the last of them and elsewhere. On the part
#: for development of announcements anything from 3 to 3.6, and from -1.3 to -0.7, does as well.
_BEHIND, _ELSEWHERE = 3.3, -1.0
#: Least probability of amounts that are added up, and how many of the likeliest are.
_LEAST, _MOST = 0.02, 60
#: Least digits of a total, zeros at its ends left out: 5 is the sum of 2 and 3 by chance. Of more
#: amounts more runs are compared with it, and as many digits more make chance as unlikely: one
#: total in so many documents may be none.
_LEAST_DIGITS, _ONE_IN = 3, 10.0
#: Least parts that are likely values by themselves, for the total behind them to be none.
_LEAST_LISTED = 2
#: Most parts of a breakdown that are given up for the total before them. Where more are likely
#: values by themselves, as in five documents of the part for development, they may be a list that
#: follows its total: all stay.
_MOST_GIVEN_UP = 2
#: How far a total may be from the sum, as a share of it.
_TOLERANCE = 1e-6


class Total(NamedTuple):
    """Numbers of a value and of those that it is the sum of, in the order of the document."""

    total: int
    parts: tuple[int, ...]
    is_behind: bool
    """Whether the total stands behind all of its parts."""


def find_totals(groups: Sequence[Group], left_out: Collection[int] = ()) -> list[Total]:
    """Amounts of a document that are the sum of two or more which follow each other.

    The total may stand among them. Amounts count where their best mention stands.

    Args:
        groups: values of one document.
        left_out: numbers of those that are as if they were not there.

    Returns:
        Totals of most parts first.

    """
    amounts = [_amount(group.value.key) for group in groups]
    numbers = [n for n, a in enumerate(amounts) if 0 < a < np.inf and n not in left_out]
    numbers.sort(key=lambda number: groups[number].spans[0])
    values = np.array([amounts[number] for number in numbers])
    sums = np.concatenate(([0.0], np.cumsum(values)))
    runs = sums - sums[:, None]
    found = []
    n_compared = len(numbers) * math.comb(len(numbers), 2)
    n_digits = max(_LEAST_DIGITS, math.log10(max(n_compared * _ONE_IN, 1.0)))
    for place, number in enumerate(numbers):
        if _n_digits(groups[number].value.key) < n_digits:
            continue
        # A run around the total holds it once more.
        wanted = np.full_like(runs, values[place])
        wanted[:place, place + 2 :] *= 2
        for first, end in np.argwhere(np.abs(runs - wanted) <= _TOLERANCE * wanted).tolist():
            parts = tuple(n for n in numbers[first:end] if n != number)
            if len(parts) > 1:
                found.append(Total(number, parts, place >= end))
    return sorted(found, key=lambda one: (-len(one.parts), one))


def settle_totals(
    chosen: Sequence[int],
    groups: Sequence[Group],
    probabilities: Floats,
    *,
    may_split: bool = False,
) -> list[int]:
    """Those of the values that are reported: a total, or the parts of it.

    Args:
        chosen: numbers of the values that are likely enough.
        groups: the values of the document, likeliest first.
        probabilities: (n_groups,) of each by itself.
        may_split: whether the parts of a total may be reported that is reported alone.

    """
    likely = groups[: min(int(np.count_nonzero(probabilities >= _LEAST)), _MOST)]
    kept, settled, unclear = list(chosen), set[int](), set[int]()
    if may_split and len(kept) == 1:
        alone = _next_total(likely, settled, {*kept})
        if alone is not None and _are_listed(alone, probabilities):
            return sorted(alone.parts)
    # One value alone stays, whatever it is.
    while len(kept) > 1 and (own := _next_total(likely, settled, {*kept} - unclear)):
        n_given = len({*own.parts} & {*kept})
        is_list = _are_listed(own, probabilities)
        if is_list and n_given >= _LEAST_LISTED:
            settled.add(own.total)
            kept = [n for n in kept if n != own.total]
        elif not is_list and n_given <= _MOST_GIVEN_UP:
            settled.update(own.parts)
            kept = [n for n in kept if n not in own.parts]
        else:
            unclear.add(own.total)
    return kept


def _are_listed(own: Total, probabilities: Floats) -> bool:
    """Whether the parts are likelier values than their total, by where it stands."""
    of_parts = log_odds(probabilities[list(own.parts)].mean())
    of_parts += _BEHIND if own.is_behind else _ELSEWHERE
    return bool(of_parts > log_odds(probabilities[own.total]))


def _next_total(
    groups: Sequence[Group], left_out: Collection[int], wanted: Collection[int]
) -> Total | None:
    return next((one for one in find_totals(groups, left_out) if one.total in wanted), None)


def _amount(key: str) -> float:
    """A plain decimal; 0 for other spellings."""
    try:
        return float(key)
    except ValueError:
        return 0.0


def _n_digits(key: str) -> int:
    return len(key.replace(".", "").strip("0"))
