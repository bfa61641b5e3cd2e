"""Kept folder: the files of fitted fields, held to a size and an age.

::

    fitted/3f/3f2a...-<code version>.field      one fitted field; its time is that of its last use
    fitted/3f/3f2a...-<code version>.<pid>-<thread>    being written, renamed when whole

Guarantees: only files of these names are ever removed; one that was used within the last hour
stays, so that a run never loses what it is working with; a process that finds its file gone fits
the field again, so any number of processes may use and sweep the folder at the same time.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".field"

_name = re.compile(r"[0-9a-f]{2,64}-[0-9a-f]{12}\.(?P<end>field|\d+-\d+)")
_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S
#: What was not used for so long is of templates or of code that are gone.
_OLDEST_S = 90 * _DAY_S
#: A fitted field takes some hundred kB: this is room for thousands.
_MOST_BYTES = 2 << 30


class KeptFolder:
    """Bytes by name. Any thread and any process may use it at the same time.

    Args:
        path: made when first written to.

    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def file(self, name: str) -> Path:
        """Where a name lies."""
        return self._path / name[:2] / f"{name}{SUFFIX}"

    def read(self, name: str) -> bytes:
        """The bytes under a name; its file counts as used now.

        Raises:
            OSError: there are none, or they cannot be read.

        """
        file = self.file(name)
        data = file.read_bytes()
        # Once a day is enough, and where it is not allowed, the file lies there by itself.
        with suppress(OSError):
            if time() - file.stat().st_mtime > _DAY_S:
                os.utime(file)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Put bytes under a name; they appear whole.

        Raises:
            OSError: the folder cannot be written.

        """
        file = self.file(name)
        aside = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        file.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(data)
        aside.replace(file)

    def sweep(self, most_bytes: int = _MOST_BYTES, oldest_s: float = _OLDEST_S) -> int:
        """Remove what was not used for long, and beyond a size what was used longest ago.

        Returns the number of files removed. What cannot be removed stays, without an error.
        """
        now = time()
        files = sorted(_listed(self._path), reverse=True)
        n_bytes = n_removed = 0
        for used, size, file in files:
            age_s = now - used
            is_too_much = n_bytes + size > most_bytes
            is_left_behind = file.suffix != SUFFIX
            if age_s > _HOUR_S and (is_left_behind or age_s > oldest_s or is_too_much):
                with suppress(OSError):
                    file.unlink()
                    n_removed += 1
            else:
                n_bytes += size
        return n_removed


def _listed(path: Path) -> list[tuple[float, int, Path]]:
    """(time of last use, bytes, file) of the files that are ours."""
    found = []
    for file in path.glob("[0-9a-f][0-9a-f]/*"):
        if _name.fullmatch(file.name):
            with suppress(OSError):  # another process may have swept it just now
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
    return found
