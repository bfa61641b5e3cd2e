"""Reads a dictionary by path, at any instant, from any number of processes and threads.

Guarantees: a reader never waits for the writer, takes no lock, and sees whole rows only: the
dictionary as of its last :meth:`Reader.refresh`. A truncated file is refused (DictionaryChanged), a
replaced one is opened by refresh, also one that was written over in place, once it is whole. The
file is not trusted: see :mod:`featpipe.store.hdf5_parse`.

A reader pickles as its path and opens the file again on arrival. A forked child may use it further,
since it only reads at given offsets and from shared maps, and its locks are those of
:mod:`featpipe.fork_lock`.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from featpipe.errors import DictionaryChanged, DictionaryError, UnknownSpace, UnreadableDictionary
from featpipe.fork_lock import make_rlock
from featpipe.store import hdf5_format as hdf5
from featpipe.store.canonical import deviations
from featpipe.store.hdf5_parse import Structure
from featpipe.store.lock import is_locked, read_owner, refuse_special
from featpipe.store.schema import datasets_of
from featpipe.store.snapshot import Snapshot
from featpipe.store.sound_rows import SETTLED_S
from featpipe.store.structure import find_root, find_table, row_hash_of, walk_objects
from featpipe.store.table_reader import TableReader
from featpipe.store.table_view import load_table
from featpipe.store.views import FileMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from featpipe.store.hdf5_parse import Header
    from featpipe.store.sound_rows import State

    #: Names the documents of rows, given the reader, the table and the keys; it does not raise.
    NameRows = Callable[["Reader", str, Sequence[bytes]], Sequence[str]]


class Reader:
    """A dictionary open for reading. Raises UnreadableDictionary, NewerDictionary on opening.

    ``checks_rows``: a row is held against its checksum before it is handed out, when it is first
    read and after every write to the file, and damaged ones raise DamagedRows. Damage that the
    disk does to a row without a write is found when ten minutes have passed since its last check.
    Without it a damaged row is handed out as it is. ``name_rows`` is asked for the documents of
    damaged rows, for the error: a function of a module, since a reader pickles.
    """

    def __init__(
        self, path: str | Path, *, checks_rows: bool = True, name_rows: NameRows | None = None
    ) -> None:
        self.path = Path(path).absolute()
        self.checks_rows = checks_rows
        self._name_rows = name_rows
        self._lock = make_rlock()
        self._tables: dict[str, TableReader] = {}
        self._names: tuple[str, ...] | None = None  #: of all tables, once asked for
        self.descriptor = -1
        self._mapping: FileMap
        self._structure: Structure
        self._identity = (-1, -1)
        self._looked_at: State = None  #: when groups were last held against the file
        #: Counts the files that were opened; row numbers of an earlier one are void.
        self.n_opened = 0
        self._open()

    def __reduce__(self) -> tuple[object, ...]:
        return (_open_reader, (self.path, self.checks_rows, self._name_rows))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Arrays that were returned stay valid."""
        with self._lock:
            descriptor, self.descriptor = self.descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)

    def release(self) -> None:
        """Have the file closed when the last table, and the last call of a thread, is done with it.

        Not used by callers of this reader: tables that they took stay usable.
        """
        with self._lock:
            self._tables = {}  # each holds this reader, which holds them

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            self.close()

    # ---- tables

    def tables(self, problems: list[str] | None = None) -> list[str]:
        """The names of all tables, sorted.

        Unreadable objects are described in ``problems``; without it they raise
        UnreadableDictionary, since they may have been tables.
        """
        with self._lock:
            names = self._names if problems is None else None
            if names is None:
                objects = walk_objects(self._structure, self._root, problems)
                names = tuple(sorted(name for name, _, spec in objects if spec is not None))
            if problems is None:
                self._names = names
            return list(names)

    @property
    def files(self) -> list[Path]:
        """The file."""
        return [self.path]

    @property
    def file_bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size

    def foreign_objects(self) -> list[str]:
        """The paths of objects that another program put into the file, sorted."""
        with self._lock:
            found: list[str] = []
            for name, header, spec in walk_objects(self._structure, self._root):
                if spec is not None:
                    own = datasets_of(spec, row_hash_of(header))
                    found += [f"{name}/{child}" for child in set(header.links) - own]
                elif not header.is_group or header.refusals:
                    found.append(name)
            return sorted(found)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and number of the open file."""
        return self._identity

    @property
    def was_closed(self) -> bool:
        """Whether the file's last writer closed it, and no other has opened it since."""
        owner = read_owner(self.descriptor)
        return owner is not None and owner.is_closed

    def deviations(self) -> list[str]:
        """Where the structure differs from what featpipe writes, though it can be read."""
        with self._lock:
            return list(deviations(self._structure, self._root, was_closed=self.was_closed))

    def root_attributes(self) -> dict[str, str | int]:
        """The attributes of the root group."""
        with self._lock:
            return self._structure.header(self._root).attributes

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name.strip("/") in self._tables or self._group(name.strip("/")) is not None

    def table(self, name: str) -> TableReader:
        """The table of this name, the same object each time.

        Raises UnknownSpace when there is none, UnreadableDictionary when it is damaged.
        """
        name = name.strip("/")
        known = self._tables.get(name)
        if known is not None:
            return known
        with self.held():
            snapshot = self._snapshot(name)
            return self._tables.setdefault(name, TableReader(self, snapshot))

    def _group(self, name: str) -> Header | None:
        return find_table(self._structure, self._root, name)

    def _snapshot(self, name: str) -> Snapshot:
        group = self._group(name)
        if group is None:
            raise UnknownSpace(f"{self.path} has no table {name}")
        is_written = is_locked(self.descriptor)
        view = load_table(self._structure, self._mapping, name, group, is_written=is_written)
        return Snapshot.of(self._mapping, view)

    # ---- opening and refreshing

    def refresh(self) -> bool:
        """Show everything committed so far; returns whether anything changed.

        Raises DictionaryChanged when the file was truncated or removed.
        """
        with self.held():
            try:
                named = self.path.stat()
            except OSError as error:
                raise DictionaryChanged(f"{self.path} is gone: {error.strerror}") from error
            is_other = (named.st_dev, named.st_ino) != self._identity
            if is_other or self._mapping.guard.is_broken or not self._goes_on(named):
                self._reopen("replaced" if is_other else "written over")
                return True
            try:
                return self._show_commits()
            except UnreadableDictionary:
                # An earlier state of the same file may have been put into its place, with cp. Where
                # it is damage, what is left is read as by a reader that is opened now.
                self._reopen("written over")
                return True

    def _goes_on(self, status: os.stat_result) -> bool:
        """Whether the file still has the groups that were read; looks again after each change."""
        state = status.st_ctime_ns, status.st_size
        if state == self._looked_at:
            return True
        if not self._structure.is_as_read():
            return False
        # Such times advance in steps: with a young one, a further change may leave no trace.
        is_settled = status.st_ctime_ns < time.time_ns() - int(SETTLED_S * 1e9)
        self._looked_at = state if is_settled else None
        return True

    def _show_commits(self) -> bool:
        if self.read_u64(hdf5.ROOT_ADDRESS) != self._announced_root:
            self._load(is_other_file=False)
            return True
        self.check_size(self.read_u64(hdf5.EOF_ADDRESS) or hdf5.UNDEFINED)
        changed = [self._show_length(table) for table in self._tables.values()]
        return any(changed)

    def _open(self) -> None:
        refuse_special(self.path)
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise UnreadableDictionary(
                f"{self.path} cannot be opened: {error.strerror}",
                hint="featpipe build-cache DOCS --cache FILE makes a cache"
                if isinstance(error, FileNotFoundError)
                else None,
            ) from error
        try:
            status = os.fstat(self.descriptor)
            self._identity = (status.st_dev, status.st_ino)
            self._load(is_other_file=True)
            self.n_opened += 1
        except BaseException:
            self.close()
            raise

    def _reopen(self, how: str) -> None:
        """Open what is at the path now: a compaction or a merge, or another file's bytes.

        Where that cannot be read, this file is kept, and the next refresh tries again.
        """
        before = self.descriptor, self._identity, self._mapping, self._structure
        try:
            self._open()
        except BaseException as error:
            self.descriptor, self._identity, self._mapping, self._structure = before
            if isinstance(error, UnreadableDictionary):
                raise DictionaryChanged(
                    f"{self.path} was {how}, and is not a whole dictionary now: {error.message}"
                ) from error
            raise
        os.close(before[0])

    def _load(self, *, is_other_file: bool) -> None:
        """Read the structure; the root address first, so that the map covers its whole tree."""
        root = self.read_u64(hdf5.ROOT_ADDRESS)
        if is_other_file or not self._still_covers(self._mapping):
            self._mapping = FileMap(self.descriptor, self.path)
        structure = Structure(self._mapping.buffer, str(self.path))
        self._root = find_root(structure, str(self.path))
        self._structure, self._names = structure, None
        self._announced_root = root
        if is_other_file:
            former, self._tables = self._tables, {}
            for table in former.values():
                table.retire()
        else:
            for name, table in list(self._tables.items()):
                self._bring_up_to_date(name, table)

    def _still_covers(self, mapping: FileMap) -> bool:
        """Whether the map covers the announced end of the file, and the file covers the map.

        A file grows in large steps, so one map serves for many changes of structure.
        """
        announced = self.read_u64(hdf5.EOF_ADDRESS)
        return announced <= mapping.size <= os.lseek(self.descriptor, 0, os.SEEK_END)

    def _bring_up_to_date(self, name: str, table: TableReader) -> None:
        group = self._group(name)
        view = table.now.view
        if group is None or group.address != view.group.address:
            table.show(self._snapshot(name))
        else:
            self._show_length(table)

    def _show_length(self, table: TableReader) -> bool:
        """Show all rows that are visible now; whether there are more than before."""
        now = table.now
        n_rows = self.read_u64(now.view.headers[now.view.leader].dims_address)
        if n_rows == now.announced:
            return False
        is_sound = now.n_rows <= n_rows <= now.view.n_capacity
        if not is_sound or (n_rows and len(now.view.bad_rows(n_rows - 1, n_rows))):
            raise self.damage(f"table {now.view.name} went from {now.n_rows} to {n_rows} rows")
        table.show(replace(now, n_rows=n_rows, announced=n_rows))
        return n_rows > now.n_rows

    # ---- for tables: see OpenFile

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this is open, no other thread closes the file, or opens the one that replaced it.

        Raises DictionaryError when it is closed.
        """
        with self._lock:
            if self.descriptor < 0:
                raise DictionaryError(f"the reader of {self.path} is closed")
            yield

    def read_u64(self, address: int) -> int:
        """Eight bytes of the file as they are now."""
        return int.from_bytes(os.pread(self.descriptor, 8, address), "little")

    def check_size(self, reach: int) -> None:
        """Raises DictionaryChanged when the file is shorter than ``reach``."""
        try:
            size = os.lseek(self.descriptor, 0, os.SEEK_END)
        except OSError:
            raise DictionaryError(f"the reader of {self.path} is closed") from None
        if size < reach:
            raise DictionaryChanged(f"{self.path} was truncated under its reader")

    def damage(self, what: str) -> UnreadableDictionary:
        """The error for a damaged file."""
        return self._structure.damage(what)

    def documents_of(self, table: str, keys: Sequence[bytes]) -> Sequence[str]:
        """Documents that rows of these keys belong to, as far as they are known."""
        return self._name_rows(self, table, keys) if self._name_rows else ()


def _open_reader(path: Path, checks_rows: bool, name_rows: NameRows | None) -> Reader:
    return Reader(path, checks_rows=checks_rows, name_rows=name_rows)
