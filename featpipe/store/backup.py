"""Copies a dictionary consistently, also while it is written.

Where the file system shares blocks between files (Btrfs, XFS, bcachefs), the copy is a clone of one
instant: it takes no time and no space, and later backups share what did not change. A clone is in
the state that a killed writer leaves, so the writer's recovery closes it. Elsewhere the rows
visible at the start are read, checked and written anew; a damaged one is refused, since a copy
without it would look whole, with rows that need it.

``cp`` of a file that is being written copies its parts at different instants: rows may be torn.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.atomic_write import Access
from featpipe.errors import DictionaryError
from featpipe.store.disk import Disk, writing
from featpipe.store.reader import Reader
from featpipe.store.rewrite import copy_table, refuse_damage, refuse_foreign
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from featpipe.store.table_reader import TableReader

#: ``FICLONE`` of Linux: share all blocks of one file with another.
_FICLONE = 0x40049409
#: Answers of file systems that share no blocks, or not between these two places.
_NO_CLONES = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS}


@dataclass(frozen=True, slots=True)
class Backup:
    """Result of a backup."""

    path: Path
    n_rows: int
    is_clone: bool

    def __str__(self) -> str:
        how = "shares its blocks" if self.is_clone else "copied row by row"
        return f"{self.path}: {self.n_rows:,} rows ({how})"


def back_up_dictionary(source: str | Path, target: str | Path) -> Backup:
    """Make ``target`` a whole, closed dictionary with the rows of ``source`` of one instant.

    ``target`` is replaced in one step when it is a dictionary already, such as last night's
    backup; it gets the access rights of ``source``.

    Raises:
        DictionaryError: ``target`` is another file, or ``source`` itself; or rows of ``source``
            are damaged, and an earlier ``target`` stays as it was.
        UnreadableDictionary, NewerDictionary: ``source`` cannot be read.
        DictionaryLocked: ``target`` is being written.
        WriteFailed: an earlier ``target`` stays as it was.
    """
    source, target = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    disk = Disk()
    with Reader(source) as reader:
        _refuse_target(source, target)
        owner = Writer.open(target, access=Access.of(source)) if target.exists() else None
        aside = target.with_name(f".{target.name}.backup")
        try:
            with writing(target):  # a read-only file system refuses to remove what is not there
                aside.unlink(missing_ok=True)
            made = _clone(disk, source, aside) or _copy(disk, reader, aside)
            with writing(target):
                disk.replace(aside, target)
                disk.sync_directory(target.parent)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            if owner is not None:
                owner.close()
            raise
        if owner is not None:
            owner.abandon()
    return Backup(target, *made)


def _refuse_target(source: Path, target: Path) -> None:
    if not target.exists():
        return
    if target.samefile(source):
        raise DictionaryError(f"{target} is the file to back up", hint="name another file")
    try:
        Reader(target).close()
    except DictionaryError as error:
        raise DictionaryError(
            f"{target} exists and is not a backup: {error.message}", hint="name another file"
        ) from None


def _clone(disk: Disk, source: Path, aside: Path) -> tuple[int, bool] | None:
    """(rows, True); None where blocks cannot be shared."""
    with writing(aside):
        descriptor = disk.create(aside, 0o600)
        try:
            Access.of(source).give(descriptor)
            with source.open("rb") as file:
                fcntl.ioctl(descriptor, _FICLONE, file.fileno())
        except OSError as error:
            if error.errno not in _NO_CLONES:
                raise
            aside.unlink()
            return None
        finally:
            os.close(descriptor)
    Writer.open(aside, disk=disk).close()
    with Reader(aside) as reader:
        return sum(reader.table(name).n_rows for name in reader.tables()), True


def _copy(disk: Disk, reader: Reader, aside: Path) -> tuple[int, bool]:
    refuse_foreign(reader)
    with writing(aside):
        access = Access.of(reader.path)
    tables = _tables_of_one_instant(reader)
    with Writer.open(aside, disk=disk, access=access) as target:
        counts = [copy_table(table, target) for table in tables]
        refuse_damage(reader.path, sum(damaged for _, damaged, _ in counts))
    return sum(kept for kept, _, _ in counts), False


def _tables_of_one_instant(reader: Reader) -> list[TableReader]:
    """All tables, with lengths that held at the same time.

    A commit publishes one table after the other. Two passes that read the same lengths prove that
    all of them held between the passes.
    """
    while True:
        tables = [reader.table(name) for name in reader.tables()]
        if not reader.refresh() and len(reader.tables()) == len(tables):
            return tables
