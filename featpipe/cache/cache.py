"""One cache file, read: its dictionaries of vectors, its documents, and search over them.

Everything opens by path, at any instant, also beside a running build, and pickles as its path.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Self

from featpipe.cache.dictionary import Dictionary
from featpipe.cache.documents import StoredDocuments
from featpipe.cache.forget import choose_documents, forget_documents
from featpipe.cache.search import SentenceSearch
from featpipe.cache.tables import find_named
from featpipe.cache.texts import check_level
from featpipe.errors import UnknownSpace
from featpipe.store import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.cache.documents import CachedDocument
    from featpipe.cache.search import Hit, Level


class Cache:
    """One cache file, opened for reading.

    ::

        cache = Cache.open("c.h5")
        vector = cache.dictionary("zh-small", "sentence")["违约责任"]
        for document in cache.documents(): ...

    Args:
        path: the file.

    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.reader = Reader(self.path)
        self.stored_documents = StoredDocuments(self.reader)
        self._searches: dict[str | None, SentenceSearch] = {}

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open by path.

        Raises:
            UnreadableDictionary: no such file, not HDF5, or not ours.
            NewerDictionary: written by a later featpipe.

        """
        return cls(path)

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
        self, query: str, k: int = 10, *, level: Level = "sentence", analyser: str | None = None
    ) -> list[Hit]:
        """The best sentences for a query by BM25, as ``featpipe search`` ranks them.

        What the writer has committed until now is searched; the index is kept for further queries.

        Args:
            query: words, in any order.
            k: how many hits.
            level: ``sentence``, or ``document`` for the best sentence of each of ``k`` documents.
            analyser: whose terms; may be left out when the cache holds those of one.

        Raises:
            UnknownSpace: no such terms, or several to choose from.

        """
        return self.sentence_search(analyser).search(query, k, level=level)

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
        """Close the file."""
        self.reader.close()

    def __repr__(self) -> str:
        return f"<Cache {self.path}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Cache], tuple[Path]]:
        """Pickle as the path; the other process opens the file itself."""
        return type(self), (self.path,)

    def _resolve(self, space: str | None, known: list[str]) -> str:
        matching = find_named(known, space)
        if len(matching) == 1:
            return matching[0]
        asked = "a space must be named" if space is None else f"space {space!r}"
        what = f"{asked}: {self.path} holds {', '.join(known) or 'none'}"
        raise UnknownSpace(what, hint=f"featpipe inspect {self.path}")
