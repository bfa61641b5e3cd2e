"""One table as memory: its columns, agreeing with its schema and with its structure's checksums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import hdf5_format as hdf5
from featpipe.store.checksum import MULTILINEAR, ODD_64, RowHash
from featpipe.store.row_checks import RowChecks
from featpipe.store.schema import (
    CHECKS,
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
from featpipe.store.structure import check_datasets, row_hash_of, spec_of
from featpipe.store.views import ColumnView

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.store.hdf5_parse import Header, Structure
    from featpipe.store.views import FileMap


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
    row_hash: RowHash
    group: Header
    headers: dict[str, Header]
    fixed: dict[str, ColumnView]
    values: dict[str, ColumnView]
    index: IndexPlace | None
    checks: RowChecks
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
        return not set(self.headers) <= datasets_of(self.spec, self.row_hash.name)

    def keys(self, mapping: FileMap) -> ColumnView:
        """The key column as (n, 2) uint64."""
        column = self.fixed[KEYS]
        return ColumnView(mapping, np.dtype("<u8"), (2,), column.chunk_rows, column.offsets)

    @property
    def leader(self) -> str:
        """The column whose length is the table's: it grows last, when the rows are durable."""
        return KEYS if self.spec.keyed else next(iter(self.fixed))

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

    def bad_rows(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows of start:stop whose bytes are not those that were written."""
        return self.checks.bad_rows(start, stop)

    def lengths(self) -> dict[str, int]:
        """The length of each column with one entry per row, as its header has it."""
        return {name: self.headers[name].shape[0] for name in self.fixed}


def load_table(
    structure: Structure,
    mapping: FileMap,
    name: str,
    group: Header,
    *,
    is_written: bool = False,
) -> TableView:
    """The table in ``group``, validated against its schema. Raises UnreadableDictionary.

    ``is_written``: a writer is at work, so columns may be ahead of the leading one.
    """
    spec, hashed = spec_of(group), row_hash_of(group)
    if spec is None or hashed not in {ODD_64, MULTILINEAR}:
        raise structure.damage(f"/{name} does not describe itself as a table")
    headers = {child: structure.header(at) for child, at in group.links.items()}
    fixed, values = (
        {
            label: _column(structure, mapping, f"{name}/{label}", headers.get(label), dtype, shape)
            for label, dtype, shape in datasets
        }
        for datasets in (fixed_datasets(spec, hashed), value_datasets(spec))
    )
    if len({(column.chunk_rows, len(column.offsets)) for column in fixed.values()}) != 1:
        raise structure.damage(f"columns of /{name} are chunked differently")
    row_hash = RowHash(int(group.attributes[SALT_ATTRIBUTE]), hashed)
    view = TableView(
        name=name,
        spec=spec,
        row_hash=row_hash,
        group=group,
        headers=headers,
        fixed=fixed,
        values=values,
        index=_index_place(structure, headers) if spec.keyed else None,
        checks=RowChecks(fixed, values, row_hash),
        n_rows=0,
    )
    check_datasets(structure, group, name, headers, fixed | values)
    return replace(view, n_rows=settled_length(view, is_written=is_written))


def settled_length(view: TableView, *, is_written: bool) -> int:
    """The rows of a table, from the lengths of all its columns.

    While a commit is under way (``is_written``), the leading column has the rows committed before.
    Lengths that differ else are those of a crash, or damage: the rows that some columns have and
    others have not are counted as far as they are sound.
    """
    lengths = sorted(view.lengths().values())
    leading = view.lengths()[view.leader]
    if is_written and leading == lengths[0]:
        return leading
    return count_sound(view, lengths[0], lengths[-1])


def count_sound(view: TableView, start: int, stop: int) -> int:
    """``start``, and the rows after it up to the first whose checksum is wrong, or to ``stop``."""
    while start < stop:
        end = min(start + view.checks.block_rows, stop)
        if not view.fixed[CHECKS].slice(start, end).any():
            return start
        bad = view.bad_rows(start, end)
        if len(bad):
            return int(bad[0])
        start = end
    return start


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
