"""The index of a table's rows by key, as a reader uses it: kept in step with its snapshots.

Guarantees: it holds every row of the snapshot that it is asked for. The file's own index is mapped;
rows that the writer has not indexed yet are in a second one, in memory. Where the file's is
damaged, one is built from the keys.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.fork_lock import make_lock
from featpipe.store.index import MIN_CAPACITY, IndexDamaged, KeyIndex, ReaderIndex
from featpipe.store.keys import KEY_BYTES
from featpipe.store.snapshot import replaced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.store.snapshot import OpenFile, Snapshot
    from featpipe.store.sound_rows import SoundRows
    from featpipe.store.table_view import IndexPlace

head_of = Struct("<Q").unpack_from  #: a key's first eight bytes, which the index probes by

_SCALAR_KEYS = 48  #: up to so many keys, single probes are faster than numpy


class Known(NamedTuple):
    """What look-ups in the files of many shards at once need of one of them.

    Attributes:
        now: the table.
        key_index: of its rows, or of the first ones; see ``has_recent``.
        sound: the rows found sound; ``flags`` a byte for each, where there are some.
        has_unsound: whether keys of damaged rows are in the index.
        has_recent: whether the file's own index lacks rows.
    """

    now: Snapshot
    key_index: KeyIndex
    sound: SoundRows
    flags: NDArray[np.bool_] | None
    has_unsound: bool
    has_recent: bool


class TableIndex:
    """The index of one table of an open file. Thread-safe.

    Attributes:
        current: the index.
        of: the snapshot whose rows it holds.
        unsound: damaged rows among those indexed here, which it has by a wrong key.
        is_retired: another file has replaced this one.
    """

    __slots__ = ("_file", "_lock", "_n_mapped", "_place", "current", "is_retired", "of", "unsound")

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._lock = make_lock()
        self._place: IndexPlace | None = None
        self._n_mapped = 0  #: rows that the index held when it was mapped
        self.current = ReaderIndex(KeyIndex.empty(MIN_CAPACITY))
        self.of: Snapshot | None = None
        self.unsound = np.zeros(0, np.int64)
        self.is_retired = False

    def ready(self, now: Snapshot) -> ReaderIndex:
        """The index with every row of ``now``."""
        with self._lock:
            if self.of is not now:
                self.current = self._prepared(now)
                self._place = now.view.index
                self.of = now
            return self.current

    def rebuilt(self, now: Snapshot) -> ReaderIndex:
        """A private index built from the keys, in place of a damaged one."""
        with self._lock:
            self.current = self._built(now)
            self.of = now
            return self.current

    def is_whole(self, now: Snapshot) -> bool:
        """Whether the index in the file holds every row that it claims to hold."""
        place = now.view.index
        if place is None:
            return False
        n_rows = self._file.read_u64(place.count_address)
        if n_rows > now.n_rows:
            return False
        try:
            self._mapped(place, n_rows).check_whole()
        except IndexDamaged:
            return False
        return True

    def _prepared(self, now: Snapshot) -> ReaderIndex:
        """The file's index, mapped, and one of the rows that the writer has not indexed yet."""
        place = now.view.index
        if place is None and self._place is not None:  # damaged since
            return self._built(now)
        if place is not None:
            with self._file.held():
                if self.is_retired:  # by another thread's refresh: the place is of the old file
                    raise replaced(self._file.path, now.view.name)
                n_rows = min(self._file.read_u64(place.count_address), now.n_rows)
                if place != self._place or n_rows > self._n_mapped:
                    self.current, self._n_mapped = ReaderIndex(self._mapped(place, n_rows)), n_rows
        return self._extended(self.current, now)

    def _mapped(self, place: IndexPlace, n_rows: int) -> KeyIndex:
        return KeyIndex.mapped(self._file.descriptor, place.address, place.capacity, n_rows)

    def _extended(self, index: ReaderIndex, now: Snapshot) -> ReaderIndex:
        noted = index.filed.n_rows if index.recent is None else index.recent.n_rows
        extended = index.extended(now.key_column, now.n_rows)
        if extended.recent is None or extended.recent is not index.recent:
            self.unsound, noted = self.unsound[:0], index.filed.n_rows
        self._note_unsound(now, noted)
        return extended

    def _built(self, now: Snapshot) -> ReaderIndex:
        """An index of all keys as they are stored."""
        self._n_mapped = now.n_rows
        return self._extended(ReaderIndex(KeyIndex.empty(MIN_CAPACITY)), now)

    def _note_unsound(self, now: Snapshot, start: int) -> None:
        """Remember the damaged rows from ``start`` on: the index will have them by a wrong key."""
        if self._file.checks_rows:
            rows = np.arange(start, now.n_rows)
            bad = rows[now.view.checks.are_bad(rows, ())]
            self.unsound = np.union1d(self.unsound, bad)


def search(index: ReaderIndex, keys: NDArray[np.uint8], now: Snapshot) -> NDArray[np.int64]:
    """Rows of these keys ((n, 16) uint8), -1 when absent: (n,). Raises IndexDamaged."""
    column, n_rows = now.key_column, now.n_rows
    if len(keys) > _SCALAR_KEYS:
        return index.find(keys.view("<u8"), column, n_rows)
    data = keys.tobytes()
    parts = [data[i : i + KEY_BYTES] for i in range(0, len(data), KEY_BYTES)]
    found = [index.find_one(part, head_of(part)[0], column, n_rows) for part in parts]
    return np.array(found, np.int64)
