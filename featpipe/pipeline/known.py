"""Documents that the cache already holds: their units, without their files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.pipeline import layout
from featpipe.pipeline.units import LEVEL_BIT, Texts, Units
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from featpipe.pipeline.intake import Chunk
    from featpipe.store import Reader, TableReader


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
        documents = self._reader.table(layout.DOCUMENTS)
        texts = self._reader.table(layout.TEXTS)
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
