"""Values in ascending order, searched by halving."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Number = TypeVar("Number", np.int32, np.int64, np.uint64)


def is_in(values: NDArray[Number], wanted: NDArray[Number]) -> NDArray[np.bool_]:
    """``np.isin`` for ``wanted`` in ascending order, which that would sort at every call: (n,)."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(wanted, values)
    at[at == len(wanted)] = 0
    return np.asarray(wanted[at] == values)
