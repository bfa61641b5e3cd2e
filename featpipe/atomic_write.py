"""Replaces a file as a whole, and keeps who may read it.

Guarantees:

- A file appears whole or not at all, however many processes write it; the last writer's stays.
- A failed write leaves no file behind; a killed one leaves a hidden file of a name that
  :func:`is_being_written` knows.
- A file that replaces another has its mode, owner, group and access control list; at no instant,
  and under no name, may anyone read it who could not read the earlier one.
- A symbolic link stays, and the file that it names is replaced.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Self

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Names of files being written. The second form is that of earlier releases.
_ASIDE = re.compile(r"\..+-\d+-[0-9a-f]+|.+\.\d+-\d+")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read and write a file: permission bits, owner and extended attributes (the ACL)."""

    mode: int
    uid: int
    gid: int
    attributes: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, path: Path) -> Self:
        """The access of an existing file. Raises OSError."""
        status = path.stat()
        return cls(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, _attributes(path))

    @classmethod
    def common(cls, paths: Iterable[Path]) -> Self:
        """What all of these files allow, for the caller's own user; no ACL."""
        mode = 0o666 & ~_umask()
        for path in paths:
            with suppress(OSError):  # a missing file allows nothing, and gives nothing away
                mode &= path.stat().st_mode
        return cls(mode | 0o600, os.geteuid(), os.getegid())

    def give(self, descriptor: int) -> None:
        """Apply it to an open file that its owner alone may read so far.

        Raises:
            PermissionError: the owner or group differs, and this user may not set it.
        """
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (self.uid, self.gid):
            os.fchown(descriptor, self.uid, self.gid)
        os.fchmod(descriptor, self.mode)
        for name, value in self.attributes:
            try:
                os.setxattr(descriptor, name, value)
            except OSError as error:
                # Labels of security modules are the system's to set.
                if not name.startswith(("security.", "trusted.")):
                    raise
                if error.errno not in {errno.EPERM, errno.EACCES, errno.ENOTSUP}:
                    raise


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):  # not on this system
        return ()
    try:
        return tuple((name, os.getxattr(path, name)) for name in os.listxattr(path))
    except OSError as error:
        if error.errno == errno.ENOTSUP:  # not on this file system
            return ()
        raise


def _umask() -> int:
    """The umask, from /proc: os.umask cannot read it without setting it."""
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return int(status.split("\nUmask:")[1].split()[0], 8)
    return 0o077


def write_atomically(
    path: Path, content: bytes | Callable[[BinaryIO], object], *, is_durable: bool = False
) -> None:
    """Write a hidden file in the same folder and rename it to ``path``.

    Args:
        path: an earlier file is replaced; a process that has it open or mapped keeps its bytes.
        content: the bytes, or a function that writes them to the open file.
        is_durable: sync the bytes before the rename, so that no power loss leaves a torn file.

    Raises:
        OSError: the file cannot be written. Nothing is left behind, also when ``content`` raises.
    """
    path = Path(os.path.realpath(path))
    access = Access.of(path) if path.exists() else None
    aside = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with open(aside, "xb", opener=_opener(0o600 if access else 0o666)) as file:
            if access:
                access.give(file.fileno())
            if callable(content):
                content(file)
            else:
                file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Check, before the work whose outcome it is to hold, that a file can be written.

    Raises:
        UsageError: it is a folder, its folder does not exist, or this user may not write there.
    """
    place = path.resolve()
    if place.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file in it")
    if not place.parent.is_dir():
        raise UsageError(
            f"{path} cannot be written: there is no folder {place.parent}",
            hint=f"mkdir -p {place.parent}",
        )
    is_device = place.exists() and not place.is_file()
    if not (os.access(place, os.W_OK) or not place.exists()):
        raise UsageError(f"{path} cannot be written: permission denied")
    if not is_device:
        _check_folder(path, place.parent)


def _check_folder(path: Path, folder: Path) -> None:
    """A file without a name tells more than permissions do: of a read-only file system, too."""
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {folder}: {error.strerror}",
            hint="name a file in a folder that this user may write",
        ) from error


def _opener(mode: int) -> Callable[[str, int], int]:
    return lambda path, flags: os.open(path, flags, mode)


def is_being_written(file: Path) -> bool:
    """Whether the name is that of a file not renamed yet: of a running writer, or a killed one."""
    return _ASIDE.fullmatch(file.name) is not None
