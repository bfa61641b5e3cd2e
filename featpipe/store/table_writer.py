"""Writes one table: rows into chunks, space for more chunks, and the lengths a commit publishes.

An append writes columns first and checksums last, so a checksum is never there before the bytes of
its row. Readers see nothing of it: lengths and structure move in :meth:`Writer.commit`.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.store import hdf5_format as hdf5
from featpipe.store.allocator import Allocation
from featpipe.store.checksum import MULTILINEAR, RowHash, as_bytes, crcs_of
from featpipe.store.index import IndexWriter
from featpipe.store.schema import (
    CHECKS,
    COLUMNS_ATTRIBUTE,
    CRC_SUFFIX,
    END_SUFFIX,
    HASH_ATTRIBUTE,
    KEYS,
    PATH_ATTRIBUTE,
    SALT_ATTRIBUTE,
    Batch,
    datasets_of,
    fixed_datasets,
    storage_dtype,
    value_datasets,
)
from featpipe.store.structure import dataset_hashes
from featpipe.store.structure_hash import renewed
from featpipe.store.tree import Dataset, Group
from featpipe.store.views import ColumnView

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.schema import ColumnData, TableSpec
    from featpipe.store.table_view import TableView
    from featpipe.store.tree import Node
    from featpipe.store.views import FileMap

#: Chunk sizes in bytes. A table starts at the first and is rewritten into the next when it has
#: reached an eighth of it: small tables stay small, and all rewrites together abandon 2 MiB. The
#: last is larger than libhdf5's chunk cache, so that a plain HDF5 read of one row reads one row.
_CHUNK_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)


class WritableFile(Allocation, Protocol):
    """The file of a writer, as its tables use it."""

    def mapping(self) -> FileMap:
        """The file in memory, up to its present size."""

    def changing(self) -> AbstractContextManager[None]:
        """Wraps every change: a refusal by the disk takes the writer back to the last commit."""

    def touch(self, table: TableWriter) -> None:
        """Have the next commit publish the table."""


class TableWriter:
    """Append-only access to one table; made by :meth:`Writer.table`.

    ``n_rows`` counts appended rows, committed or not. After a WriteFailed, the next call of the
    writer or of one of its tables takes all back to the last commit: later rows have to be appended
    again.
    """

    def __init__(self, file: WritableFile, name: str, spec: TableSpec) -> None:
        self.name = name
        self.spec = spec
        self.n_rows = 0
        self.scrub_to = 0  #: a failed append may have left remains up to this row
        self._file = file
        self._index: IndexWriter | None = None
        self._keys: tuple[ColumnView, FileMap, list[int]] | None = None

    def create(self) -> Group:
        """The nodes of a new, empty table."""
        salt = int.from_bytes(os.urandom(4), "little") | 1
        self._hash = RowHash(salt, MULTILINEAR)
        extras = [
            hdf5.attribute(COLUMNS_ATTRIBUTE, self.spec.to_json()),
            hdf5.attribute(SALT_ATTRIBUTE, salt),
            hdf5.attribute(HASH_ATTRIBUTE, MULTILINEAR),
            hdf5.attribute(PATH_ATTRIBUTE, self.name),
            *(hdf5.attribute(key, text) for key, text in self.spec.attributes.items()),
        ]
        fixed = fixed_datasets(self.spec, MULTILINEAR)
        self._fixed = {name: Dataset(d, s, 1) for name, d, s in fixed}
        self._values = {name: Dataset(d, s, 1) for name, d, s in value_datasets(self.spec)}
        for together in (self._fixed, *({n: d} for n, d in self._values.items())):
            _set_chunk_rows(together, _chunk_rows(together, 0))
        links: dict[str, Node] = {**self._values, **self._fixed}
        self.group = Group(links, extras, is_table=True)
        self.n_rows = 0
        self._n_values = dict.fromkeys(self._values, 0)
        if self.spec.keyed:
            self._index = IndexWriter(self._file, self.group, self._key_column)
            self._index.create()
        return self.group

    def attach(self, view: TableView) -> Group:
        """Continue an existing table after its visible rows."""
        self._hash = view.row_hash
        fixed = fixed_datasets(self.spec, view.row_hash.name)
        self._fixed = {n: _attached(view, n, d) for n, d, _ in fixed}
        self._values = {n: _attached(view, n, d) for n, d, _ in value_datasets(self.spec)}
        self.group = group_of(view)
        self.group.links |= self._values | self._fixed
        self.n_rows = n = view.n_rows
        self._n_values = {
            name: int(view.fixed[name + END_SUFFIX].slice(n - 1, n)[0]) if n else 0
            for name in self._values
        }
        if self.spec.keyed:
            self._index = IndexWriter(self._file, self.group, self._key_column)
            self._index.attach(view.index, n)
        return self.group

    # ---- appending

    def append(self, data: Mapping[str, ColumnData]) -> int:
        """Append rows; returns how many.

        ``data`` holds every column: (n, *shape) values, or (flat values, lengths) for a ragged one,
        and (n, 16) uint8 ``keys`` in a keyed table, where rows are skipped whose key is in the
        table or earlier in the batch. Raises DictionaryError for data that does not fit and
        WriteFailed when the file cannot be written; nothing is acknowledged before commit.
        """
        batch = Batch.of(self.spec, data)
        with self._file.changing():
            ends = np.zeros(batch.n_rows, np.intp)
            if self._index is not None:
                fresh = self._find_new(batch, self._index, ends)
                if len(fresh) < batch.n_rows:
                    batch, ends = batch.only(fresh), ends[fresh]
            if batch.n_rows:
                self._append(batch, ends)
                self._file.touch(self)
        return batch.n_rows

    def find(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Rows of these keys, appended ones included; -1 when absent: (n,) int64."""
        if self._index is None:
            raise DictionaryError(f"table {self.name} has no keys to be found by")
        wanted = np.ascontiguousarray(keys, np.uint8).reshape(-1, 16).view("<u8")
        with self._file.changing():  # rows of a commit that failed are not found
            return self._index.find(wanted, self.n_rows)

    def gather(self, name: str, rows: NDArray[np.int64]) -> AnyArray:
        """These rows of a column with one value per row, appended ones included."""
        return self._view(self._fixed[name]).gather(rows)

    def _find_new(
        self, batch: Batch, index: IndexWriter, ends: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Rows of the batch whose keys are absent, the first of each key."""
        keys = batch.keys
        fresh = np.flatnonzero(index.find(keys, self.n_rows, ends) < 0)
        heads = np.sort(keys[fresh, 0])
        if (heads[1:] == heads[:-1]).any():
            first: dict[bytes, int] = {}
            for row in fresh.tolist():
                first.setdefault(keys[row].tobytes(), row)
            fresh = np.fromiter(first.values(), np.intp)
        return fresh

    def _append(self, batch: Batch, slots: NDArray[np.intp]) -> None:
        self.scrub()
        start, n = self.n_rows, batch.n_rows
        ends = {
            name: np.cumsum(lengths) + self._n_values[name]
            for name, (_, lengths) in batch.ragged.items()
        }
        self._allocate(start + n, ends)
        # Until n_rows moves, the rows beyond it may hold anything.
        self.scrub_to = start + n
        columns = {**batch.fixed, **self._beside(batch, ends)}
        parts = [columns.pop(name) for name in self._fixed if name != CHECKS]
        for name, values in zip(self._fixed, parts, strict=False):
            self._write(self._fixed[name], start, as_bytes(values))
        for name, dataset in self._values.items():
            self._write(dataset, self._n_values[name], as_bytes(batch.ragged[name][0]))
        # In layout 1 the crcs are not stored, and enter the sum as the last words.
        sums = self._hash.sums(np.arange(start, start + n), [*parts, *columns.values()])
        self._write(self._fixed[CHECKS], start, as_bytes(sums))
        self.n_rows += n
        self._n_values = {name: int(ended[-1]) for name, ended in ends.items()}
        if self._index is not None:
            self._index.add(batch.keys, self.n_rows, slots)
        self.scrub_to = 0

    def _beside(self, batch: Batch, ends: Mapping[str, NDArray[np.int64]]) -> dict[str, AnyArray]:
        """The columns that are stored beside ragged ones: end offsets, crcs of the values."""
        found: dict[str, AnyArray] = {}
        for name, (values, lengths) in batch.ragged.items():
            bounds = np.concatenate([[0], np.cumsum(lengths)]) * self._values[name].row_bytes
            kind = "<u4" if name + CRC_SUFFIX in self._fixed else "<u8"
            found[name + END_SUFFIX] = ends[name].astype("<u8")
            found[name + CRC_SUFFIX] = crcs_of(as_bytes(values), bounds).astype(kind)
        return found

    def _write(self, dataset: Dataset, row: int, data: memoryview) -> None:
        size = dataset.row_bytes
        while data:
            room = (dataset.chunk_rows - row % dataset.chunk_rows) * size
            self._file.write(dataset.offset_of(row), data[:room])
            data, row = data[room:], row + room // size

    def scrub(self) -> None:
        """Void the checksums that a failed append may have left after the last real row."""
        crc = self._fixed[CHECKS]
        stop = min(self.scrub_to, crc.n_capacity)
        if stop > self.n_rows:
            self._write(crc, self.n_rows, memoryview(bytes((stop - self.n_rows) * crc.row_bytes)))
        self.scrub_to = 0

    # ---- space

    def reserve(self, n_rows: int, n_values: Mapping[str, int] | None = None) -> None:
        """Allocate for ``n_rows`` in all, and ``n_values`` in ragged columns, at once.

        Avoids the rewrites of a growing table. Raises WriteFailed.
        """
        with self._file.changing():
            self._allocate_rows(self._fixed, self.n_rows, n_rows)
            for name, n in (n_values or {}).items():
                self._allocate_rows({name: self._values[name]}, self._n_values[name], n)

    def _allocate(self, n_rows: int, ends: Mapping[str, NDArray[np.int64]]) -> None:
        self._allocate_rows(self._fixed, self.n_rows, n_rows)
        for name, dataset in self._values.items():
            self._allocate_rows({name: dataset}, self._n_values[name], int(ends[name][-1]))

    def _allocate_rows(self, datasets: dict[str, Dataset], n_now: int, n_wanted: int) -> None:
        """Have chunks for ``n_wanted`` rows in datasets of equal chunk length."""
        some = next(iter(datasets.values()))
        chunk_rows = _chunk_rows(datasets, n_wanted)
        if chunk_rows <= some.chunk_rows:
            if n_wanted > some.n_capacity:
                self._add_chunks(datasets, n_wanted)
            return
        old = {name: self._view(dataset) for name, dataset in datasets.items()}
        _set_chunk_rows(datasets, chunk_rows)
        self._add_chunks(datasets, n_wanted)
        for name, dataset in datasets.items():
            row = 0
            for block in old[name].blocks(0, n_now):
                self._write(dataset, row, as_bytes(block))
                row += len(block)

    def _add_chunks(self, datasets: dict[str, Dataset], n_wanted: int) -> None:
        for dataset in datasets.values():
            missing = -(-n_wanted // dataset.chunk_rows) - len(dataset.chunks)
            size = dataset.chunk_rows * dataset.row_bytes
            align = math.lcm(64, dataset.row_bytes)
            for _ in range(max(missing, len(dataset.chunks) // 64)):
                dataset.chunks.append(self._file.allocator.allocate(size, align))
            dataset.is_dirty = True

    def _view(self, dataset: Dataset) -> ColumnView:
        storage = storage_dtype(dataset.dtype)
        mapping = self._file.mapping()
        return ColumnView(mapping, storage, dataset.shape, dataset.chunk_rows, dataset.chunks)

    def _key_column(self) -> ColumnView:
        """The keys as (n, 2) uint64, up to the capacity of their chunks."""
        keys, mapping = self._fixed[KEYS], self._file.mapping()
        if self._keys is None or self._keys[1:] != (mapping, keys.chunks):
            column = ColumnView(mapping, np.dtype("<u8"), (2,), keys.chunk_rows, keys.chunks)
            self._keys = column, mapping, list(keys.chunks)
        return self._keys[0]

    # ---- publishing

    def write_index(self, *, is_last: bool) -> None:
        """Write the index; called before the sync of a commit."""
        if self._index is not None:
            self._index.write(self.n_rows, is_last=is_last)

    def mark_structure(self) -> None:
        """Mark every column's header to be stored again, with its present length."""
        for dataset, n_rows in self._lengths():
            dataset.n_rows = n_rows
            dataset.is_dirty = True

    def announce(self) -> None:
        """Publish the lengths of all columns but the leading one; called before the sync.

        A reader that goes by the leading column, ``keys``, finds whole and durable rows in the
        others at every instant, also after a power loss.
        """
        for dataset, n_rows in self._lengths()[:-1]:
            self._publish(dataset, n_rows)

    def publish(self) -> None:
        """Publish the length of the leading column, and so the rows; called after the sync."""
        for dataset, n_rows in self._lengths():
            self._publish(dataset, n_rows)
        if self._index is not None:
            self._index.publish()

    def _publish(self, dataset: Dataset, n_rows: int) -> None:
        if dataset.n_rows != n_rows:
            self._file.write(dataset.dims_address, hdf5.u64(n_rows))
            dataset.n_rows = n_rows

    def _lengths(self) -> list[tuple[Dataset, int]]:
        """In the order of publishing: that of the leading column is last."""
        values = [(dataset, self._n_values[name]) for name, dataset in self._values.items()]
        leading, *others = self._fixed.values()
        return [*values, *((dataset, self.n_rows) for dataset in others), (leading, self.n_rows)]


def group_of(view: TableView) -> Group:
    """The group of a stored table, none of its datasets loaded."""
    group, columns = view.group, view.fixed | view.values
    own = datasets_of(view.spec, view.row_hash.name)
    return Group(
        dict(group.links),
        renewed(group.extras, {PATH_ATTRIBUTE: view.name}),
        group.address,
        is_dirty=False,
        is_table=True,
        foreign=frozenset(set(group.links) - own),
        hashes=dataset_hashes(group, view.headers, columns),
    )


def _chunk_rows(datasets: dict[str, Dataset], n_rows: int) -> int:
    """The chunk length, in rows, for all of ``datasets`` at ``n_rows`` rows."""
    widest = max(dataset.row_bytes for dataset in datasets.values())
    fitting = [size for size in _CHUNK_BYTES if n_rows * widest * 8 >= size]
    return max(1, max(fitting, default=_CHUNK_BYTES[0]) // widest)


def _set_chunk_rows(datasets: dict[str, Dataset], chunk_rows: int) -> None:
    for dataset in datasets.values():
        dataset.start_over(chunk_rows)


def _attached(view: TableView, name: str, dtype: str) -> Dataset:
    header = view.headers[name]
    column = view.fixed.get(name) or view.values[name]
    dataset = Dataset(dtype, header.shape[1:], column.chunk_rows, column.offsets.tolist())
    dataset.n_rows = header.shape[0]
    dataset.extras = header.extras
    dataset.address, dataset.dims_address = header.address, header.dims_address
    dataset.is_dirty = False
    dataset.keep_tree(header.data_address)
    return dataset
