"""The file as memory: mapped once, datasets as views of it.

A :class:`FileMap` holds the mapped bytes, a :class:`ColumnView` is one dataset as an array over
them.
"""

from __future__ import annotations

import math
import mmap
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryChanged, UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.bus_guard import GuardedRange
from featpipe.store.mapping import map_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray

_LONG = 24  #: rows in a range from which copying by range is faster than by row


class FileMap:
    """The first ``size`` bytes of an open file, mapped read-only and shared.

    Arrays made from it keep the map alive, so a view outlives its reader. Where the file loses
    bytes that are mapped, they read as zeros, and ``guard.is_broken`` is set: readers ask it before
    they hand anything out. A view that was handed out before then reads as zeros, too.
    """

    def __init__(self, descriptor: int, name: object) -> None:
        self.size = os.fstat(descriptor).st_size
        if self.size < hdf5.SUPERBLOCK_BYTES:
            raise UnreadableDictionary(f"{name} is not an HDF5 file: it has {self.size} bytes")
        try:
            self.bytes = map_file(descriptor, self.size)
        except ValueError:
            raise DictionaryChanged(f"{name} was truncated while it was opened") from None
        self.buffer = memoryview(self.bytes)
        self.guard = GuardedRange(self.bytes)

    @property
    def address(self) -> int:
        """Of the first byte in memory."""
        return self.guard.start

    def rows(self, dtype: np.dtype[np.generic], shape: tuple[int, ...], row_bytes: int) -> AnyArray:
        """The whole file as rows of this type: (size // row_bytes, *shape), a view."""
        return np.ndarray((self.size // row_bytes, *shape), dtype, buffer=self.bytes)

    @contextmanager
    def fetching(
        self, descriptor: int, places: NDArray[np.int64], row_bytes: int
    ) -> Iterator[None]:
        """Ask the disk to read these rows of ``row_bytes`` all at once, in file order.

        Without this request a random gather waits for one page after the other, and the kernel
        reads ahead around each in vain.
        """
        advise = getattr(os, "posix_fadvise", None)
        if advise is None or not len(places):
            yield
            return
        starts = np.sort(places) * row_bytes
        is_apart = starts[1:] - starts[:-1] > row_bytes + mmap.PAGESIZE
        first = starts[np.concatenate([[True], is_apart])]
        last = starts[np.concatenate([is_apart, [True]])] + row_bytes
        for start, stop in zip(first.tolist(), last.tolist(), strict=True):
            advise(descriptor, start, stop - start, os.POSIX_FADV_WILLNEED)
        self.bytes.madvise(mmap.MADV_RANDOM)
        try:
            yield
        finally:
            self.bytes.madvise(mmap.MADV_NORMAL)


class ColumnView:
    """One dataset: rows of ``dtype`` and ``shape``, ``chunk_rows`` of them at each file offset.

    Offsets are multiples of the row's size, so the whole file is one array of such rows and a
    gather is one ``np.take``. The view does not know how many of its rows are real.
    """

    def __init__(
        self,
        mapping: FileMap,
        dtype: np.dtype[np.generic],
        shape: tuple[int, ...],
        chunk_rows: int,
        offsets: Sequence[int] | NDArray[np.int64],
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.row_bytes = dtype.itemsize * math.prod(shape)
        self.chunk_rows = chunk_rows
        self.offsets = np.asarray(offsets, np.int64)
        self.offset_list: list[int] = self.offsets.tolist()
        self.memory = mapping.bytes
        if (self.offsets % self.row_bytes).any():
            raise ValueError("chunks are not aligned to rows")
        #: By chunk: a row's position in the file, counted in rows, minus its number.
        self.shift = self.offsets // self.row_bytes - np.arange(len(self.offsets)) * chunk_rows
        self._shifts: list[int] = self.shift.tolist()
        self.n_capacity = len(self.offsets) * chunk_rows
        self._rows = mapping.rows(dtype, shape, self.row_bytes)

    @property
    def reach(self) -> int:
        """One past the last byte of its chunks."""
        return max(self.offset_list, default=0) + self.chunk_rows * self.row_bytes

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions of rows in the file, counted in rows."""
        if len(self.shift) == 1:
            return rows + int(self.shift[0])
        places: NDArray[np.int64] = rows + self.shift.take(rows // self.chunk_rows, mode="clip")
        return places

    def gather(self, rows: NDArray[np.int64], out: AnyArray | None = None) -> AnyArray:
        """A copy of these rows.

        The caller checks row numbers; one out of range reads other bytes of the file, never bytes
        outside it.
        """
        if not len(self.shift):
            return out if out is not None else np.zeros((len(rows), *self.shape), self.dtype)
        # "clip" is a guard, and with out= it lets numpy write into the result without a copy.
        return self._rows.take(self.places(rows), axis=0, out=out, mode="clip")

    def gather_ranges(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> AnyArray:
        """A copy of these ranges of rows, one after the other."""
        total = int(lengths.sum())
        if total > _LONG * len(lengths):
            ranges = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
            return np.concatenate([self.slice(start, stop) for start, stop in ranges])
        before = np.cumsum(lengths) - lengths
        return self.gather(np.repeat(starts - before, lengths) + np.arange(total))

    def slice(self, start: int, stop: int) -> AnyArray:
        """Rows start:stop: a read-only view when they lie in one chunk, else a copy."""
        parts = list(self.blocks(start, stop))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros((0, *self.shape), self.dtype)

    def blocks(self, start: int, stop: int) -> Iterator[AnyArray]:
        """Rows start:stop as read-only views, one per chunk. ValueError beyond the last chunk."""
        if not 0 <= start <= stop <= self.n_capacity:
            raise ValueError(f"rows {start}:{stop} of {self.n_capacity}")
        while start < stop:
            chunk = start // self.chunk_rows
            end = min(stop, (chunk + 1) * self.chunk_rows)
            shift = int(self.shift[chunk])
            yield self._rows[start + shift : end + shift]
            start = end

    def offset_of(self, row: int) -> int:
        """The file offset of one row."""
        chunk, within = divmod(row, self.chunk_rows)
        return self.offset_list[chunk] + within * self.row_bytes

    def bytes_of(self, row: int) -> bytes:
        """A copy of one row's bytes."""
        start = self.offset_of(row)
        return self.memory[start : start + self.row_bytes]

    def row(self, row: int) -> AnyArray:
        """One row, a read-only view."""
        found: AnyArray = self._rows[row + self._shifts[row // self.chunk_rows]]
        return found
