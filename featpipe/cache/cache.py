"""One cache, read: its dictionaries of vectors, its documents, and search over them.

Everything opens by path, at any instant, also beside a running build, and pickles as its path.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

from featpipe.cache.dictionary import Dictionary
from featpipe.cache.documents import StoredDocuments
from featpipe.cache.forget import choose_documents, forget_documents
from featpipe.cache.place_index import documents_of_rows
from featpipe.cache.search import SentenceSearch
from featpipe.cache.tables import find_named
from featpipe.cache.texts import check_level
from featpipe.errors import UnknownSpace, UsageError
from featpipe.store import local_path, open_reader
from featpipe.store.folder_layout import fetched_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from featpipe.cache.documents import CachedDocument
    from featpipe.cache.search import Hit, Level, QueryEncoder


class Cache:
    """One cache, a file, a folder or a folder in an object store, opened for reading.

    ::

        cache = Cache.open("c.h5")
        vector = cache.dictionary("zh-small", "sentence")["违约责任"]
        for document in cache.documents(): ...

    Args:
        path: see :meth:`open`.
        checks_rows: see there.
        local: see there.

    """

    def __init__(
        self, path: str | Path, *, checks_rows: bool = True, local: str | Path | None = None
    ) -> None:
        self.path = local_path(path, local)
        self.reader = open_reader(self.path, checks_rows=checks_rows, name_rows=documents_of_rows)
        self.stored_documents = StoredDocuments(self.reader)
        self._searches: dict[str | None, SentenceSearch] = {}

    @classmethod
    def open(
        cls, path: str | Path, *, checks_rows: bool = True, local: str | Path | None = None
    ) -> Self:
        """Open by path.

        Args:
            path: of the file or folder; or the URL of a folder in an object store, such as
                ``s3://bucket/corpus.fp``. Its files are fetched whole when they are first needed.
            checks_rows: hold each row against its checksum when it is first read, and again after
                any write to the file; a damaged one is an error (DamagedRows). Without it, a first
                read of many vectors takes a third of the time, and a damaged row is handed out as
                it is.
            local: where files of an object store are kept; by default below
                ``$FEATPIPE_CACHE_DIR``. Nothing is removed there: it may be at any time.

        Raises:
            UnreadableDictionary: no such file or folder, not HDF5, or not ours.
            NewerDictionary: written by a later featpipe.
            StoreUnreachable: the object store does not answer, or refuses.
            MissingExtra: a package for this kind of object store is not installed.

        """
        return cls(path, checks_rows=checks_rows, local=local)

    @property
    def address(self) -> str:
        """The path, or the URL of a folder in an object store."""
        return fetched_from(self.path) or str(self.path)

    def spaces(self) -> list[str]:
        """Names of all spaces, such as ``zh-small@3f2a9c71b0de``."""
        prefix = "embeddings/"
        return [name[len(prefix) :] for name in self.reader.tables() if name.startswith(prefix)]

    def dictionary(self, space: str | None = None, level: str | None = None) -> Dictionary:
        """The vectors of one space.

        Args:
            space: its name with or without ``@fingerprint``; may be left out when there is one.
            level: paragraph, sentence or word; restricts iteration.

        Raises:
            UnknownSpace: no such space, or several answer to the name.
            UsageError: no such level.

        """
        if level is not None:
            check_level(level)
        table = f"embeddings/{self._resolve(space, self.spaces())}"
        return Dictionary(self.reader, self.stored_documents, table, level)

    def spec_of(self, name: str) -> dict[str, object]:
        """Every part of the fingerprint of a space, or of a tagger's entities.

        Args:
            name: with or without ``@fingerprint``.

        Raises:
            UnknownSpace: there is none, or several answer to the name.

        """
        kinds = dict.fromkeys(self.stored_documents.taggers(), "entities")
        kinds |= dict.fromkeys(self.spaces(), "embeddings")
        found = self._resolve(name, list(kinds))
        return dict(json.loads(self.reader.table(f"{kinds[found]}/{found}").attributes["spec"]))

    def documents(self) -> Iterator[CachedDocument]:
        """Every document as it was last seen at its place, with its units and entities."""
        return iter(self.stored_documents)

    def document(self, name: str | Path) -> CachedDocument:
        """One document by its readable id or its path.

        Raises:
            MissingDocuments: the cache holds none of this name; the nearest ids are named.

        """
        return self.stored_documents.require(str(name))

    def find_document(self, name: str) -> CachedDocument | None:
        """As :meth:`document`; None where the cache holds none. Any thread may call it."""
        return self.stored_documents.find(name)

    def find_content(self, bytes_hash: str, media_type: str | None = None) -> CachedDocument | None:
        """A document by the hash of its file's bytes, wherever it lies. Any thread may call it.

        Args:
            bytes_hash: of the file.
            media_type: under which it was read; by default any.

        """
        return self.stored_documents.find_content(bytes_hash, media_type)

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        level: Level = "sentence",
        analyser: str | None = None,
        encoder: QueryEncoder | None = None,
    ) -> list[Hit]:
        """The best sentences for a query by BM25, as ``featpipe search`` ranks them.

        With an ``encoder`` they are ranked by meaning as well, as with ``--hybrid``::

            with TextEncoder("c.h5") as encoder:
                hits = cache.search("违约金是多少？", encoder=encoder)

        What the writer has committed until now is searched; the index is kept for further queries.

        Args:
            query: words, in any order.
            k: how many hits.
            level: ``sentence``, or ``document`` for the best sentence of each of ``k`` documents.
            analyser: whose terms; may be left out when the cache holds those of one.
            encoder: a `featpipe.TextEncoder` of this cache; each hit names the prompt it used.

        Raises:
            UnknownSpace: no such terms, or several to choose from; no vectors of the ``encoder``'s
                space.
            UsageError: k is no whole number of 1 or more; no such level; an ``encoder`` and the
                level ``document``, which has no vectors.

        """
        search = self.sentence_search(analyser)
        if encoder is None:
            return search.search(query, k, level=level)
        if level != "sentence":
            raise UsageError("with an encoder sentences are ranked; leave the level out")
        return search.search_encoded(query, encoder, k)

    def sentence_search(self, analyser: str | None = None) -> SentenceSearch:
        """The index behind :meth:`search`, over all sentences that are committed now."""
        self.refresh()
        search = self._searches.get(analyser)
        if search is None or not search.is_current:
            search = self._searches[analyser] = SentenceSearch(self, analyser)
        return search

    def forget(self, *names: str | Path, wait_s: float = 0.0) -> list[CachedDocument]:
        """Have documents leave the cache, in one durable step; those that left are returned.

        They are found no more: not listed, searched, extracted, counted or exported. ``compact``
        then frees what only they hold. One that a later build finds again is back.

        Args:
            names: ids, paths, folders, or patterns over ids and paths.
            wait_s: for another process that writes the cache.

        Raises:
            MissingDocuments: a name that no document has; nothing has left.
            DictionaryLocked: another process writes the cache for longer than ``wait_s`` seconds.

        """
        self.refresh()
        chosen = choose_documents(self.stored_documents, [str(name) for name in names] or [""])
        forget_documents(self.path, chosen, wait_s=wait_s)
        self.refresh()
        return chosen

    def refresh(self) -> None:
        """See what the writer has committed since."""
        self.reader.refresh()

    def close(self) -> None:
        """Close the file, or those of the folder."""
        self.reader.close()

    def __repr__(self) -> str:
        return f"<Cache {self.address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the path; the other process opens the file itself."""
        return _open_cache, (type(self), self.path, self.reader.checks_rows)

    def _resolve(self, space: str | None, known: list[str]) -> str:
        matching = find_named(known, space)
        if len(matching) == 1:
            return matching[0]
        asked = "a space must be named" if space is None else f"space {space!r}"
        what = f"{asked}: {self.address} holds {', '.join(known) or 'none'}"
        raise UnknownSpace(what, hint=f"featpipe inspect {self.address}")


def _open_cache(kind: type[Cache], path: Path, checks_rows: bool) -> Cache:
    return kind(path, checks_rows=checks_rows)
