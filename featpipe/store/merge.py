"""Several dictionaries into a new one: the union by key, nothing encoded again.

Keys are hashes of content and tables are named by fingerprint, so the same key in the same table
means the same row; where the bytes differ all the same, the first file's row is kept and the key
reported.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.store.copy import equal_rows, rows_of, sound_blocks
from featpipe.store.reader import Reader
from featpipe.store.schema import KEYS
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.store.table_reader import TableReader


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
    """What was merged. ``n_doubled`` rows were there already, ``unread`` tables too damaged."""

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
) -> Merge:
    """Write the union of ``sources`` to ``output``, which must not exist.

    ``leave_out(name)`` says which tables the caller will merge itself: those whose rows refer to
    other rows by number.

    Damaged rows, and tables that cannot be read, are left out and reported. Raises DictionaryError
    when ``output`` exists or a table has another schema in another file, UnreadableDictionary,
    WriteFailed; ``output`` is removed then.
    """
    path = Path(output).absolute()
    if path.exists():
        raise DictionaryError(f"{path} exists already", hint="merge into a new file")
    merging = _Merging(path, leave_out)
    try:
        with Writer.open(path) as writer, Reader(path) as merged:
            for source in sources:
                with Reader(source) as reader:
                    merging.take(reader, writer, merged)
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return merging.result()


class _Merging:
    """Counts while files are taken in one after the other."""

    def __init__(self, path: Path, leave_out: Callable[[str], bool]) -> None:
        self.path = path
        self.leave_out = leave_out
        self.n_rows = self.n_doubled = self.n_damaged = 0
        self.conflicts: list[Conflict] = []
        self.unread: list[str] = []

    def take(self, reader: Reader, writer: Writer, merged: Reader) -> None:
        problems: list[str] = []
        names = reader.tables(problems)
        self.unread += problems
        for name in names:
            if self.leave_out(name):
                continue
            try:
                table = reader.table(name)
            except UnreadableDictionary as error:
                self.unread.append(error.message)
                continue
            self._take_table(table, reader.path, writer, merged)

    def _take_table(self, table: TableReader, source: Path, writer: Writer, merged: Reader) -> None:
        written = writer.table(table.name, table.spec)
        writer.commit()
        merged.refresh()
        before = merged.table(table.name)
        n_before = before.n_rows
        for rows, n_bad in sound_blocks(table):
            self.n_damaged += n_bad
            data = rows_of(table, rows)
            n_new = written.append(data)
            self.n_rows += n_new
            self.n_doubled += len(rows) - n_new
            if n_new < len(rows) and n_before:
                self._compare(before, table, rows, source)
        writer.commit()

    def _compare(
        self,
        before: TableReader,
        table: TableReader,
        rows: np.ndarray[tuple[int], np.dtype[np.int64]],
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
