"""Equal stretches of text get equal numbers, in order of first appearance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from featpipe.lexical.compile import HASH_MULTIPLIER, Codes, Offsets, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLIER = np.uint64(HASH_MULTIPLIER)
_SHIFT = np.uint64(29)
#: Stretches longer than this are rare and hashed one by one.
_LONG = 16


class Interned(NamedTuple):
    """``ids`` (n,) int32 by stretch; ``first`` (n_distinct,) int64, where each was first met."""

    ids: NDArray[np.int32]
    first: Offsets

    def spell(self, text: str, starts: Offsets, ends: Offsets) -> list[str]:
        """The distinct stretches of the text, by number."""
        firsts, lasts = starts[self.first].tolist(), ends[self.first].tolist()
        return [text[start:end] for start, end in zip(firsts, lasts, strict=True)]


def intern_spans(
    codes: Codes, starts: Offsets, ends: Offsets, *, backend: Literal["numba", "numpy"]
) -> Interned:
    """Number the stretches ``codes[start:end]``: equal ones get the same number.

    Stretches are grouped by a 64-bit hash and then compared character by character, so two
    different ones never share a number. Where two share a hash, all are compared as strings.
    """
    if not len(starts):
        return Interned(np.zeros(0, np.int32), np.zeros(0, np.int64))
    if backend == "numba":
        from featpipe.lexical.cut_numba import intern_spans as intern_with_numba

        return Interned(*intern_with_numba(codes, starts, ends))
    hashes = _hash_spans(codes, starts, ends)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not _are_equal(codes, starts, ends, first[inverse]):
        return _intern_as_strings(codes, starts, ends)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int32)
    rank[order] = np.arange(len(first), dtype=np.int32)
    return Interned(rank[inverse], first[order])


def _hash_spans(codes: Codes, starts: Offsets, ends: Offsets) -> NDArray[np.uint64]:
    widths = ends - starts
    hashes = widths.astype(np.uint64)
    long = np.flatnonzero(widths > _LONG)
    for depth in range(min(int(widths.max()), _LONG)):
        # The whole text of long ones is hashed below.
        active = np.flatnonzero((widths > depth) & (widths <= _LONG))
        mixed = (hashes[active] ^ codes[starts[active] + depth].astype(np.uint64)) * _MULTIPLIER
        hashes[active] = mixed ^ (mixed >> _SHIFT)
    for place in long.tolist():
        hashes[place] = hash(codes[starts[place] : ends[place]].tobytes()) & 0xFFFFFFFFFFFFFFFF
    return hashes


def _are_equal(codes: Codes, starts: Offsets, ends: Offsets, twins: Offsets) -> bool:
    """Whether every stretch is spelled like the stretch number ``twins[i]``."""
    other = np.flatnonzero(twins != np.arange(len(twins)))
    left, right = starts[other], starts[twins[other]]
    widths = ends[other] - left
    if not np.array_equal(widths, ends[twins[other]] - right):
        return False
    for depth in range(int(widths.max(initial=0))):
        active = widths > depth
        left, right, widths = left[active], right[active], widths[active]
        if not np.array_equal(codes[left + depth], codes[right + depth]):
            return False
    return True


def _intern_as_strings(codes: Codes, starts: Offsets, ends: Offsets) -> Interned:
    text = text_of(codes)
    numbers: dict[str, int] = {}
    first: list[int] = []
    ids = np.empty(len(starts), np.int32)
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        number = numbers.setdefault(text[start:end], len(numbers))
        if number == len(first):
            first.append(place)
        ids[place] = number
    return Interned(ids, np.array(first, np.int64))
