"""Verifies a dictionary: names what is damaged, counts the rows that can be saved.

The quick check reads the structure of every table. The deep check also computes every row's
checksum, looks every key up in the index, and reads the file through libhdf5, in a child process,
since libhdf5 may hang or abort on a damaged file.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.interpreter import run_python
from featpipe.store.checksum import ODD_64
from featpipe.store.reader import Reader
from featpipe.store.schema import END_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from featpipe.store.table_reader import TableReader

_BLOCK = 4096
_JUDGE_TIMEOUT_S = 600
_JUDGE = """
import sys, h5py
def visit(name, node):
    if isinstance(node, h5py.Dataset) and len(node):
        node[0], node[-1]
with h5py.File(sys.argv[1], "r", locking=False) as file:
    file.visititems(visit)
"""


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One table: ``damaged_rows`` have a wrong checksum, ``unfound_rows`` are not found by key."""

    name: str
    n_rows: int
    damaged_rows: tuple[int, ...] = ()
    unfound_rows: tuple[int, ...] = ()
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether no damage was found."""
        return not (self.damaged_rows or self.unfound_rows or self.problem)

    @property
    def n_savable(self) -> int:
        """Rows that compaction keeps."""
        return self.n_rows - len(self.damaged_rows)

    def __str__(self) -> str:
        if self.is_good:
            return f"{self.name}: {self.n_rows:,} rows, good"
        parts = [self.problem] if self.problem else []
        if self.damaged_rows:
            parts.append(f"{len(self.damaged_rows):,} damaged, first row {self.damaged_rows[0]}")
        if self.unfound_rows:
            parts.append(f"{len(self.unfound_rows):,} not found by key")
        return f"{self.name}: {self.n_savable:,} of {self.n_rows:,} rows good; {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Verification:
    """A dictionary: its tables, and problems outside of them."""

    path: Path
    is_deep: bool
    tables: tuple[TableCheck, ...]
    problems: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether no damage was found."""
        return not self.problems and all(table.is_good for table in self.tables)

    def __str__(self) -> str:
        verdict = "good" if self.is_good else "DAMAGED"
        depth = "every row" if self.is_deep else "structure only"
        return "\n".join(
            (f"{self.path}: {verdict} ({depth})", *self.problems, *map(str, self.tables))
        )


def verify_dictionary(
    path: str | Path, *, is_deep: bool = False, asks_libhdf5: bool = True
) -> Verification:
    """Check without changing anything; may run beside a writer. Damage raises no error.

    ``asks_libhdf5``: a deep check also reads the file through libhdf5.
    """
    path = Path(path).absolute()
    problems: list[str] = []
    tables: list[TableCheck] = []
    try:
        with Reader(path, checks_rows=False) as reader:
            names = reader.tables(problems)
            problems.extend(reader.deviations())
            tables.extend(_check_table(reader, name, is_deep=is_deep) for name in names)
    except DictionaryError as error:
        problems.append(error.message)
    if is_deep and asks_libhdf5:
        problems.extend(_ask_libhdf5(path))
    return Verification(path, is_deep, tuple(tables), tuple(problems))


def _check_table(reader: Reader, name: str, *, is_deep: bool) -> TableCheck:
    try:
        table = reader.table(name)
    except UnreadableDictionary as error:
        return TableCheck(name, 0, problem=error.message)
    problem = "; ".join(_problems(reader, table))
    if not is_deep:
        return TableCheck(name, table.n_rows, problem=problem)
    damaged = np.concatenate([np.zeros(0, np.int64), *_damaged_rows(table)])
    unfound = _unfound_rows(table) if table.spec.keyed else []
    return TableCheck(name, table.n_rows, tuple(damaged.tolist()), tuple(unfound), problem)


def _problems(reader: Reader, table: TableReader) -> Iterator[str]:
    """What is wrong with a table besides its rows."""
    view = table.now.view
    if table.spec.keyed and not table.has_whole_index():
        yield "its index is damaged, and is built anew by every reader"
    wanted = dict.fromkeys(view.fixed, table.n_rows)
    for name in view.values:
        ends = view.fixed[name + END_SUFFIX]
        wanted[name] = int(ends.slice(table.n_rows - 1, table.n_rows)[0]) if table.n_rows else 0
    is_layout_1 = view.row_hash.name == ODD_64
    for name, n_wanted in wanted.items():
        length = view.headers[name].shape[0]
        # After a crash, and while the file is written, all but the leading column may be ahead.
        may_differ = not reader.was_closed and name != view.leader
        if length != n_wanted and not (may_differ and (length > n_wanted or is_layout_1)):
            yield f"the length of {name} is {length}, not {n_wanted}"


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
