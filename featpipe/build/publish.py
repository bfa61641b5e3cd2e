"""Publication: how whole files get into a folder cache, wherever it stands.

Guarantees:

- A file is under its name with all its bytes, durable, or not at all.
- A name that exists is never written again: of several processes that publish one name, one
  succeeds and the others are told, with nothing changed.
- A failure leaves at most a hidden file, which the next publication of that name removes.

Names are relative to the folder, with slashes: ``shards/0a.h5``.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from featpipe.build.object_folder import ObjectFolder
from featpipe.errors import UnreadableDictionary
from featpipe.store.disk import Disk, writing
from featpipe.store.folder_layout import WORK
from featpipe.store.object_store import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from featpipe.store.fetched import FindRanges

#: A hidden file that was not written to for so long is a dead publisher's.
_ABANDONED_S = 3600.0

_BLOCK_BYTES = 8 << 20


class Publisher(Protocol):
    """The files of one folder cache."""

    address: str
    """The folder, as the user names it."""

    def exists(self, name: str) -> bool:
        """Whether a file of this name was published."""

    def list(self, below: str) -> list[str]:
        """Names of the published files of one of the folder's folders, sorted."""

    def read(self, name: str) -> bytes:
        """All bytes of a small file.

        Raises:
            FileNotFoundError: there is none of this name.

        """

    def fetch(self, name: str) -> Path:
        """A local path at which the whole file can be opened for reading.

        Raises:
            FileNotFoundError: there is none of this name.

        """

    def fetch_some(self, name: str, part: str, find_ranges: FindRanges) -> Path:
        """As `fetch`, of a file of which some bytes are enough: others may be missing.

        Args:
            name: of the file.
            part: names what is needed of it.
            find_ranges: tells which bytes that is, as (first, one past the last); None: all. It is
                given a function that reads the file's last bytes.

        """

    def publish(self, file: Path, name: str) -> bool:
        """Put a local file under a name; whether it is there by this call, not by another.

        The local file may be gone afterwards.

        Raises:
            WriteFailed: disk full, read-only ...; nothing is there then.

        """

    def write(self, name: str, content: bytes) -> bool:
        """As `publish`, of a small file."""

    def work_folder(self) -> Path | None:
        """A folder on the same file system for files that grow in place; None: there is none."""


class LocalFolder:
    """A folder cache in a local or shared file system.

    Args:
        path: the folder; made with the first file.
        disk: the seam to the file system.

    """

    def __init__(self, path: str | Path, disk: Disk | None = None) -> None:
        self.path = Path(path).absolute()
        self.address = str(self.path)
        self._disk = disk or Disk()

    def exists(self, name: str) -> bool:
        """Whether a file of this name was published."""
        return (self.path / name).is_file()

    def list(self, below: str) -> list[str]:
        """Names of the published files in one of its folders, sorted; hidden ones are left out."""
        try:
            with os.scandir(self.path / below) as entries:
                found = [e.name for e in entries if not e.name.startswith(".") and e.is_file()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableDictionary(
                f"{self.path / below} cannot be listed: {error.strerror}"
            ) from error
        return sorted(f"{below}/{name}" for name in found)

    def read(self, name: str) -> bytes:
        """All bytes of a file. Raises FileNotFoundError."""
        return (self.path / name).read_bytes()

    def fetch(self, name: str) -> Path:
        """The file itself. Raises FileNotFoundError."""
        path = self.path / name
        if not path.is_file():
            raise FileNotFoundError(path)
        return path

    def fetch_some(self, name: str, part: str, find_ranges: FindRanges) -> Path:  # noqa: ARG002  # as of any folder
        """The file itself. Raises FileNotFoundError."""
        return self.fetch(name)

    def publish(self, file: Path, name: str) -> bool:
        """Put a file under a name: by a new name of the same file, or a copy of it."""
        target = self.path / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.parent == self.work_folder():
                return self._name(file, target)
            return self._put(target, _blocks_of(file))

    def write(self, name: str, content: bytes) -> bool:
        """Put a small file under a name."""
        target = self.path / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            return self._put(target, [content])

    def work_folder(self) -> Path:
        """A hidden folder in the cache, for files that are written in place."""
        return self.path / WORK

    def _put(self, target: Path, blocks: Iterable[bytes]) -> bool:
        if target.exists():
            return False
        self._remove_abandoned(target)
        aside = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns():x}.new")
        try:
            self._store(blocks, aside)
            return self._name(aside, target)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def _name(self, file: Path, target: Path) -> bool:
        """Give a whole and durable file its name, if that is free."""
        try:
            self._disk.link(file, target)
        except FileExistsError:
            return False
        self._disk.sync_directory(target.parent)
        return True

    def _store(self, blocks: Iterable[bytes], aside: Path) -> None:
        descriptor = self._disk.create(aside)
        try:
            end = 0
            for block in blocks:
                self._disk.write(descriptor, end, block)
                end += len(block)
            self._disk.sync(descriptor)
        finally:
            os.close(descriptor)

    def _remove_abandoned(self, target: Path) -> None:
        for file in target.parent.glob(f".{target.name}.*.new"):
            with suppress(OSError):  # another process may be as far
                if time.time() - file.stat().st_mtime > _ABANDONED_S:
                    file.unlink(missing_ok=True)


def _blocks_of(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK_BYTES):
            yield block


def open_folder(folder: str | Path | Publisher, local: str | Path | None = None) -> Publisher:
    """The files of a folder cache, by its address: a path, or the URL of an object store.

    Args:
        folder: or its files, which are returned.
        local: where files of an object store are fetched to; by default in the user's cache folder.

    Raises:
        MissingExtra: a package for this kind of object store is not installed.
        UsageError: a kind of object store that is not known.

    """
    if not isinstance(folder, str | Path):
        return folder
    if is_url(folder):
        return ObjectFolder(str(folder), local)
    return LocalFolder(str(folder).removeprefix("file://"))
