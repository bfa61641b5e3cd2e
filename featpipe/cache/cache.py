"""The cache, read: dictionaries of vectors, documents with their units and entities.

Everything opens by path, at any instant, also beside a running build, and pickles as its path.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from featpipe.cache import tables
from featpipe.cache.documents import Corpus
from featpipe.cache.nearest import BLOCK_VALUES, Neighbour, as_queries, find_rows
from featpipe.cache.texts import LEVEL_BIT
from featpipe.errors import UnknownSpace, UsageError
from featpipe.settings import LEVELS
from featpipe.store import Reader, key_of, keys_of
from featpipe.store.schema import from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from featpipe.cache.documents import CachedDocument
    from featpipe.cache.nearest import Metric
    from featpipe.store import TableReader

#: Rows read at a time when a whole table is walked.
_BLOCK = 4096


class Dictionary:
    """Vectors of one space, by text. Behaves like a read-only mapping from str to an array.

    A vector is found only by (fingerprint, text), so it is never another model's. ``level``
    restricts what iteration lists; a look-up answers for every stored text.
    """

    def __init__(self, cache: Cache, table: str, level: str | None) -> None:
        self._cache = cache
        self._table = table
        self.level = level

    @property
    def name(self) -> str:
        """Such as ``zh-small@3f2a9c71b0de``."""
        return self._table.partition("/")[2]

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._reader.column("vectors").shape[1])

    @property
    def spec(self) -> dict[str, object]:
        """Every part of the fingerprint."""
        return dict(json.loads(self._reader.attributes["spec"]))

    def __getitem__(self, text: str) -> NDArray[np.generic]:
        """The vector (dim,) of a text.

        Raises:
            KeyError: the text was not encoded in this space.

        """
        table = self._reader
        vector = table.get("vectors", key_of(text))
        if vector is None:
            raise KeyError(text)
        return from_bfloat16(vector) if table.spec.columns[0].dtype == "bfloat16" else vector

    def __contains__(self, text: str) -> bool:
        return self._reader.find_one(key_of(text)) >= 0

    def __len__(self) -> int:
        """Number of stored vectors, of all levels."""
        return self._reader.n_rows

    def get(self, text: str) -> NDArray[np.generic] | None:
        """The vector of a text, or None."""
        try:
            return self[text]
        except KeyError:
            return None

    def lookup(self, texts: Sequence[str]) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
        """Vectors of many texts.

        Returns:
            ``vectors`` (n, dim) in the stored dtype, zero where not found, and ``found`` (n,) bool.

        """
        return self.lookup_keys(keys_of(texts))

    def lookup_keys(self, keys: NDArray[np.uint8]) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
        """As :meth:`lookup`, by the keys (n, 16) of the texts."""
        return self._reader.look_up("vectors", keys)

    def nearest(
        self, vectors: ArrayLike, k: int = 10, *, metric: Metric = "cosine"
    ) -> list[list[Neighbour]]:
        """The k nearest stored texts of each vector, exactly; of one level if there is one.

        Args:
            vectors: (dim,) or (n, dim), of this space.
            k: how many.
            metric: ``cosine``, ``dot`` or ``euclidean``.

        Raises:
            UsageError: vectors of another dimension; k below 1; no such metric.

        """
        table = self._reader
        rows, scores = find_rows(self.blocks(), as_queries(vectors, self.dim), k, metric)
        keys = np.asarray(table.gather("keys", rows.reshape(-1))).reshape(*rows.shape, 16)
        return [
            [
                Neighbour(self.text_of(key.tobytes()) or "", float(score), key.tobytes())
                for key, score in zip(*found, strict=True)
            ]
            for found in zip(keys, scores, strict=True)
        ]

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Every vector in the order of storing, in blocks: row numbers (n,), vectors (n, dim)."""
        table, dim = self._reader, self.dim
        rows = self._rows_of_level(table)
        step = max(1, BLOCK_VALUES // dim)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            if len(some) == some[-1] - some[0] + 1:
                block = table.slice("vectors", int(some[0]), int(some[-1]) + 1)
                if table.spec.columns[0].dtype == "bfloat16":
                    block = from_bfloat16(block)
            else:
                block = table.gather("vectors", some)
            yield some, np.asarray(block, np.float32)

    def keys(self) -> NDArray[np.uint8]:
        """Keys (n, 16) of what :meth:`blocks` lists, in its order."""
        return np.asarray(self._reader.gather("keys", self._rows_of_level(self._reader)))

    def text_of(self, key: bytes) -> str | None:
        """The text behind a key, None where the file holds a vector without its text."""
        if tables.TEXTS not in self._cache.reader:
            return None
        stored = self._cache.reader.table(tables.TEXTS)
        row = stored.find_one(key)
        if row < 0:
            return None
        return bytes(stored.ragged("text", row)).decode("utf-8", "surrogatepass")

    def _rows_of_level(self, table: TableReader) -> NDArray[np.int64]:
        if self.level is None:
            return np.arange(table.n_rows)
        whole = b"".join(sorted(self._cache.corpus.keys_of_level(self.level)))
        rows = table.find(np.frombuffer(whole, np.uint8).reshape(-1, 16))
        return np.sort(rows[rows >= 0])

    def texts(self) -> Iterator[str]:
        """Every text with a vector, in the order of storing; of one level if there is one."""
        reader = self._cache.reader
        stored = reader.table(tables.TEXTS)
        wanted = self._cache.corpus.keys_of_level(self.level) if self.level else None
        for start in range(0, self._reader.n_rows, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, self._reader.n_rows))
            keys = np.asarray(self._reader.gather("keys", rows))
            for key in keys:
                if wanted is None or key.tobytes() in wanted:
                    row = stored.find_one(key.tobytes())
                    if row >= 0:
                        yield bytes(stored.ragged("text", row)).decode("utf-8", "surrogatepass")

    __iter__ = texts

    @property
    def _reader(self) -> TableReader:
        return self._cache.reader.table(self._table)


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
        self.corpus = Corpus(self.reader)

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
        if level is not None and level not in LEVEL_BIT:
            raise UsageError(f"unknown level {level!r}", hint=f"choose from {', '.join(LEVELS)}")
        return Dictionary(self, f"embeddings/{self._resolve(space, self.spaces())}", level)

    def spec_of(self, name: str) -> dict[str, object]:
        """Every part of the fingerprint of a space, or of a tagger's entities.

        Args:
            name: with or without ``@fingerprint``.

        Raises:
            UnknownSpace: there is none, or several answer to the name.

        """
        kinds = dict.fromkeys(self.corpus.taggers(), "entities")
        kinds |= dict.fromkeys(self.spaces(), "embeddings")
        found = self._resolve(name, list(kinds))
        return dict(json.loads(self.reader.table(f"{kinds[found]}/{found}").attributes["spec"]))

    def documents(self) -> Iterator[CachedDocument]:
        """Every document as it was last seen at its place, with its units and entities."""
        return self.corpus.documents()

    def refresh(self) -> None:
        """See what the writer has committed since."""
        self.reader.refresh()

    def close(self) -> None:
        """Let go of the file."""
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Cache], tuple[Path]]:
        """Travel as a path; the other process opens the file itself."""
        return type(self), (self.path,)

    def _resolve(self, space: str | None, known: list[str]) -> str:
        matching = [name for name in known if space in (None, name, name.partition("@")[0])]
        if len(matching) == 1:
            return matching[0]
        asked = "a space must be named" if space is None else f"space {space!r}"
        what = f"{asked}: {self.path} holds {', '.join(known) or 'none'}"
        raise UnknownSpace(what, hint=f"featpipe inspect {self.path}")
