"""A folder cache in an object store, as jobs publish into it and read from it.

A file is put by one request, which the store refuses for a name that is taken. What jobs read of
the cache (parts, files of a shard that is added to) is fetched whole into a local folder; of an
outbox, its structure and the rows of a shard.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from featpipe.store.fetched import FetchedFiles
from featpipe.store.object_store import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.store.fetched import FindRanges

log = logging.getLogger(__name__)


class ObjectFolder:
    """The files of a folder cache below a URL; a `featpipe.build.publish.Publisher`.

    Args:
        url: such as ``s3://bucket/corpus.fp``.
        local: where fetched files are kept; by default in the user's cache folder.

    Raises:
        MissingExtra, UsageError: as `ObjectStore`.

    """

    def __init__(self, url: str, local: str | Path | None = None) -> None:
        self._store = ObjectStore(url)
        self._local = local
        self._fetched: FetchedFiles | None = None
        self._is_known_conditional = False
        self.address = self._store.url

    def exists(self, name: str) -> bool:
        """Whether a file of this name was published. Raises StoreUnreachable, as all others do."""
        return self._store.exists(name)

    def list(self, below: str) -> list[str]:
        """Names of the published files in one of its folders, sorted."""
        return sorted(name for name in self._store.list(below) if "/" not in name[len(below) + 1 :])

    def read(self, name: str) -> bytes:
        """All bytes of a small file. Raises FileNotFoundError."""
        return self._store.read(name)

    def fetch(self, name: str) -> Path:
        """A local copy of a file. Raises FileNotFoundError, WriteFailed."""
        return self._files_with(name).path(name)

    def fetch_some(self, name: str, part: str, find_ranges: FindRanges) -> Path:
        """A local copy of some bytes of a file, or of all. Raises as :meth:`fetch`."""
        return self._files_with(name).path_of_some(name, part, find_ranges)

    def _files_with(self, name: str) -> FetchedFiles:
        """The store's files, listed again should it be needed to know this one."""
        if self._fetched is None:
            self._fetched = FetchedFiles(self._store, self._local)
        if name not in self._fetched.listing:
            self._fetched.refresh()
        return self._fetched

    def publish(self, file: Path, name: str) -> bool:
        """Put a local file under a name; whether it is there by this call."""
        return self._store.put_new(name, file)

    def write(self, name: str, content: bytes) -> bool:
        """As :meth:`publish`, of a small file."""
        is_new = self._store.put_new(name, content)
        if is_new and not self._is_known_conditional:
            self._is_known_conditional = True
            if not self._store.is_conditional(name):
                log.warning(
                    "%s has no conditional writes (If-None-Match): build it once at a time, as two "
                    "processes that publish one name at the same instant replace each other's file",
                    self.address,
                )
        return is_new

    def work_folder(self) -> None:
        """None: files do not grow in place."""
