"""A dictionary: the vectors of one space, by text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.nearest import BLOCK_VALUES, Neighbour, as_queries, find_rows
from featpipe.cache.texts import decode
from featpipe.cache.vector_pieces import as_float32, for_each_piece, stored_blocks
from featpipe.store import key_of, keys_of, list_texts
from featpipe.store.schema import from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from featpipe.cache.documents import State, StoredDocuments
    from featpipe.cache.nearest import Metric
    from featpipe.cache.vector_pieces import Take
    from featpipe.store import Reader, TableReader

#: Rows read at a time when a whole table is walked.
_BLOCK, _MANY = 4096, 1 << 16


class Dictionary:
    """Vectors of one space, by text. Behaves like a read-only mapping from str to an array.

    A vector is found only by (fingerprint, text), so it is never another model's. ``level``
    restricts what iteration lists; a look-up answers for every stored text.
    """

    def __init__(
        self, reader: Reader, stored: StoredDocuments, table: str, level: str | None
    ) -> None:
        self._file = reader
        self._stored = stored
        self._table = table
        self.level = level

    @property
    def name(self) -> str:
        """Such as ``zh-small@3f2a9c71b0de``."""
        return self._table.partition("/")[2]

    @property
    def path(self) -> Path:
        """Of the cache."""
        return self._file.path

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._reader.spec.columns[0].shape[0])

    @property
    def spec(self) -> dict[str, object]:
        """Every part of the fingerprint."""
        return dict(json.loads(self._reader.attributes["spec"]))

    def __repr__(self) -> str:
        level = f", level {self.level}" if self.level else ""
        return f"<Dictionary {self.name}: {len(self)} vectors of {self.dim} numbers{level}>"

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
        return self._reader.has(key_of(text))

    def __len__(self) -> int:
        """Number of stored vectors, of all levels."""
        return self._reader.n_rows

    @property
    def state(self) -> State:
        """As of the last refresh; while it is the same, `find_keys` gives the same rows."""
        return self._reader, len(self)

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

        Raises:
            UsageError: one text, or something among them that is none.

        """
        return self.lookup_keys(keys_of(list_texts(texts)))

    def lookup_keys(self, keys: NDArray[np.uint8]) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
        """As :meth:`lookup`, by the keys (n, 16) of the texts."""
        return self._reader.look_up("vectors", keys)

    def find_keys(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Rows of the texts of these keys (n, 16), -1 where there is no vector: (n,)."""
        return self._reader.find(keys)

    def nearest(
        self, vectors: ArrayLike, k: int = 10, *, metric: Metric = "cosine"
    ) -> list[list[Neighbour]]:
        """The k nearest stored texts of each vector, exactly; of one level if there is one.

        Args:
            vectors: (dim,) or (n, dim), of this space.
            k: how many.
            metric: ``cosine``, ``dot`` or ``euclidean``.

        Raises:
            UsageError: vectors of another dimension; k is no whole number of 1 or more; no such
                metric.

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
        return self.blocks_of(self._rows_of_level(self._reader))

    def blocks_of(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """As :meth:`blocks`, of these rows, which are ascending."""
        for some, block in stored_blocks(self._reader, rows, BLOCK_VALUES):
            yield some, as_float32(block)

    def for_each_piece(self, rows: NDArray[np.int64], take: Take) -> None:
        """Call ``take`` with the vectors of these rows, ascending, in pieces by several threads."""
        for_each_piece(self._reader, rows, take)

    def keys(self) -> NDArray[np.uint8]:
        """Keys (n, 16) of what :meth:`blocks` lists, in its order."""
        return np.asarray(self._reader.gather("keys", self._rows_of_level(self._reader)))

    def checks(self) -> NDArray[np.uint32]:
        """Checksums (n,) of the rows of what :meth:`blocks` lists, in its order.

        They hold for key, vector and row of this file: two caches, or two states of one, whose
        checksums are equal hold the same vectors in the same order.
        """
        return np.asarray(self._reader.gather("checks", self._rows_of_level(self._reader)))

    def texts(self) -> Iterator[str]:
        """Every text with a vector, in the order of storing; of one level if there is one."""
        table = self._reader
        for rows in self._kept(table, _BLOCK):
            for key in np.asarray(table.gather("keys", rows)):
                text = self.text_of(key.tobytes())
                if text is not None:
                    yield text

    __iter__ = texts

    def text_of(self, key: bytes) -> str | None:
        """The text behind a key, None where the file holds a vector without its text."""
        if tables.TEXTS not in self._file:
            return None
        text = self._file.table(tables.TEXTS).ragged_of("text", key)
        return None if text is None else decode(text)

    def _rows_of_level(self, table: TableReader) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(0, np.int64), *self._kept(table, _MANY)])

    def _kept(self, table: TableReader, step: int) -> Iterator[NDArray[np.int64]]:
        """Rows that are not forgotten, of the level if there is one, ``step`` at a time."""
        forgotten = self._stored.forgotten()
        for start in range(0, table.n_rows, step):
            rows = forgotten.kept(table, np.arange(start, min(start + step, table.n_rows)))
            if self.level is not None:
                keys = np.asarray(table.gather("keys", rows), np.uint8)
                rows = rows[self._stored.are_of_level(keys, self.level)]
            yield rows

    @property
    def _reader(self) -> TableReader:
        return self._file.table(self._table)
