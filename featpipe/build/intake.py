"""Intake: which of the files are known already, and which must be read.

A file is recognised by its bytes, never by its name or date: it is hashed (about 1 GB/s, far faster
than loading it), and the cache is asked for a document of that content prepared in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.messages import PrepareTask
from featpipe.cache import tables
from featpipe.cache.places import document_key, last_places, source_rows
from featpipe.cache.texts import LEVEL_BIT, Texts, Units
from featpipe.errors import DocumentError
from featpipe.report import Quarantined
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from featpipe.cache.places import Preparation
    from featpipe.cache.write import Rows
    from featpipe.documents import LoadLimits, Source
    from featpipe.store import Reader, TableReader

# Documents that the cache already holds: their units, without their files.


@dataclass(frozen=True, slots=True, eq=False)
class KnownUnits:
    """Distinct units of some known documents. Shapes: ``keys`` (n, 16), ``levels`` (n,)."""

    keys: NDArray[np.uint8]
    levels: NDArray[np.uint8]
    n_units: Mapping[str, int]
    _texts: TableReader
    _rows: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp]) -> Units:
        """The chosen ones with their texts, which are read only now."""
        texts = Texts(*self._texts.ragged_many("text", self._rows[rows]))
        return Units(self.keys[rows], texts, self.levels[rows])


class KnownDocuments:
    """Looks up units of documents by their rows in ``/documents``.

    Args:
        reader: of the cache.

    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find_units(self, chunk: Chunk) -> KnownUnits | None:
        """The distinct units of the chunk's known documents.

        None when a text is not stored: the file was cut short between two rows that no commit
        had acknowledged, and the documents must be prepared again.
        """
        documents = self._reader.table(tables.DOCUMENTS)
        texts = self._reader.table(tables.TEXTS)
        wanted = np.frombuffer(b"".join(chunk.known_keys), np.uint8).reshape(-1, 16)
        at = documents.find(wanted)
        keys, bits, counts = _occurrences(documents, at)
        rows = texts.find(keys)
        if len(rows) and rows.min() < 0:
            return None
        distinct, inverse = np.unique(rows, return_inverse=True)
        levels = np.zeros(len(distinct), np.uint8)
        np.bitwise_or.at(levels, inverse, bits)
        return KnownUnits(texts.gather("keys", distinct), levels, counts, texts, distinct)


def _occurrences(
    documents: TableReader, at: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], dict[str, int]]:
    """Keys (m, 16) and level bits (m,) of every unit of these documents, with counts by level."""
    keys, bits, counts = [], [], {}
    for level in LEVELS:
        values, lengths = documents.ragged_many(f"{level}_keys", at)
        counts[level] = int(lengths.sum())
        keys.append(values)
        bits.append(np.full(counts[level], LEVEL_BIT[level], np.uint8))
    return np.concatenate(keys).reshape(-1, 16), np.concatenate(bits), counts


#: A chunk ends at so many files or bytes: large enough to share the cost of a message, small
#: enough that a worker lost on one of the files has little to repeat.
_CHUNK_FILES = 16
_CHUNK_BYTES = 1 << 20

#: Reading a scan takes so much longer per byte: such files should not wait for one another.
_OCR_WEIGHT = 32

#: Known files cost a look-up each, so a chunk may hold more of them.
_CHUNK_KNOWN = 256


@dataclass(slots=True)
class Chunk:
    """A few files, sorted by what must be done with them."""

    known: list[Source] = field(default_factory=list)
    known_keys: list[bytes] = field(default_factory=list)
    unknown: list[Source] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    n_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Time to hand it on."""
        return (
            len(self.unknown) >= _CHUNK_FILES
            or len(self.known) + len(self.quarantined) >= _CHUNK_KNOWN
            or self.n_bytes >= _CHUNK_BYTES
        )

    @property
    def task(self) -> PrepareTask | None:
        """What a prepare worker must read."""
        return PrepareTask(tuple(self.unknown)) if self.unknown else None


class Intake:
    """Hands out the files of a run, chunk by chunk.

    Args:
        sources: the files.
        preparation: the way they are read and cut.
        reader: of the cache.
        limits: a file beyond them is quarantined unread.

    """

    def __init__(
        self,
        sources: Iterable[Source],
        preparation: Preparation,
        reader: Reader,
        limits: LoadLimits,
    ) -> None:
        self._sources: Iterator[Source] = iter(sources)
        self._preparation = preparation
        self._documents = _table(reader, tables.DOCUMENTS)
        self._last_place = {path: key for path, (_, key) in last_places(reader).items()}
        self._limits = limits
        self.is_exhausted = False

    def next_chunk(self) -> Chunk | None:
        """Identify the next few files; None when there are no more."""
        chunk = Chunk()
        while not chunk.is_full:
            source = next(self._sources, None)
            if source is None:
                self.is_exhausted = True
                break
            self._sort_in(source, chunk)
        n_files = len(chunk.known) + len(chunk.unknown) + len(chunk.quarantined)
        return chunk if n_files else None

    def moved(self, chunk: Chunk) -> Rows | None:
        """Rows for ``/sources`` of known documents that were found at another place before."""
        at = [
            number
            for number, file in enumerate(chunk.known)
            if self._last_place.get(file.address) != chunk.known_keys[number]
        ]
        if not at:
            return None
        keys = b"".join(chunk.known_keys[number] for number in at)
        return source_rows([chunk.known[number] for number in at], keys)

    def _sort_in(self, source: Source, chunk: Chunk) -> None:
        try:
            if self._documents is not None:
                key = document_key(source, source.read(self._limits), self._preparation)
                if self._documents.find_one(key) >= 0:
                    chunk.known.append(source)
                    chunk.known_keys.append(key)
                    return
            chunk.n_bytes += source.n_bytes() * (_OCR_WEIGHT if self._preparation.ocr else 1)
        except DocumentError as error:
            chunk.quarantined.append(Quarantined.of(source.id, error))
            return
        chunk.unknown.append(source)


def _table(reader: Reader, name: str) -> TableReader | None:
    return reader.table(name) if name in reader else None
