"""Tables as memory: the file mapped once, columns and checked tables as views of it.

A :class:`FileMap` holds the mapped bytes, a :class:`ColumnView` is one dataset as an array over
them, and a :class:`TableView`, made by :func:`load_table`, is one table whose datasets agree with
its schema.
"""

from __future__ import annotations

import math
import mmap
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.checksum import as_bytes, row_checksums
from featpipe.store.schema import (
    CHECKS,
    COLUMNS_ATTRIBUTE,
    END_SUFFIX,
    INDEX,
    INDEXED,
    KEYS,
    SALT_ATTRIBUTE,
    TableSpec,
    datasets_of,
    fixed_datasets,
    storage_dtype,
    value_datasets,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray, Part
    from featpipe.store.hdf5_parse import Header, Structure


class FileMap:
    """The first ``size`` bytes of an open file, mapped read-only and shared.

    Arrays made from it keep the map alive, so a view outlives its reader. Touching the map of a
    file that was truncated below ``size`` ends the process: readers check the size first (see
    :meth:`Reader.check_size`).
    """

    def __init__(self, descriptor: int, name: object) -> None:
        self.size = os.fstat(descriptor).st_size
        if self.size < hdf5.SUPERBLOCK_BYTES:
            raise UnreadableDictionary(f"{name} is not an HDF5 file: it has {self.size} bytes")
        self.bytes = mmap.mmap(descriptor, self.size, mmap.MAP_SHARED, mmap.PROT_READ)
        self.buffer = memoryview(self.bytes)

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

    def row(self, row: int) -> AnyArray:
        """One row, a read-only view."""
        found: AnyArray = self._rows[row + self._shifts[row // self.chunk_rows]]
        return found


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """File offsets of a table's index: its slots, and the count of rows in it."""

    address: int
    capacity: int
    count_address: int


@dataclass(frozen=True, slots=True)
class TableView:
    """A table at one time: all but ``n_rows`` is fixed by the tree it was read from."""

    name: str
    spec: TableSpec
    salt: int
    group: Header
    headers: dict[str, Header]
    fixed: dict[str, ColumnView]
    values: dict[str, ColumnView]
    index: IndexPlace | None
    n_rows: int  #: the visible rows when the snapshot was taken

    @property
    def reach(self) -> int:
        """One past the last byte of the file that its rows and index may occupy."""
        columns = [*self.fixed.values(), *self.values.values()]
        ends = [column.reach for column in columns]
        return max(*ends, self.index.address + self.index.capacity * 4 if self.index else 0)

    @property
    def n_capacity(self) -> int:
        """Rows that its chunks hold."""
        return self.fixed[CHECKS].n_capacity

    @property
    def has_foreign(self) -> bool:
        """Whether the table's group holds objects of another program."""
        return not set(self.headers) <= datasets_of(self.spec)

    def keys(self, mapping: FileMap) -> ColumnView:
        """The key column as (n, 2) uint64."""
        column = self.fixed[KEYS]
        return ColumnView(mapping, np.dtype("<u8"), (2,), column.chunk_rows, column.offsets)

    def bounds(self, name: str, start: int, stop: int) -> NDArray[np.int64]:
        """The bounds of rows start:stop of a ragged column in its values: (n + 1,).

        ValueError when they descend, or exceed the capacity of the values.
        """
        ends = np.zeros(stop - start + 1, np.int64)
        ends[1:] = self.fixed[name + END_SUFFIX].slice(start, stop)
        if start:
            ends[0] = self.fixed[name + END_SUFFIX].slice(start - 1, start)[0]
        # Compared, not subtracted: a difference of damaged offsets may wrap around.
        is_ordered = ends[0] >= 0 and (ends[1:] >= ends[:-1]).all()
        if not is_ordered or ends[-1] > self.values[name].n_capacity:
            raise ValueError(f"offsets of {name!r} lead outside its values")
        return ends

    def checksums(self, start: int, stop: int) -> NDArray[np.uint32]:
        """Checksums computed from the bytes of rows start:stop. Raises ValueError."""
        parts: list[Part] = []
        for name, column in self.fixed.items():
            if name != CHECKS:
                parts.append(column.slice(start, stop))
        for name, column in self.values.items():
            ends = self.bounds(name, start, stop)
            data = np.ascontiguousarray(column.slice(int(ends[0]), int(ends[-1])))
            bounds = ((ends - ends[0]) * column.row_bytes).tolist()
            parts.append((as_bytes(data), bounds))
        return row_checksums(self.salt, start, stop - start, parts)

    def bad_rows(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows of start:stop whose checksum is wrong; damaged offsets are searched by bisection."""
        try:
            wrong = self.checksums(start, stop) != self.fixed[CHECKS].slice(start, stop)
            return np.flatnonzero(wrong) + start
        except ValueError:
            if stop - start == 1:
                return np.array([start], np.int64)
        middle = (start + stop) // 2
        return np.concatenate([self.bad_rows(start, middle), self.bad_rows(middle, stop)])


def spec_of(header: Header) -> TableSpec | None:
    """The schema in a group's attributes; None when the group is not a table."""
    described = header.attributes.get(COLUMNS_ATTRIBUTE)
    if not isinstance(described, str) or not isinstance(header.attributes.get(SALT_ATTRIBUTE), int):
        return None
    own = {COLUMNS_ATTRIBUTE, SALT_ATTRIBUTE}
    texts = {k: v for k, v in header.attributes.items() if isinstance(v, str) and k not in own}
    try:
        return TableSpec.from_json(described, texts)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, DictionaryError):
        return None


def walk_objects(
    structure: Structure, root: int, problems: list[str] | None = None
) -> Iterator[tuple[str, Header, TableSpec | None]]:
    """(path, header, schema) of every table, and of every object outside tables with schema None.

    Unreadable objects are skipped and described in ``problems``.
    """
    inside: set[int] = set()
    for name, header in structure.walk(root, problems):
        if header.address in inside:
            continue
        spec = spec_of(header)
        if spec is not None:
            inside.update(header.links.values())
        yield name, header, spec


def load_table(structure: Structure, mapping: FileMap, name: str, group: Header) -> TableView:
    """The table in ``group``, validated against its schema. Raises UnreadableDictionary."""
    spec = spec_of(group)
    if spec is None:
        raise structure.damage(f"/{name} does not describe itself as a table")
    headers = {child: structure.header(at) for child, at in group.links.items()}
    fixed, values = (
        {
            label: _column(structure, mapping, f"{name}/{label}", headers.get(label), dtype, shape)
            for label, dtype, shape in datasets
        }
        for datasets in (fixed_datasets(spec), value_datasets(spec))
    )
    if len({(column.chunk_rows, len(column.offsets)) for column in fixed.values()}) != 1:
        raise structure.damage(f"columns of /{name} are chunked differently")
    index = _index_place(structure, headers) if spec.keyed else None
    return TableView(
        name=name,
        spec=spec,
        salt=int(group.attributes[SALT_ATTRIBUTE]),
        group=group,
        headers=headers,
        fixed=fixed,
        values=values,
        index=index,
        n_rows=headers[CHECKS].shape[0],
    )


def _column(
    structure: Structure,
    mapping: FileMap,
    path: str,
    header: Header | None,
    dtype: str,
    shape: tuple[int, ...],
) -> ColumnView:
    if header is None:
        raise structure.damage(f"/{path} is missing")
    if header.refusals:
        raise structure.damage(f"/{path} uses {header.refusals[0]}")
    wanted = hdf5.pad8(hdf5.datatype(dtype))
    if not header.is_dataset or header.datatype != wanted or header.shape[1:] != shape:
        raise structure.damage(f"/{path} is not what the table's schema says")
    storage = storage_dtype(dtype)
    if not header.chunk_shape or header.chunk_shape[-1] != storage.itemsize:
        raise structure.damage(f"/{path} is not chunked")
    try:
        chunks = structure.chunks(header)
        return ColumnView(mapping, storage, shape, header.chunk_shape[0], chunks)
    except ValueError as error:
        raise structure.damage(f"/{path}: {error}") from error


def _index_place(structure: Structure, headers: dict[str, Header]) -> IndexPlace | None:
    """The table's index; None when it is damaged and has to be built from the keys."""
    slots, count = headers.get(INDEX), headers.get(INDEXED)
    if slots is None or count is None or slots.refusals or count.refusals:
        return None
    capacity = slots.shape[0] if len(slots.shape) == 1 else 0
    if capacity < 1 or capacity & (capacity - 1) or slots.data_bytes != capacity * 4:
        return None
    if slots.data_address % 4 or count.data_address % 8:
        return None
    try:
        structure.bytes_at(slots.data_address, slots.data_bytes)
        structure.bytes_at(count.data_address, 8)
    except ValueError:
        return None
    return IndexPlace(slots.data_address, capacity, count.data_address)
