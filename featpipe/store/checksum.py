"""Row checksums: 32 bits over a row's number and all its columns. A wrong sum voids the row.

The sum is Multilinear hashing (D. Lemire and O. Kaser, "Strongly universal string hashing is
fast", The Computer Journal 57, 2014, section 3): with all arithmetic modulo 2^64,

    sum(row) = (K[0] + c[0] * K[1] + c[1] * K[2] + ...) >> 32

where the characters c are 32 bits each and the multipliers K 64 bits. For multipliers drawn at
random it is strongly universal: damage that does not depend on them, of whatever shape and size,
passes with probability 2^-32. The multipliers are splitmix64 of the table's random salt, so bytes
of another table do not pass; the row's number, the first word, keeps out those of another row.

numpy computes it for a batch in less time than a crc per row takes: the two characters of a
little-endian 64-bit word w enter as ``w * M + (w >> 32) * N``, which is
``low * M + high * (N + 2^32 M)``, and (M, N + 2^32 M) is uniform when (M, N) is. Each column is
padded with zeros to whole words.

A ragged column's values enter as a word of the row, their crc32, which is stored beside them: it
finds every change of one or two bits and every burst of up to 32 (Koopman, DSN 2002), and other
random damage but for 2^-32. So one column is checked without the values of the others.

Tables of layout 1 have no such words and another sum, :data:`ODD_64`: 64-bit characters and odd
multipliers, which finds every single flipped bit, and not every pair of high ones.
"""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: An array of any column's type.
AnyArray: TypeAlias = "NDArray[Any]"  # Any: a column's type is known at run time only

Words: TypeAlias = "NDArray[np.uint64]"

#: Names of the sums, as a table's attribute has them; a table of layout 1 has none.
MULTILINEAR = "multilinear-32"
ODD_64 = ""

_MASK = (1 << 64) - 1
_HALF = np.uint64(32)
_GOLDEN = 0x9E3779B97F4A7C15


class RowHash:
    """The sum of one table's rows."""

    def __init__(self, salt: int, name: str) -> None:
        self.salt = salt
        self.name = name
        self.offset = int(_stream(salt, 10)[0])  #: K[0]

    def sums(self, rows: NDArray[np.int64], parts: Sequence[AnyArray]) -> NDArray[np.uint32]:
        """Checksums of the rows of these numbers, over their columns in order: (n,) uint32.

        ``parts`` are (n, ...) each.
        """
        totals = self._totals if self.name == MULTILINEAR else self._odd_totals
        found: NDArray[np.uint32] = (totals(rows, parts) >> _HALF).astype(np.uint32)
        return found

    def _totals(self, rows: NDArray[np.int64], parts: Sequence[AnyArray]) -> Words:
        words = [_words(part, len(rows)) for part in (rows, *parts)]
        low, high = self.multipliers(sum(part.shape[1] for part in words))
        sums, at = np.full(len(rows), self.offset, np.uint64), 0
        for part in words:
            stop = at + part.shape[1]
            upper = np.right_shift(part, _HALF, out=_scratch(part.size).reshape(part.shape))
            sums += np.einsum("ij,j->i", part, low[at:stop])
            sums += np.einsum("ij,j->i", upper, high[at:stop])
            at = stop
        return sums

    def sum_one(self, row: int, parts: Sequence[bytes]) -> int:
        """The checksum of one row; as :meth:`sums`, in a tenth of the time."""
        padded = [part + bytes(-len(part) % 8) if len(part) % 8 else part for part in parts]
        words = np.frombuffer(row.to_bytes(8, "little") + b"".join(padded), "<u8")
        n_words = len(words)
        low, high = self.multipliers(n_words)
        total = int(words.dot(low[:n_words])) + int((words >> _HALF).dot(high[:n_words]))
        return (self.offset + total & _MASK) >> 32

    def _odd_totals(self, rows: NDArray[np.int64], parts: Sequence[AnyArray]) -> Words:
        multipliers = odd_multipliers(2)
        sums: Words = rows.view(np.uint64) * multipliers[0]
        sums += np.uint64(self.salt) * multipliers[1:2]
        n_words = 2
        for part in parts:
            words = _words(part, len(rows))
            width = words.shape[1]
            sums += np.einsum("ij,j->i", words, odd_multipliers(n_words + width)[n_words:])
            n_words += width
        return sums

    def multipliers(self, n_words: int) -> tuple[Words, Words]:
        """(M, N) of at least the first ``n_words`` words."""
        return _multipliers(self.salt, max(10, n_words.bit_length()))


@lru_cache(maxsize=64)
def _multipliers(salt: int, bits: int) -> tuple[Words, Words]:
    stream = _stream(salt, bits + 1)[1:]
    return np.ascontiguousarray(stream[::2]), np.ascontiguousarray(stream[1::2])


_local = threading.local()
_KEPT_WORDS = 1 << 17


def _scratch(n: int) -> Words:
    """Memory for ``n`` words, kept by each thread: allocating it anew costs as much as the sum."""
    words: Words | None = getattr(_local, "words", None)
    if n > _KEPT_WORDS:
        return np.empty(n, np.uint64)
    if words is None:
        words = _local.words = np.empty(_KEPT_WORDS, np.uint64)
    return words[:n]


def _stream(salt: int, bits: int) -> Words:
    """splitmix64 of the salt: 2^bits + 1 numbers."""
    steps = np.arange(1, (1 << bits) + 2, dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mixed(steps + np.uint64((salt << 32) & _MASK))


def odd_multipliers(n: int) -> Words:
    """Those of :data:`ODD_64`: splitmix64 of 0, 1, 2 ..., with the lowest bit set. (n,) uint64."""
    return _many_odd(max(10, n.bit_length()))[:n]


@cache
def _many_odd(bits: int) -> Words:
    return _mixed(np.arange(1, (1 << bits) + 1, dtype=np.uint64) * np.uint64(_GOLDEN)) | np.uint64(
        1
    )


def _mixed(seed: Words) -> Words:
    seed = (seed ^ (seed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    seed = (seed ^ (seed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return seed ^ (seed >> np.uint64(31))


#: Pieces of one length are summed by numpy up to this length, and from so many pieces a byte on:
#: a tenth of the time at 16 bytes and 4,096 pieces. Where lengths differ, zlib is faster.
_MOST_PIECE_BYTES = 64
_PIECES_PER_BYTE = 16


def crcs_of(data: memoryview, bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The crc32 of each of the ``len(bounds) - 1`` pieces of ``data``: (n,) uint32.

    ``bounds`` ascend, and are within ``data``, in bytes.
    """
    n = len(bounds) - 1
    size = int(bounds[1] - bounds[0]) if n else 0
    is_short = 0 < size <= _MOST_PIECE_BYTES and n >= size * _PIECES_PER_BYTE
    if is_short and bool((np.diff(bounds) == size).all()):
        whole = np.frombuffer(data, np.uint8)[int(bounds[0]) : int(bounds[-1])]
        return _crcs_of_equal(whole.reshape(n, size))
    pieces = (crc32(data[a:b]) for a, b in pairwise(bounds.tolist()))
    return np.fromiter(pieces, np.uint32, n)


def _crcs_of_equal(pieces: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The crc32 of each row of (n, size) bytes.

    The crc is linear but for a constant, so each byte adds what it alone, before as many zeros as
    bytes follow it, would give (R. Williams, "A painless guide to CRC error detection algorithms",
    1993, section 10).
    """
    n, size = pieces.shape
    tables = _crc_tables()
    sums = np.full(n, crc32(bytes(size)), np.uint32)
    for start in range(0, n, 4096):  # a block stays in the processor's cache
        part, columns = sums[start : start + 4096], pieces[start : start + 4096].T
        for place in range(size):
            part ^= tables[size - 1 - place].take(columns[place])
    return sums


@cache
def _crc_tables() -> NDArray[np.uint32]:
    """Of each byte, what it adds to a crc32 when 0, 1, 2 ... bytes follow: (bytes, 256)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (table & np.uint32(1)) * np.uint32(0xEDB88320)
    tables = [table]
    for _ in range(1, _MOST_PIECE_BYTES):
        tables.append(table[tables[-1] & np.uint32(255)] ^ (tables[-1] >> np.uint32(8)))
    return np.stack(tables)


def _words(values: AnyArray, n_rows: int) -> Words:
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
