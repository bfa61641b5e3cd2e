"""Looks up keys in the files of all shards at once.

A call into each of a thousand files costs ten times what the rows cost. Here the slots, keys and
rows of all files are gathered by single numpy calls: maps lie anywhere in memory, so memory from
the lowest to the highest of them is taken as one array, and rows are numbered by address.

Guarantees: as of the look-up in each file. An address is computed from a row below the table's
length, in a chunk that lies inside of its map; maps live as long as a look-up. Whatever is out of
the ordinary (rows not yet checked, a file changed since, a key that may be damaged, an index to be
built) is left to the file's own table, and told apart before anything is handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

import numpy as np

from featpipe.store.folder_layout import shard_of
from featpipe.store.index import MIN_DISTANCE, N_BITS
from featpipe.store.keys import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.table_index import Known
    from featpipe.store.table_reader import TableReader
    from featpipe.store.views import ColumnView, FileMap

    Numbers = NDArray[np.int64]

#: A probe that is longer is left to the file's own table.
_MAX_PROBES = 64


class Found(NamedTuple):
    """Of each key the position of the file, -1 where it is in none, and the row there.

    Where ``is_open``, neither is known: the files' own tables have to be asked.
    """

    files: Numbers
    rows: Numbers
    is_open: NDArray[np.bool_]


class _Memory:
    """Memory from one address to another as arrays of any type."""

    def __init__(self, start: int, stop: int) -> None:
        self.start = start - start % 8
        self._n_bytes = stop - self.start

    def _view(self, item: str, step: int) -> AnyArray:
        size = np.dtype(item).itemsize
        n = max(0, (self._n_bytes - size) // step + 1)
        self.__array_interface__ = {
            "version": 3,
            "data": (self.start, True),
            "shape": (n,),
            "strides": (step,),
            "typestr": item,
        }
        return np.asarray(self)

    def words(self) -> NDArray[np.uint64]:
        """Eight bytes each."""
        return self._view("<u8", 8)

    def entries(self) -> NDArray[np.uint32]:
        """Four bytes each."""
        return self._view("<u4", 4)

    def bytes(self) -> NDArray[np.uint8]:
        """A byte each."""
        return self._view("|u1", 1)

    def items(self, n_bytes: int) -> AnyArray:
        """Items of ``n_bytes``, one from each byte on."""
        return self._view(f"|V{n_bytes}", 1)


class _Column:
    """Addresses of the rows of one column, by file."""

    def __init__(self, n_files: int) -> None:
        self.chunk_rows = np.ones(n_files, np.int64)
        self.first_chunk = np.zeros(n_files, np.int64)
        self.chunks = np.zeros(0, np.int64)
        self.by_file: list[Numbers] = [self.chunks] * n_files

    def set(self, file: int, column: ColumnView, address: int) -> None:
        self.chunk_rows[file] = column.chunk_rows
        self.by_file[file] = column.offsets + address

    def settle(self) -> None:
        """Lay the chunks of all files end to end."""
        sizes = np.array([len(chunks) for chunks in self.by_file], np.int64)
        self.first_chunk = np.cumsum(sizes) - sizes
        self.chunks = np.concatenate([self.chunks[:0], *self.by_file])

    def addresses(self, files: Numbers, rows: Numbers, row_bytes: int) -> Numbers:
        """Of some rows."""
        per_chunk = self.chunk_rows[files]
        chunk = rows // per_chunk
        found: Numbers = self.chunks[self.first_chunk[files] + chunk]
        found += (rows - chunk * per_chunk) * row_bytes
        return found


class ShardLookup:
    """Look-ups in one table of a folder. One thread at a time.

    Args:
        open_file: the table in the file of a number, None where it has none.
        by_shard: numbers of the files of each shard, in order.
        bits: of the shards.
        name: of a column with one value per row, which look-ups are for; "" for none.
    """

    def __init__(
        self,
        open_file: Callable[[int], TableReader | None],
        by_shard: Mapping[int, tuple[int, ...]],
        bits: int,
        name: str,
    ) -> None:
        self._open_file = open_file
        self._bits = bits
        self._name = name
        self._numbers = [number for files in by_shard.values() for number in files]
        n = len(self._numbers)
        self._depth = max((len(files) for files in by_shard.values()), default=0)
        #: By shard and place among its files: the position in ``_numbers``, -1 for none.
        self._files = np.full((1 << bits, self._depth), -1, np.int64)
        position = 0
        for shard, files in by_shard.items():
            self._files[shard, : len(files)] = np.arange(position, position + len(files))
            position += len(files)
        self._tables: list[Callable[[], TableReader | None]] = [_nothing] * n
        self._known: list[Known | None] = [None] * n
        #: Whether a file is looked into here, and whether it holds nothing.
        self._is_usable, self._is_empty = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        self._slots, self._sound = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._mask, self._n_rows = np.zeros(n, np.uint64), np.zeros(n, np.int64)
        #: Bounds of the memory that the file is mapped to.
        self._low, self._high = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._keys, self._values = _Column(n), _Column(n)
        self._value: ColumnView | None = None
        self._checks_rows = True
        self._memory = _Memory(0, 0)

    def find(self, keys: NDArray[np.uint8]) -> Found:
        """Where the rows of these keys (n, 16) are."""
        words = np.ascontiguousarray(keys).view("<u8")
        shards = shard_of(keys, self._bits)
        found = Found(
            np.full(len(keys), -1, np.int64),
            np.zeros(len(keys), np.int64),
            np.zeros(len(keys), np.bool_),
        )
        going = np.arange(len(keys))
        for depth in range(self._depth):
            files = self._files[shards[going], depth]
            going, files = going[files >= 0], files[files >= 0]
            self._bring_up_to_date(self._distinct(files))
            is_usable = self._is_usable[files]
            found.is_open[going[~is_usable & ~self._is_empty[files]]] = True
            probed = going[is_usable]
            self._probe(probed, files[is_usable], words[probed], found)
            going = going[(found.files[going] < 0) & ~found.is_open[going]]
        self._require_whole(shards, found)
        return found

    def _require_whole(self, shards: Numbers, found: Found) -> None:
        """Mark keys as open that were not found, while the index may lack rows."""
        absent = np.flatnonzero((found.files < 0) & ~found.is_open)
        asked = self._files[shards[absent]]
        is_partial = np.zeros(len(self._numbers) + 1, np.bool_)
        for position in self._distinct(asked[asked >= 0]).tolist():
            known = self._known[position]
            is_partial[position] = known is not None and not known.key_index.is_whole
        found.is_open[absent] = is_partial[asked].any(axis=1)

    def _distinct(self, positions: Numbers) -> Numbers:
        return np.flatnonzero(np.bincount(positions, minlength=len(self._numbers)))

    def look_up(self, keys: NDArray[np.uint8]) -> tuple[AnyArray | None, Found]:
        """Where the rows of these keys are, and their values: (n, *shape), zeros where absent.

        None instead of values where there are none to tell their type by.
        """
        found = self.find(keys)
        is_there = found.files >= 0
        column = self._value
        if column is None:
            found.is_open[is_there] = True
            return None, found
        files, rows = found.files[is_there], found.rows[is_there]
        at = self._values.addresses(files, rows, column.row_bytes) - self._memory.start
        some = self._memory.items(column.row_bytes)[at]
        if is_there.all():
            values = some
        else:
            values = np.zeros(len(keys), some.dtype)
            values[is_there] = some
        if self._checks_rows:
            found.is_open[is_there] = ~self._are_sound(files, rows)
        self._release_changed(found)
        return values.view(column.dtype).reshape(len(keys), *column.shape), found

    @property
    def numbers(self) -> Numbers:
        """The numbers of the files that results name by position."""
        return np.array(self._numbers, np.int64)

    def _probe(
        self, going: Numbers, files: Numbers, words: NDArray[np.uint64], found: Found
    ) -> None:
        """Find keys by probing one slot of each at a time."""
        memory = self._memory
        entries, all_words = memory.entries(), memory.words()
        mask, slots, last = self._mask[files], self._slots[files], self._n_rows[files] - 1
        slot = words[:, 0] & mask
        for _ in range(_MAX_PROBES):
            at = (slots - memory.start + slot.astype(np.int64) * 4) >> 2
            entry = entries[at].astype(np.int64)
            row = np.clip(entry - 1, 0, last)
            at = (self._keys.addresses(files, row, KEY_BYTES) - memory.start) >> 3
            first, second = all_words[at] ^ words[:, 0], all_words[at + 1] ^ words[:, 1]
            is_taken = entry != 0
            is_it = is_taken & (first == 0) & (second == 0)
            found.files[going[is_it]], found.rows[going[is_it]] = files[is_it], row[is_it]
            rest = np.flatnonzero(is_taken & ~is_it)
            if not len(rest):
                return
            # A stored key that is nearly this one may be this one, damaged.
            n_bits = N_BITS[np.stack((first[rest], second[rest]), axis=1).view(np.uint8)]
            found.is_open[going[rest[n_bits.sum(axis=1) < MIN_DISTANCE]]] = True
            going, files, words, mask = going[rest], files[rest], words[rest], mask[rest]
            slots, last, slot = slots[rest], last[rest], (slot[rest] + np.uint64(1)) & mask
        found.is_open[going] = True

    def _are_sound(self, files: Numbers, rows: Numbers) -> NDArray[np.bool_]:
        """Whether rows are known to be sound."""
        sound = self._sound[files]
        are_known: NDArray[np.bool_] = sound != 0
        at = np.where(are_known, sound + rows, self._memory.start) - self._memory.start
        are_known &= self._memory.bytes()[at] != 0
        return are_known

    def _release_changed(self, found: Found) -> None:
        """Mark as open what was found in files that have changed since they were looked at."""
        changed = np.zeros(len(self._numbers) + 1, np.bool_)
        for position in self._distinct(found.files[found.files >= 0]).tolist():
            table, known = self._tables[position](), self._known[position]
            changed[position] = table is None or known is None or not table.is_still(known)
        found.is_open[changed[found.files]] = True

    # ---- the files

    def _bring_up_to_date(self, positions: Numbers) -> None:
        is_other = False
        for position in positions.tolist():
            table = self._tables[position]()
            if table is None:
                table = self._open_file(self._numbers[position])
                self._tables[position] = _nothing if table is None else ref(table)
            known = None if table is None else table.known()
            if table is None:
                self._is_empty[position], self._is_usable[position] = True, False
            elif known is not None and known is not self._known[position]:
                self._checks_rows = table.checks_rows
                self._set(position, known)
                is_other = True
            self._known[position] = known
        if is_other:
            self._keys.settle()
            self._values.settle()
            low, high = self._low[self._is_usable], self._high[self._is_usable]
            self._memory = _Memory(int(low.min(initial=2**62)), int(high.max(initial=0)))

    def _set(self, position: int, known: Known) -> None:
        view, mapping, index = known.now.view, known.now.mapping, known.key_index
        self._is_usable[position] = False
        self._is_empty[position] = not known.now.n_rows
        columns = [known.now.key_column]
        if self._name:
            if self._name not in view.fixed:
                return
            columns.append(view.fixed[self._name])
            self._value = columns[-1]
        are_inside = all(_lies_inside(column, mapping, known.now.n_rows) for column in columns)
        if not known.now.n_rows or known.has_unsound or known.has_recent or not are_inside:
            return
        self._slots[position] = index.slots.ctypes.data
        self._mask[position] = index.mask
        self._n_rows[position] = known.now.n_rows
        self._sound[position] = 0 if known.flags is None else known.flags.ctypes.data
        self._keys.set(position, columns[0], mapping.address)
        self._values.set(position, columns[-1], mapping.address)
        arrays = [index.slots, *([] if known.flags is None else [known.flags])]
        starts = [array.ctypes.data for array in arrays]
        stops = [start + array.nbytes for start, array in zip(starts, arrays, strict=True)]
        self._low[position] = min(mapping.address, *starts)
        self._high[position] = max(mapping.address + mapping.size, *stops)
        self._is_usable[position] = True


def _nothing() -> None:
    return None


def _lies_inside(column: ColumnView, mapping: FileMap, n_rows: int) -> bool:
    """Whether the first rows of a column lie in its chunks, and these in the map, aligned."""
    ends = column.offsets + column.chunk_rows * column.row_bytes
    return bool(
        n_rows <= column.n_capacity
        and column.offsets.min(initial=0) >= 0
        and ends.max(initial=0) <= mapping.size
    )
