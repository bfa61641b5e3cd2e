"""Local copies of the files of an object store, fetched when they are first used, most as a whole.

::

    FOLDER/9f2c41d08a77e3b5/shards/0a.h5       the copy, by the same name; 9f2c... names the URL
    FOLDER/9f2c41d08a77e3b5/shards/.0a.h5.of   size and version of the file that it is a copy of
    FOLDER/9f2c41d08a77e3b5/.some/3/outbox/..  a sparse one, with some bytes of the file

Guarantees:

- A copy appears whole or not at all: it is fetched under a hidden name, held against the size in
  the store, and renamed. A killed process leaves a hidden file, which the next fetch removes.
- A copy is used as long as the store lists the same size and version under its name.
- Of several processes on a machine that want one file at once, one fetches it.
- Nothing is removed: the folder grows to the size of what was read. Removing it, or parts of it,
  is safe at any time; what is used again is fetched again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe import user_cache
from featpipe.atomic_write import is_being_written, write_atomically
from featpipe.errors import StoreUnreachable, WriteFailed
from featpipe.store.object_store import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from featpipe.store.object_store import ObjectStore

    #: The bytes that are needed of a file, None for all, by a function that reads its last ones.
    FindRanges = Callable[[Callable[[int], bytes]], list[tuple[int, int]] | None]

#: Folder of the copies that lack bytes.
_SOME = ".some"
#: Where so much of a file was fetched in parts, all of it is: one request instead of many more.
_MUCH = 0.25


class FetchedFiles:
    """The files of one store as local paths.

    Args:
        store: where they are.
        folder: where copies go; by default ``folders`` in the user's cache folder. It is made with
            the first copy, for its owner alone.

    Raises:
        StoreUnreachable: the store does not answer, or refuses.
    """

    def __init__(self, store: ObjectStore, folder: str | Path | None = None) -> None:
        self.store = store
        named = blake2b(store.url.encode(), digest_size=8).hexdigest()
        self.folder = Path(folder or user_cache.folder("folders")) / named
        self.listing = store.list()
        """What the store held when this was opened or refreshed last, by name."""

    def refresh(self) -> None:
        """List the store again: what was published since can be used. Raises StoreUnreachable."""
        self.listing = self.store.list()

    def path(self, name: str) -> Path:
        """The local copy of a file, fetched if need be.

        Raises:
            FileNotFoundError: the store had no such file when it was listed.
            StoreUnreachable: it does not answer, or another file than it listed came.
            WriteFailed: the copy cannot be written: disk full, permissions ...
        """
        path = self.folder / name
        listed = self._listed(name)
        if not _is_copy(path, listed):
            self._copy(name, path, listed, lambda aside: self.store.fetch(name, aside))
        return path

    def path_of_some(self, name: str, part: str, find_ranges: FindRanges) -> Path:
        """A local copy of some bytes of a file, with zeros in the place of all others.

        Args:
            name: of the file.
            part: names what is needed of it.
            find_ranges: tells which bytes that is; asked only where there is no copy yet.

        Returns:
            The whole copy, where there is one, or all is needed.

        Raises:
            As :meth:`path`.
        """
        whole, path = self.folder / name, self.folder / _SOME / part / name
        listed = self._listed(name)
        if _is_copy(whole, listed):
            return whole
        if not _is_copy(path, listed):
            ranges = find_ranges(lambda n: self._read_end(name, listed, n))
            if ranges is None or self._is_much(name, ranges, listed):
                return self.path(name)
            self._copy(
                name,
                path,
                listed,
                lambda aside: self.store.fetch_ranges(name, ranges, listed.n_bytes, aside),
            )
        return path

    def _is_much(self, name: str, ranges: list[tuple[int, int]], listed: Stored) -> bool:
        """Whether this part of a file and those before it, taken as large as it, are much of it."""
        n_before = sum(1 for _ in (self.folder / _SOME).glob(f"*/{name}"))
        n_bytes = sum(stop - start for start, stop in ranges)
        return n_before > 0 and (n_before + 1) * n_bytes > _MUCH * listed.n_bytes

    def _read_end(self, name: str, listed: Stored, n: int) -> bytes:
        return self.store.read_range(name, max(0, listed.n_bytes - n), listed.n_bytes)

    def _listed(self, name: str) -> Stored:
        listed = self.listing.get(name)
        if listed is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", f"{self.store.url}/{name}")
        return listed

    def _copy(self, name: str, path: Path, listed: Stored, fetch: Callable[[Path], None]) -> None:
        try:
            self._fetch(name, path, listed, fetch)
        except FileNotFoundError as error:
            raise StoreUnreachable(
                f"{self.store.url} listed {name}, and holds it no more", hint="open it again"
            ) from error
        except OSError as error:
            raise WriteFailed(
                f"{path} cannot be written: {error.strerror}",
                hint="make room there, or name another folder for local copies",
            ) from error

    def _fetch(self, name: str, path: Path, listed: Stored, fetch: Callable[[Path], None]) -> None:
        user_cache.make_folder(self.folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(path):
            if _is_copy(path, listed):
                return  # another process fetched it meanwhile
            _remove_torn(path)
            aside = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
            try:
                fetch(aside)
                if aside.stat().st_size != listed.n_bytes:
                    raise StoreUnreachable(
                        f"{self.store.url}/{name} came with {aside.stat().st_size} bytes, "
                        f"not the {listed.n_bytes} listed",
                        hint="open it again",
                    )
                # A record of the earlier copy would be wrong from the next line on.
                _record_of(path).unlink(missing_ok=True)
                aside.replace(path)
            finally:
                aside.unlink(missing_ok=True)
            write_atomically(_record_of(path), json.dumps(asdict(listed)).encode())


def _record_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.of")


def _is_copy(path: Path, listed: Stored) -> bool:
    with suppress(OSError, ValueError, TypeError):
        is_recorded = Stored(**json.loads(_record_of(path).read_bytes())) == listed
        return is_recorded and path.stat().st_size == listed.n_bytes
    return False


def _remove_torn(path: Path) -> None:
    """What killed processes left of this file; the caller holds its lock."""
    for file in path.parent.glob(f".{path.name}-*"):
        if is_being_written(file):
            file.unlink(missing_ok=True)


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold the lock of a copy; without one where the file system has none."""
    with path.with_name(f".{path.name}.lock").open("ab") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
