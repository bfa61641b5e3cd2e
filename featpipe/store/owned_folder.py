"""Folders of one process for what it makes, which another removes once it was killed.

A lock on a file in the folder tells which processes live: the kernel releases it however its holder
ends, and no other process inherits it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

#: Hidden: exports put tables of any name beside it.
_LOCK = ".lock"


class OwnedFolder:
    """A new folder for this process and user alone, empty but for its lock.

    A program that is ended by SIGKILL cannot remove its folder; the next one of the same user that
    makes one there does. Where the file system has no locks, nobody does.

    Args:
        directory: that it is made in.
        prefix: of its name, and of those of abandoned ones.

    Raises:
        OSError: the folder cannot be made.

    """

    def __init__(self, directory: Path, prefix: str) -> None:
        self.removed = remove_abandoned(directory, prefix)
        """Names of folders whose processes had been killed."""
        self.path = Path(mkdtemp(prefix=prefix, dir=directory))
        aside = self.path / f"{_LOCK}.new"
        self._lock = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            # Named only when it is held: a lock that is found by its name and free is abandoned.
            aside.rename(self.path / _LOCK)

    def close(self) -> None:
        """Remove the folder and its content."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(directory: Path, prefix: str) -> list[str]:
    """Remove this user's folders whose process has ended; their names."""
    removed = []
    for folder in directory.glob(f"{prefix}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # no lock in it: not one of ours, or one that is being made
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder.name)
        except OSError:  # its process lives, or there are no locks
            continue
        finally:
            os.close(lock)
    return removed
