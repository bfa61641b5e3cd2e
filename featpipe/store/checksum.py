"""Row checksums: 32 bits over a row's number and all its columns. A wrong sum voids the row.

The sum is a multilinear hash, which numpy computes for a whole batch at a tenth of the cost of a
crc per row. With all arithmetic modulo 2^64,

    sum(row) = (w[0] * M[0] + w[1] * M[1] + w[2] * M[2] + ...) >> 32

where w[0] is the row's number, w[1] the table's salt, the others the row's little-endian 64-bit
words, each column padded with zeros to whole words; and M are the odd multipliers of
:func:`multipliers`. A ragged column's values enter as one word, their crc32; its end offset is a
column like any other. The salt is random, so bytes of another table do not pass; the row's number
keeps out those of another row. Every single flipped bit changes the sum.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: An array of any column's type.
AnyArray: TypeAlias = "NDArray[Any]"  # Any: a column's type is known at run time only

#: One column for consecutive rows: (n, ...) fixed values, or a ragged column's bytes with the n + 1
#: offsets of its rows in them.
Part: TypeAlias = "AnyArray | tuple[memoryview, Sequence[int]]"


def multipliers(n: int) -> NDArray[np.uint64]:
    """The first ``n``: splitmix64 of 0, 1, 2 ..., with the lowest bit set. (n,) uint64."""
    return _many_multipliers(max(10, n.bit_length()))[:n]


@cache
def _many_multipliers(bits: int) -> NDArray[np.uint64]:
    seed = np.arange(1, (1 << bits) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    seed = (seed ^ (seed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    seed = (seed ^ (seed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (seed ^ (seed >> np.uint64(31))) | np.uint64(1)


def row_checksums(
    salt: int, first_row: int, n_rows: int, parts: Sequence[Part]
) -> NDArray[np.uint32]:
    """Checksums of ``n_rows`` rows from ``first_row`` on, over ``parts`` in order: (n,) uint32."""
    rows = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    sums = rows * multipliers(2)[0] + np.uint64(salt) * multipliers(2)[1:2]
    n_words = 2
    for part in parts:
        if isinstance(part, tuple):
            data, bounds = part
            crcs = [crc32(data[bounds[i] : bounds[i + 1]]) for i in range(n_rows)]
            words = np.array(crcs, np.uint64).reshape(n_rows, 1)
        else:
            words = _words(part, n_rows)
        width = words.shape[1]
        sums += np.einsum("ij,j->i", words, multipliers(n_words + width)[n_words:])
        n_words += width
    found: NDArray[np.uint32] = (sums >> np.uint64(32)).astype(np.uint32)
    return found


def _words(values: AnyArray, n_rows: int) -> NDArray[np.uint64]:
    """(n, words) of (n, ...) values, padded with zeros."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    size = len(flat) // max(1, n_rows)
    if size % 8:
        padded = np.zeros((n_rows, -(-size // 8) * 8), np.uint8)
        padded[:, :size] = flat.reshape(n_rows, size)
        flat = padded.reshape(-1)
    return flat.view("<u8").reshape(n_rows, -(-size // 8))


def as_bytes(array: NDArray[np.generic]) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data
