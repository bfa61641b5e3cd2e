"""Reads one table: gathers rows, finds keys, returns views instead of copies where possible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import SEEK_END, lseek
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from featpipe.errors import DictionaryChanged, DictionaryError
from featpipe.fork_lock import make_lock
from featpipe.store.hdf5_format import UNDEFINED
from featpipe.store.index import (
    MIN_CAPACITY,
    IndexDamaged,
    KeyIndex,
    ReaderIndex,
    is_near,
)
from featpipe.store.keys import KEY_BYTES
from featpipe.store.row_checks import FIXED
from featpipe.store.schema import BFLOAT16, Column, from_bfloat16
from featpipe.store.sound_rows import RowGuard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from featpipe.errors import UnreadableDictionary
    from featpipe.store.checksum import AnyArray
    from featpipe.store.schema import TableSpec
    from featpipe.store.sound_rows import SoundRows
    from featpipe.store.table_view import IndexPlace, TableView
    from featpipe.store.views import ColumnView, FileMap

head_of = Struct("<Q").unpack_from  #: a key's first eight bytes, which the index probes by

#: Seconds between checks of the file's size in single look-ups, where it is a fifth of their time.
_CHECK_EVERY_S = 0.001

_SCALAR_KEYS = 48  #: up to so many keys, single probes are faster than numpy
_LONG = 24  #: values per row from which copying by row is faster than by value


class OpenFile(Protocol):
    """The file of a reader, as its tables use it."""

    path: Path
    descriptor: int
    checks_rows: bool

    def documents_of(self, table: str, keys: Sequence[bytes]) -> Sequence[str]:
        """Documents that rows of these keys belong to, as far as they are known."""

    def held(self) -> AbstractContextManager[None]:
        """While this is open, no other thread closes the file, or opens the one that replaced it.

        Raises DictionaryError when it is closed.
        """

    def read_u64(self, address: int) -> int:
        """Eight bytes of the file as they are now."""

    def check_size(self, reach: int) -> None:
        """Raises DictionaryChanged when the file is shorter than ``reach``."""

    def damage(self, what: str) -> UnreadableDictionary:
        """The error for a damaged file."""


class StoredType(NamedTuple):
    """The numpy type of a column's bytes, and the shape of one value."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One table at one time. It is replaced as a whole, so a thread sees the old or the new one."""

    mapping: FileMap
    view: TableView
    n_rows: int
    reach: int
    keys: ColumnView | None
    announced: int  #: the length of the leading column

    @classmethod
    def of(cls, mapping: FileMap, view: TableView) -> Snapshot:
        """The table with the visible rows of ``view``."""
        keys = view.keys(mapping) if view.spec.keyed else None
        announced = view.lengths()[view.leader]
        return cls(mapping, view, view.n_rows, view.reach, keys, announced)

    @property
    def key_column(self) -> ColumnView:
        """The keys as (n, 2) uint64. Raises DictionaryError for a table without keys."""
        if self.keys is None:
            raise DictionaryError(f"table {self.view.name} has no keys to be found by")
        return self.keys


class TableReader:
    """A table as of its reader's last refresh. Thread-safe.

    Arrays that are views of the file are read-only and stay valid after the reader is closed.
    Methods raise DictionaryError for absent rows and columns, DamagedRows for rows whose bytes are
    not those that were written, DictionaryChanged when the file was truncated or replaced.
    """

    def __init__(self, file: OpenFile, snapshot: Snapshot) -> None:
        self._file = file
        self.now = snapshot
        self._lock = make_lock()
        self._index = ReaderIndex(KeyIndex.empty(MIN_CAPACITY))
        self._index_place: IndexPlace | None = None
        self._n_mapped = 0  #: rows that the index held when it was mapped
        self._guard = RowGuard(file)
        self._unsound = np.zeros(0, np.int64)  #: damaged rows among those indexed here
        self._check_at = 0.0
        self._is_replaced = False
        self._ready: Snapshot | None = None  #: the snapshot whose rows the index holds
        self._known: Known | None = None

    @property
    def name(self) -> str:
        """The path of the table's group."""
        return self.now.view.name

    @property
    def n_rows(self) -> int:
        """Rows visible."""
        return self.now.n_rows

    @property
    def spec(self) -> TableSpec:
        """The schema and attributes."""
        return self.now.view.spec

    @property
    def attributes(self) -> dict[str, str]:
        """The table's attributes."""
        return dict(self.now.view.spec.attributes)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, without the values of ragged columns."""
        return sum(column.row_bytes for column in self.now.view.fixed.values())

    @property
    def fixed_columns(self) -> dict[str, StoredType]:
        """Types and shapes of the columns with one entry per row, the store's own among them."""
        columns = self.now.view.fixed.items()
        return {name: StoredType(column.dtype, column.shape) for name, column in columns}

    @property
    def value_columns(self) -> dict[str, StoredType]:
        """Types and shapes of the values of ragged columns."""
        columns = self.now.view.values.items()
        return {name: StoredType(column.dtype, column.shape) for name, column in columns}

    def __len__(self) -> int:
        return self.now.n_rows

    # ---- rows

    def bad_rows(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows of start:stop whose bytes are not those that were written."""
        return self.now.view.bad_rows(start, stop)

    def column(self, name: str) -> AnyArray:
        """A whole column, (n_rows, *shape): a read-only view if it lies in one chunk, else a copy.

        bfloat16 is returned as its 16 bits. The offsets of a ragged column are ``<name>_end``.
        """
        return self.slice(name, 0, self.now.n_rows)

    def blocks(self, name: str) -> Iterator[AnyArray]:
        """A whole column as read-only views, one per chunk, without a copy."""
        now = self._checked()
        start = 0
        for block in self._fixed(now, name).blocks(0, now.n_rows):
            sound = self._guard.sound_rows(now.n_rows)
            self._require_sound(now, np.arange(start, start + len(block)), sound, {name: block})
            start += len(block)
            yield block

    def slice(self, name: str, start: int, stop: int) -> AnyArray:
        """Rows start:stop of a column, a view when they lie in one chunk."""
        return self.slices([name], start, stop)[0]

    def slices(self, names: Sequence[str], start: int, stop: int) -> list[AnyArray]:
        """As :meth:`slice`, of several columns; the rows are checked once for all of them."""
        now = self._checked()
        _check_range(now, start, stop)
        sound = self._guard.sound_rows(now.n_rows)
        found = {name: self._fixed(now, name).slice(start, stop) for name in names}
        self._require_sound(now, np.arange(start, stop), sound, found)
        return [found[name] for name in names]

    def gather(
        self,
        name: str,
        rows: ArrayLike,
        out: AnyArray | None = None,
        *,
        is_cold: bool = False,
    ) -> AnyArray:
        """A copy of these rows, (len(rows), *shape), into ``out`` when given.

        bfloat16 is returned as float32, exactly. ``is_cold`` asks the disk for all rows before the
        first is read: many times as fast when they are not in memory, slower when they are.
        """
        now = self._checked()
        wanted = _rows(now, rows)
        column = self._fixed(now, name)
        if _is_bfloat16(now.view.spec, name):
            widened = from_bfloat16(self._gathered(now, name, wanted, None, is_cold=is_cold))
            if out is None:
                return widened
            out[...] = widened
            return out
        is_direct = out is None or (out.dtype == column.dtype and out.flags.c_contiguous)
        found = self._gathered(now, name, wanted, out if is_direct else None, is_cold=is_cold)
        if out is not None and not is_direct:
            out[...] = found
        return found if out is None else out

    def _gathered(
        self,
        now: Snapshot,
        name: str,
        rows: NDArray[np.int64],
        out: AnyArray | None,
        *,
        is_cold: bool,
    ) -> AnyArray:
        column = self._fixed(now, name)
        if is_cold:
            descriptor, places = self._file.descriptor, column.places(rows)
            with now.mapping.fetching(descriptor, places, column.row_bytes):
                return self._gathered(now, name, rows, out, is_cold=False)
        if not self._file.checks_rows:
            found = column.gather(rows, out)
            self._require_whole(now)
            return found
        found = np.empty((len(rows), *column.shape), column.dtype) if out is None else out
        checks, sound = now.view.checks, self._guard.sound_rows(now.n_rows)
        if sound.have_all(rows, checks.parts(())):
            column.gather(rows, found)
            self._require_whole(now)
            if self._guard.is_unchanged(sound):
                return found
        # Summed block by block, while its bytes are in the processor's cache.
        for at in range(0, len(rows), checks.block_rows):
            part = rows[at : at + checks.block_rows]
            block = column.gather(part, found[at : at + checks.block_rows])
            self._require_sound(now, part, sound, {name: block})
        return found

    def row(self, name: str, row: int) -> AnyArray:
        """One row of a column as a read-only view."""
        now = self._checked()
        _check_range(now, row, row + 1)
        return self._row(now, name, row)

    def _row(self, now: Snapshot, name: str, row: int) -> AnyArray:
        found = self._fixed(now, name).row(row)
        self._require_whole(now)
        self._guard.require_one(now.view, row, now.n_rows)
        return found

    def ragged(self, name: str, row: int) -> AnyArray:
        """The values of one row of a ragged column, a view when they lie in one chunk."""
        now = self._checked()
        _check_range(now, row, row + 1)
        values = self._values(now, name)
        self._guard.require_one(now.view, row, now.n_rows, name)
        start, stop = self._bounds(now, name, row, row + 1).tolist()
        found = values.slice(start, stop)
        self._require_whole(now)
        return found

    def ragged_many(self, name: str, rows: ArrayLike) -> tuple[AnyArray, NDArray[np.int64]]:
        """The concatenated values of these rows, and the length of each.

        Of consecutive rows the values are a view of the file where they lie in one chunk.
        """
        now = self._checked()
        wanted = _rows(now, rows)
        values = self._values(now, name)
        self._require_sound(now, wanted, self._guard.sound_rows(now.n_rows), ragged=[name])
        if len(wanted) and (np.diff(wanted) == 1).all():
            ends = self._bounds(now, name, int(wanted[0]), int(wanted[-1]) + 1)
            found, lengths = values.slice(int(ends[0]), int(ends[-1])), np.diff(ends)
            self._require_whole(now)
            return found, lengths
        starts, stops, is_inside = now.view.checks.bounds(name, wanted)
        if not is_inside.all():
            raise self._guard.damage(now.view, wanted[~is_inside])
        lengths = stops - starts
        found = _gather_ranges(values, starts, lengths)
        self._require_whole(now)
        return found, lengths

    def n_values(self, name: str) -> int:
        """The number of values of a ragged column, over all rows."""
        now = self._checked()
        last = np.arange(max(0, now.n_rows - 1), now.n_rows)
        self._require_sound(now, last, self._guard.sound_rows(now.n_rows))
        return int(self._bounds(now, name, now.n_rows, now.n_rows)[-1])

    def gather_bits(self, name: str, rows: ArrayLike) -> AnyArray:
        """As :meth:`gather`, with bfloat16 as its 16 bits."""
        now = self._checked()
        return self._gathered(now, name, _rows(now, rows), None, is_cold=False)

    def _require_sound(
        self,
        now: Snapshot,
        rows: NDArray[np.int64],
        sound: SoundRows,
        given: Mapping[str, AnyArray] | None = None,
        ragged: Sequence[str] = (),
    ) -> None:
        """Raise DamagedRows where one of the rows is damaged; ``given`` are bytes to hand out."""
        self._require_whole(now)
        self._guard.require(now.view, rows, sound, given, ragged)

    def _require_whole(self, now: Snapshot, index: ReaderIndex | None = None) -> None:
        """Raise DictionaryChanged where zeros were read in the place of bytes that are gone."""
        is_broken = now.mapping.guard.is_broken
        guard = None if index is None else index.filed.guard
        if is_broken or (guard is not None and guard.is_broken):
            raise DictionaryChanged(
                f"{self._file.path} lost bytes under its reader: it was truncated or overwritten, "
                "or its disk fails",
                hint="replace files by renaming, not by cp; featpipe verify says what is left",
            )

    # ---- keys

    def find(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Rows of these keys ((n, 16) uint8), -1 when absent: (n,) int64."""
        return self._find(self._checked(), keys)

    def look_up(self, name: str, keys: NDArray[np.uint8]) -> tuple[AnyArray, NDArray[np.bool_]]:
        """A column's rows by key: (n, *shape), zeros where absent, and (n,) whether present.

        Both come from one snapshot, whatever another thread refreshes meanwhile.
        """
        now = self._checked()
        rows = self._find(now, keys)
        is_there = rows >= 0
        column = self._fixed(now, name)
        if is_there.all():
            found = self._gathered(now, name, rows, None, is_cold=False)
        else:
            found = np.zeros((len(rows), *column.shape), column.dtype)
            found[is_there] = self._gathered(now, name, rows[is_there], None, is_cold=False)
        return from_bfloat16(found) if _is_bfloat16(now.view.spec, name) else found, is_there

    def _find(self, now: Snapshot, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        wanted = np.ascontiguousarray(keys, np.uint8).reshape(-1, KEY_BYTES)
        index = self._ready_index(now)
        try:
            found = _search(index, wanted, now)
        except IndexDamaged:
            index = self._rebuilt(now)
            found = _search(index, wanted, now)
        self._require_whole(now, index)
        self._require_absent(now, index, wanted[found < 0])
        return found

    def find_one(self, key: bytes) -> int:
        """The row of one key; -1 when absent."""
        now = self._checked() if monotonic() > self._check_at else self.now
        index = self._index if self._ready is now else self._ready_index(now)
        try:
            row = index.find_one(key, head_of(key)[0], now.key_column, now.n_rows)
        except IndexDamaged:
            index = self._rebuilt(now)
            row = index.find_one(key, head_of(key)[0], now.key_column, now.n_rows)
        self._require_whole(now, index)
        if row < 0:
            self._require_absent(now, index, np.frombuffer(key, np.uint8).reshape(1, KEY_BYTES))
        return row

    def _require_absent(self, now: Snapshot, index: ReaderIndex, keys: NDArray[np.uint8]) -> None:
        """Raise DamagedRows where a key was not found because the stored one is damaged."""
        if len(keys) and self._file.checks_rows:
            words = np.ascontiguousarray(keys).view("<u8")
            suspects = index.find_altered(words, now.key_column, now.n_rows)
            self._require_sound(now, suspects, self._guard.sound_rows(now.n_rows))
            near = [row for row in self._unsound.tolist() if is_near(words, now.key_column, row)]
            if near:
                raise self._guard.damage(now.view, np.array(near))

    def get(self, name: str, key: bytes) -> AnyArray | None:
        """One key's row of a column, a read-only view; None when absent."""
        row = self.find_one(key)
        return None if row < 0 else self._row(self.now, name, row)

    def has(self, key: bytes) -> bool:
        """Whether there is a row of this key."""
        return self.find_one(key) >= 0

    def ragged_of(self, name: str, key: bytes) -> AnyArray | None:
        """One key's values of a ragged column, as :meth:`ragged`; None when absent."""
        row = self.find_one(key)
        return None if row < 0 else self.ragged(name, row)

    def known(self) -> Known:
        """What is known of the file; the same object until that changes."""
        now = self.now
        index = self._index if self._ready is now else self._ready_index(now)
        sound = self._guard.known
        flags, known = sound.flags(FIXED), self._known
        if (
            known is None
            or known.now is not now
            or known.key_index is not index.filed
            or known.sound is not sound
            or known.flags is not flags
        ):
            unsound, recent = bool(len(self._unsound)), index.recent is not None
            known = self._known = Known(now, index.filed, sound, flags, unsound, recent)
        return known

    def is_still(self, known: Known) -> bool:
        """Whether what was read since :meth:`known` are the bytes that were found sound."""
        if known.now.mapping.guard.is_broken or self._is_replaced:
            return False
        guard = known.key_index.guard
        if guard is not None and guard.is_broken:
            return False
        if self._file.checks_rows:
            return self._guard.is_unchanged(known.sound)
        try:
            return lseek(self._file.descriptor, 0, SEEK_END) >= known.now.reach
        except OSError:  # closed
            return False

    @property
    def checks_rows(self) -> bool:
        """Whether rows are checked before they are handed out."""
        return self._file.checks_rows

    def _ready_index(self, now: Snapshot) -> ReaderIndex:
        """The index with every row of ``now``."""
        with self._lock:
            if self._ready is not now:
                self._index = self._prepared(now)
                self._index_place = now.view.index
                self._ready = now
            return self._index

    def _prepared(self, now: Snapshot) -> ReaderIndex:
        """The file's index, mapped, and one of the rows that the writer has not indexed yet."""
        place = now.view.index
        if place is None and self._index_place is not None:  # damaged since
            return self._built(now)
        if place is not None:
            with self._file.held():
                if self._is_replaced:  # by another thread's refresh: the place is of the old file
                    raise self._replaced()
                n_rows = min(self._file.read_u64(place.count_address), now.n_rows)
                if place != self._index_place or n_rows > self._n_mapped:
                    self._index, self._n_mapped = ReaderIndex(self._mapped(place, n_rows)), n_rows
        return self._extended(self._index, now)

    def _mapped(self, place: IndexPlace, n_rows: int) -> KeyIndex:
        return KeyIndex.mapped(self._file.descriptor, place.address, place.capacity, n_rows)

    def _extended(self, index: ReaderIndex, now: Snapshot) -> ReaderIndex:
        noted = index.filed.n_rows if index.recent is None else index.recent.n_rows
        extended = index.extended(now.key_column, now.n_rows)
        if extended.recent is None or extended.recent is not index.recent:
            self._unsound, noted = self._unsound[:0], index.filed.n_rows
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
            self._unsound = np.union1d(self._unsound, bad)

    def has_whole_index(self) -> bool:
        """Whether the index in the file holds every row that it claims to hold."""
        now = self._checked()
        place = now.view.index
        if place is None:
            return False
        n_rows = self._file.read_u64(place.count_address)
        if n_rows > now.n_rows:
            return False
        index = KeyIndex.mapped(self._file.descriptor, place.address, place.capacity, n_rows)
        try:
            index.check_whole()
        except IndexDamaged:
            return False
        return True

    def _rebuilt(self, now: Snapshot) -> ReaderIndex:
        """A private index built from the keys, in place of a damaged one."""
        with self._lock:
            self._index = self._built(now)
            self._ready = now
            return self._index

    # ---- snapshots

    def _checked(self) -> Snapshot:
        now = self.now
        try:
            if lseek(self._file.descriptor, 0, SEEK_END) >= now.reach:
                self._check_at = monotonic() + _CHECK_EVERY_S
                return now
        except OSError:
            pass
        if self._is_replaced:
            raise self._replaced()
        self._file.check_size(now.reach)  # raises the reason
        return now

    def _replaced(self) -> DictionaryChanged:
        return DictionaryChanged(
            f"{self._file.path} was replaced: row numbers of table {self.name} are void",
            hint="take the table from the reader again",
        )

    def retire(self) -> None:
        """Refuse further calls: in the file that now has the path, rows may have other numbers.

        A look-up in progress ends in the old file, which is still whole.
        """
        self._is_replaced = True
        self.now, self._check_at = replace(self.now, reach=UNDEFINED), 0.0

    def show(self, snapshot: Snapshot) -> None:
        """Use this snapshot from now on."""
        self.now = snapshot

    def _fixed(self, now: Snapshot, name: str) -> ColumnView:
        try:
            return now.view.fixed[name]
        except KeyError:
            raise DictionaryError(
                f"table {self.name} has no column {name!r}: there are {list(now.view.fixed)}"
            ) from None

    def _values(self, now: Snapshot, name: str) -> ColumnView:
        try:
            return now.view.values[name]
        except KeyError:
            raise DictionaryError(f"table {self.name} has no ragged column {name!r}") from None

    def _bounds(self, now: Snapshot, name: str, start: int, stop: int) -> NDArray[np.int64]:
        self._values(now, name)
        try:
            return now.view.bounds(name, start, stop)
        except ValueError as error:
            raise self._file.damage(f"{self.name}: {error}") from error


def _is_bfloat16(spec: TableSpec, name: str) -> bool:
    return any(
        isinstance(c, Column) and c.name == name and c.dtype == BFLOAT16 for c in spec.columns
    )


def _search(index: ReaderIndex, keys: NDArray[np.uint8], now: Snapshot) -> NDArray[np.int64]:
    column, n_rows = now.key_column, now.n_rows
    if len(keys) > _SCALAR_KEYS:
        return index.find(keys.view("<u8"), column, n_rows)
    data = keys.tobytes()
    parts = [data[i : i + KEY_BYTES] for i in range(0, len(data), KEY_BYTES)]
    found = [index.find_one(part, head_of(part)[0], column, n_rows) for part in parts]
    return np.array(found, np.int64)


def _rows(now: Snapshot, rows: ArrayLike) -> NDArray[np.int64]:
    wanted = np.asarray(rows)
    if wanted.dtype != np.int64:
        if wanted.size and wanted.dtype.kind not in "iu":
            raise DictionaryError(f"rows are numbers, not {wanted.dtype}")
        wanted = wanted.astype(np.int64)
    if wanted.ndim != 1:
        raise DictionaryError(f"rows are a list of numbers, not of shape {wanted.shape}")
    # Viewed as unsigned, negative numbers are huge: one pass checks both bounds.
    if len(wanted) and int(wanted.view(np.uint64).max()) >= now.n_rows:
        raise DictionaryError(f"row outside the {now.n_rows} rows of table {now.view.name}")
    return wanted


def _check_range(now: Snapshot, start: int, stop: int) -> None:
    if not 0 <= start <= stop <= now.n_rows:
        raise DictionaryError(f"rows {start}:{stop} of the {now.n_rows} of table {now.view.name}")


def _gather_ranges(
    column: ColumnView, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> AnyArray:
    total = int(lengths.sum())
    if total > _LONG * len(lengths):
        ranges = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        return np.concatenate([column.slice(start, stop) for start, stop in ranges])
    before = np.cumsum(lengths) - lengths
    return column.gather(np.repeat(starts - before, lengths) + np.arange(total))
