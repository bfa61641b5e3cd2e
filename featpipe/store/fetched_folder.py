"""Reads a folder cache in an object store through a local folder of fetched files.

::

    FOLDER/9f2c41d08a77e3b5/.fetched-from    the URL
    FOLDER/9f2c41d08a77e3b5/cache.json ...   see `featpipe.store.fetched`

The local folder stands for the cache in this process and in any other: opened by its path, it lists
the store and fetches what it lacks. A shard or part is fetched whole when something of it is first
needed, so one key costs one shard. Results of extraction are a file of the local folder alone.

Which tables there are is looked up in some files, not in each: in the first part, in the fullest
shard, and in all that were fetched. Jobs fill each table in every shard. A cache of few files,
where a table may be in one of them only, is looked through as a whole.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from featpipe.atomic_write import write_atomically
from featpipe.errors import DictionaryChanged, UnreadableDictionary
from featpipe.store.fetched import FetchedFiles
from featpipe.store.folder_layout import (
    DESCRIPTION,
    FETCHED_FROM,
    FolderLayout,
    fetched_from,
)
from featpipe.store.folder_reader import FolderReader, Stamp
from featpipe.store.object_store import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.store.folder_reader import Member
    from featpipe.store.reader import NameRows, Reader


def local_folder(url: str, local: str | Path | None = None) -> Path:
    """The local folder that stands for a cache in an object store.

    Args:
        url: such as ``s3://bucket/corpus.fp``.
        local: where such folders are kept; by default in the user's cache folder.

    Raises:
        UnreadableDictionary: there is no cache.
        StoreUnreachable: the store does not answer, or refuses.
        MissingExtra: a package for this kind of store is not installed.
        WriteFailed: the local folder cannot be written.
    """
    files = FetchedFiles(ObjectStore(url), local)
    try:
        files.path(DESCRIPTION)
    except FileNotFoundError:
        raise UnreadableDictionary(
            f"{files.store.url} has no {DESCRIPTION}, so it is not a cache",
            hint="name a folder that featpipe build-cache --shards made",
        ) from None
    mark = files.folder / FETCHED_FROM
    if not mark.exists():
        write_atomically(mark, files.store.url.encode())
    return files.folder


#: With no more files than this, each is looked at for the tables it has.
_FEW_FILES = 16


class FetchedLayout(FolderLayout):
    """The names that the store listed."""

    __slots__ = ("files",)
    files: FetchedFiles

    @classmethod
    def of(cls, files: FetchedFiles) -> FetchedLayout:
        """Raises as `FolderLayout.read`."""
        files.path(DESCRIPTION)
        made = cls.read(files.folder, is_fetched=True)
        object.__setattr__(made, "files", files)
        return made

    def names(self, below: str) -> list[str]:
        """Names in one of its folders."""
        start = f"{below}/"
        found = (n.removeprefix(start) for n in self.files.listing if n.startswith(start))
        return [name for name in found if "/" not in name]

    def exists(self, name: str) -> bool:
        """Whether the store has a file of this name."""
        return name in self.files.listing

    def read_file(self, name: str) -> bytes:
        """All bytes of a small file."""
        return self.files.store.read(name)


class FetchedFolderReader(FolderReader):
    """A folder cache in an object store, open for reading; its path is the local folder."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_open_fetched, (self.path, self.checks_rows, self._name_rows))

    def refresh(self) -> bool:
        """Show every file that is published now. Raises StoreUnreachable."""
        self._files.refresh()
        return super().refresh()

    def _surveyed(self) -> list[int]:
        every = super()._surveyed()
        if len(every) <= _FEW_FILES:
            return every
        typical = self._typical()
        return [n for n in every if n in typical or self._members[n].path.exists()]

    def _typical(self) -> set[int]:
        """The first part, and the files of the shard that has the most of them."""
        shards: dict[int | None, list[int]] = {}
        for number, member in self._members.items():
            shards.setdefault(member.shard, []).append(number)
        parts = shards.pop(None, [])
        return {*parts[:1], *max(shards.values(), default=[], key=self._fullness)}

    def _fullness(self, files: list[int]) -> tuple[int, int]:
        return len(files), sum(self._members[number].stamp.n_bytes for number in files)

    def _read_layout(self) -> FolderLayout:
        store = ObjectStore(str(fetched_from(self.path)))
        self._files = FetchedFiles(store, self.path.parent)
        return FetchedLayout.of(self._files)

    def _stamp(self, path: Path) -> Stamp:
        listed = self._files.listing.get(self._name(path))
        if listed is None:  # results, or missing
            return Stamp.of(path)
        version = blake2b(f"{self._name(path)}\n{listed.version}".encode(), digest_size=8)
        return Stamp(-1, int.from_bytes(version.digest(), "big"), listed.n_bytes, 1)

    def _local(self, member: Member) -> Path:
        if self._is_stored(member):
            try:
                return self._files.path(self._name(member.path))
            except FileNotFoundError as error:
                raise DictionaryChanged(
                    f"{error.filename} is gone", hint="refresh the reader, or open it again"
                ) from error
        return member.path

    def _is_of(self, reader: Reader, member: Member) -> bool:
        # A copy is made for the listed version; it cannot be told by its inode.
        return self._is_stored(member) or super()._is_of(reader, member)

    def _is_stored(self, member: Member) -> bool:
        return self._name(member.path) in self._files.listing

    def _name(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()


def _open_fetched(path: Path, checks_rows: bool, name_rows: NameRows | None) -> FolderReader:
    return FetchedFolderReader(path, checks_rows=checks_rows, name_rows=name_rows)
