"""One dataset of the file as an array in memory: rows by number, copied only where need be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store.mapping import Mapping


class ColumnView:
    """Rows of ``dtype`` and ``shape``, ``chunk_rows`` of them at each file offset of ``offsets``.

    Offsets are multiples of the row's size, so the whole file is one array of such rows and a
    gather is one ``np.take``. How many of the rows are real is the caller's knowledge.
    """

    __slots__ = (
        "_rows",
        "_shifts",
        "chunk_rows",
        "dtype",
        "memory",
        "n_capacity",
        "offset_list",
        "offsets",
        "row_bytes",
        "shape",
        "shift",
    )

    def __init__(
        self,
        mapping: Mapping,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        chunk_rows: int,
        offsets: Sequence[int] | NDArray[np.int64],
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.row_bytes = dtype.itemsize
        for extent in shape:
            self.row_bytes *= extent
        self.chunk_rows = chunk_rows
        self.offsets = np.asarray(offsets, np.int64)
        self.offset_list: list[int] = self.offsets.tolist()
        self.memory = mapping.bytes
        if (self.offsets % self.row_bytes).any():
            raise ValueError("chunks are not aligned to rows")
        #: What to add to a row's number to get its place in the file counted in rows.
        self.shift = self.offsets // self.row_bytes - np.arange(len(self.offsets)) * chunk_rows
        self._shifts: list[int] = self.shift.tolist()
        self.n_capacity = len(self.offsets) * chunk_rows
        self._rows = mapping.rows(dtype, shape, self.row_bytes)

    @property
    def reach(self) -> int:
        """One past the last byte of any of its chunks."""
        return max(self.offset_list, default=0) + self.chunk_rows * self.row_bytes

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows lie in the file, counted in rows."""
        if len(self.shift) == 1:
            return rows + int(self.shift[0])
        places: NDArray[np.int64] = rows + self.shift.take(rows // self.chunk_rows, mode="clip")
        return places

    def gather(self, rows: NDArray[np.int64], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """A copy of these rows.

        Row numbers are the caller's to check; one outside reads some other bytes of the file,
        never beyond it.
        """
        if not len(self.shift):
            return out if out is not None else np.zeros((len(rows), *self.shape), self.dtype)
        # "clip" is not only a guard: with out= it lets numpy write straight into the result.
        return self._rows.take(self.places(rows), axis=0, out=out, mode="clip")

    def slice(self, start: int, stop: int) -> NDArray[Any]:
        """Rows start:stop: a read-only view when they lie in one chunk, else a copy."""
        parts = list(self.blocks(start, stop))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros((0, *self.shape), self.dtype)

    def blocks(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
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

    def row(self, row: int) -> NDArray[Any]:
        """One row, a read-only view."""
        found: NDArray[Any] = self._rows[row + self._shifts[row // self.chunk_rows]]
        return found
