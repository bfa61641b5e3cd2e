"""Reads one table of a folder cache, whose rows lie in several files, as if it were one file's.

Guarantees: row numbers run through the files one after the other, and a number stays that of its
row for as long as the table is valid: rows that appear later get higher ones. A key is looked for
only in the files of its shard. Files are opened when they are first needed; a look-up by key needs
no others, row numbers need all.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.fork_lock import make_lock
from featpipe.store.folder_members import MemberTables
from featpipe.store.folder_rows import Segments, cut_runs, grouped, in_order
from featpipe.store.keys import KEY_BYTES
from featpipe.store.schema import END_SUFFIX, KEYS, Ragged, from_bfloat16
from featpipe.store.shard_lookup import ShardLookup
from featpipe.store.snapshot import check_range, row_numbers
from featpipe.store.table_reader import TableReader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.folder_members import MemberFiles, Route
    from featpipe.store.schema import TableSpec
    from featpipe.store.snapshot import Snapshot, StoredType

    Rows = NDArray[np.int64]


#: From so many keys, the files of all shards are looked into at once.
_MANY = 8


class FolderTable(TableReader):
    """Stands where a file's `TableReader` does. Raises as that does, and names the file.

    Args:
        folder: of the files.
        name: of the table.
        spec: its schema, which is the same in each file.
        route: its files.
    """

    def __init__(self, folder: MemberFiles, name: str, spec: TableSpec, route: Route) -> None:
        # Nothing of the file's TableReader is made: every public method is defined here.
        self._folder = folder
        self._name = name
        self._spec = spec
        self._members = MemberTables(folder, name, spec, route)
        self._segments: Segments | None = None
        self._lock = make_lock()
        #: By column, for the route that they were made for.
        self._lookups: dict[str, tuple[Route, ShardLookup]] = {}
        self._lookup_lock = make_lock()

    @property
    def name(self) -> str:
        """The path of the table's group."""
        return self._name

    @property
    def n_rows(self) -> int:
        """Rows visible."""
        return self.segments.n_rows

    @property
    def spec(self) -> TableSpec:
        """The schema and attributes."""
        return self._spec

    @property
    def attributes(self) -> dict[str, str]:
        """The table's attributes."""
        return dict(self._spec.attributes)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, without the values of ragged columns."""
        return self._members.any().row_bytes

    @property
    def fixed_columns(self) -> dict[str, StoredType]:
        """Types and shapes of the columns with one entry per row, the store's own among them."""
        return self._members.any().fixed_columns

    @property
    def value_columns(self) -> dict[str, StoredType]:
        """Types and shapes of the values of ragged columns."""
        return self._members.any().value_columns

    def __len__(self) -> int:
        return self.n_rows

    # ---- rows

    def bad_rows(self, start: int, stop: int) -> Rows:
        """Rows of start:stop whose bytes are not those that were written."""
        found = [np.zeros(0, np.int64)]
        for number, first, last, at in self._runs(start, stop):
            found.append(self._members.table(number).bad_rows(first, last) + (at - first))
        return np.concatenate(found)

    def column(self, name: str) -> AnyArray:
        """A whole column, (n_rows, *shape)."""
        return self.slice(name, 0, self.n_rows)

    def blocks(self, name: str) -> Iterator[AnyArray]:
        """A whole column, in a few blocks for each file; offsets are those in the whole table."""
        is_end = name in self._offsets
        n_values = 0
        for number, first, last, _ in self._runs(0, self.n_rows):
            member = self._members.table(number)
            before = int(member.slice(name, first - 1, first)[0]) if is_end and first else 0
            whole = (first, last) == (0, member.n_rows)
            for block in member.blocks(name) if whole else (member.slice(name, first, last),):
                yield block + (n_values - before) if is_end else block
            n_values += int(member.slice(name, last - 1, last)[0]) - before if is_end else 0

    def slice(self, name: str, start: int, stop: int) -> AnyArray:
        """Rows start:stop of a column, a view when they lie in one chunk."""
        return self.slices([name], start, stop)[0]

    def slices(self, names: Sequence[str], start: int, stop: int) -> list[AnyArray]:
        """As :meth:`slice`, of several columns; the rows are checked once for all of them."""
        for name in names:
            self._refuse_offsets(name)
        parts = [
            self._members.table(number).slices(names, first, last)
            for number, first, last, _ in self._runs(start, stop)
        ]
        if len(parts) == 1:
            return parts[0]
        parts = parts or [self._members.any().slices(names, 0, 0)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def gather(
        self,
        name: str,
        rows: ArrayLike,
        out: AnyArray | None = None,
        *,
        is_cold: bool = False,
    ) -> AnyArray:
        """A copy of these rows, (len(rows), *shape), into ``out`` when given."""
        return self._gathered_from(
            rows, name, out, lambda member, own: member.gather(name, own, is_cold=is_cold)
        )

    def gather_bits(self, name: str, rows: ArrayLike) -> AnyArray:
        """As :meth:`gather`, with bfloat16 as its 16 bits."""
        return self._gathered_from(
            rows, name, None, lambda member, own: member.gather_bits(name, own)
        )

    def _gathered_from(
        self,
        rows: ArrayLike,
        name: str,
        out: AnyArray | None,
        read: Callable[[TableReader, Rows], AnyArray],
    ) -> AnyArray:
        self._refuse_offsets(name)
        wanted = self._checked_rows(rows)
        for number, at, own in self._by_file(wanted):
            some = read(self._members.table(number), own)
            if out is None:
                out = np.empty((len(wanted), *some.shape[1:]), some.dtype)
            out[at] = some
        return read(self._members.any(), wanted) if out is None else out

    def row(self, name: str, row: int) -> AnyArray:
        """One row of a column as a read-only view."""
        number, own = self._locate_one(row)
        return self._members.table(number).row(name, own)

    def ragged(self, name: str, row: int) -> AnyArray:
        """The values of one row of a ragged column, a view when they lie in one chunk."""
        number, own = self._locate_one(row)
        return self._members.table(number).ragged(name, own)

    def ragged_many(self, name: str, rows: ArrayLike) -> tuple[AnyArray, Rows]:
        """The concatenated values of these rows, and the length of each."""
        wanted = self._checked_rows(rows)
        found = [
            (at, *self._values_in(number, name, own)) for number, at, own in self._by_file(wanted)
        ]
        if not found:
            return self._members.any().ragged_many(name, wanted)
        values = np.concatenate([some for _, some, _ in found])
        lengths = np.concatenate([own for _, _, own in found])
        return in_order(np.concatenate([at for at, _, _ in found]), values, lengths)

    def _values_in(self, number: int, name: str, rows: Rows) -> tuple[AnyArray, Rows]:
        """The values of some rows of one file."""
        return self._members.table(number).ragged_many(name, rows)

    def n_values(self, name: str) -> int:
        """The number of values of a ragged column, over all rows."""
        files = sorted({number for number, *_ in self._runs(0, self.n_rows)})
        return sum(self._members.table(number).n_values(name) for number in files)

    # ---- keys

    def find(self, keys: NDArray[np.uint8]) -> Rows:
        """Rows of these keys ((n, 16) uint8), -1 when absent: (n,) int64."""
        return self._find_in(self.segments, _as_keys(keys))

    def _find_in(self, segments: Segments, keys: NDArray[np.uint8]) -> Rows:
        found = np.full(len(keys), -1, np.int64)
        left = np.arange(len(keys))
        if self._is_for_all_at_once(keys):
            with self._lookup("") as lookup:
                seen = lookup.find(keys)
                numbers = lookup.numbers
            is_there = (seen.files >= 0) & ~seen.is_open
            files = numbers[seen.files[is_there]]
            found[is_there] = segments.numbers_of(files, seen.rows[is_there])
            left = np.flatnonzero(seen.is_open)
        rows = found[left]
        for number, at in self._members.of_keys(keys[left], rows):
            own = self._members.table(number).find(keys[left[at]])
            is_there = own >= 0
            rows[at[is_there]] = segments.numbers(number, own[is_there])
        found[left] = rows
        return found

    def _is_for_all_at_once(self, keys: NDArray[np.uint8]) -> bool:
        return self._spec.keyed and self._members.route.by_shard is not None and len(keys) >= _MANY

    @contextmanager
    def _lookup(self, name: str) -> Iterator[ShardLookup]:
        """The look-up in the files of all shards, of the keys and one column."""
        self._members.require_valid()
        with self._lookup_lock:
            route = self._members.route
            known = self._lookups.get(name)
            if known is None or known[0] is not route:
                made = ShardLookup(self._members.open, route.by_shard or {}, route.bits, name)
                known = self._lookups[name] = route, made
            yield known[1]

    def look_up(self, name: str, keys: NDArray[np.uint8]) -> tuple[AnyArray, NDArray[np.bool_]]:
        """A column's rows by key: (n, *shape), zeros where absent, and (n,) whether present."""
        wanted = _as_keys(keys)
        if not self._is_for_all_at_once(wanted):
            return self._look_up_by_file(name, wanted)
        with self._lookup(name) as lookup:
            found, seen = lookup.look_up(wanted)
        if found is None:
            return self._look_up_by_file(name, wanted)
        is_there = (seen.files >= 0) & ~seen.is_open
        if self._spec.is_bfloat16(name):
            found = from_bfloat16(found)
        left = np.flatnonzero(seen.is_open)
        if len(left):
            found[left], is_there[left] = self._look_up_by_file(name, wanted[left])
        return found, is_there

    def _look_up_by_file(
        self, name: str, keys: NDArray[np.uint8]
    ) -> tuple[AnyArray, NDArray[np.bool_]]:
        rows = np.full(len(keys), -1, np.int64)
        none = self._members.any().look_up(name, keys[:0])[0]
        found = np.zeros((len(keys), *none.shape[1:]), none.dtype)
        for number, at in self._members.of_keys(keys, rows):
            found[at], is_there = self._members.table(number).look_up(name, keys[at])
            rows[at[is_there]] = number
        return found, rows >= 0

    def find_one(self, key: bytes) -> int:
        """The row of one key; -1 when absent."""
        for number, member in self._members.of_key(key):
            own = member.find_one(key)
            if own >= 0:
                return int(self.segments.numbers(number, np.array([own]))[0])
        return -1

    def has(self, key: bytes) -> bool:
        """Whether there is a row of this key."""
        return any(member.find_one(key) >= 0 for _, member in self._members.of_key(key))

    def get(self, name: str, key: bytes) -> AnyArray | None:
        """One key's row of a column, a read-only view; None when absent."""
        found = (member.get(name, key) for _, member in self._members.of_key(key))
        return next((row for row in found if row is not None), None)

    def ragged_of(self, name: str, key: bytes) -> AnyArray | None:
        """One key's values of a ragged column, as :meth:`ragged`; None when absent."""
        for number, member in self._members.of_key(key):
            row = member.find_one(key)
            if row >= 0:
                return self._values_in(number, name, np.array([row]))[0]
        return None

    def has_whole_index(self) -> bool:
        """Whether the index in each file holds every row that it claims to hold."""
        return all(self._members.table(number).has_whole_index() for number in self.segments.known)

    # ---- the files

    @property
    def segments(self) -> Segments:
        """Where the rows are, as of the last refresh."""
        self._members.require_valid()
        with self._lock:
            if self._segments is None:
                self._segments = self._read_segments(None)
            return self._segments

    @property
    def files(self) -> tuple[int, ...]:
        """Numbers of the files."""
        return self._members.route.files

    def _read_segments(self, before: Segments | None, changed: Collection[int] = ()) -> Segments:
        runs, known = (before.runs, before.known) if before else ([], {})
        more = []
        for number in self._members.route.files:
            if before and number not in changed:
                continue
            member = self._members.open(number)
            first, n_rows = known.get(number, 0), member.n_rows if member else 0
            if n_rows > first:
                more.append((number, first, n_rows))
        if self._spec.keyed and self._members.route.by_shard is None:
            more = self._without_doubles(before, more)
        return Segments.of([*runs, *more])

    def _without_doubles(
        self, before: Segments | None, runs: list[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Runs of rows whose keys no earlier row has: two parts may have one document."""
        if len(self._members.route.files) < 2 or not runs:
            return runs
        parts = [
            self._members.table(number).slice(KEYS, first, stop) for number, first, stop in runs
        ]
        keys = np.concatenate(parts)
        is_new = np.zeros(len(keys), np.bool_)
        items = np.ascontiguousarray(keys).view(f"V{KEY_BYTES}").reshape(-1)
        is_new[np.unique(items, return_index=True)[1]] = True
        if before is not None:
            is_new &= self._find_in(before, keys) < 0
        return cut_runs(runs, is_new)

    def extend(self, route: Route, changed: Collection[int]) -> bool:
        """Show the rows of more files, and more rows of these; whether the numbers stay valid.

        ``changed`` are the files with other rows than before. The order of a log's rows is that of
        its files: where it would change, the numbers are void.
        """
        with self._lock:
            self._members.route = route
            if self._segments is not None:
                after = self._read_segments(self._segments, changed)
                ranks = {number: rank for rank, number in enumerate(route.files)}
                order = [ranks[number] for number, *_ in after.runs]
                if not self._spec.keyed and order != sorted(order):
                    return False
                self._segments = after
            return True

    def retire(self) -> None:
        """Refuse further calls: row numbers are void."""
        self._members.is_retired = True

    def show(self, snapshot: Snapshot) -> None:
        """A file's table is shown anew by its own reader."""
        raise NotImplementedError

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """As `Segments.parts`, of rows that are there."""
        segments = self.segments
        check_range(start, stop, segments.n_rows, self._name)
        return segments.parts(start, stop)

    def _by_file(self, rows: Rows) -> Iterator[tuple[int, Rows, Rows]]:
        """(file, places in ``rows``, numbers of those rows in the file)."""
        files, own = self.segments.locate(rows)
        for number, at in grouped(files):
            yield number, at, own[at]

    def _locate_one(self, row: int) -> tuple[int, int]:
        segments = self.segments
        check_range(row, row + 1, segments.n_rows, self._name)
        return segments.locate_one(row)

    def _checked_rows(self, rows: ArrayLike) -> Rows:
        return row_numbers(rows, self.n_rows, self._name)

    @property
    def _offsets(self) -> set[str]:
        """Columns whose numbers count within one file."""
        ragged = (column.name for column in self._spec.columns if isinstance(column, Ragged))
        return {name + END_SUFFIX for name in ragged}

    def _refuse_offsets(self, name: str) -> None:
        if name in self._offsets:
            raise DictionaryError(
                f"{name} of table {self._name} counts within each file of {self._folder.path}",
                hint="take the values with ragged or ragged_many",
            )


def _as_keys(keys: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(keys, np.uint8).reshape(-1, KEY_BYTES)
