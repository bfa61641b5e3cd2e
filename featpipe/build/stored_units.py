"""The units that a cache holds, as the intake of a run: for another model no document is read.

In a shard, the units of new slices come after the stored ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.intake import Chunk, KnownUnits
from featpipe.cache import tables
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.levels import level_bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from featpipe.build.shards.outbox import SliceUnits
    from featpipe.cache.levels import Keep
    from featpipe.cache.tables import Rows
    from featpipe.store import Reader

#: Units looked at together.
_UNITS = 1 << 14


class StoredUnits:
    """Every stored text with its levels; those of forgotten documents alone are left out.

    Args:
        reader: of the cache, or of the files of a shard.
        new: units that may be stored or not; levels are those of both.

    """

    def __init__(self, reader: Reader, new: SliceUnits | None = None) -> None:
        self.is_exhausted = False
        self._reader, self._new = reader, new
        self._chunks = self._all()

    def next_chunk(self) -> Chunk | None:
        """The next few units; None when there are no more."""
        chunk = next(self._chunks, None)
        self.is_exhausted = chunk is None
        return chunk

    def find_departed(self) -> dict[str, str]:
        """None: no document is looked at."""
        return {}

    def _all(self) -> Iterator[Chunk]:
        new = self._new
        known = level_bits(self._reader, self._keep())
        bits, rows = known.copy(), None
        if new is not None:
            rows = self._find_stored(new.keys)
            stored = np.flatnonzero(rows >= 0)
            bits[rows[stored]] |= new.levels[stored]
        yield from self._stored(known, bits)
        if new is not None and rows is not None:
            for units in new.blocks(np.flatnonzero(rows < 0), _UNITS):
                texts: Rows = {"keys": units.keys, "text": units.texts.ragged}
                levels: Rows = {"text": units.keys, "bits": units.levels}
                yield Chunk(known=units, rows={tables.TEXTS: texts, tables.TEXT_LEVELS: levels})

    def _keep(self) -> Keep | None:
        if self._new is not None:  # a shard has no documents
            return None
        forgotten = Forgotten(self._reader)
        return forgotten.kept if forgotten else None

    def _find_stored(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        if tables.TEXTS not in self._reader:
            return np.full(len(keys), -1, np.int64)
        return self._reader.table(tables.TEXTS).find(keys)

    def _stored(self, known: NDArray[np.uint8], bits: NDArray[np.uint8]) -> Iterator[Chunk]:
        if not len(bits):
            return
        texts = self._reader.table(tables.TEXTS)
        every = np.flatnonzero(bits)
        for start in range(0, len(every), _UNITS):
            rows = every[start : start + _UNITS]
            keys = np.asarray(texts.gather("keys", rows), np.uint8)
            levels = bits[rows]
            changed = np.flatnonzero(levels != known[rows])
            written: dict[str, Rows] = {}
            if len(changed):
                written = {tables.TEXT_LEVELS: {"text": keys[changed], "bits": levels[changed]}}
            yield Chunk(known=KnownUnits(keys, levels, texts, rows), rows=written)
