"""The writer's side of a table's index: kept in memory, put into the file behind the rows.

Entries for new rows are added to a private copy of the index's pages and written in place at
intervals: to a reader each entry is either there or not yet, and a hint in any case, so no order
matters but one: the count of rows that the index is known to hold moves after the entries are
durable.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import format as hdf5
from featpipe.store.checksum import as_bytes
from featpipe.store.index import PAGE_SLOTS, IndexDamaged, KeyIndex, capacity_for
from featpipe.store.schema import INDEX, INDEXED
from featpipe.store.space import PAGE
from featpipe.store.tree import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from featpipe.store.column_view import ColumnView
    from featpipe.store.table_view import IndexPlace
    from featpipe.store.tree import Group
    from featpipe.store.writer import Writer

#: Rows that readers may have to add to the index by themselves, besides a quarter of the table.
_MIN_BACKLOG = 4096


class IndexWriter:
    """The index of the table in ``group``, whose key column is what ``keys`` returns."""

    def __init__(self, writer: Writer, group: Group, keys: Callable[[], ColumnView]) -> None:
        self._writer = writer
        self._group = group
        self._keys = keys
        self._index = KeyIndex.empty(capacity_for(0))
        self._n_placed = 0  #: slots there is room for in the file
        self._n_published = self._n_pending = 0
        self._slots_address = self._count_address = 0

    def create(self) -> None:
        """Make room for the index of a new table."""
        self._place()

    def attach(self, place: IndexPlace | None, n_rows: int) -> None:
        """Take up the index in the file, and add the rows that it lacks."""
        if place is None:
            self._rebuild(n_rows)
            return
        descriptor = self._writer.descriptor
        count = int.from_bytes(os.pread(descriptor, 8, place.count_address), "little")
        self._slots_address, self._count_address = place.address, place.count_address
        self._n_placed = place.capacity
        self._n_published = min(count, n_rows)
        self._index = KeyIndex.mapped(descriptor, place.address, place.capacity, self._n_published)
        try:
            self._catch_up(n_rows)
        except IndexDamaged:
            self._rebuild(n_rows)

    def find(
        self, keys: NDArray[np.uint64], n_rows: int, ends: NDArray[np.intp] | None = None
    ) -> NDArray[np.int64]:
        """Rows of ``keys`` among the first ``n_rows``; -1 when absent. See KeyIndex.find."""
        try:
            return self._index.find(keys, self._keys(), n_rows, ends)
        except IndexDamaged:
            self._rebuild(n_rows)
            return self._index.find(keys, self._keys(), n_rows, ends)

    def add(self, keys: NDArray[np.uint64], n_rows: int, ends: NDArray[np.intp]) -> None:
        """Add the keys of the last rows; ``n_rows`` is the table's length with them."""
        if capacity_for(n_rows) > len(self._index.slots):
            self._catch_up(n_rows)
        else:
            self._index.add(keys, ends)

    def _catch_up(self, n_rows: int) -> None:
        if capacity_for(n_rows) > len(self._index.slots):
            self._index = KeyIndex.built(self._keys(), n_rows)
        else:
            self._index.extend(self._keys(), n_rows)

    def _rebuild(self, n_rows: int) -> None:
        self._index = KeyIndex.built(self._keys(), n_rows)
        self._n_placed = 0

    def _place(self) -> None:
        """New room for the index: the count of rows it holds, and its slots at a page's start."""
        self._n_placed = len(self._index.slots)
        size = self._n_placed * 4
        self._count_address = self._writer.space.allocate(8, 64)
        self._slots_address = self._writer.space.allocate(size, PAGE if size > PAGE else 64)
        self._group.links[INDEX] = Array("<u4", self._n_placed, self._slots_address)
        self._group.links[INDEXED] = Array("<u8", 1, self._count_address)
        self._group.is_dirty = True
        self._index.dirty[:] = True
        self._n_published = 0

    def write(self, n_rows: int, *, is_last: bool) -> None:
        """Write changed pages when enough rows have come since, or at the end.

        To be followed by a sync, and that by :meth:`publish`.
        """
        backlog = n_rows - self._n_published
        if not backlog or not (is_last or backlog >= max(_MIN_BACKLOG, n_rows // 4)):
            return
        if self._n_placed != len(self._index.slots):
            self._place()
        for first, last in _runs(self._index.dirty):
            slots = self._index.slots[first * PAGE_SLOTS : last * PAGE_SLOTS]
            self._writer.write(self._slots_address + first * PAGE_SLOTS * 4, as_bytes(slots))
        self._index.dirty[:] = False
        self._n_pending = n_rows

    def publish(self) -> None:
        """Say how many rows the durable index holds."""
        if self._n_pending > self._n_published:
            self._n_published = self._n_pending
            self._writer.write(self._count_address, hdf5.u64(self._n_published))


def _runs(dirty: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Half-open runs of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], dirty.view(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
