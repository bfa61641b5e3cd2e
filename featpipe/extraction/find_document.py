"""The shelf: cached documents by id, by path and by content, kept up to date with the cache."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.cache import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument


class Shelf:
    """Finds cached documents. Any thread may ask; what the writer commits is seen at once.

    Args:
        cache: opened; not closed here.

    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._n_sightings = -1
        self._by_name: dict[str, CachedDocument] = {}
        self._by_hash: dict[str, CachedDocument] = {}
        self._n_hashed: set[int] = set()

    def documents(self) -> list[CachedDocument]:
        """Each document as it was last seen at its place, in order of first sighting."""
        with self._lock:
            self._update()
            distinct = {document.path: document for document in self._by_name.values()}
            return list(distinct.values())

    def find(self, name: str) -> CachedDocument | None:
        """By readable id or by path."""
        with self._lock:
            self._update()
            return self._by_name.get(name) or self._by_name.get(_absolute(name))

    def find_content(self, bytes_hash: str) -> CachedDocument | None:
        """By what is in the file, whatever it is called."""
        with self._lock:
            self._update()
            for document in self._by_name.values():
                if document.row not in self._n_hashed:
                    self._n_hashed.add(document.row)
                    self._by_hash[str(document.meta["bytes_hash"])] = document
            return self._by_hash.get(bytes_hash)

    def keys_of(self, documents: Sequence[CachedDocument]) -> list[bytes]:
        """16 bytes each: identity of a document's content and of the way it was read."""
        rows = [document.row for document in documents]
        whole = self._cache.corpus.table.gather("keys", rows).tobytes() if rows else b""
        return [whole[at : at + 16] for at in range(0, len(whole), 16)]

    def _update(self) -> None:
        """Every sighting is a row of a log: no new row, nothing to do."""
        self._cache.refresh()
        reader = self._cache.reader
        n = reader.table(tables.SOURCES).n_rows if tables.SOURCES in reader else 0
        if n == self._n_sightings:
            return
        self._by_name = {}
        for document in self._cache.documents():
            self._by_name[document.path] = document
            self._by_name.setdefault(document.id, document)
        self._n_sightings = n


def _absolute(name: str) -> str:
    try:
        return str(Path(name).absolute())
    except (OSError, ValueError):
        return name
