"""The contract of a store of vectors by text.

``StoreContract`` is inherited by a test class that defines how a store is made. ``MemoryStore`` is
the reference: a dict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.store import Reader, Writer, keys_of
from tests.store.samples import VECTORS, vectors_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.store.disk import Disk


class Store(Protocol):
    """Vectors by text, durable from commit on."""

    def append(self, texts: list[str], vectors: NDArray[np.float16]) -> int:
        """Add those that are new; how many."""

    def commit(self) -> None:
        """Acknowledge."""

    def find(self, texts: list[str]) -> list[bytes | None]:
        """The bytes of each text's vector, as a reader sees them."""

    def n_rows(self) -> int:
        """How many a reader sees."""

    def reopen(self) -> None:
        """Close and open again."""


class MemoryStore:
    """A dict, and another one for what is not committed."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.pending: dict[str, bytes] = {}

    def append(self, texts: list[str], vectors: NDArray[np.float16]) -> int:
        before = len(self.pending)
        for text, vector in zip(texts, vectors, strict=True):
            if text not in self.rows:
                self.pending.setdefault(text, vector.tobytes())
        return len(self.pending) - before

    def commit(self) -> None:
        self.rows |= self.pending
        self.pending = {}

    def find(self, texts: list[str]) -> list[bytes | None]:
        return [self.rows.get(text) for text in texts]

    def n_rows(self) -> int:
        return len(self.rows)

    def reopen(self) -> None:
        self.commit()


class DictionaryStore:
    """A dictionary: one writer, and one reader that is kept open."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path = path
        self.open(disk)

    def open(self, disk: Disk | None = None) -> None:
        self.writer = Writer.open(self.path, disk=disk)
        self.table = self.writer.table("t", VECTORS)
        self.writer.commit()
        self.reader = Reader(self.path)

    def append(self, texts: list[str], vectors: NDArray[np.float16]) -> int:
        return self.table.append({"keys": keys_of(texts), "vectors": vectors})

    def commit(self) -> None:
        self.writer.commit()

    def find(self, texts: list[str]) -> list[bytes | None]:
        self.reader.refresh()
        table = self.reader.table("t")
        rows = table.find(keys_of(texts))
        vectors = table.gather("vectors", np.maximum(rows, 0)) if table.n_rows else None
        return [
            None if row < 0 or vectors is None else vectors[i].tobytes()
            for i, row in enumerate(rows.tolist())
        ]

    def n_rows(self) -> int:
        self.reader.refresh()
        return self.reader.table("t").n_rows

    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.reader.close()
        self.writer.close()


class StoreContract:
    """Inherit, and define a fixture ``store``."""

    def test_what_was_committed_is_found(self, store: Store) -> None:
        texts = [f"t{i}" for i in range(300)]
        store.append(texts, vectors_of(texts))
        store.commit()
        assert store.find(texts) == [vector.tobytes() for vector in vectors_of(texts)]
        assert store.n_rows() == 300

    def test_what_was_not_committed_is_not_found(self, store: Store) -> None:
        store.append(["a"], vectors_of(["a"]))
        assert store.find(["a"]) == [None]
        assert store.n_rows() == 0

    def test_what_was_never_added_is_not_found(self, store: Store) -> None:
        assert store.find(["a"] * 100) == [None] * 100
        store.append(["b"], vectors_of(["b"]))
        store.commit()
        assert store.find(["a", "b", ""]) == [None, vectors_of(["b"])[0].tobytes(), None]

    def test_the_first_of_equal_keys_stays(self, store: Store) -> None:
        assert store.append(["a", "b", "a"], vectors_of(["x", "y", "z"])) == 2
        store.commit()
        assert store.append(["a"], vectors_of(["w"])) == 0
        store.commit()
        assert store.find(["a"]) == [vectors_of(["x"])[0].tobytes()]
        assert store.n_rows() == 2

    def test_nothing_is_lost_by_opening_again(self, store: Store) -> None:
        texts = [f"t{i}" for i in range(100)]
        for text in texts:
            store.append([text], vectors_of([text]))
            store.commit()
            if text.endswith("3"):
                store.reopen()
        assert store.find(texts) == [vector.tobytes() for vector in vectors_of(texts)]

    def test_an_empty_batch_is_nothing(self, store: Store) -> None:
        assert store.append([], vectors_of([])) == 0
        store.commit()
        assert store.find([]) == []
        assert store.n_rows() == 0
