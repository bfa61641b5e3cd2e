"""A private folder: for one service and its workers, and gone with it or with the next one.

A service that is ended by SIGKILL cannot remove its folder; the next one of the same user does. Who
lives is told by a lock on a file in the folder, which the kernel releases however its holder ends,
and which no other process inherits.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from logging import getLogger
from pathlib import Path

logger = getLogger("featpipe.service")

_PREFIX = "featpipe-serve-"
_LOCK = "lock"


class PrivateFolder:
    """Made in the temporary directory, readable for this user alone."""

    def __init__(self) -> None:
        remove_abandoned(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        aside = self.path / f"{_LOCK}.new"
        self._lock = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Named only when it is held: whoever finds it by its name and free knows that we are gone.
        aside.rename(self.path / _LOCK)

    def close(self) -> None:
        """Remove it, with all there is in it."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(directory: Path) -> None:
    """Remove this user's folders whose service is no more; others are left alone."""
    for folder in directory.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # no lock in it: not one of ours, or one that is being made
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            logger.info("removed the folder of a service that was killed: %s", folder.name)
        finally:
            os.close(lock)
