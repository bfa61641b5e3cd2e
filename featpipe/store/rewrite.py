"""Rewrites whole dictionaries: compaction of one, merge of several.

Both take the rows to write from a `Pick`: all of a table's sound rows, or those that the caller
wants. Compaction leaves out damaged rows and the space that rewrites and crashes abandoned. The
path names the old file or the whole new one at every instant; the file stays locked meanwhile;
readers keep the old one until they refresh.

A merge is the union by key. Keys are hashes of content and tables are named by fingerprint, so
equal keys in the same table mean equal rows; where bytes differ all the same, the first file's row
is kept and the key reported.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.atomic_write import Access
from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.store.disk import Disk, writing
from featpipe.store.folder_layout import cache_of
from featpipe.store.open_reader import open_reader
from featpipe.store.opening import compaction_of, new_name, remove_abandoned
from featpipe.store.reader import Reader
from featpipe.store.schema import KEYS, Column, Ragged
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.schema import ColumnData
    from featpipe.store.table_reader import TableReader

    #: Of a table and the numbers of some rows: those to write, as `TableWriter.append` takes them.
    Pick = Callable[[TableReader, NDArray[np.int64]], dict[str, ColumnData]]

#: Bounds of a block of rows.
_BLOCK_BYTES = 16 << 20
_MAX_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class Compaction:
    """Result of a compaction. ``n_dropped`` rows were damaged; bytes are those on disk.

    ``n_unwanted`` sound rows were left out, because the caller did not pick them.
    """

    path: Path
    n_rows: int
    n_dropped: int
    before_bytes: int
    after_bytes: int
    n_unwanted: int = 0

    def __str__(self) -> str:
        lost = f", {self.n_dropped:,} damaged rows left out" if self.n_dropped else ""
        freed = f", {self.n_unwanted:,} of forgotten documents freed" if self.n_unwanted else ""
        return (
            f"{self.path}: {self.n_rows:,} rows kept{lost}{freed}; "
            f"{self.before_bytes:,} -> {self.after_bytes:,} bytes"
        )


def compact_dictionary(
    path: str | Path,
    *,
    disk: Disk | None = None,
    pick_of: Callable[[Reader], Pick] = lambda _: rows_of,
    leave_out: Callable[[Reader], Container[str]] = lambda _: (),
    complete: Callable[[Writer], None] = lambda _: None,
    is_needed: Callable[[str], bool] = lambda _: False,
) -> Compaction:
    """Rewrite the dictionary at ``path`` and replace it by the result, with the rows picked.

    ``leave_out`` names tables that are not copied, and ``complete`` is given the writer of the
    result, to write what they are to hold. Damaged rows of a table whose rows are needed elsewhere,
    as ``is_needed(name)`` says, are refused.

    Raises DictionaryLocked, WriteFailed (the old file stays), and DictionaryError when the file
    holds objects of another program or unreadable tables, which a rewrite would lose, or has
    several names. The result has the old file's mode, owner, group and access control list.
    """
    path = Path(os.path.realpath(path))
    disk = disk or Disk()
    aside = compaction_of(path)
    Reader(path).close()  # raises for a missing file, which the writer would create
    owner = Writer.open(path, disk=disk)
    try:
        aside.unlink(missing_ok=True)
        with Reader(path) as reader:
            refuse_foreign(reader)
            with writing(path):
                access = _access_to_keep(path)
            pick, left_out = pick_of(reader), leave_out(reader)
            names = [name for name in reader.tables() if name not in left_out]
            with Writer.open(aside, disk=disk, access=access) as target:
                counts = [copy_table(reader.table(name), target, pick) for name in names]
                refuse_damage(
                    path, sum(c[1] for n, c in zip(names, counts, strict=True) if is_needed(n))
                )
                complete(target)
        before, after = (file.stat().st_blocks * 512 for file in (path, aside))
        with writing(path):
            disk.replace(aside, path)
            disk.sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    finally:
        owner.abandon()
    kept, dropped, unwanted = map(sum, zip(*counts, strict=True)) if counts else (0, 0, 0)
    return Compaction(path, kept, dropped, before, after, unwanted)


def refuse_damage(path: Path, n_damaged: int) -> None:
    """Raises DictionaryError where a copy would lack rows that others may need."""
    if n_damaged:
        rows = f"{n_damaged:,} rows that are" if n_damaged > 1 else "a row that is"
        raise DictionaryError(
            f"{path} has {rows} not as written, and others may need what they held",
            hint=f"featpipe repair {cache_of(path)}",
        )


def _access_to_keep(path: Path) -> Access:
    """Raises DictionaryError for a file of several names, since a rename would change one only."""
    n_names = path.stat().st_nlink
    if n_names > 1:
        raise DictionaryError(
            f"{path} has {n_names} names (hard links), and the others would keep the old file",
            hint="merge it into a new file, or remove the other names",
        )
    return Access.of(path)


def copy_table(
    table: TableReader, target: Writer, pick: Pick | None = None
) -> tuple[int, int, int]:
    """Append a table's sound rows to the one of the same name; rows (kept, damaged, not picked)."""
    pick = pick or rows_of
    written = target.table(table.name, table.spec)
    if pick is rows_of:
        values = {name: table.n_values(name) for name in table.value_columns}
        written.reserve(written.n_rows + table.n_rows, values)
    n_kept = n_damaged = n_unwanted = 0
    for rows, n_bad in sound_blocks(table):
        n_new = written.append(pick(table, rows))
        n_kept += n_new
        n_damaged += n_bad
        n_unwanted += len(rows) - n_new
    target.commit()
    return n_kept, n_damaged, n_unwanted


def refuse_foreign(reader: Reader) -> None:
    """Raises DictionaryError for what copying row by row would lose."""
    problems: list[str] = []
    reader.tables(problems)
    problems += reader.foreign_objects()
    if problems:
        raise DictionaryError(
            f"{reader.path} holds what a rewrite would lose: {'; '.join(problems)}",
            hint="merge it into a new file to save the tables that can be read",
        )


@dataclass(frozen=True, slots=True)
class Conflict:
    """One key with other bytes in a later file than in an earlier one."""

    table: str
    key: str
    source: Path

    def __str__(self) -> str:
        return f"{self.table}: {self.key} differs in {self.source}"


@dataclass(frozen=True, slots=True)
class Merge:
    """Result of a merge: ``n_doubled`` rows were in several files, ``unread`` tables unreadable."""

    path: Path
    n_rows: int
    n_doubled: int
    n_damaged: int
    conflicts: tuple[Conflict, ...]
    unread: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.path}: {self.n_rows:,} rows, {self.n_doubled:,} of them in several files"
        damaged = [f"{self.n_damaged:,} damaged rows left out"] if self.n_damaged else []
        return "\n".join((head, *damaged, *self.unread, *map(str, self.conflicts)))


def merge_dictionaries(
    sources: Sequence[str | Path],
    output: str | Path,
    *,
    leave_out: Callable[[str], bool] = lambda _: False,
    pick_of: Callable[[Reader], Pick] = lambda _: rows_of,
    complete: Callable[[Writer], None] = lambda _: None,
) -> Merge:
    """Write the union of ``sources`` to ``output``, which must not exist; it appears whole.

    ``leave_out(name)`` is true for tables that the caller merges itself: those whose rows refer to
    other rows by number; ``complete`` is given the writer of the result, to write them.
    ``pick_of(source)`` picks the rows of one file. Damaged rows and unreadable tables are left out
    and reported. Raises DictionaryError when ``output`` exists or a table has another schema in
    another file, UnreadableDictionary, WriteFailed; there is no ``output`` then. Only those may
    read ``output`` who may read every source.
    """
    path, disk = Path(output).absolute(), Disk()
    if path.exists():
        raise _taken(path)
    remove_abandoned(path)
    aside = new_name(path)
    merging = _Merging(path, leave_out, pick_of)
    try:
        access = Access.common(file for source in sources for file in _files_of(source))
        with Writer.open(aside, access=access) as writer, Reader(aside) as merged:
            for source in sources:
                with open_reader(source) as reader:
                    merging.add(reader, writer, merged)
            complete(writer)
        with writing(path):
            try:
                disk.link(aside, path)
            except FileExistsError:  # another merge was faster
                raise _taken(path) from None
            disk.sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    return merging.result()


def _taken(path: Path) -> DictionaryError:
    return DictionaryError(f"{path} exists already", hint="merge into a new file")


def _files_of(source: str | Path) -> list[Path]:
    with open_reader(source) as reader:
        return reader.files


class _Merging:
    """A merge in progress."""

    def __init__(
        self, path: Path, leave_out: Callable[[str], bool], pick_of: Callable[[Reader], Pick]
    ) -> None:
        self.path = path
        self.leave_out = leave_out
        self.pick_of = pick_of
        self.n_rows = self.n_doubled = self.n_damaged = 0
        self.conflicts: list[Conflict] = []
        self.unread: list[str] = []

    def add(self, reader: Reader, writer: Writer, merged: Reader) -> None:
        problems: list[str] = []
        names = reader.tables(problems)
        self.unread += problems
        pick = self.pick_of(reader)
        for name in names:
            if self.leave_out(name):
                continue
            try:
                table = reader.table(name)
            except UnreadableDictionary as error:
                self.unread.append(error.message)
                continue
            self._add_table(table, reader.path, pick, writer, merged)

    def _add_table(
        self, table: TableReader, source: Path, pick: Pick, writer: Writer, merged: Reader
    ) -> None:
        written = writer.table(table.name, table.spec)
        writer.commit()
        merged.refresh()
        before = merged.table(table.name)
        n_before = before.n_rows
        for rows, n_bad in sound_blocks(table):
            self.n_damaged += n_bad
            data = pick(table, rows)
            n_new = written.append(data)
            self.n_rows += n_new
            n_doubled = len(np.asarray(data[KEYS])) - n_new if table.spec.keyed else 0
            self.n_doubled += n_doubled
            if n_doubled and n_before:
                self._compare(before, table, rows, source)
        writer.commit()

    def _compare(
        self,
        before: TableReader,
        table: TableReader,
        rows: NDArray[np.int64],
        source: Path,
    ) -> None:
        keys = table.gather(KEYS, rows)
        there = before.find(keys)
        both = np.flatnonzero(there >= 0)
        differ = both[~equal_rows(before, there[both], table, rows[both])]
        for row in differ.tolist():
            self.conflicts.append(Conflict(table.name, keys[row].tobytes().hex(), source))

    def result(self) -> Merge:
        return Merge(
            self.path,
            self.n_rows,
            self.n_doubled,
            self.n_damaged,
            tuple(self.conflicts),
            tuple(self.unread),
        )


def rows_of(table: TableReader, rows: NDArray[np.int64]) -> dict[str, ColumnData]:
    """These rows as :meth:`TableWriter.append` takes them."""
    data: dict[str, ColumnData] = {}
    if table.spec.keyed:
        data[KEYS] = table.gather(KEYS, rows)
    for column in table.spec.columns:
        if isinstance(column, Ragged):
            data[column.name] = table.ragged_many(column.name, rows)
        else:
            data[column.name] = table.gather_bits(column.name, rows)
    return data


def sound_blocks(table: TableReader) -> Iterator[tuple[NDArray[np.int64], int]]:
    """A table's rows in blocks: (numbers of sound rows, count of damaged ones)."""
    size = max(1, min(_MAX_ROWS, _BLOCK_BYTES // max(1, table.row_bytes)))
    for start in range(0, table.n_rows, size):
        stop = min(start + size, table.n_rows)
        bad = table.bad_rows(start, stop)
        yield np.setdiff1d(np.arange(start, stop, dtype=np.int64), bad), len(bad)


def equal_rows(
    left: TableReader,
    left_rows: NDArray[np.int64],
    right: TableReader,
    right_rows: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether pairs of rows hold the same bytes in every column: (n,) bool."""
    equal = np.ones(len(left_rows), np.bool_)
    for column in left.spec.columns:
        if isinstance(column, Column):
            ours = _as_bytes(left.gather_bits(column.name, left_rows))
            theirs = _as_bytes(right.gather_bits(column.name, right_rows))
            equal &= (ours == theirs).all(axis=1)
        else:
            for i, (a, b) in enumerate(zip(left_rows.tolist(), right_rows.tolist(), strict=True)):
                one, other = left.ragged(column.name, a), right.ragged(column.name, b)
                equal[i] &= one.tobytes() == other.tobytes()
    return equal


def _as_bytes(array: AnyArray) -> NDArray[np.uint8]:
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return flat.view(np.uint8)
