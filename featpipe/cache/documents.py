"""The documents of a cache: each as it was last seen at its place, with units and entities."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.places import last_places
from featpipe.cache.texts import LEVEL_BIT
from featpipe.errors import UnknownSpace, UsageError
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from featpipe.store import Reader, TableReader


@dataclass(frozen=True, slots=True)
class Unit:
    """``text == document.text[start:end]``."""

    text: str
    start: int
    end: int
    level: str


@dataclass(frozen=True, slots=True)
class Entity:
    """``text == document.text[start:end]``; ``score`` in [0, 1]."""

    text: str
    label: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, eq=False)
class CachedDocument:
    """A stored document. Its units and entities are read when asked for."""

    id: str
    """Readable name: the path below the folder that was handed in."""
    path: str
    """Absolute path it was last seen at."""
    row: int
    """Row in ``/documents``."""
    _corpus: Corpus = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The one text that all offsets count in."""
        return _decode(self._corpus.table.ragged("text", self.row))

    @cached_property
    def meta(self) -> dict[str, object]:
        """Title, media type, loader, hashes, pages, tables ... as stored."""
        return dict(json.loads(_decode(self._corpus.table.ragged("meta", self.row))))

    def spans(self, level: str) -> NDArray[np.uint32]:
        """Unit spans (n, 2) of one level, in order."""
        return np.asarray(self._corpus.table.ragged(f"{_checked(level)}_spans", self.row))

    def keys(self, level: str) -> NDArray[np.uint8]:
        """Keys (n, 16) of the units of one level, in order."""
        return np.asarray(self._corpus.table.ragged(f"{_checked(level)}_keys", self.row))

    def units(self, level: str) -> list[Unit]:
        """Units of one level, in order."""
        text = self.text
        return [Unit(text[a:b], a, b, level) for a, b in self.spans(level).tolist()]

    def entities(self, tagger: str | None = None) -> list[Entity]:
        """What a tagger found, in order; ``tagger`` may be left out when there is only one."""
        return self._corpus.entities_of(self, tagger)


class Corpus:
    """Documents by row. Args: ``reader`` of the cache."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def table(self) -> TableReader:
        """``/documents``."""
        return self._reader.table(tables.DOCUMENTS)

    def documents(self) -> Iterator[CachedDocument]:
        """One per place, in the order in which places were first seen."""
        for path, (name, key) in self.places().items():
            row = self.table.find_one(key)
            if row >= 0:
                yield CachedDocument(name, path, row, self)

    def places(self) -> dict[str, tuple[str, bytes]]:
        """Absolute path -> (readable name, document key); the last sighting wins."""
        return last_places(self._reader)

    def keys_of_level(self, level: str) -> set[bytes]:
        """Keys of every distinct unit of one level."""
        rows = np.arange(self.table.n_rows)
        values, _ = self.table.ragged_many(f"{_checked(level)}_keys", rows)
        whole = np.asarray(values).tobytes()
        return {whole[at : at + 16] for at in range(0, len(whole), 16)}

    def taggers(self) -> list[str]:
        """Names of the taggers whose entities are stored."""
        prefix = "entities/"
        return [name[len(prefix) :] for name in self._reader.tables() if name.startswith(prefix)]

    def entities_of(self, document: CachedDocument, tagger: str | None) -> list[Entity]:
        """Entities of one document, with offsets into its text.

        Raises:
            UnknownSpace: no such tagger, or several answer to the name.

        """
        names = self.taggers()
        if not names and tagger is None:
            return []
        matching = [name for name in names if tagger in (None, name, name.partition("@")[0])]
        if len(matching) != 1:
            asked = "a tagger must be named" if tagger is None else f"no tagger {tagger!r}"
            raise UnknownSpace(
                f"{asked}: the cache holds entities by {', '.join(names) or 'none'}",
                hint='document.entities("name@fingerprint")',
            )
        table = self._reader.table(f"entities/{matching[0]}")
        labels = json.loads(table.attributes["types"])
        return list(_place_entities(document, table, labels))


def _place_entities(
    document: CachedDocument, table: TableReader, labels: list[str]
) -> Iterator[Entity]:
    rows = table.find(document.keys("paragraph"))
    starts = document.spans("paragraph")[:, 0]
    for row, offset in zip(rows.tolist(), starts.tolist(), strict=True):
        if row < 0:
            continue
        spans = np.asarray(table.ragged("spans", row)).tolist()
        kinds = np.asarray(table.ragged("labels", row)).tolist()
        scores = np.asarray(table.ragged("scores", row)).tolist()
        for (a, b), kind, score in zip(spans, kinds, scores, strict=True):
            start, end = offset + a, offset + b
            yield Entity(document.text[start:end], labels[kind], start, end, score)


def _checked(level: str) -> str:
    if level not in LEVEL_BIT:
        raise UsageError(f"unknown level {level!r}", hint=f"choose from {', '.join(LEVELS)}")
    return level


def _decode(values: NDArray[np.generic]) -> str:
    return np.asarray(values).tobytes().decode("utf-8", "surrogatepass")
