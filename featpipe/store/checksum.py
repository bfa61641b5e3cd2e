"""A row is real when its checksum is right: crc32 over its number, its key and all its columns.

The seed is the table's random salt plus the row's number, so that bytes left over from another
table or another row never pass. Ragged columns enter with their end offset and their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: The bytes of one column for consecutive rows: (bytes, size of each row), or (bytes, where each
#: row ends) with one entry more at the front for where the first begins.
Part: TypeAlias = "tuple[memoryview, int | Sequence[int]]"


def row_checksums(
    salt: int, first_row: int, n_rows: int, parts: Sequence[Part]
) -> NDArray[np.uint32]:
    """Checksums of ``n_rows`` rows from ``first_row`` on, over ``parts`` in order: (n,) uint32."""
    sums = [(salt + row) & 0xFFFF_FFFF for row in range(first_row, first_row + n_rows)]
    for data, size in parts:
        if isinstance(size, int):
            starts = range(0, n_rows * size, size)
            sums = [
                crc32(data[at : at + size], seed) for at, seed in zip(starts, sums, strict=True)
            ]
        else:
            sums = [crc32(data[size[i] : size[i + 1]], seed) for i, seed in enumerate(sums)]
    return np.array(sums, np.uint32)


def as_bytes(array: NDArray[np.generic]) -> memoryview:
    """The bytes of a contiguous array, also of an empty one."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
