"""Verifies a dictionary: names what is damaged, counts the rows that can be saved.

The quick check reads the structure of every table. The deep check also computes every row's
checksum, looks every key up in the index, and reads the file through libhdf5, in a child process,
since libhdf5 may hang or abort on a damaged file.
"""

from __future__ import annotations

import errno
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.interpreter import run_python
from featpipe.store.checksum import ODD_64
from featpipe.store.keys import KEY_BYTES
from featpipe.store.lock import is_locked
from featpipe.store.reader import Reader
from featpipe.store.row_checks import take
from featpipe.store.schema import CHECKS, END_SUFFIX, KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from featpipe.store.table_reader import TableReader
    from featpipe.store.table_view import TableView

_BLOCK, _MANY_VALUES = 4096, 1 << 20
_JUDGE_TIMEOUT_S = 600
_JUDGE = """
import sys, h5py
def visit(name, node):
    if isinstance(node, h5py.Dataset) and len(node):
        node[0], node[-1]
with h5py.File(sys.argv[1], "r", locking=False) as file:
    file.visititems(visit)
"""

_INDEX = "its index is damaged, and is built anew by every reader"
_TORN = (
    "rows were never written to it: cp or the like copied it while it was written, or a disk lost "
    "what it had confirmed. featpipe backup makes whole copies of a file that is written; "
    "featpipe repair keeps the whole rows of this one"
)


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One table: ``damaged_rows`` have a wrong checksum, ``unfound_rows`` are not found by key.

    ``are_unwritten``: of the damaged rows parts were never written.
    """

    name: str
    n_rows: int
    damaged_rows: tuple[int, ...] = ()
    unfound_rows: tuple[int, ...] = ()
    problem: str = ""
    are_unwritten: bool = False
    has_damaged_index: bool = False
    is_readable: bool = True

    @property
    def is_good(self) -> bool:
        """Whether no damage was found."""
        is_damaged = self.problem or self.has_damaged_index
        return not (self.damaged_rows or self.unfound_rows or is_damaged)

    @property
    def n_savable(self) -> int:
        """Rows that compaction keeps."""
        return self.n_rows - len(self.damaged_rows)

    def __str__(self) -> str:
        if self.is_good:
            return f"{self.name}: {self.n_rows:,} rows, good"
        parts = [_INDEX] if self.has_damaged_index else []
        parts += [self.problem] if self.problem else []
        if self.damaged_rows:
            parts.append(f"{len(self.damaged_rows):,} damaged, first row {self.damaged_rows[0]}")
        if self.unfound_rows:
            parts.append(f"{len(self.unfound_rows):,} not found by key")
        return f"{self.name}: {self.n_savable:,} of {self.n_rows:,} rows good; {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Verification:
    """A dictionary: its tables, and problems outside of them.

    ``has_writer``: a writer holds the file. ``was_closed``: the last one ended well.
    ``is_checked``: it could be opened; if not, nothing is known of it, and a problem tells why.
    """

    path: Path
    is_deep: bool
    tables: tuple[TableCheck, ...]
    problems: tuple[str, ...]
    was_closed: bool = True
    has_writer: bool = False
    is_checked: bool = True

    @property
    def is_good(self) -> bool:
        """Whether it was checked, and no damage was found."""
        return not self.problems and all(table.is_good for table in self.tables)

    @property
    def is_torn(self) -> bool:
        """Whether this is a copy that was made while its original was written.

        Its parts are of different instants. The original was open, nobody writes the copy, and
        lengths promise rows whose place was copied before they were written. A killed writer leaves
        no such rows, since rows are synced before their length.
        """
        if self.problems or self.was_closed or self.has_writer:
            return False
        damaged = [table for table in self.tables if table.damaged_rows]
        is_readable = all(table.is_readable for table in self.tables)
        return is_readable and bool(damaged) and all(table.are_unwritten for table in damaged)

    def __str__(self) -> str:
        if not self.is_checked:
            return "\n".join((f"{self.path}: NOT CHECKED", *self.problems))
        verdict = "good" if self.is_good else "A TORN COPY" if self.is_torn else "DAMAGED"
        depth = "every row" if self.is_deep else "structure only"
        lines = [f"{self.path}: {verdict} ({depth})", *self.problems]
        if self.is_torn:
            lines.append(_TORN)
        return "\n".join((*lines, *map(str, self.tables)))


def verify_dictionary(
    path: str | Path, *, is_deep: bool = False, asks_libhdf5: bool = True
) -> Verification:
    """Check without changing anything; may run beside a writer. Damage raises no error.

    ``asks_libhdf5``: a deep check also reads the file through libhdf5.

    Raises:
        UnreadableDictionary: there is no file of this name, or it may not be opened.
    """
    path = Path(path).absolute()
    problems: list[str] = []
    tables: list[TableCheck] = []
    was_closed = has_writer = True
    try:
        with Reader(path, checks_rows=False) as reader:
            was_closed, has_writer = reader.was_closed, is_locked(reader.descriptor)
            names = reader.tables(problems)
            problems.extend(reader.deviations())
            tables.extend(_check_table(reader, name, is_deep=is_deep) for name in names)
    except DictionaryError as error:
        if is_out_of_reach(error):
            raise
        problems.append(error.message)
    if is_deep and asks_libhdf5 and path.is_file():  # it would wait for a pipe's other end
        problems.extend(_ask_libhdf5(path))
    return Verification(path, is_deep, tuple(tables), tuple(problems), was_closed, has_writer)


def is_out_of_reach(error: DictionaryError) -> bool:
    """Whether a file is missing, or may not be opened: nothing is known of it, nor is it damaged.

    An error of the disk is damage, and one of libhdf5 has no number.
    """
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in {None, errno.EIO}


def _check_table(reader: Reader, name: str, *, is_deep: bool) -> TableCheck:
    try:
        table = reader.table(name)
    except UnreadableDictionary as error:
        return TableCheck(name, 0, problem=error.message, is_readable=False)
    problem = "; ".join(_problems(reader, table))
    is_bad = table.spec.keyed and not table.has_whole_index()
    if not is_deep:
        return TableCheck(name, table.n_rows, problem=problem, has_damaged_index=is_bad)
    damaged = np.concatenate([np.zeros(0, np.int64), *_damaged_rows(table)])
    unfound = _unfound_rows(table) if table.spec.keyed else []
    return TableCheck(
        name,
        table.n_rows,
        tuple(damaged.tolist()),
        tuple(unfound),
        problem,
        are_unwritten=_are_unwritten(table.now.view, damaged[:_BLOCK]),
        has_damaged_index=is_bad,
    )


def _are_unwritten(view: TableView, rows: NDArray[np.int64]) -> bool:
    """Whether these damaged rows have a column of zeros, of those that are never so.

    But for a few: of a row on the edge of what was copied, each column may be half there.
    """
    are = np.zeros(len(rows), np.bool_)
    for name, column in view.fixed.items():
        if name in {CHECKS, KEYS} or column.row_bytes >= KEY_BYTES:
            data = np.ascontiguousarray(take(column, rows)).view(np.uint8)
            are |= ~data.reshape(len(rows), column.row_bytes).any(axis=1)
    for name, column in view.values.items():
        starts, stops, is_inside = view.checks.bounds(name, rows)
        are |= (stops == 0) & (rows > 0) & bool(view.headers[name].shape[0])
        has_values = is_inside & (stops > starts) & (stops - starts < _MANY_VALUES)
        for at in np.flatnonzero(has_values).tolist():
            are[at] |= not column.slice(int(starts[at]), int(stops[at])).any()
    n_unwritten = int(are.sum())
    return n_unwritten > 0 and len(rows) - n_unwritten <= len(view.fixed) + len(view.values)


def _problems(reader: Reader, table: TableReader) -> Iterator[str]:
    """What is wrong with a table besides its rows."""
    view = table.now.view
    leading = view.headers[view.leader].shape[0]
    wanted, before = (_lengths(table, n_rows) for n_rows in (table.n_rows, leading))
    # Of a commit under way some columns have the new length, the leading one not yet. Readers count
    # by the rows then, which a killed writer leaves for good. The index grows after all columns.
    is_under_way = not reader.was_closed and _n_indexed(reader, view) <= leading <= table.n_rows
    for name, n_wanted in wanted.items():
        length = view.headers[name].shape[0]
        is_ahead = length > n_wanted or view.row_hash.name == ODD_64
        may_differ = length == before[name] or (name != view.leader and is_ahead)
        if length != n_wanted and not (is_under_way and may_differ):
            yield f"the length of {name} is {length}, not {n_wanted}"


def _lengths(table: TableReader, n_rows: int) -> dict[str, int]:
    """The length of each column when the table has so many rows."""
    view = table.now.view
    found = dict.fromkeys(view.fixed, n_rows)
    for name in view.values:
        ends = view.fixed[name + END_SUFFIX]
        last = min(n_rows, ends.n_capacity)
        found[name] = int(ends.slice(last - 1, last)[0]) if last else 0
    return found


def _n_indexed(reader: Reader, view: TableView) -> int:
    """How many rows the index in the file claims to hold."""
    return reader.read_u64(view.index.count_address) if view.index else 0


def _damaged_rows(table: TableReader) -> list[NDArray[np.int64]]:
    starts = range(0, table.n_rows, _BLOCK)
    return [table.now.view.bad_rows(at, min(at + _BLOCK, table.n_rows)) for at in starts]


def _unfound_rows(table: TableReader) -> list[int]:
    """Rows whose key leads elsewhere: a doubled key, or a damaged index."""
    unfound: list[int] = []
    for start in range(0, table.n_rows, _BLOCK):
        stop = min(start + _BLOCK, table.n_rows)
        rows = table.find(table.slice("keys", start, stop))
        unfound += (np.flatnonzero(rows != np.arange(start, stop)) + start).tolist()
    return unfound


def _ask_libhdf5(path: Path) -> list[str]:
    try:
        done = run_python(_JUDGE, str(path), timeout_s=_JUDGE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return [f"libhdf5 hangs on {path}"]
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        return [f"libhdf5 cannot read {path}: {last}"]
    return []
