"""Interning compiled by numba. Imported only where numba is to run."""

# Compiled functions take arrays, not objects, and speak in loops.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from featpipe.lexical.backend import compiled

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_FIRST_SIZE = 1 << 12


@compiled
def intern_spans(codes, starts, ends):
    """(ids (n,) int32, first (n_distinct,) int64): see :mod:`featpipe.lexical.interning`.

    An open-addressed table of numbers; equal hashes are compared character by character.
    """
    n = len(starts)
    ids = np.empty(n, np.int32)
    first = np.empty(n, np.int64)
    hashes = np.empty(n, np.uint64)  # by number, to grow the table without reading the text again
    table = np.full(_FIRST_SIZE, -1, np.int32)
    n_distinct = 0
    for place in range(n):
        start, end = starts[place], ends[place]
        value = np.uint64(end - start)
        for at in range(start, end):
            value = (value ^ np.uint64(codes[at])) * _MULTIPLIER
            value ^= value >> _SHIFT
        slot = np.int64(value & np.uint64(len(table) - 1))
        number = table[slot]
        while number >= 0:
            if hashes[number] == value and _are_equal(codes, starts, ends, place, first[number]):
                break
            slot = (slot + 1) & (len(table) - 1)
            number = table[slot]
        if number < 0:
            number = np.int32(n_distinct)
            table[slot] = number
            first[number] = place
            hashes[number] = value
            n_distinct += 1
            if 2 * n_distinct > len(table):
                table = _grown(hashes, n_distinct, 4 * len(table))
        ids[place] = number
    return ids, first[:n_distinct].copy()


@compiled
def _are_equal(codes, starts, ends, left, right):
    width = ends[left] - starts[left]
    if width != ends[right] - starts[right]:
        return False
    for offset in range(width):
        if codes[starts[left] + offset] != codes[starts[right] + offset]:
            return False
    return True


@compiled
def _grown(hashes, n_distinct, size):
    table = np.full(size, -1, np.int32)
    for number in range(n_distinct):
        slot = np.int64(hashes[number] & np.uint64(size - 1))
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    return table
