"""Repairs a dictionary: keeps every row that is sound, and drops exactly the others.

The sound rows are written to a new file, which takes the old one's place; the damaged file stays
beside it as ``<name>.damaged``. Sources of rows are the file itself, its structure mended where the
checksums allow it (see :mod:`featpipe.store.mended`), also a file that was cut short; and, for a
file that another program has written anew (h5repack), libhdf5.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from featpipe.atomic_write import Access
from featpipe.errors import UnreadableDictionary, WriteFailed
from featpipe.store import hdf5_format as hdf5
from featpipe.store.disk import Disk, writing
from featpipe.store.folder_layout import cache_of
from featpipe.store.lock import lock_for_writing, refuse_special, unlock
from featpipe.store.mended import MendedFile
from featpipe.store.row_source import RowSource
from featpipe.store.schema import CHECKS
from featpipe.store.verify import verify_dictionary
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.store.table_writer import TableWriter

    Rows = NDArray[np.int64]

#: Rows read at a time, and the furthest that zeros follow a file that was cut short.
_BLOCK = 2048
_MOST_TIMES_LONGER = 64


@dataclass(frozen=True, slots=True)
class TableRepair:
    """One table: rows kept, numbers of damaged ones, and how many others depended on lost rows."""

    name: str
    n_kept: int
    dropped: tuple[int, ...] = ()
    n_dependent: int = 0

    def __str__(self) -> str:
        lost = f", {len(self.dropped):,} damaged dropped" if self.dropped else ""
        more = f", {self.n_dependent:,} that need them dropped" if self.n_dependent else ""
        return f"{self.name}: {self.n_kept:,} rows kept{lost}{more}"


@dataclass(frozen=True, slots=True)
class Repair:
    """Result of a repair. ``kept_as`` is the damaged file; None when there was no damage."""

    path: Path
    kept_as: Path | None = None
    tables: tuple[TableRepair, ...] = ()
    problems: tuple[str, ...] = field(default=())

    @property
    def is_whole(self) -> bool:
        """Whether no row was dropped and nothing was left unread."""
        return not self.problems and not any(t.dropped or t.n_dependent for t in self.tables)

    def __str__(self) -> str:
        if self.kept_as is None:
            return f"{self.path}: good, nothing to repair"
        head = f"{self.path}: repaired; the damaged file is kept as {self.kept_as}"
        return "\n".join((head, *self.problems, *map(str, self.tables)))


#: Of sound rows of a source those to keep, given the tables written so far.
Select: TypeAlias = "Callable[[RowSource, Rows, Mapping[str, TableWriter]], Rows]"


def keep_all(source: RowSource, rows: Rows, written: Mapping[str, TableWriter]) -> Rows:  # noqa: ARG001 - a Select
    """Every sound row."""
    return rows


def repair_dictionary(  # noqa: PLR0913 - each is a step of the repair
    path: str | Path,
    *,
    order: Callable[[str], int] = lambda _: 0,
    select: Select = keep_all,
    disk: Disk | None = None,
    asks_libhdf5: bool = True,
    complete: Callable[[Writer], None] = lambda _: None,
    before_loss: Callable[[], None] = lambda: None,
) -> Repair:
    """Put a file of the sound rows in the place of ``path``; a good file is left as it is.

    ``order(name)`` sorts tables, and ``select`` may drop rows that depend on lost ones of earlier
    tables; ``asks_libhdf5`` is as for verify_dictionary. ``complete`` may add to the new file, and
    ``before_loss`` is called before a file that lacks rows takes the place. Raises
    DictionaryLocked, WriteFailed, and UnreadableDictionary when nothing can be saved; the file
    stays as it is then.
    """
    path = Path(os.path.realpath(path))
    refuse_special(path)
    try:
        with writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except WriteFailed as error:
        if not path.exists():
            raise UnreadableDictionary(f"{path} does not exist") from error
        raise
    try:
        lock_for_writing(descriptor, path)
        try:
            if verify_dictionary(path, is_deep=True, asks_libhdf5=asks_libhdf5).is_good:
                return Repair(path)
            steps = _Steps(order, select, complete, before_loss)
            return _Repairing(path, descriptor, disk or Disk()).run(steps)
        finally:
            unlock(descriptor, path)
    finally:
        os.close(descriptor)


class _Steps(NamedTuple):
    order: Callable[[str], int]
    select: Select
    complete: Callable[[Writer], None]
    before_loss: Callable[[], None]


class _Repairing:
    """A repair in progress; the caller holds the lock on the damaged file."""

    def __init__(self, path: Path, descriptor: int, disk: Disk) -> None:
        self.path = path
        self.descriptor = descriptor
        self.disk = disk
        self.aside = path.with_name(f".{path.name}.repair")

    def run(self, steps: _Steps) -> Repair:
        try:
            sources, problems = self._sources()
            if not sources:
                what = "; ".join(problems) or "no tables"
                raise UnreadableDictionary(f"nothing can be saved from {self.path}: {what}")
            sources.sort(key=lambda source: steps.order(source.name))
            tables = self._write_aside(sources, steps)
            if problems or any(table.dropped or table.n_dependent for table in tables):
                steps.before_loss()
            with writing(self.path):
                kept_as = self._replace()
        except WriteFailed as error:
            raise self._failed(error) from error.__cause__
        finally:
            with suppress(OSError):
                self.aside.unlink(missing_ok=True)
        return Repair(self.path, kept_as, tuple(tables), tuple(problems))

    def _failed(self, error: WriteFailed) -> WriteFailed:
        """The same, naming the cache and not the file beside it."""
        if not self._is_in_place():  # the new file is, and its name could not be made durable
            return error
        n_bytes = max(os.fstat(self.descriptor).st_size, self._whole_length())
        cache = cache_of(self.path)
        return WriteFailed(
            f"{self.path} was not repaired, and is as it was: {error.message}",
            hint=f"a repair writes a second file of up to {-(-n_bytes // 2**20):,} MiB beside it;"
            f" make room for it, then featpipe repair {cache}",
        )

    def _is_in_place(self) -> bool:
        """Whether the damaged file still has the name."""
        return self.path.exists() and os.path.samestat(self.path.stat(), os.fstat(self.descriptor))

    def _write_aside(self, sources: list[RowSource], steps: _Steps) -> list[TableRepair]:
        with writing(self.path):
            self.aside.unlink(missing_ok=True)
            access = Access.of(self.path)
        written: dict[str, TableWriter] = {}
        tables = []
        with Writer.open(self.aside, disk=self.disk, access=access) as writer:
            for source in sources:
                written[source.name] = writer.table(source.name, source.spec)
                tables.append(_copy(source, written, steps.select))
                writer.commit()
            steps.complete(writer)
        return tables

    def _sources(self) -> tuple[list[RowSource], list[str]]:
        mended = MendedFile(self.descriptor, self.path, self._whole_length())
        views = mended.tables()
        if views:
            return [RowSource.of(view) for view in views], mended.problems
        from featpipe.store.hdf5_source import read_through_libhdf5

        return read_through_libhdf5(self.path), mended.problems

    def _whole_length(self) -> int:
        """The bytes that the file had before it was cut short; 0 where it does not say so."""
        size = os.fstat(self.descriptor).st_size
        announced = int.from_bytes(os.pread(self.descriptor, 8, hdf5.EOF_ADDRESS), "little")
        return announced if size < announced <= _MOST_TIMES_LONGER * (size + (64 << 20)) else 0

    def _replace(self) -> Path:
        number = 0
        while True:
            suffix = ".damaged" if not number else f".damaged.{number}"
            kept_as = self.path.with_name(self.path.name + suffix)
            try:
                os.link(self.path, kept_as)
            except FileExistsError:
                number += 1
                continue
            except OSError:  # a file system without hard links
                self.disk.replace(self.path, kept_as)
            break
        try:
            self.disk.replace(self.aside, self.path)
        except OSError:
            if self._is_in_place():
                kept_as.unlink()
            else:
                self.disk.replace(kept_as, self.path)
            raise
        self.disk.sync_directory(self.path.parent)
        return kept_as


def _copy(source: RowSource, written: Mapping[str, TableWriter], select: Select) -> TableRepair:
    target = written[source.name]
    dropped: list[int] = []
    n_dependent = 0
    for start in range(0, source.n_rows, _BLOCK):
        stop = min(start + _BLOCK, source.n_rows)
        sound = source.sound_rows(start, stop)
        kept = select(source, sound, written)
        dropped += np.setdiff1d(np.arange(start, stop), sound).tolist()
        n_dependent += len(sound) - len(kept)
        target.append(source.read(kept))
    return TableRepair(source.name, target.n_rows, tuple(_claimed(source, dropped)), n_dependent)


def _claimed(source: RowSource, dropped: Sequence[int]) -> list[int]:
    """Without the rows at the end that were never written: theirs is no checksum."""
    claimed = set(dropped)
    last = source.n_rows - 1
    checks = source.fixed[CHECKS]
    while last in claimed and not checks.slice(last, last + 1)[0]:
        claimed.discard(last)
        last -= 1
    return sorted(claimed)
