"""The files of a folder cache that stands in an object store: any URL that fsspec knows.

Guarantees:

- A name is there with all its bytes or not at all: a file is put by one request (of several parts
  above 100 MB, which the store joins at the end), so a killed process leaves no partial name.
- A name that exists is not replaced: the request says ``If-None-Match: *`` where the store has
  conditional writes (S3, Google Cloud Storage, Azure). Elsewhere a look comes before the request,
  which two processes may pass at once; :meth:`ObjectStore.is_conditional` tells the two apart.
- Errors of the store's own library become :class:`~featpipe.errors.StoreUnreachable`, which names
  the URL; that library's error is its cause.

Names are relative to the folder, with slashes: ``shards/0a.h5``.
"""

from __future__ import annotations

import errno
import posixpath
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from featpipe.errors import FeatpipeError, MissingExtra, StoreUnreachable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Answers of stores that know no conditional writes.
_UNCONDITIONAL = ("NotImplemented", "501", "not implemented", "InvalidArgument")
_LOCAL = {"file", "local"}
#: Longest range of one request, and requests at a time.
_PIECE_BYTES, _AT_ONCE = 8 << 20, 8


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in the store."""

    n_bytes: int
    version: str
    """Changes with the content: the ETag, or what else the store offers; else empty."""


def is_url(place: str | Path) -> bool:
    """Whether a place is the URL of an object store, such as ``s3://bucket/corpus.fp``."""
    scheme, mark, _ = str(place).partition("://")
    return bool(mark) and scheme.isascii() and scheme not in _LOCAL and "/" not in scheme


class ObjectStore:
    """Files below one URL.

    Args:
        url: such as ``s3://bucket/corpus.fp``. Credentials and endpoints come from where the
            store's own library takes them: environment, its configuration file, fsspec's.

    Raises:
        MissingExtra: fsspec, or its package for this kind of store, is not installed.
        UsageError: a kind of store that fsspec does not know.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._files, self._root = _file_system(self.url)

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """A store crosses processes as its URL."""
        return (type(self), (self.url,))

    def __repr__(self) -> str:
        return f"<ObjectStore {self.url}>"

    def list(self, below: str = "") -> dict[str, Stored]:
        """Every file by name, or every one below a folder; empty where there is none.

        Raises:
            StoreUnreachable: it does not answer, or refuses.
        """
        start = self._path(below)
        with self._reaching("listed"):
            self._files.invalidate_cache()
            try:
                found = self._files.find(start, detail=True)
            except FileNotFoundError:
                return {}
        return {
            posixpath.relpath(path, self._root): _stored(info)
            for path, info in found.items()
            if info["type"] == "file"
        }

    def find(self, name: str) -> Stored | None:
        """The file of a name; None where there is none. Raises StoreUnreachable."""
        with self._reaching(f"asked for {name}"):
            self._files.invalidate_cache()
            try:
                info = self._files.info(self._path(name))
            except FileNotFoundError:
                return None
        return _stored(info) if info["type"] == "file" else None

    def exists(self, name: str) -> bool:
        """Whether a file of this name was put. Raises StoreUnreachable."""
        return self.find(name) is not None

    def read(self, name: str) -> bytes:
        """All bytes of a small file. Raises FileNotFoundError, StoreUnreachable."""
        with self._reaching(f"asked for {name}"):
            content: bytes = self._files.cat_file(self._path(name))
        return content

    def put_new(self, name: str, content: bytes | Path) -> bool:
        """Put a file under a name that is not taken yet.

        Returns:
            False, with nothing changed, where the name was taken. So it is for the second of two
            processes; and for one whose first request was answered too late, and repeated.

        Raises:
            StoreUnreachable: it does not answer, or refuses.
            OSError: the local file cannot be read.
        """
        path = self._path(name)
        with self._reaching(f"given {name}"):
            try:
                self._put(path, content, mode="create")
            except FileExistsError:
                return False
            except (NotImplementedError, OSError) as error:
                if _is_refused(error) and self.exists(name):
                    return False
                if not _is_unconditional(error):
                    raise
                if self.exists(name):
                    return False
                self._put(path, content, mode="overwrite")
        return True

    def is_conditional(self, name: str) -> bool:
        """Whether the store itself refuses a name that is taken.

        Args:
            name: of a small file that exists; should the store take it again, its bytes are equal.
        """
        content = self.read(name)
        with self._reaching(f"given {name}"):
            try:
                self._put(self._path(name), content, mode="create")
            except FileExistsError:
                return True
            except (NotImplementedError, OSError) as error:
                return _is_refused(error)
        return False

    def fetch(self, name: str, to: Path) -> None:
        """Copy a file to a local path, which a failure leaves torn: name one nobody reads.

        Raises:
            FileNotFoundError: there is no such file.
            StoreUnreachable: it does not answer, or refuses.
            OSError: the local file cannot be written.
        """
        with self._reaching(f"asked for {name}"):
            self._files.get_file(self._path(name), str(to))

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Some bytes of a file, in one request; fewer where it ends before ``stop``.

        Raises:
            FileNotFoundError: there is no such file.
            StoreUnreachable: it does not answer, or refuses.
        """
        with self._reaching(f"asked for {name}"):
            content: bytes = self._files.cat_file(self._path(name), start=start, end=stop)
        return content

    def fetch_ranges(
        self, name: str, ranges: Iterable[tuple[int, int]], n_bytes: int, to: Path
    ) -> None:
        """Copy some bytes of a file to their places in a local one of ``n_bytes``; others are 0.

        Memory: some ranges of `_PIECE_BYTES` each.

        Raises:
            FileNotFoundError: there is no such file.
            StoreUnreachable: it does not answer, refuses, or gives fewer bytes.
            OSError: the local file cannot be written.
        """
        pieces = [piece for one in ranges for piece in _cut(*one)]
        path = self._path(name)
        with to.open("wb") as file:
            file.truncate(n_bytes)
            for first in range(0, len(pieces), _AT_ONCE):
                some = pieces[first : first + _AT_ONCE]
                starts, stops = ([piece[end] for piece in some] for end in (0, 1))
                with self._reaching(f"asked for {name}"):
                    found = self._files.cat_ranges([path] * len(some), starts, stops)
                for start, stop, content in zip(starts, stops, found, strict=True):
                    if len(content) != stop - start:
                        raise StoreUnreachable(
                            f"{self.url}/{name} gave {len(content)} of {stop - start} bytes",
                            hint="open it again",
                        )
                    file.seek(start)
                    file.write(content)

    def _put(self, path: str, content: bytes | Path, mode: str) -> None:
        try:
            if isinstance(content, Path):
                self._files.put_file(str(content), path, mode=mode)
            else:
                self._files.pipe_file(path, content, mode=mode)
        except FileNotFoundError as error:
            if error.filename is not None:  # the local file
                raise
            raise OSError(str(error)) from error  # no such bucket

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _reaching(self, what: str) -> Iterator[None]:
        """Errors of the store's library become ours.

        Not those that tell of names, nor those of local files, which carry the file's path.
        """
        try:
            yield
        except (FeatpipeError, FileNotFoundError, FileExistsError):
            raise
        except Exception as error:  # each library below fsspec raises errors of its own
            if isinstance(error, OSError) and error.filename is not None:
                raise
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreUnreachable(
                f"{self.url} cannot be {what}: {words}",
                hint="check its address, the network and the credentials of this process",
            ) from error


def _file_system(url: str) -> tuple[Any, str]:  # Any: fsspec has no types
    try:
        import fsspec
    except ImportError as error:
        raise _missing(url, "fsspec") from error
    try:
        # Listings are not to be remembered: other processes put files all the time.
        files, root = fsspec.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise _missing(url, str(error)) from error
    except ValueError as error:
        raise UsageError(f"{url}: {error}", hint="such as s3://bucket/corpus.fp") from error
    return files, str(root).rstrip("/")


def _cut(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """A range as pieces of at most `_PIECE_BYTES`."""
    return ((at, min(at + _PIECE_BYTES, stop)) for at in range(start, stop, _PIECE_BYTES))


def _missing(url: str, what: str) -> MissingExtra:
    return MissingExtra(
        f"{url} needs a package that is not installed: {what}",
        hint="pip install 'featpipe[objectstore]'",
    )


def _stored(info: dict[str, Any]) -> Stored:  # Any: each kind of store has fields of its own
    marks = (info.get(name) for name in ("ETag", "etag", "generation", "mtime", "created"))
    mark = next((mark for mark in marks if mark), "")
    if isinstance(mark, datetime):  # of one file; in listings some stores give the seconds
        mark = mark.timestamp()
    return Stored(int(info["size"] or 0), str(mark).strip('"'))


def _is_unconditional(error: Exception) -> bool:
    words = f"{error} {error.__cause__}"
    return isinstance(error, NotImplementedError) or any(mark in words for mark in _UNCONDITIONAL)


def _is_refused(error: Exception) -> bool:
    """Whether it may be a failed precondition: not every store says which one failed."""
    return isinstance(error, OSError) and error.errno == errno.EINVAL
