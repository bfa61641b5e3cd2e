"""Reads a cache in a folder as if it were one file: the place of `Reader`, and of its tables.

Guarantees: as of a reader of one file. The folder may be opened while files are published into it,
and shows those that there were at the last `FolderReader.refresh`. Files are opened when something
of theirs is first needed, and closed again when the process has too many (see
`featpipe.store.open_files`). A file that is missing, damaged or not of this cache is named.

A reader pickles as its path.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from featpipe.errors import DictionaryChanged, DictionaryError, UnknownSpace, UnreadableDictionary
from featpipe.fork_lock import make_rlock
from featpipe.store.folder_layout import PARTS, SHARDS, FolderLayout
from featpipe.store.folder_members import Route
from featpipe.store.folder_table import FolderTable
from featpipe.store.folder_terms import FolderTerms, FolderVocabulary
from featpipe.store.open_files import OPEN_FILES
from featpipe.store.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.store.reader import NameRows
    from featpipe.store.schema import TableSpec
    from featpipe.store.table_reader import TableReader

#: Tables of the parts; results have a file of their own, all others are in the shards.
PART_TABLES = frozenset({"documents", "sources", "runs"})
#: Indices by row number of one file, which a reader of the whole goes without.
FILE_TABLES = frozenset({"places"})
RESULTS = "results"
RESULTS_PREFIX = "results/"
_REFRESH = "refresh the reader, or open the folder again"

#: Younger times of a file are not trusted: a further change could leave the same.
_SETTLED_NS = 2_000_000_000


class Stamp(NamedTuple):
    """Changes with every change of a file, once it has been left alone for a while."""

    device: int
    inode: int
    n_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Of a file that is there, or is missing."""
        try:
            status = path.stat()
        except OSError:
            return cls(0, 0, 0, 0)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def identity(self) -> tuple[int, int]:
        """Of the file, whatever it holds."""
        return self.device, self.inode


_MISSING = Stamp(0, 0, 0, 0)


@dataclass(slots=True)
class Member:
    """One file of the folder; ``shard`` is None for those of no shard."""

    path: Path
    kind: str
    shard: int | None
    stamp: Stamp
    names: frozenset[str] | None = None  #: its tables, once they were read


class FolderReader(Reader):
    """A folder cache open for reading. Raises as `Reader` does; arguments as its."""

    def __init__(
        self, path: str | Path, *, checks_rows: bool = True, name_rows: NameRows | None = None
    ) -> None:
        # Nothing of the file's Reader is made: every public method is defined here.
        self.path = Path(path).absolute()
        self.checks_rows = checks_rows
        self._name_rows = name_rows
        self.descriptor, self.n_opened = -1, 1
        self.layout = self._read_layout()
        self._lock = make_rlock()
        self._folder_tables: dict[str, FolderTable] = {}
        #: By number; a file that replaces another has a number of its own.
        self._members: dict[int, Member] = {}
        self._order: list[int] = []  #: parts, shards, results, in the order of their rows
        self._numbers = count()
        self._token = object()  #: stands for this reader among those of the process
        self._is_closed = False
        self._list()

    def __reduce__(self) -> tuple[object, ...]:
        return (_open_folder, (self.path, self.checks_rows, self._name_rows))

    def close(self) -> None:
        """Close the files. Arrays that were returned stay valid."""
        with self._lock:
            self._is_closed = True
            for number in self._members:
                OPEN_FILES.drop((self._token, number))

    def release(self) -> None:
        """As :meth:`close`: its tables open files by it, and are no longer used."""
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_members"):
            OPEN_FILES.give_up([(self._token, number) for number in self._members])

    # ---- tables

    def tables(self, problems: list[str] | None = None) -> list[str]:
        """The names of all tables, sorted; each file is opened for it once.

        Unreadable objects and files are described in ``problems``; without it they raise
        UnreadableDictionary.
        """
        with self._lock:
            names: set[str] = set()
            for number in self._surveyed():
                try:
                    names |= self._names_in(number, problems)
                except UnreadableDictionary as error:
                    if problems is None:
                        raise
                    problems.append(error.message)
            return sorted(names)

    @property
    def file_bytes(self) -> int:
        """Size of all files that are read."""
        return sum(member.stamp.n_bytes for member in self._members.values())

    @property
    def files(self) -> list[Path]:
        """The files that are read, in the order of their rows; with those that are missing."""
        return [self._members[number].path for number in self._order]

    def foreign_objects(self) -> list[str]:
        """The paths of objects that another program put into a file, each after the file's name."""
        return [
            f"{member.path.relative_to(self.path)}: {name}"
            for number, member in sorted(self._members.items())
            for name in self.member(number).foreign_objects()
        ]

    @property
    def was_closed(self) -> bool:
        """Whether every file's last writer closed it, and no other has opened it since."""
        return all(self.member(number).was_closed for number in self._members)

    def deviations(self) -> list[str]:
        """Where the structure of a file differs from what featpipe writes."""
        return [
            f"{member.path.relative_to(self.path)}: {what}"
            for number, member in sorted(self._members.items())
            for what in self.member(number).deviations()
        ]

    def root_attributes(self) -> dict[str, str | int]:
        """The attributes of the root group of the first file."""
        first = min(self._members, default=None)
        return {} if first is None else self.member(first).root_attributes()

    def __contains__(self, name: str) -> bool:
        name = name.strip("/")
        with self._lock:
            return name in self._folder_tables or self._find_spec(name) is not None

    def table(self, name: str) -> TableReader:
        """The table of this name, the same object until its row numbers become void.

        Raises UnknownSpace when there is none, UnreadableDictionary when it is damaged.
        """
        name = name.strip("/")
        known = self._folder_tables.get(name)
        if known is not None:
            return known
        with self._lock:
            spec = self._find_spec(name)
            if spec is None:
                raise UnknownSpace(f"{self.path} has no table {name}")
            return self._folder_tables.setdefault(name, self._make_table(name, spec))

    def _make_table(self, name: str, spec: TableSpec) -> FolderTable:
        route = self._route(name)
        if name.startswith("terms/") and name.endswith("/vocabulary"):
            return FolderVocabulary(self, name, spec, route)
        if name.startswith("terms/") and name.endswith("/units"):
            vocabulary = self.table(name.removesuffix("units") + "vocabulary")
            if isinstance(vocabulary, FolderVocabulary):
                return FolderTerms(self, name, spec, route, vocabulary)
        return FolderTable(self, name, spec, route)

    def _find_spec(self, name: str) -> TableSpec | None:
        """The schema of a table, from the first file that has it."""
        problem: UnreadableDictionary | None = None
        surveyed = set(self._surveyed())
        for number in filter(surveyed.__contains__, self._files_for(name)):
            try:
                if name in self._names_in(number):
                    return self.member(number).table(name).spec
            except UnreadableDictionary as error:  # of one file; others may have the table, too
                problem = problem or error
        if problem is not None:
            raise problem
        return None

    def _names_in(self, number: int, problems: list[str] | None = None) -> frozenset[str]:
        member = self._members[number]
        if member.names is None:
            names = self.member(number).tables(problems)
            member.names = frozenset(name for name in names if _kind_of(name) == member.kind)
        return member.names

    def _files_for(self, name: str) -> list[int]:
        """Numbers of the files that may have a table, in the order of their rows."""
        kind = _kind_of(name)
        return [number for number in self._order if self._members[number].kind == kind]

    def _route(self, name: str) -> Route:
        files = tuple(self._files_for(name))
        by_shard: dict[int, tuple[int, ...]] = {}
        for number in files:
            shard = self._members[number].shard
            if shard is None:
                return Route(files)
            by_shard[shard] = (*by_shard.get(shard, ()), number)
        return Route(files, by_shard, self.layout.bits)

    # ---- files

    def member(self, number: int) -> Reader:
        """The open reader of one file. Raises DictionaryChanged where it is gone or another."""
        found = OPEN_FILES.get((self._token, number))
        if found is None:
            found = OPEN_FILES.open((self._token, number), lambda: self._open_member(number))
            if self._is_closed or number not in self._members:  # since it was opened
                OPEN_FILES.drop((self._token, number))
        return found

    def _open_member(self, number: int) -> Reader:
        # Without the lock: a refresh that holds it may wait for a table that opens a file here.
        if self._is_closed:
            raise DictionaryError(f"the reader of {self.path} is closed")
        member = self._members.get(number)
        if member is None:
            raise DictionaryChanged(f"a file of {self.path} was replaced", hint=_REFRESH)
        me = ref(self)  # the open files of the process would keep this reader

        def name_rows(_: Reader, table: str, keys: Sequence[bytes]) -> Sequence[str]:
            folder = me()
            return folder.documents_of(table, keys) if folder is not None else ()

        try:
            reader = Reader(self._local(member), checks_rows=self.checks_rows, name_rows=name_rows)
        except UnreadableDictionary as error:
            if member.path.exists():
                raise
            if member.stamp == _MISSING:
                raise UnreadableDictionary(
                    f"{member.path} is missing, and a report of its job says that it was made",
                    hint="put it back; or remove the job's reports, and have it done again",
                ) from error
            raise DictionaryChanged(f"{member.path} is gone", hint=_REFRESH) from error
        if not self._is_of(reader, member):
            reader.close()
            raise DictionaryChanged(f"{member.path} was replaced by another file", hint=_REFRESH)
        return reader

    def _surveyed(self) -> list[int]:
        """Numbers of the files whose tables are those of the cache."""
        return list(self._members)

    def _read_layout(self) -> FolderLayout:
        return FolderLayout.read(self.path)

    def _stamp(self, path: Path) -> Stamp:
        return Stamp.of(path)

    def _local(self, member: Member) -> Path:
        """Where the file can be opened."""
        return member.path

    def _is_of(self, reader: Reader, member: Member) -> bool:
        """Whether the opened file is the one that was listed."""
        return reader.identity == member.stamp.identity

    def member_table(self, number: int, name: str) -> TableReader | None:
        """The table in the file of this number; None where the file has none of this name."""
        member = self._members.get(number)
        if member is not None and member.names is not None and name not in member.names:
            return None
        reader = self.member(number)
        return reader.table(name) if name in reader else None

    def files_of(self, name: str) -> Iterator[tuple[Reader, int, int]]:
        """The files that a table's rows lie in: reader, number of the first row, and how many.

        Each is opened when its turn comes. Nothing where a file gained rows while it was read: its
        rows do not follow each other then.
        """
        table = self.table(name)
        segments = table.segments if isinstance(table, FolderTable) else None
        if segments is None or len(segments.known) != len(segments.files):
            return
        for at, (number, first, stop) in zip(segments.start_list, segments.runs, strict=False):
            if stop > first:
                yield self.member(number), at, stop

    def documents_of(self, table: str, keys: Sequence[bytes]) -> Sequence[str]:
        """Documents that rows of these keys belong to, as far as they are known."""
        return self._name_rows(self, table, keys) if self._name_rows else ()

    def _list(self) -> tuple[set[int], set[int]]:
        """Bring the files up to date; numbers of those that are gone, and of new or changed ones.

        A file that was changed lately counts as changed: its times may not show a further change.
        """
        before = {(m.path, m.stamp.identity): number for number, m in self._members.items()}
        members: dict[int, Member] = {}
        changed: set[int] = set()
        settled = time.time_ns() - _SETTLED_NS
        for path, kind, shard in self._published():
            stamp = self._stamp(path)
            number = before.get((path, stamp.identity))
            if number is None:
                number = next(self._numbers)
            known = self._members.get(number)
            is_same = known is not None and known.stamp == stamp and stamp.modified_ns < settled
            if not is_same:
                changed.add(number)
            names = known.names if known and is_same else None
            members[number] = Member(path, kind, shard, stamp, names)
        gone = set(self._members) - set(members)
        self._members, self._order = members, list(members)
        return gone, changed

    def _published(self) -> Iterator[tuple[Path, str, int | None]]:
        parts, shards = self.layout.part_files(), self.layout.shard_files()
        for file, shard in self.layout.missing_files().items():
            if shard is None:
                parts.append(file)
            else:
                shards[shard] = [file]
        for path in parts:
            yield path, PARTS, None
        for shard in sorted(shards):
            for path in shards[shard]:
                yield path, SHARDS, shard
        if self.layout.results_file.exists():
            yield self.layout.results_file, RESULTS, None

    def refresh(self) -> bool:
        """Show every file that is published now, and all that is committed in them.

        Returns whether anything changed. Raises DictionaryChanged when a file was truncated.
        """
        with self._lock:
            if self._is_closed:
                raise DictionaryError(f"the reader of {self.path} is closed")
            before = {number: member.stamp for number, member in self._members.items()}
            gone, changed = self._list()
            for number in gone:
                OPEN_FILES.drop((self._token, number))
            has_grown = bool(gone)
            for number in changed:
                reader = OPEN_FILES.get((self._token, number))
                is_other = before.get(number) != self._members[number].stamp
                n_opened = 0 if reader is None else reader.n_opened
                has_grown |= (reader is not None and reader.refresh()) or is_other
                if reader is not None and reader.n_opened != n_opened:
                    gone.add(number)  # written over in place: numbers of its rows are void
            if has_grown:
                for name in sorted(self._folder_tables):
                    self._update_table(name, gone, changed)
            return has_grown

    def _update_table(self, name: str, gone: set[int], changed: set[int]) -> None:
        table = self._folder_tables[name]
        if gone.intersection(table.files) or not table.extend(self._route(name), changed):
            del self._folder_tables[name]
            table.retire()


def _kind_of(name: str) -> str:
    """Of the files that hold a table; "" for one that is about the rows of a single file."""
    if name in PART_TABLES:
        return PARTS
    if name in FILE_TABLES:
        return ""
    return RESULTS if name.startswith(RESULTS_PREFIX) else SHARDS


def _open_folder(path: Path, checks_rows: bool, name_rows: NameRows | None) -> FolderReader:
    return FolderReader(path, checks_rows=checks_rows, name_rows=name_rows)
