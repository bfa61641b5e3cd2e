"""Writing a dictionary: one owner, append-only, atomic at every instant.

Guarantees:

- When :meth:`Writer.commit` returns, every row appended before it survives SIGKILL of any process
  at any time, and power loss; plain HDF5 readers see it from then on.
- The file can be opened at any instant, by featpipe or by any HDF5 reader, also while tables are
  made, and shows whole rows only, of each table the first n in the order they were appended.
- A :class:`WriteFailed` leaves the file good and the writer usable: nothing since the last commit
  counts, and may be appended again once there is space.

The order of things in a commit is what this rests on: rows, checksums and new structure are written
where no reader looks yet; one sync makes them durable; then single aligned 8-byte stores publish
them, the root address when structure changed (and a second sync, for without a durable root the
rows in new chunks would be lost with the power), else the lengths of the columns.

What a commit costs is the disk's to say: one sync of new blocks, in which a file system writes the
data and its own journal. ``scripts/bench_store.py`` prints beside ours the time of a bare file that
gets the same vectors by one pwrite and one fdatasync; nothing durable is quicker than that, and
what is ours above it is keys, checksums and index: a few pages more and the working out of them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from featpipe.errors import DictionaryError, WriteFailed
from featpipe.store import hdf5_format as hdf5
from featpipe.store.allocator import Space
from featpipe.store.disk import Disk, writing
from featpipe.store.hdf5_parse import Structure
from featpipe.store.lock import (
    RECORD_ADDRESS,
    Owner,
    lock_for_writing,
    read_owner,
    refuse_special,
    this_process,
    unlock,
)
from featpipe.store.recovery import Recovery, recover
from featpipe.store.root import check_root, create_dictionary
from featpipe.store.table_writer import TableWriter
from featpipe.store.tree import Group, is_dirty, store
from featpipe.store.views import Mapping, load_table, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from featpipe.store.schema import TableSpec

_LARGE = 128 << 10  #: bytes that the disk is asked to begin with at once


class Writer:
    """The one process that writes a dictionary. Not thread-safe; not for use in a forked child.

    ``previous`` is the last owner's record when it did not close the file (it was killed, or the
    power went), and ``recovery`` what was found then; both None after a clean close.
    """

    def __init__(self, path: Path, descriptor: int, disk: Disk) -> None:
        self.path = path
        self.descriptor = descriptor
        self.previous: Owner | None = None
        self.recovery: Recovery | None = None
        self._disk = disk
        self._pid = os.getpid()
        self._tables: dict[str, TableWriter] = {}
        self._touched: dict[str, TableWriter] = {}
        self._is_broken = False
        self._must_sync = False
        self._map: Mapping | None = None
        self._root = Group()
        self.space = Space(disk, descriptor, 0)

    @classmethod
    def open(cls, path: str | Path, *, disk: Disk | None = None) -> Writer:
        """Own the dictionary at ``path``; a missing one is created, a dead writer's is recovered.

        Raises DictionaryLocked when another writer owns it, UnreadableDictionary or NewerDictionary
        when it is not one we may write, WriteFailed when the disk refuses.
        """
        # What a link names is what is owned: creating goes aside and renames, which a link to
        # nothing would refuse for ever.
        path = Path(path).resolve()
        refuse_special(path)
        disk = disk or Disk()
        with writing(path):
            writer = cls(path, _open_or_create(disk, path), disk)
            try:
                writer._start()
            except BaseException:
                writer.abandon()
                raise
        return writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.descriptor < 0:
            return
        if kind is None:
            self.close()
        else:
            self.abandon()

    # ---- tables

    def table(self, name: str, spec: TableSpec) -> TableWriter:
        """The table at ``name`` (any depth of groups), made when there is none.

        Raises DictionaryError when there is one with another schema or other attributes.
        """
        name = name.strip("/")
        known = self._tables.get(name)
        if known is not None:
            if known.spec != spec:
                raise self._other_schema(name)
            return known
        if any(part in {"", ".", ".."} or "\0" in part for part in name.split("/")):
            raise DictionaryError(f"{name!r} cannot be the name of a table")
        with self.changing():
            table = TableWriter(self, name, spec)
            self._place(table)
            self._tables[name] = table
        return table

    def _place(self, table: TableWriter) -> None:
        """Find the table's group in the file, or make it, with the groups above it."""
        group = self._root
        *parents, last = table.name.split("/")
        for part in parents:
            group = self._child_group(group, part, table.name)
        address = group.links.get(last)
        if address is None:
            group.links[last] = table.create()
            group.is_dirty = True
            self.touch(table)
            return
        if not isinstance(address, int):
            raise DictionaryError(f"{table.name} is a group of tables in {self.path}")
        structure = self._structure()
        view = load_table(structure, self.mapping(), table.name, structure.header(address))
        if view.spec != table.spec:
            raise self._other_schema(table.name)
        group.links[last] = table.attach(view)

    def _child_group(self, group: Group, part: str, name: str) -> Group:
        child = group.links.get(part)
        if child is None:
            child = group.links[part] = Group()
            group.is_dirty = True
        elif isinstance(child, int):
            header = self._structure().header(child)
            if not header.is_group or header.refusals or spec_of(header) is not None:
                raise DictionaryError(f"{name}: {part} in {self.path} is not a group of tables")
            child = Group(dict(header.links), header.extras, child, is_dirty=False)
            group.links[part] = child
        if not isinstance(child, Group) or any(t.group is child for t in self._tables.values()):
            raise DictionaryError(f"{name}: {part} in {self.path} is not a group of tables")
        return child

    def _other_schema(self, name: str) -> DictionaryError:
        return DictionaryError(
            f"table {name} in {self.path} has other columns or attributes than asked for",
            hint="another fingerprint belongs into another table",
        )

    # ---- committing

    def commit(self) -> None:
        """Make everything appended durable and visible; returning is the acknowledgement.

        One sync for all tables touched, two when structure changed. Raises WriteFailed.
        """
        self._commit(is_last=False)

    def _commit(self, *, is_last: bool) -> None:
        with self.changing():
            tables = self._tables if is_last else self._touched
            for table in tables.values():
                table.write_index(is_last=is_last)
            if is_dirty(self._root):
                self._publish_structure()
            elif self._touched or self._must_sync or is_last:
                self._disk.sync(self.descriptor)
                self._check_name()
                for table in tables.values():
                    table.publish()
            self._touched.clear()
            self._must_sync = False

    def _publish_structure(self) -> None:
        for table in self._touched.values():
            table.mark_structure()
        root = store(self._root, self.space)
        self._disk.sync(self.descriptor)
        self._check_name()
        self.write(hdf5.ROOT_ADDRESS, hdf5.u64(root))
        for table in self._tables.values():
            table.publish()
        # Acknowledged rows may lie in chunks that only the new root leads to.
        self._disk.sync(self.descriptor)

    def _check_name(self) -> None:
        """A file that lost its name takes writes for ever, and then is gone."""
        try:
            named = self.path.stat()
        except FileNotFoundError:
            raise WriteFailed(f"{self.path} was removed while it was being written") from None
        mine = os.fstat(self.descriptor)
        if (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            raise WriteFailed(f"{self.path} was replaced while it was being written")

    def close(self) -> None:
        """Commit, complete the indexes, trim the file and give it up.

        Raises WriteFailed, after which the file is given up all the same.
        """
        if self.descriptor < 0:
            return
        try:
            self._commit(is_last=True)
            with writing(self.path):
                self.space.trim()
                # Last: a file that says it was closed is not looked through at the next opening.
                record = replace(this_process(), is_closed=True)
                self.write(RECORD_ADDRESS, record.to_bytes())
                self._disk.sync(self.descriptor)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Give the file up as a killed process would: what is not committed is left to recovery."""
        descriptor, self.descriptor = self.descriptor, -1
        self._map = None
        if descriptor < 0:
            return
        if self._pid == os.getpid():  # a forked child has the parent's locks, not locks of its own
            unlock(descriptor)
        os.close(descriptor)

    def __del__(self) -> None:
        self.abandon()

    # ---- what tables need

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write into space that no reader looks at, or publish by one aligned store."""
        self._disk.write(self.descriptor, offset, data)
        if len(data) >= _LARGE:
            # The disk is busy with these while checksums and index are worked out.
            self._disk.start(self.descriptor, offset, len(data))

    def touch(self, table: TableWriter) -> None:
        """Remember, in order of first use, what the next commit has to publish."""
        self._touched.setdefault(table.name, table)

    def mapping(self) -> Mapping:
        """The file in memory, as far as it reaches now."""
        if self._map is None or self._map.size != self.space.physical:
            self._map = Mapping(self.descriptor, self.path)
        return self._map

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Wrap whatever writes: a refusal by the disk takes the writer back to the last commit."""
        if self.descriptor < 0:
            raise DictionaryError(f"the writer of {self.path} is closed")
        if self._pid != os.getpid():
            raise DictionaryError(f"{self.path} is owned by process {self._pid}, not by this child")
        if self._is_broken:
            self._reload()
        try:
            with writing(self.path):
                yield
        except WriteFailed:
            self._is_broken = True
            raise

    # ---- opening

    def _structure(self) -> Structure:
        return Structure(self.mapping().buffer, str(self.path))

    def _start(self) -> None:
        mapping = Mapping(self.descriptor, self.path)
        structure = Structure(mapping.buffer, str(self.path))
        end, root = structure.superblock()
        check_root(structure.header(root), str(self.path))
        owner = read_owner(self.descriptor)
        self.space = Space(self._disk, self.descriptor, end)
        self.space.physical = mapping.size
        if owner is None or not owner.is_closed:
            self.recovery = recover(self._disk, self.descriptor, mapping, structure)
            self.previous = owner
            self.space.end = self.recovery.end
            self.space.trim()
        self.write(RECORD_ADDRESS, this_process().to_bytes())
        self.space.open_ahead()
        self._load_root()

    def _load_root(self) -> None:
        structure = self._structure()
        _, address = structure.superblock()
        header = structure.header(address)
        self._root = Group(dict(header.links), header.extras, address, is_dirty=False)

    def _reload(self) -> None:
        """Forget everything since the last commit and take up the file as it is."""
        remains = {name: max(t.n_rows, t.scrub_to) for name, t in self._tables.items()}
        with writing(self.path):
            self._map = None
            self.space.announce(self.space.announced)
            self._load_root()
            # A sync that failed may have dropped earlier stores for good: publish everything again.
            self.write(hdf5.ROOT_ADDRESS, hdf5.u64(self._root.address))
            self._touched.clear()
            for name, table in self._tables.items():
                self._place(table)
                table.scrub_to = remains[name]
                table.scrub()
                self.touch(table)
            self._must_sync = True
        self._is_broken = False


def _open_or_create(disk: Disk, path: Path) -> int:
    """A locked descriptor of the file that ``path`` names."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            try:
                return create_dictionary(disk, path)
            except FileExistsError:
                continue
        try:
            lock_for_writing(descriptor, path)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        # Replaced between opening and locking: the new file is the one to own.
        os.close(descriptor)
