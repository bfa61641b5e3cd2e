"""The hash index of a table, from keys to rows: open addressing, four bytes a slot.

Guarantees: a find never returns a row whose stored key differs from the wanted one, whatever the
index holds: entries are hints, and each is compared with the key column. Before the first miss is
believed, entries are counted and added up; an index that lacks some is built again from the keys.
Entries are never moved or removed, so a find may run while another process adds to the same index.

A slot holds row + 1, or 0 when empty. The first eight bytes of a key, themselves a hash, choose its
first slot; probing is linear.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.errors import DictionaryChanged
from featpipe.store import hdf5_format as hdf5
from featpipe.store.allocator import PAGE
from featpipe.store.bus_guard import GuardedRange
from featpipe.store.checksum import as_bytes
from featpipe.store.keys import KEY_BYTES
from featpipe.store.mapping import map_file
from featpipe.store.schema import INDEX, INDEXED
from featpipe.store.tree import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from featpipe.store.allocator import Allocation
    from featpipe.store.table_view import IndexPlace
    from featpipe.store.tree import Group
    from featpipe.store.views import ColumnView

PAGE_SLOTS = 1024  #: slots of one 4 KiB page, the unit of writing
MIN_CAPACITY = 512
_MAX_LOAD = 0.72  #: 5.6 to 11.1 bytes a key
_MAX_PROBES = 1 << 16
_PROBES = range(_MAX_PROBES)
_BUILD_BLOCK = 1 << 16
_CHECKED = 1 << 15  #: slots checked at a time: they stay in the processor's cache
_FEW = 12  #: up to so many keys, a loop is faster than numpy
_SOME = 128  #: from so many keys, the first slot of each is probed by itself
_MANY = 1024  #: from so many keys, probing one slot of each at a time is faster than windows
_WINDOW = 16
_STEPS = np.arange(_WINDOW)


class IndexDamaged(Exception):
    """No empty slot within reach: the index must be built again from the keys."""


def capacity_for(n_rows: int) -> int:
    """The smallest power of two that holds ``n_rows`` with room to probe."""
    capacity = MIN_CAPACITY
    while n_rows > capacity * _MAX_LOAD:
        capacity *= 2
    return capacity


class KeyIndex:
    """An index in memory. One thread may add; finds may run meanwhile.

    ``slots`` may be a private map of the file: a page is shared between processes until an entry is
    added on it. Entries lie all over the pages, so a few hundred thousand of them make the whole
    index private: readers add none (`ReaderIndex`).
    """

    __slots__ = ("dirty", "guard", "is_whole", "mask", "memory", "n_rows", "slots")

    def __init__(self, slots: NDArray[np.uint32], n_rows: int, *, is_whole: bool = True) -> None:
        self.slots = slots
        self.memory = slots.data
        self.mask = len(slots) - 1
        self.n_rows = n_rows  #: rows added so far
        self.is_whole = is_whole  #: whether every row added is known to have its entry
        self.dirty = np.zeros(-(-len(slots) // PAGE_SLOTS), np.bool_)  #: pages added to
        self.guard: GuardedRange | None = None  #: of a mapped index

    @classmethod
    def empty(cls, capacity: int) -> KeyIndex:
        """An index of ``capacity`` empty slots, a power of two."""
        index = cls(np.zeros(capacity, "<u4"), 0)
        index.dirty[:] = True
        return index

    @classmethod
    def beginning_at(cls, row: int, capacity: int) -> KeyIndex:
        """An empty index, of rows from ``row`` on."""
        index = cls.empty(capacity)
        index.n_rows = row
        return index

    @classmethod
    def mapped(cls, descriptor: int, address: int, capacity: int, n_rows: int) -> KeyIndex:
        """The index at ``address``, mapped copy-on-write."""
        lead = address % mmap.ALLOCATIONGRANULARITY
        try:
            memory = map_file(
                descriptor, lead + capacity * 4, offset=address - lead, is_private=True
            )
        except ValueError:
            raise DictionaryChanged("the file was truncated under its reader") from None
        slots = np.ndarray(capacity, "<u4", buffer=memory, offset=lead)
        index = cls(slots, n_rows, is_whole=False)
        index.guard = GuardedRange(memory, descriptor, address - lead)
        return index

    @classmethod
    def built(cls, keys: ColumnView, n_rows: int) -> KeyIndex:
        """A new index over the first ``n_rows`` of a key column."""
        index = cls.empty(capacity_for(n_rows))
        index.extend(keys, n_rows)
        return index

    def check_whole(self) -> None:
        """Raise IndexDamaged unless the entries are as many as the rows, and their sum is right.

        Looks once. Lost and altered entries are found, except for several whose changes add up to
        nothing.
        """
        if self.is_whole:
            return
        n_entries = total = 0
        for start in range(0, len(self.slots), _CHECKED):
            slots = self.slots[start : start + _CHECKED]
            # Empty ones wrap around; entries of rows that the writer added since are beyond.
            is_row = (slots - np.uint32(1)) < np.uint32(self.n_rows)
            n_entries += int(np.count_nonzero(is_row))
            total += int(np.add.reduce(slots * is_row, dtype=np.uint64))
        if n_entries != self.n_rows or total != self.n_rows * (self.n_rows + 1) // 2:
            raise IndexDamaged
        self.is_whole = True

    def extend(self, keys: ColumnView, n_rows: int) -> None:
        """Add the next rows of the key column, up to ``n_rows``."""
        while self.n_rows < n_rows:
            stop = min(n_rows, self.n_rows + _BUILD_BLOCK)
            self.add(keys.slice(self.n_rows, stop))

    def add(self, keys: NDArray[np.uint64], ends: NDArray[np.intp] | None = None) -> None:
        """Add the next rows, given their keys as (n, 2) uint64. Raises IndexDamaged when full.

        ``ends``, from :meth:`find`, are slots at which the search for an empty one may start.
        """
        n = len(keys)
        entry = np.arange(self.n_rows + 1, self.n_rows + n + 1, dtype=np.uint32)
        slot = (keys[:, 0] & np.uint64(self.mask)).astype(np.intp) if ends is None else ends
        while len(slot) > _FEW:
            free = self.slots.take(slot) == 0
            # Two keys of the batch may want one slot: the later store wins, the other key goes on.
            self.slots[slot[free]] = entry[free]
            placed = self.slots.take(slot) == entry
            self.dirty[slot[placed] // PAGE_SLOTS] = True
            rest = np.flatnonzero(~placed)
            entry, slot = entry[rest], (slot[rest] + 1) & self.mask
        for value, start in zip(entry.tolist(), slot.tolist(), strict=True):
            self._add_one(value, start)
        self.n_rows += n

    def _add_one(self, entry: int, slot: int) -> None:
        memory = self.memory
        for _ in range(len(memory)):
            if not memory[slot]:
                memory[slot] = entry
                self.dirty[slot // PAGE_SLOTS] = True
                return
            slot = (slot + 1) & self.mask
        raise IndexDamaged

    def find(
        self,
        keys: NDArray[np.uint64],
        stored: ColumnView,
        n_rows: int,
        ends: NDArray[np.intp] | None = None,
    ) -> NDArray[np.int64]:
        """Rows of ``keys`` ((n, 2) uint64) among the first ``n_rows``, -1 when absent: (n,) int64.

        ``ends`` (n,) receives the slots from which :meth:`add` may go on for absent keys. Raises
        IndexDamaged when a probe does not end.
        """
        found = np.full(len(keys), -1, np.int64)
        slot = (keys[:, 0] & np.uint64(self.mask)).astype(np.intp)
        if ends is None:
            ends = np.empty_like(slot)
        ends[:] = slot
        if not n_rows or not len(keys):
            return found
        where = np.arange(len(keys))
        n_probes = 0
        is_worth_it = len(where) > _SOME
        while is_worth_it:  # one slot at a time: most present keys are found in few steps
            entry = self.slots.take(slot)
            taken = entry != 0
            same, row = _compare(entry, keys, stored, n_rows)
            same &= taken
            found[where[same]] = row[same]
            rest = np.flatnonzero(taken & ~same)
            where, keys, slot = where[rest], keys[rest], (slot[rest] + 1) & self.mask
            ends[where] = slot
            n_probes = self._count(n_probes, 1)
            is_worth_it = len(where) > _MANY
        while len(where) > _FEW:
            rest = self._find_in_windows(keys, slot, stored, n_rows, (found, ends, where))
            where, keys, slot = where[rest], keys[rest], (slot[rest] + _WINDOW) & self.mask
            n_probes = self._count(n_probes, _WINDOW)
        # The last few have the longest probes; one after the other is faster.
        for i, key, start in zip(where.tolist(), keys, slot.tolist(), strict=True):
            found[i] = self.find_one(key.tobytes(), start, stored, n_rows)
            ends[i] = start
        if not self.is_whole and (found < 0).any():
            self.check_whole()
        return found

    def _count(self, n_probes: int, n_more: int) -> int:
        if n_probes > min(_MAX_PROBES, self.mask):
            raise IndexDamaged
        return n_probes + n_more

    def _find_in_windows(
        self,
        keys: NDArray[np.uint64],
        slot: NDArray[np.intp],
        stored: ColumnView,
        n_rows: int,
        result: tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]],
    ) -> NDArray[np.intp]:
        """Probe the next ``_WINDOW`` slots of every key at once; returns the unsettled keys.

        ``result`` is (found, ends, positions of the keys in both).
        """
        found, ends, where = result
        window = self.slots.take((slot[:, None] + _STEPS) & self.mask)
        n_taken = (window == 0).argmax(axis=1)
        is_open = window[np.arange(len(slot)), n_taken] == 0
        n_taken[~is_open] = _WINDOW
        key = np.repeat(np.arange(len(slot)), n_taken)
        entry = window[n_taken[:, None] > _STEPS]
        same, row = _compare(entry, keys.take(key, axis=0), stored, n_rows)
        hit = np.flatnonzero(same)[::-1]  # of two rows with one key the first counts
        found[where[key[hit]]] = row[hit]
        ends[where] = (slot + n_taken) & self.mask
        is_open[key[hit]] = True
        return np.flatnonzero(~is_open)

    def find_one(self, key: bytes, slot: int, stored: ColumnView, n_rows: int) -> int:
        """The row of ``key``; -1 when absent. Raises IndexDamaged.

        The probe begins at ``slot``: the key's first eight bytes as a number, or further on.
        """
        memory, mask, data = self.memory, self.mask, stored.memory
        chunk_rows, offsets = stored.chunk_rows, stored.offset_list
        for _ in _PROBES:
            entry = memory[slot & mask]
            if entry == 0:
                self.check_whole()
                return -1
            if entry <= n_rows:
                row = entry - 1
                chunk = row // chunk_rows
                start = offsets[chunk] + (row - chunk * chunk_rows) * KEY_BYTES
                if data[start : start + KEY_BYTES] == key:
                    return row
            slot += 1
        raise IndexDamaged


N_BITS = np.array([number.bit_count() for number in range(256)], np.uint8)  #: by byte

#: Bits in which two sound keys differ: 64 of 128, and fewer than this with probability 2^-50.
MIN_DISTANCE = 20


def _find_altered(
    index: KeyIndex, keys: NDArray[np.uint64], stored: ColumnView, n_rows: int
) -> NDArray[np.int64]:
    found = [np.zeros(0, np.int64)]
    slot = (keys[:, 0] & np.uint64(index.mask)).astype(np.intp)
    for _ in range(min(_MAX_PROBES, len(index.slots)) if n_rows else 0):
        entry = index.slots.take(slot)
        going = np.flatnonzero(entry)
        if not len(going):
            break
        entry, keys, slot = entry[going], keys[going], slot[going]
        row = np.minimum(entry.astype(np.int64) - 1, n_rows - 1)
        n_bits = N_BITS[(stored.gather(row) ^ keys).view(np.uint8)].sum(axis=1)
        found.append(row[n_bits < MIN_DISTANCE])
        slot = (slot + 1) & index.mask
    return np.unique(np.concatenate(found))


def is_near(keys: NDArray[np.uint64], stored: ColumnView, row: int) -> bool:
    """Whether a row's stored key is nearly one of ``keys`` ((n, 2) uint64)."""
    n_bits = N_BITS[(stored.slice(row, row + 1) ^ keys).view(np.uint8)].sum(axis=1)
    return bool((n_bits < MIN_DISTANCE).any())


def _compare(
    entry: NDArray[np.uint32], keys: NDArray[np.uint64], stored: ColumnView, n_rows: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each entry's row has the key, and that row.

    An entry beyond the visible rows is compared as the last visible row.
    """
    row = np.minimum(entry.astype(np.int64) - 1, n_rows - 1)
    key = stored.gather(row)
    same: NDArray[np.bool_] = key[:, 0] == keys[:, 0]
    same &= key[:, 1] == keys[:, 1]
    return same, row


class ReaderIndex(NamedTuple):
    """The index of a file, and beside it one of the rows that it lacks.

    The file's stays shared with all other processes. ``recent`` takes at most 11.1 bytes for each
    row that the writer has not indexed yet, which are a quarter of the table at most.
    """

    filed: KeyIndex
    recent: KeyIndex | None = None

    def find(self, keys: NDArray[np.uint64], stored: ColumnView, n_rows: int) -> NDArray[np.int64]:
        """As `KeyIndex.find`."""
        found = self.filed.find(keys, stored, n_rows)
        if self.recent is not None:
            rest = np.flatnonzero(found < 0)
            if len(rest):
                found[rest] = self.recent.find(keys[rest], stored, n_rows)
        return found

    def find_one(self, key: bytes, slot: int, stored: ColumnView, n_rows: int) -> int:
        """As `KeyIndex.find_one`."""
        row = self.filed.find_one(key, slot, stored, n_rows)
        if row < 0 and self.recent is not None:
            return self.recent.find_one(key, slot, stored, n_rows)
        return row

    def find_altered(
        self, keys: NDArray[np.uint64], stored: ColumnView, n_rows: int
    ) -> NDArray[np.int64]:
        """Rows that these absent keys ((n, 2) uint64) were compared with and nearly have.

        A sound key is not near another, so theirs are suspect: they may be damaged.
        """
        found = [_find_altered(index, keys, stored, n_rows) for index in self if index is not None]
        return np.unique(np.concatenate(found))

    def extended(self, keys: ColumnView, n_rows: int) -> ReaderIndex:
        """With every row of the key column up to ``n_rows``."""
        first, recent = self.filed.n_rows, self.recent
        if n_rows <= first:
            return ReaderIndex(self.filed)
        capacity = capacity_for(n_rows - first)
        if recent is None or recent.n_rows > n_rows or capacity > len(recent.slots):
            recent = KeyIndex.beginning_at(first, capacity)
        recent.extend(keys, n_rows)
        return ReaderIndex(self.filed, recent)


#: Rows that readers may have to index themselves, besides a quarter of the table.
_MIN_BACKLOG = 4096

#: An index of so many slots is not built at once when the next size is due, but before, from this
#: share of its capacity on, several rows for each that is added: no commit waits for all keys.
GRADUAL_SLOTS = 1 << 20
_GROWS_FROM = 0.5
_ROWS_EACH = 8


class IndexWriter:
    """The writer's side of an index: kept in memory, written to the file behind the rows.

    New entries go to a private copy of the pages, which is written in place at intervals. Entries
    are hints, so their order does not matter to readers; only the count of indexed rows moves
    after the entries are durable. ``keys`` returns the key column of the table in ``group``.
    """

    def __init__(self, file: Allocation, group: Group, keys: Callable[[], ColumnView]) -> None:
        self._file = file
        self._group = group
        self._keys = keys
        self._index = KeyIndex.empty(capacity_for(0))
        self._next: KeyIndex | None = None  #: of the next size, with the first rows
        self._n_placed = 0  #: slots allocated in the file
        self._n_published = self._n_pending = 0
        self._slots_address = self._count_address = 0

    def create(self) -> None:
        """Allocate the index of a new table."""
        self._place()

    def attach(self, place: IndexPlace | None, n_rows: int) -> None:
        """Map the index in the file, and add the rows that it lacks."""
        if place is None:
            self._rebuild(n_rows)
            return
        descriptor = self._file.descriptor
        count = int.from_bytes(os.pread(descriptor, 8, place.count_address), "little")
        self._slots_address, self._count_address = place.address, place.count_address
        self._n_placed = place.capacity
        self._n_published = min(count, n_rows)
        self._index = KeyIndex.mapped(descriptor, place.address, place.capacity, self._n_published)
        try:
            self._index.check_whole()
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
            self._prepare_next(n_rows, len(keys))

    def _prepare_next(self, n_rows: int, n_added: int) -> None:
        """Add some more rows to the index of the next size, once this one fills up."""
        capacity = len(self._index.slots)
        if capacity < GRADUAL_SLOTS or n_rows < capacity * _GROWS_FROM:
            return
        if self._next is None:
            self._next = KeyIndex.empty(2 * capacity)
        self._next.extend(self._keys(), min(n_rows, self._next.n_rows + _ROWS_EACH * n_added))

    def _catch_up(self, n_rows: int) -> None:
        if capacity_for(n_rows) <= len(self._index.slots):
            self._index.extend(self._keys(), n_rows)
            return
        following, self._next = self._next, None
        if following is None or len(following.slots) != capacity_for(n_rows):
            following = KeyIndex.empty(capacity_for(n_rows))
        following.extend(self._keys(), n_rows)
        self._index = following

    def _rebuild(self, n_rows: int) -> None:
        self._index, self._next = KeyIndex.built(self._keys(), n_rows), None
        self._n_placed = 0

    def _place(self) -> None:
        """Allocate the count of indexed rows, and the slots from the start of a page."""
        self._n_placed = len(self._index.slots)
        size = self._n_placed * 4
        self._count_address = self._file.allocator.allocate(8, 64)
        self._slots_address = self._file.allocator.allocate(size, PAGE if size > PAGE else 64)
        self._group.links[INDEX] = Array("<u4", self._n_placed, self._slots_address)
        self._group.links[INDEXED] = Array("<u8", 1, self._count_address)
        self._group.is_dirty = True
        self._index.dirty[:] = True
        self._n_published = 0

    def write(self, n_rows: int, *, is_last: bool) -> None:
        """Write changed pages when the backlog is large, or ``is_last``.

        The caller syncs the file, then calls :meth:`publish`.
        """
        backlog = n_rows - self._n_published
        if not backlog or not (is_last or backlog >= max(_MIN_BACKLOG, n_rows // 4)):
            return
        if self._n_placed != len(self._index.slots):
            self._place()
        for first, last in _runs(self._index.dirty):
            slots = self._index.slots[first * PAGE_SLOTS : last * PAGE_SLOTS]
            self._file.write(self._slots_address + first * PAGE_SLOTS * 4, as_bytes(slots))
        self._index.dirty[:] = False
        self._n_pending = n_rows

    def publish(self) -> None:
        """Publish the count of rows in the durable index."""
        if self._n_pending > self._n_published:
            self._n_published = self._n_pending
            self._file.write(self._count_address, hdf5.u64(self._n_published))


def _runs(dirty: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Half-open runs of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], dirty.view(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
