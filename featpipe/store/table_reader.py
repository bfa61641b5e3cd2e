"""Reads one table: gathers rows, finds keys, returns views instead of copies where possible."""

from __future__ import annotations

from dataclasses import replace
from os import SEEK_END, lseek
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryChanged
from featpipe.store.hdf5_format import UNDEFINED
from featpipe.store.index import IndexDamaged, is_near
from featpipe.store.keys import KEY_BYTES
from featpipe.store.row_checks import FIXED
from featpipe.store.schema import from_bfloat16
from featpipe.store.snapshot import Snapshot, StoredType, replaced
from featpipe.store.sound_rows import RowGuard
from featpipe.store.table_index import Known, TableIndex, head_of, search

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.index import ReaderIndex
    from featpipe.store.schema import TableSpec
    from featpipe.store.snapshot import OpenFile
    from featpipe.store.sound_rows import SoundRows

#: Seconds between checks of the file's size in single look-ups, where it is a fifth of their time.
_CHECK_EVERY_S = 0.001


class TableReader:
    """A table as of its reader's last refresh. Thread-safe.

    Arrays that are views of the file are read-only and stay valid after the reader is closed.
    Methods raise DictionaryError for absent rows and columns, DamagedRows for rows whose bytes are
    not those that were written, DictionaryChanged when the file was truncated or replaced.
    """

    def __init__(self, file: OpenFile, snapshot: Snapshot) -> None:
        self._file = file
        self.now = snapshot
        self._index = TableIndex(file)
        self._guard = RowGuard(file)
        self._check_at = 0.0
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
        for block in now.fixed(name).blocks(0, now.n_rows):
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
        now.check_range(start, stop)
        sound = self._guard.sound_rows(now.n_rows)
        found = {name: now.fixed(name).slice(start, stop) for name in names}
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
        wanted = now.row_numbers(rows)
        column = now.fixed(name)
        if now.view.spec.is_bfloat16(name):
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
        column = now.fixed(name)
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
        now.check_range(row, row + 1)
        return self._row(now, name, row)

    def _row(self, now: Snapshot, name: str, row: int) -> AnyArray:
        found = now.fixed(name).row(row)
        self._require_whole(now)
        self._guard.require_one(now.view, row, now.n_rows)
        return found

    def ragged(self, name: str, row: int) -> AnyArray:
        """The values of one row of a ragged column, a view when they lie in one chunk."""
        now = self._checked()
        now.check_range(row, row + 1)
        values = now.values(name)
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
        wanted = now.row_numbers(rows)
        values = now.values(name)
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
        found = values.gather_ranges(starts, lengths)
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
        return self._gathered(now, name, now.row_numbers(rows), None, is_cold=False)

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
        column = now.fixed(name)
        if is_there.all():
            found = self._gathered(now, name, rows, None, is_cold=False)
        else:
            found = np.zeros((len(rows), *column.shape), column.dtype)
            found[is_there] = self._gathered(now, name, rows[is_there], None, is_cold=False)
        return from_bfloat16(found) if now.view.spec.is_bfloat16(name) else found, is_there

    def _find(self, now: Snapshot, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        wanted = np.ascontiguousarray(keys, np.uint8).reshape(-1, KEY_BYTES)
        index = self._index.ready(now)
        try:
            found = search(index, wanted, now)
        except IndexDamaged:
            index = self._index.rebuilt(now)
            found = search(index, wanted, now)
        self._require_whole(now, index)
        self._require_absent(now, index, wanted[found < 0])
        return found

    def find_one(self, key: bytes) -> int:
        """The row of one key; -1 when absent."""
        now = self._checked() if monotonic() > self._check_at else self.now
        own = self._index
        index = own.current if own.of is now else own.ready(now)
        try:
            row = index.find_one(key, head_of(key)[0], now.key_column, now.n_rows)
        except IndexDamaged:
            index = own.rebuilt(now)
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
            near = [
                row for row in self._index.unsound.tolist() if is_near(words, now.key_column, row)
            ]
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
        own = self._index
        index = own.current if own.of is now else own.ready(now)
        sound = self._guard.known
        flags, known = sound.flags(FIXED), self._known
        if (
            known is None
            or known.now is not now
            or known.key_index is not index.filed
            or known.sound is not sound
            or known.flags is not flags
        ):
            unsound, recent = bool(len(own.unsound)), index.recent is not None
            known = self._known = Known(now, index.filed, sound, flags, unsound, recent)
        return known

    def is_still(self, known: Known) -> bool:
        """Whether what was read since :meth:`known` are the bytes that were found sound."""
        if known.now.mapping.guard.is_broken or self._index.is_retired:
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

    def has_whole_index(self) -> bool:
        """Whether the index in the file holds every row that it claims to hold."""
        return self._index.is_whole(self._checked())

    # ---- snapshots

    def _checked(self) -> Snapshot:
        now = self.now
        try:
            if lseek(self._file.descriptor, 0, SEEK_END) >= now.reach:
                self._check_at = monotonic() + _CHECK_EVERY_S
                return now
        except OSError:
            pass
        if self._index.is_retired:
            raise replaced(self._file.path, self.name)
        self._file.check_size(now.reach)  # raises the reason
        return now

    def retire(self) -> None:
        """Refuse further calls: in the file that now has the path, rows may have other numbers.

        A look-up in progress ends in the old file, which is still whole.
        """
        self._index.is_retired = True
        self.now, self._check_at = replace(self.now, reach=UNDEFINED), 0.0

    def show(self, snapshot: Snapshot) -> None:
        """Use this snapshot from now on."""
        self.now = snapshot

    def _bounds(self, now: Snapshot, name: str, start: int, stop: int) -> NDArray[np.int64]:
        now.values(name)
        try:
            return now.view.bounds(name, start, stop)
        except ValueError as error:
            raise self._file.damage(f"{self.name}: {error}") from error
