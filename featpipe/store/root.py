"""The root of a dictionary: what the file says it is, and a new, empty one."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from featpipe.errors import NewerDictionary, UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.allocator import PAGE
from featpipe.store.lock import RECORD_ADDRESS, lock_for_writing, this_process

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.store.disk import Disk
    from featpipe.store.hdf5_parse import Header

FORMAT = "featpipe"
FORMAT_VERSION = 1


def check_root(root: Header, name: str) -> None:
    """Raises UnreadableDictionary unless ours, NewerDictionary when from a later layout."""
    version = root.attributes.get("version")
    if root.attributes.get("format") != FORMAT or not isinstance(version, int):
        raise UnreadableDictionary(
            f"{name} is an HDF5 file that featpipe did not write",
            hint="files of one dataset per text are taken over by: featpipe import",
        )
    if version > FORMAT_VERSION:
        raise NewerDictionary(
            f"{name} has layout version {version}; this featpipe knows up to {FORMAT_VERSION}",
            hint="update featpipe",
        )
    if root.refusals:
        raise UnreadableDictionary(
            f"{name} was changed by another program: its root group has {root.refusals[0]}"
        )


def create_dictionary(disk: Disk, path: Path) -> int:
    """A new, empty dictionary at ``path``, locked; returns its descriptor.

    It is made aside and durable before it gets its name, so nobody ever opens half of one. Raises
    FileExistsError when the name was taken meanwhile, OSError when it cannot be written.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns():x}.new")
    descriptor = disk.create(aside)
    try:
        extras = [
            hdf5.attribute("format", FORMAT),
            hdf5.attribute("version", FORMAT_VERSION),
            hdf5.attribute("created", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())),
        ]
        group = hdf5.group_header([], extras)
        end = PAGE + len(group)
        disk.resize(descriptor, end)
        disk.write(descriptor, PAGE, group)
        head = hdf5.superblock(end, PAGE).ljust(RECORD_ADDRESS, b"\0")
        disk.write(descriptor, 0, head + replace(this_process(), is_closed=True).to_bytes())
        disk.sync(descriptor)
        lock_for_writing(descriptor, path)
        disk.link(aside, path)
        disk.sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return descriptor
