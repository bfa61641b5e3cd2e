"""The writer's lock on a dictionary, and the record of its owner.

Guarantees: a second featpipe writer is refused wherever it runs, also in the same process; plain
HDF5 writers (mode ``r+``) are refused by libhdf5's own lock, plain readers are not; the locks end
with their owner, so none is ever stale. A dead owner leaves its record, which names it and shows
that it did not close the file.

Means: ``flock`` shared on the whole file (libhdf5 readers take the same, its writers an exclusive
one) and an exclusive lock on one byte far beyond the end, owned by the open file description and
not by the process: a POSIX lock is lost when any other handle of the file is closed. The record
lies between superblock and first object, where no HDF5 library allocates.

Where the file system has no locks, :mod:`featpipe.store.lease` takes their place on request.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from featpipe.errors import DictionaryLocked, UnreadableDictionary, WriteFailed
from featpipe.settings import LOCK_VARIABLE
from featpipe.store.lease import (
    EXCLUSIVE_FILE,
    chosen_lock,
    refuse_leased,
    release_lease,
    take_lease,
)

RECORD_ADDRESS = 128
RECORD_BYTES = 512
_LOCK_BYTE = 1 << 62


@dataclass(frozen=True, slots=True)
class Owner:
    """A writing process. ``started`` and ``opened`` are seconds since the epoch."""

    pid: int
    host: str
    started: float
    opened: float
    is_closed: bool = False

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.opened))
        return f"process {self.pid} on {self.host}, which opened it at {when}"

    def to_bytes(self) -> bytes:
        """The record in the file: JSON, padded with zeros."""
        return json.dumps(asdict(self)).encode()[:RECORD_BYTES].ljust(RECORD_BYTES, b"\0")

    @classmethod
    def from_bytes(cls, data: bytes) -> Owner | None:
        """The owner in a record; None when it is empty or torn."""
        with suppress(ValueError, TypeError, KeyError, UnicodeError):
            parts = json.loads(data.rstrip(b"\0"))
            return cls(
                int(parts["pid"]),
                str(parts["host"]),
                float(parts["started"]),
                float(parts["opened"]),
                bool(parts["is_closed"]),
            )
        return None


def this_process() -> Owner:
    """The calling process as an owner."""
    return Owner(os.getpid(), os.uname().nodename[:200], _process_start(), time.time())


def _process_start() -> float:
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return round(time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK"), 2)


def read_owner(descriptor: int) -> Owner | None:
    """The last process that opened the file for writing; None when its record is torn."""
    return Owner.from_bytes(os.pread(descriptor, RECORD_BYTES, RECORD_ADDRESS))


def refuse_special(path: Path) -> None:
    """Raises UnreadableDictionary for a folder, pipe or device, since opening it may block."""
    with suppress(OSError):  # out of reach: opening it says why
        if (path / "cache.json").is_file():
            raise UnreadableDictionary(
                f"{path} is a cache in a folder, and this needs a cache in one file",
                hint=f"featpipe merge {path} -o FILE writes one",
            )
        if path.exists() and not path.is_file():
            raise UnreadableDictionary(
                f"{path} is {'a folder' if path.is_dir() else 'no regular file'}",
                hint="name a file; it is made when it does not exist",
            )


def lock_for_writing(descriptor: int, path: Path) -> None:
    """Own the file at ``path`` until :func:`unlock`, without waiting.

    Raises DictionaryLocked; WriteFailed where the file system has no locks and no lease is chosen.
    """
    has_lease = chosen_lock() == EXCLUSIVE_FILE
    if has_lease:
        take_lease(path)
    try:
        _lock_in_kernel(descriptor, path, is_required=not has_lease)
        if not has_lease:
            refuse_leased(path)
    except BaseException:
        if has_lease:
            release_lease(path)
        raise


def unlock(descriptor: int, path: Path) -> None:
    """Release the locks.

    Closing the descriptor is not enough: a memory map keeps the open file, and its locks, for as
    long as an array made from the map exists.
    """
    with suppress(OSError):
        _lock_byte(descriptor, fcntl.F_UNLCK)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    if chosen_lock() == EXCLUSIVE_FILE:
        with suppress(OSError):
            release_lease(path)


#: Answers of file systems (Lustre without -o flock, some NFS and FUSE) that have no locks.
_NO_LOCKS = {errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS}


def _lock_in_kernel(descriptor: int, path: Path, *, is_required: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DictionaryLocked(
            f"{path} is open for writing in another HDF5 program", hint="close it there first"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        # The byte's lock excludes every writer but those of other HDF5 programs, which go
        # without flock there, too.
    try:
        _lock_byte(descriptor)
    except (BlockingIOError, PermissionError):
        owner = read_owner(descriptor)
        raise DictionaryLocked(
            f"{path} is being written by {owner or 'another process'}",
            hint="wait until it is done; readers may open the file at any time",
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        if is_required:
            raise WriteFailed(
                f"{path} is on a file system without locks ({os.strerror(error.errno)}), so that "
                "two writers could not be kept apart",
                hint=f"--lock {EXCLUSIVE_FILE} (or {LOCK_VARIABLE}={EXCLUSIVE_FILE}) makes a lock "
                "file beside it instead; every program that writes the file must use it",
            ) from None


def is_locked(descriptor: int) -> bool:
    """Whether another open file holds the writer's kernel lock; False where that is not known."""
    command = getattr(fcntl, "F_OFD_GETLK", None)
    if command is None:
        return False
    try:
        wanted = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, _LOCK_BYTE, 1, 0)
        (kind,) = struct.unpack_from("h", fcntl.fcntl(descriptor, command, wanted))
    except OSError:
        return False
    return bool(kind != fcntl.F_UNLCK)


def _lock_byte(descriptor: int, kind: int = fcntl.F_WRLCK) -> None:
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is not None:
        fcntl.fcntl(descriptor, command, struct.pack("hhqqi4x", kind, 0, _LOCK_BYTE, 1, 0))
    elif kind == fcntl.F_UNLCK:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, _LOCK_BYTE)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCK_BYTE)
