"""Opens a file for writing, and creates a missing one.

Guarantees: a new file gets its name when it is whole, durable and locked; it never has wider
access than asked for, also not under its temporary name. What killed writers left beside the file
is removed by the next writer.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from featpipe.store import hdf5_format as hdf5
from featpipe.store.allocator import PAGE
from featpipe.store.lock import RECORD_ADDRESS, lock_for_writing, this_process, unlock
from featpipe.store.tree import Group, covered_header

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from featpipe.atomic_write import Access
    from featpipe.store.disk import Disk

#: A younger temporary file may be one that another process is making.
_ABANDONED_S = 60.0


def open_or_create(disk: Disk, path: Path, access: Access | None = None) -> int:
    """A descriptor of the file, locked for writing. Raises DictionaryLocked, OSError."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            try:
                return create_dictionary(disk, path, access)
            except FileExistsError:
                continue
        try:
            lock_for_writing(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                remove_abandoned(path)
                return descriptor
        # Replaced between opening and locking: the new file is the one to own.
        unlock(descriptor, path)
        os.close(descriptor)


def create_dictionary(disk: Disk, path: Path, access: Access | None = None) -> int:
    """Create an empty dictionary at ``path``; returns its descriptor, locked.

    The file is written under another name, made durable and then linked to ``path``. Raises
    FileExistsError when the name was taken meanwhile, OSError when the file cannot be written.
    """
    aside = new_name(path)
    descriptor = disk.create(aside, 0o600 if access else 0o666)
    try:
        if access:
            access.give(descriptor)
        _write_empty(disk, descriptor)
        lock_for_writing(descriptor, path)
        try:
            disk.link(aside, path)
            disk.sync_directory(path.parent)
        except BaseException:
            unlock(descriptor, path)
            raise
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return descriptor


def _write_empty(disk: Disk, descriptor: int) -> None:
    extras = [
        hdf5.attribute("format", hdf5.FORMAT),
        hdf5.attribute("version", hdf5.FORMAT_VERSION),
        hdf5.attribute("created", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())),
    ]
    group = covered_header(Group(extras=extras), {}, 1)
    end = PAGE + len(group)
    disk.resize(descriptor, end)
    disk.write(descriptor, PAGE, group)
    head = hdf5.superblock(end, PAGE).ljust(RECORD_ADDRESS, b"\0")
    head += replace(this_process(), is_closed=True).to_bytes()
    disk.write(descriptor, 0, head.ljust(hdf5.ROOT_COPY_ADDRESS, b"\0") + hdf5.u64(PAGE))
    disk.sync(descriptor)


def new_name(path: Path) -> Path:
    """A free name beside ``path`` for a file that is to be linked to it; see `remove_abandoned`."""
    return path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns():x}.new")


def compaction_of(path: Path) -> Path:
    """The name under which the file at ``path`` is compacted."""
    return path.with_name(f".{path.name}.compact")


def remove_abandoned(path: Path) -> None:
    """Remove what killed writers left; the caller holds the lock on ``path``, if that exists."""
    with suppress(OSError):  # a folder that may not be changed is no reason to fail
        compaction_of(path).unlink(missing_ok=True)  # a live compaction would hold the lock
        for file in _temporary_files(path):
            # One that is this very file was to be removed once it had its name.
            is_whole = path.exists() and file.samefile(path)
            if is_whole or time.time() - file.stat().st_mtime > _ABANDONED_S:
                file.unlink(missing_ok=True)


def _temporary_files(path: Path) -> Iterable[Path]:
    prefixes = (f".{path.name}.", f".{compaction_of(path).name}.")
    files = path.parent.iterdir()
    return [file for file in files if file.name.startswith(prefixes) and file.suffix == ".new"]
