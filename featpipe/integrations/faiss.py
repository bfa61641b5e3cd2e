"""FAISS: an index over one space of a cache, from exact to approximate.

Guarantees: scores are cosines. An index is used with the space and level it was built from, and
with no other. Ids are places among the keys, which stay the same when a cache is compacted.

::

    index = SpaceIndex.build(cache.dictionary(level="sentence"), factory="HNSW32")
    index.search(vectors, k=5)
    index.save("sentences.faiss")

    index = SpaceIndex.kept(cache.dictionary(), factory="HNSW32")    # kept between processes
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from featpipe.atomic_write import write_atomically
from featpipe.cache.nearest import Neighbour, as_queries, unit_rows
from featpipe.errors import MissingExtra, UnknownSpace, UsageError
from featpipe.settings import check_n_hits

try:
    import faiss

    from featpipe.integrations.faiss_files import KeptFiles
except ImportError as error:
    raise MissingExtra("this needs faiss", hint="pip install 'featpipe[ann]'") from error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from featpipe.cache.dictionary import Dictionary

#: Most vectors that an index with a training step (IVF, PQ) is trained on.
_MOST_TRAINING = 200_000


class SpaceIndex:
    """Nearest texts by cosine.

    Attributes:
        index: the FAISS index; set ``nprobe`` or ``efSearch`` on it.
        keys: (n, 16) uint8, the key of each id's text.

    """

    def __init__(self, dictionary: Dictionary, index: faiss.Index, keys: NDArray[np.uint8]) -> None:
        self._dictionary = dictionary
        self.index = index
        self.keys = keys

    @classmethod
    def build(cls, dictionary: Dictionary, factory: str = "Flat") -> Self:
        """Index every vector of a space (of its level, if it has one).

        Args:
            dictionary: of an open cache.
            factory: for FAISS's index factory: ``Flat`` (exact), ``HNSW32``, ``IVF1024,Flat`` ...

        Raises:
            UsageError: FAISS cannot make such an index, or not of so few vectors.

        """
        keys = dictionary.keys()
        try:
            index = faiss.index_factory(dictionary.dim, factory, faiss.METRIC_INNER_PRODUCT)
            if not index.is_trained:
                index.train(_sample(dictionary))
            made = cls(dictionary, index, keys[:0])
            made._add(dictionary, 0)
        except RuntimeError as error:
            raise UsageError(f"FAISS cannot make {factory!r}: {error}") from error
        return made

    @classmethod
    def kept(cls, dictionary: Dictionary, factory: str = "Flat") -> Self:
        """The index of a space as it is now, kept in the user's cache folder for other processes.

        A kept one is used only where it is whole and of the very vectors that the cache holds, by
        their checksums. Vectors stored since are added; over one level, or where rows were
        forgotten or moved, the index is built anew. See `featpipe.integrations.faiss_files`.

        Args:
            dictionary: of an open cache, refreshed before if it is to show what others stored.
            factory: as of `build`.

        Raises:
            UsageError: as `build`.

        """
        files = KeptFiles.of(dictionary, factory)
        checks = dictionary.checks()
        index = files.read(checks)
        n_kept = index.ntotal if index else -1
        if index is None or (dictionary.level is not None and n_kept != len(checks)):
            made = cls.build(dictionary, factory)
        else:
            made = cls(dictionary, index, dictionary.keys()[:n_kept])
            made._add(dictionary, n_kept)
        is_of_checks = np.array_equal(dictionary.checks(), checks)  # no thread refreshed the cache
        if is_of_checks and n_kept != len(made.keys) == len(checks):
            files.write(made.index, checks)
        return made

    def update(self) -> int:
        """Add vectors stored since, and return their number. Call the cache's ``refresh`` before.

        Raises:
            UsageError: an index over one level (new texts may stand anywhere in it), or a cache
                that was rewritten in another order: build the index again.

        """
        if self._dictionary.level is not None:
            raise UsageError("an index over one level cannot be added to", hint="build it again")
        before = len(self.keys)
        if not np.array_equal(self._dictionary.keys()[:before], self.keys):
            raise UsageError("the cache was rewritten in another order", hint="build it again")
        self._add(self._dictionary, before)
        return len(self.keys) - before

    def search(self, vectors: ArrayLike, k: int = 10) -> list[list[Neighbour]]:
        """The k nearest texts of each vector (dim,) or (n, dim), best first; cosine as score.

        Raises:
            UsageError: vectors of another dimension; k is no whole number of 1 or more.

        """
        check_n_hits(k)
        queries = unit_rows(as_queries(vectors, self._dictionary.dim))
        scores, ids = self.index.search(queries, min(k, max(1, len(self.keys))))
        return [
            [self._neighbour(i, s) for i, s in zip(row, values, strict=True) if i >= 0]
            for row, values in zip(ids.tolist(), scores.tolist(), strict=True)
        ]

    def save(self, path: str | Path) -> None:
        """Write the index, and beside it its space (``.json``) and keys (``.npy``).

        Each file is replaced as a whole, the index last.

        Raises:
            UsageError: one of them cannot be written.

        """
        path = Path(path)
        about = {"space": self._dictionary.name, "level": self._dictionary.level}
        try:
            write_atomically(
                path.with_name(path.name + ".npy"), lambda file: np.save(file, self.keys)
            )
            write_atomically(path.with_name(path.name + ".json"), json.dumps(about).encode())
            write_atomically(path, lambda file: faiss.write_index(self.index, str(file.name)))
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{path}: cannot be written: {error}") from error

    @classmethod
    def load(cls, dictionary: Dictionary, path: str | Path) -> Self:
        """Read an index of this very space.

        Raises:
            UsageError: it cannot be read.
            UnknownSpace: it is of another space or level.

        """
        about, keys, index = _read_files(Path(path))
        wanted = {"space": dictionary.name, "level": dictionary.level}
        if about != wanted:
            raise UnknownSpace(
                f"{path} indexes {about}, not {wanted}", hint="build an index of this space"
            )
        if len(keys) != index.ntotal:
            raise UsageError(f"{path}: {index.ntotal} vectors, but {len(keys)} keys beside them")
        return cls(dictionary, index, keys)

    def _add(self, dictionary: Dictionary, n_known: int) -> None:
        """Add the vectors of all places from ``n_known`` on."""
        n_seen = 0
        for _, vectors in dictionary.blocks():
            new = vectors[max(0, n_known - n_seen) :]
            n_seen += len(vectors)
            if len(new):
                self.index.add(unit_rows(new))
        # Rows that another process stored while the blocks were read have keys and no vector yet.
        self.keys = dictionary.keys()[:n_seen]

    def _neighbour(self, number: int, score: float) -> Neighbour:
        key = self.keys[number].tobytes()
        return Neighbour(self._dictionary.text_of(key) or "", score, key)


def _read_files(path: Path) -> tuple[dict[str, object], NDArray[np.uint8], faiss.Index]:
    """The described space, the keys and the vectors of an index."""
    try:
        about = json.loads(path.with_name(path.name + ".json").read_text("utf-8"))
        keys = np.load(path.with_name(path.name + ".npy"))
        return about, keys, faiss.read_index(str(path))
    except (OSError, ValueError, RuntimeError) as error:  # RecursionError is one of the last
        raise UsageError(f"{path}: is no index: {error}") from error


def _sample(dictionary: Dictionary) -> NDArray[np.float32]:
    """Vectors to train on, at equal steps over the whole space."""
    n = len(dictionary.keys())
    step = max(1, -(-n // _MOST_TRAINING))
    kept, at = [], 0
    for rows, vectors in dictionary.blocks():
        places = np.arange(at, at + len(rows))
        kept.append(unit_rows(vectors[places % step == 0]))
        at += len(rows)
    return np.concatenate(kept) if kept else np.empty((0, dictionary.dim), np.float32)
