"""The seam to the file system: every write-like call of the store goes through a :class:`Disk`.

Tests replace the disk by one that counts calls, kills the process at the n-th, tears a write,
records a trace for replay, or fails with ENOSPC. :func:`writing` maps the operating system's errors
to :class:`WriteFailed`.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from featpipe.errors import WriteFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_HINTS = {
    errno.ENOSPC: "make space and go on: nothing that was acknowledged is lost",
    errno.EDQUOT: "the quota is used up; make space and go on: nothing acknowledged is lost",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the file or its directory may not be written by this user",
    errno.EPERM: "the file or its directory may not be written by this user",
    errno.EFBIG: "a limit on file sizes (ulimit -f, or the file system's own) is reached",
    errno.EIO: "the device reports an error; look at the kernel's log before going on",
}

_SYNC_FILE_RANGE_WRITE = 2


def _find_sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """The Linux system call, which the os module lacks; None elsewhere."""
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function


_sync_file_range = _find_sync_file_range()


class Disk:
    """Calls the operating system. Stateless: files are passed as descriptors."""

    def create(self, path: Path, mode: int = 0o666) -> int:
        """Create an empty file; FileExistsError when the name is taken."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        """Write all of ``data`` at ``offset``."""
        rest = memoryview(data).cast("B")
        while rest:
            n_written = os.pwrite(descriptor, rest, offset)
            rest, offset = rest[n_written:], offset + n_written

    def start(self, descriptor: int, offset: int, size: int) -> None:
        """Ask the kernel to begin storing these bytes: a hint that makes nothing durable."""
        if _sync_file_range is not None:
            _sync_file_range(descriptor, offset, size, _SYNC_FILE_RANGE_WRITE)

    def resize(self, descriptor: int, size: int) -> None:
        """Make the file ``size`` bytes long; new ones read as zeros."""
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Return once data and size are durable."""
        getattr(os, "fdatasync", os.fsync)(descriptor)  # not every system has the first

    def link(self, source: Path, target: Path) -> None:
        """Give ``source`` its final name; FileExistsError when it is taken."""
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if target.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            source.rename(target)
            return
        source.unlink(missing_ok=True)  # who met both names may have removed this one

    def replace(self, source: Path, target: Path) -> None:
        """Rename ``source`` over ``target``, atomically."""
        source.replace(target)

    def sync_directory(self, path: Path) -> None:
        """Return once the names in ``path`` are durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise OSError as WriteFailed, with the file and the next step."""
    try:
        yield
    except OSError as error:
        code = error.errno or 0
        raise WriteFailed(
            f"{path} cannot be written: {os.strerror(code) if code else error}",
            hint=_HINTS.get(code),
        ) from error
