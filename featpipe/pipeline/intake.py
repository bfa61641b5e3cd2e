"""Intake: which of the files are known already, and which must be read.

A file is recognised by its bytes, never by its name or date: it is hashed (about 1 GB/s, far faster
than loading it), and the cache is asked for a document of that content prepared in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.errors import DocumentError
from featpipe.outcome import Quarantined
from featpipe.pipeline import layout
from featpipe.pipeline.messages import PrepareTask
from featpipe.pipeline.places import document_key, last_places, source_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from featpipe.documents import LoadLimits, Source
    from featpipe.pipeline.messages import Rows
    from featpipe.pipeline.preparation import Preparation
    from featpipe.store import Reader, TableReader

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
        self._documents = _table(reader, layout.DOCUMENTS)
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
