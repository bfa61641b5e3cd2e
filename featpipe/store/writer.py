"""Writes a dictionary: one owner, append-only, atomic at every instant.

Guarantees:

- When :meth:`Writer.commit` returns, every row appended before it survives SIGKILL of any process
  at any time, and power loss; plain HDF5 readers see it from then on.
- The file can be opened at any instant, by featpipe or by any HDF5 reader, also while tables are
  made, and shows whole rows only: of each table the first n in the order of appending.
- A :class:`WriteFailed` leaves the file good and the writer usable: rows appended since the last
  commit do not count, and may be appended again once there is space.

The guarantees rest on the order of a commit: rows, checksums and new structure are written where no
reader looks yet; one sync makes them durable; then single aligned 8-byte stores publish them: the
root address when structure changed (and a second sync, since without a durable root the rows in
new chunks would be lost with the power), else the lengths of the columns.

The cost of a commit is one sync of new blocks, which includes the file system's own journal.
``scripts/bench_store.py`` compares it with a bare file that gets the same vectors by one pwrite and
one fdatasync; the difference is keys, checksums and index: a few pages more and their computation.
Syncing in a thread while the next batch is written gained nothing where that was measured (4.7 ms a
batch of a bare file instead of 4.0): a sync stores what is written meanwhile, too.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from featpipe.errors import DictionaryError, WriteFailed
from featpipe.store import hdf5_format as hdf5
from featpipe.store.allocator import Allocator
from featpipe.store.damage import damaged_rows
from featpipe.store.disk import Disk, writing
from featpipe.store.hdf5_parse import Structure
from featpipe.store.loaded_groups import cover, load_group
from featpipe.store.lock import (
    RECORD_ADDRESS,
    Owner,
    read_owner,
    refuse_special,
    this_process,
    unlock,
)
from featpipe.store.opening import open_or_create
from featpipe.store.recovery import Recovery, recover
from featpipe.store.structure import find_root, generation_of, is_covered, spec_of
from featpipe.store.table_view import load_table
from featpipe.store.table_writer import TableWriter
from featpipe.store.tree import Group, is_dirty, store
from featpipe.store.views import FileMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.atomic_write import Access
    from featpipe.store.schema import TableSpec
    from featpipe.store.table_view import TableView

_LARGE = 128 << 10  #: bytes of a write whose storing is started at once


class Writer:
    """The one writer of a dictionary. Not thread-safe; not for use in a forked child.

    ``previous`` is the record of a last owner that did not close the file (killed, or power loss),
    and ``recovery`` the result of the recovery then; both None after a clean close.
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
        self._was_closed = True
        self._generation = 0
        self._map: FileMap | None = None
        self._root = Group()
        self.allocator = Allocator(disk, descriptor, 0)

    @classmethod
    def open(
        cls, path: str | Path, *, disk: Disk | None = None, access: Access | None = None
    ) -> Writer:
        """Own the dictionary at ``path``; a missing one is created, a dead writer's is recovered.

        ``access`` is given to a file that is created; by default the process's umask decides.

        Raises DictionaryLocked when another writer owns it, UnreadableDictionary or NewerDictionary
        when featpipe, or this version of it, cannot write it, WriteFailed when the disk refuses.
        """
        # A symbolic link is resolved: creating links a new file to the name, which a dangling link
        # would refuse for ever.
        path = Path(os.path.realpath(path))
        refuse_special(path)
        disk = disk or Disk()
        with writing(path):
            writer = cls(path, open_or_create(disk, path, access), disk)
            try:
                writer._start()
            except BaseException:
                writer.abandon()
                raise
        return writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.descriptor < 0:
            return
        if kind is None:
            self.close()
        else:
            self.abandon()

    # ---- tables

    def table(self, name: str, spec: TableSpec) -> TableWriter:
        """The table at ``name`` (any depth of groups), created when absent.

        After a WriteFailed it is as of the last commit. Raises DictionaryError when it exists with
        another schema or other attributes.
        """
        name = name.strip("/")
        known = self._tables.get(name)
        if known is not None:
            if known.spec != spec:
                raise self._other_schema(name)
            with self.changing():  # whoever asks for it may count on its rows
                return known
        if any(part in {"", ".", ".."} or "\0" in part for part in name.split("/")):
            raise DictionaryError(f"{name!r} cannot be the name of a table")
        with self.changing():
            table = TableWriter(self, name, spec)
            self._place(table)
            self._tables[name] = table
        return table

    def _place(self, table: TableWriter) -> None:
        """Attach the table's group in the file, or create it, with the groups above it."""
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
        header = structure.header(address)
        view = load_table(structure, self.mapping(), table.name, header, is_written=True)
        if view.spec != table.spec:
            raise self._other_schema(table.name)
        self._refuse_damaged(view, structure)
        group.links[last] = table.attach(view)

    def _child_group(self, group: Group, part: str, name: str) -> Group:
        child = group.links.get(part)
        if child is None:
            child = group.links[part] = Group()
            group.is_dirty = True
        elif isinstance(child, int):
            structure = self._structure()
            header = structure.header(child)
            if not header.is_group or header.refusals or spec_of(header) is not None:
                raise DictionaryError(f"{name}: {part} in {self.path} is not a group of tables")
            child = load_group(structure, header, part)
            group.links[part] = child
        if not isinstance(child, Group) or any(t.group is child for t in self._tables.values()):
            raise DictionaryError(f"{name}: {part} in {self.path} is not a group of tables")
        return child

    def _refuse_damaged(self, view: TableView, structure: Structure) -> None:
        """Rows would be appended at a wrong place, or after a wrong offset."""
        lengths, n_rows = view.lengths(), view.n_rows
        is_uneven = self._was_closed and len(set(lengths.values())) > 1
        if is_uneven or lengths[view.leader] > n_rows:
            raise structure.damage(f"columns of /{view.name} have different lengths")
        if n_rows and len(view.bad_rows(n_rows - 1, n_rows)):
            raise damaged_rows(str(self.path), view.name, [n_rows - 1])

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
                for table in tables.values():
                    table.announce()
                self._disk.sync(self.descriptor)
                self._check_name()
                for table in tables.values():
                    table.publish()
            self._touched.clear()
            self._must_sync = False

    def _publish_structure(self) -> None:
        for table in self._touched.values():
            table.mark_structure()
        self._generation += 1
        root = store(self._root, self.allocator, self._generation)
        self._disk.sync(self.descriptor)
        self._check_name()
        self._publish_root(root)
        for table in self._tables.values():
            table.publish()
        # Acknowledged rows may lie in chunks that only the new root leads to.
        self._disk.sync(self.descriptor)

    def _publish_root(self, root: int) -> None:
        """Lead readers to a durable tree: the copy first, see :func:`structure.find_root`."""
        for address in (hdf5.ROOT_COPY_ADDRESS, hdf5.ROOT_ADDRESS):
            self.write(address, hdf5.u64(root))

    def _check_name(self) -> None:
        """Raises WriteFailed when the path no longer names the file: its rows would be lost."""
        try:
            named = self.path.stat()
        except FileNotFoundError:
            raise WriteFailed(f"{self.path} was removed while it was being written") from None
        mine = os.fstat(self.descriptor)
        if (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            raise WriteFailed(f"{self.path} was replaced while it was being written")

    def close(self) -> None:
        """Commit, complete the indexes, trim the file and release it.

        Raises WriteFailed; the file is released all the same.
        """
        if self.descriptor < 0:
            return
        try:
            self._commit(is_last=True)
            with writing(self.path):
                self.allocator.trim()
                # Last: a file recorded as closed is not recovered at the next opening.
                record = replace(this_process(), is_closed=True)
                self.write(RECORD_ADDRESS, record.to_bytes())
                self._disk.sync(self.descriptor)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the file as a killed process would: uncommitted rows are left to recovery."""
        descriptor, self.descriptor = self.descriptor, -1
        self._map = None
        if descriptor < 0:
            return
        if self._pid == os.getpid():  # a forked child shares its parent's locks
            unlock(descriptor, self.path)
        os.close(descriptor)

    def __del__(self) -> None:
        self.abandon()

    # ---- for tables: see WritableFile

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write into space that no reader uses, or publish by one aligned store."""
        self._disk.write(self.descriptor, offset, data)
        if len(data) >= _LARGE:
            # The disk stores these while checksums and index are computed.
            self._disk.start(self.descriptor, offset, len(data))

    def touch(self, table: TableWriter) -> None:
        """Have the next commit publish the table, in order of first use."""
        self._touched.setdefault(table.name, table)

    def mapping(self) -> FileMap:
        """The file in memory, up to its present size."""
        if self._map is None or self._map.size != self.allocator.physical:
            self._map = FileMap(self.descriptor, self.path)
        return self._map

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Wraps every change: a refusal by the disk takes the writer back to the last commit."""
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
        mapping = FileMap(self.descriptor, self.path)
        structure = Structure(mapping.buffer, str(self.path))
        root = find_root(structure, str(self.path))
        owner = read_owner(self.descriptor)
        self._was_closed = owner is not None and owner.is_closed
        # What lies beyond the announced end of a closed file is not known, and is kept.
        self.allocator = Allocator(self._disk, self.descriptor, mapping.size)
        if not self._was_closed:
            self.recovery = recover(self._disk, self.descriptor, mapping, structure, root)
            self.previous = owner
            if not self.recovery.damaged:
                self.allocator.end = self.recovery.end
                self.allocator.trim()
        self.write(RECORD_ADDRESS, this_process().to_bytes())
        self.allocator.open_ahead()
        self._publish_root(root)
        self._load_root()

    def _load_root(self) -> None:
        structure = self._structure()
        header = structure.header(find_root(structure, str(self.path)))
        self._generation = generation_of(header)
        self._root = load_group(structure, header, "")
        if not is_covered(header):
            self._root = cover(structure, self.mapping(), header, self.allocator)

    def _reload(self) -> None:
        """Forget everything since the last commit and load the file as it is."""
        remains = {name: max(t.n_rows, t.scrub_to) for name, t in self._tables.items()}
        with writing(self.path):
            self._map, self._was_closed = None, False
            self.allocator.announce(self.allocator.announced)
            self._load_root()
            # A sync that failed may have dropped earlier stores for good: publish everything again.
            self._publish_root(self._root.address)
            self._touched.clear()
            for name, table in self._tables.items():
                self._place(table)
                table.scrub_to = remains[name]
                table.scrub()
                self.touch(table)
            self._must_sync = True
        self._is_broken = False
