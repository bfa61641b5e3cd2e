"""Intake: which files of a run the cache knows already, and which must be read.

A file is recognised by its bytes, never by its name or date: it is hashed (about 1 GB/s, far faster
than loading it), and the cache is asked for a document of that content prepared in the same way.
The identity of an unknown file is handed on, so that its worker need not hash it again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from featpipe.build.departures import Addresses, Names, find_departed
from featpipe.build.messages import PrepareTask, UnreadFile
from featpipe.cache import tables
from featpipe.cache.place_index import PlaceIndex
from featpipe.cache.places import read_identified, source_rows
from featpipe.cache.texts import LEVEL_BIT, Texts, Units, join_keys
from featpipe.errors import DocumentError
from featpipe.report import Counts, Quarantined
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.places import Identity, Place, Preparation
    from featpipe.cache.tables import Rows
    from featpipe.documents import LoadLimits, Source
    from featpipe.store import Reader, TableReader

#: A chunk ends at so many files or bytes: large enough to share the cost of a message, small
#: enough that a worker lost on one of the files has little to repeat.
_CHUNK_FILES = 16
_CHUNK_BYTES = 1 << 20

#: Reading a scan takes so much longer per byte: such files should not wait for one another.
_OCR_WEIGHT = 32

#: Known files cost a look-up each, so a chunk may hold more of them.
_CHUNK_KNOWN = 256


class UnitTexts(Protocol):
    """A table of texts."""

    def ragged_many(
        self, name: str, rows: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.int64]]:  # bytes, as the store reads them
        """The bytes of these rows' texts, and the length of each."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownUnits:
    """Distinct units of some known documents. Shapes: ``keys`` (n, 16), ``levels`` (n,)."""

    keys: NDArray[np.uint8]
    levels: NDArray[np.uint8]
    _texts: UnitTexts
    _rows: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp]) -> Units:
        """The chosen ones with their texts, which are read only now."""
        texts = Texts(*self._texts.ragged_many("text", self._rows[rows]))
        return Units(self.keys[rows], texts, self.levels[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """A few files or units, sorted by what must be done with them."""

    task: PrepareTask | None = None
    """Files to read."""
    known: Units | KnownUnits | None = None
    """Units of documents that need not be read."""
    counts: Counts = field(default_factory=Counts)
    """Of these documents."""
    rows: Mapping[str, Rows] = field(default_factory=dict)
    """Rows to write by table, such as places of known documents that were elsewhere before."""
    quarantined: tuple[Quarantined, ...] = ()


class UnitIntake(Protocol):
    """Where a run takes its units from: files, or stored texts."""

    is_exhausted: bool
    """Whether there are no more chunks."""

    def next_chunk(self) -> Chunk | None:
        """The next few; None when there are no more."""

    def find_departed(self) -> dict[str, str]:
        """Address -> id of documents that leave the cache, once all chunks are taken."""


class Intake:
    """Hands out the files of a run, chunk by chunk.

    Args:
        sources: the files.
        preparation: the way they are read and cut.
        reader: of the cache.
        limits: a file beyond them is quarantined unread.
        roots: the folders and files that were given, if what is gone from them leaves the cache.

    """

    def __init__(
        self,
        sources: Iterable[Source],
        preparation: Preparation,
        reader: Reader,
        limits: LoadLimits,
        *,
        roots: Sequence[str] | None = None,
    ) -> None:
        self._given = list(sources)
        self._roots = roots
        self._sources: Iterator[Source] = iter(self._given)
        self._preparation = preparation
        self._reader = reader
        held = tables.DOCUMENTS in reader
        self._documents = reader.table(tables.DOCUMENTS) if held else None
        self._places = PlaceIndex(reader)
        self._addresses = Addresses(source.address for source in self._given)
        self._names = Names(self._places, self._addresses)
        self._waiting: deque[tuple[Source, Place | None]] = deque()
        self._limits = limits
        self.is_exhausted = False

    def next_chunk(self) -> Chunk | None:
        """Identify the next few files; None when there are no more."""
        files = _Files()
        while not files.are_enough:
            if not self._waiting and not self._find_places():
                self.is_exhausted = True
                break
            self._sort_in(*self._waiting.popleft(), files)
        return self._make_chunk(files) if files.n_files else None

    def find_departed(self) -> dict[str, str]:
        """Address -> id of documents that leave the cache, once all files are taken in."""
        self._reader.refresh()
        return find_departed(self._reader, self._given, self._addresses, self._roots)

    def _find_places(self) -> bool:
        """Fetch the next few sources, and what the cache has at their places; False at the end."""
        some = list(islice(self._sources, _CHUNK_KNOWN))
        seen = self._places.present([source.address for source in some])
        known = {one.place.path: one.place for one in seen}
        self._waiting.extend((source, known.get(source.address)) for source in some)
        return bool(some)

    def _make_chunk(self, files: _Files) -> Chunk:
        found = self._look_up([i.key for _, i in files.known]) if files.known else None
        unread = files.unknown
        if found is None:
            # The cache was cut short between two rows that no commit had acknowledged, and lacks
            # a text of these documents: they are read again.
            unread = [*starmap(UnreadFile, files.known), *files.unknown]
        known, counts = found or (None, Counts())
        moved = _rows_of_moved(files.moved) if found else None
        return Chunk(
            task=PrepareTask(tuple(unread)) if unread else None,
            known=known,
            counts=counts,
            rows={tables.SOURCES: moved} if moved else {},
            quarantined=tuple(files.quarantined),
        )

    def _look_up(self, keys: Sequence[bytes]) -> tuple[KnownUnits | None, Counts] | None:
        """The units of stored documents, and their counts; None where one must be read again."""
        return find_units(self._reader, keys)

    def _is_stored(self, documents: TableReader, key: bytes) -> bool:
        """Whether a document of this content need not be read."""
        return documents.find_one(key) >= 0

    def _sort_in(self, source: Source, place: Place | None, files: _Files) -> None:
        identity = None
        try:
            if self._documents is not None:
                _, identity = read_identified(source, self._limits, self._preparation)
                source = self._names.name(source, place, identity.key)
                if self._is_stored(self._documents, identity.key):
                    files.known.append((source, identity))
                    if place is None or (place.id, place.key) != (source.id, identity.key):
                        files.moved.append((source, identity))
                    return
            files.n_bytes += source.n_bytes() * (_OCR_WEIGHT if self._preparation.ocr else 1)
        except DocumentError as error:
            files.quarantined.append(Quarantined.of(source.id, error))
        else:
            files.unknown.append(UnreadFile(source, identity))


def _rows_of_moved(moved: list[tuple[Source, Identity]]) -> Rows | None:
    if not moved:
        return None
    return source_rows([source for source, _ in moved], [identity.key for _, identity in moved])


@dataclass(slots=True)
class _Files:
    """The files of a chunk while it is filled."""

    known: list[tuple[Source, Identity]] = field(default_factory=list)
    moved: list[tuple[Source, Identity]] = field(default_factory=list)
    """Those of the known ones that were at another place before, or had another id."""
    unknown: list[UnreadFile] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    n_bytes: int = 0

    @property
    def n_files(self) -> int:
        return len(self.known) + len(self.unknown) + len(self.quarantined)

    @property
    def are_enough(self) -> bool:
        return (
            len(self.unknown) >= _CHUNK_FILES
            or len(self.known) + len(self.quarantined) >= _CHUNK_KNOWN
            or self.n_bytes >= _CHUNK_BYTES
        )


def find_units(reader: Reader, document_keys: Sequence[bytes]) -> tuple[KnownUnits, Counts] | None:
    """The distinct units of stored documents; None when the text of one is not stored."""
    documents, texts = reader.table(tables.DOCUMENTS), reader.table(tables.TEXTS)
    at = documents.find(join_keys(document_keys))
    keys, bits, n_units = [], [], {}
    for level in LEVELS:
        values, lengths = documents.ragged_many(f"{level}_keys", at)
        n_units[level] = int(lengths.sum())
        keys.append(values)
        bits.append(np.full(n_units[level], LEVEL_BIT[level], np.uint8))
    rows = texts.find(np.concatenate(keys).reshape(-1, 16))
    if len(rows) and rows.min() < 0:
        return None
    distinct, inverse = np.unique(rows, return_inverse=True)
    levels = np.zeros(len(distinct), np.uint8)
    np.bitwise_or.at(levels, inverse, np.concatenate(bits))
    n_documents = len(document_keys)
    counts = Counts(n_loaded=n_documents, n_unchanged=n_documents, units_by_level=n_units)
    return KnownUnits(texts.gather("keys", distinct), levels, texts, distinct), counts
