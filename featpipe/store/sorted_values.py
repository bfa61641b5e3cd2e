"""Values in ascending order, searched by halving."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Value = TypeVar("Value", np.int32, np.int64, np.uint32, np.uint64, np.void)

#: So few wanted values are sooner compared one by one, with so many.
_FEW, _MANY = 8, 1024


def distinct(values: NDArray[Value]) -> NDArray[Value]:
    """``np.unique``, which since NumPy 2.3 hashes integers: that takes six times as long: (m,)."""
    ordered = np.sort(values, axis=None)
    is_new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def is_in(values: NDArray[Value], wanted: NDArray[Value]) -> NDArray[np.bool_]:
    """``np.isin`` for ``wanted`` in ascending order, which that would sort at every call: (n,)."""
    if not len(wanted):
        return np.zeros(len(values), bool)
    if len(wanted) <= _FEW and len(values) >= _MANY:
        found = values == wanted[0]
        for one in wanted[1:]:
            found |= values == one
        return np.asarray(found)
    # What is behind the last one is not equal to it.
    return np.asarray(wanted.take(wanted.searchsorted(values), mode="clip") == values)


def places_in(values: NDArray[Value], wanted: NDArray[Value]) -> NDArray[np.int64]:
    """The place of each value in ``wanted``, which is in ascending order; -1 if absent: (n,)."""
    if not len(wanted):
        return np.full(len(values), -1, np.int64)
    at = wanted.searchsorted(values)
    return np.where(wanted.take(at, mode="clip") == values, at, -1)
