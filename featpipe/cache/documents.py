"""The documents of a cache: each as it was last seen at its place, with units and entities."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.contents import ContentIndex
from featpipe.cache.folder_place_index import open_place_index
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.kept_levels import kept_level_bits
from featpipe.cache.place_index import last_part
from featpipe.cache.texts import LEVEL_BIT, check_level, decode, join_keys
from featpipe.documents.find import absolute
from featpipe.errors import DamagedRows, MissingDocuments, UnknownSpace
from featpipe.fork_lock import make_lock
from featpipe.store.damage import of_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.place_index import PlaceIndex
    from featpipe.cache.places import Place
    from featpipe.store import Reader, TableReader
    from featpipe.store.checksum import AnyArray

    #: Of a table: another object where the file was replaced, and its number of rows.
    State = tuple[TableReader | None, int]
    States = tuple[State, ...]


#: Documents that an error names, and ids that it compares with a wrong one.
_NAMED, _COMPARED = 5, 10_000


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


@dataclass(frozen=True, eq=False, repr=False)
class CachedDocument:
    """A stored document. Its text, units and entities are read from the file on first use.

    Attributes:
        id: readable name: the end of its path (see `featpipe.documents.find`).
        path: absolute path it was last seen at.
        row: its row in ``/documents``.
        key: 16 bytes that identify its content and the way it was read.
    """

    id: str
    path: str
    row: int
    key: bytes
    _stored: StoredDocuments

    @cached_property
    def text(self) -> str:
        """The one text that all offsets count in."""
        return decode(self._read("text"))

    @cached_property
    def meta(self) -> dict[str, object]:
        """Title, media type, loader, hashes, pages, tables ... as stored."""
        return dict(json.loads(decode(self._read("meta"))))

    def spans(self, level: str) -> NDArray[np.uint32]:
        """Unit spans (n, 2) of one level, in order."""
        return np.asarray(self._read(f"{check_level(level)}_spans"))

    def keys(self, level: str) -> NDArray[np.uint8]:
        """Keys (n, 16) of the units of one level, in order."""
        return np.asarray(self._read(f"{check_level(level)}_keys"))

    def units(self, level: str) -> list[Unit]:
        """Units of one level, in order.

        Raises:
            UsageError: no such level.

        """
        text = self.text
        return [Unit(text[a:b], a, b, level) for a, b in self.spans(level).tolist()]

    def entities(self, tagger: str | None = None) -> list[Entity]:
        """Entities in order of the text; ``tagger`` may be left out when there is only one.

        Raises:
            UnknownSpace: no such tagger, or several match the name.

        """
        with _reading_for(self):
            return self._stored.entities_of(self, tagger)

    def _read(self, column: str) -> AnyArray:
        with _reading_for(self):
            return self._stored.table.ragged(column, self.row)

    def __repr__(self) -> str:
        return f"<CachedDocument {self.id!r} at {self.path}>"


class StoredDocuments:
    """``/documents`` of a cache, with the places and entities of its rows.

    Any thread may call `find` and `find_content`; both see rows as soon as they are committed.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lock = make_lock()
        self._index: tuple[States, PlaceIndex] | None = None
        self._forgotten: tuple[States, Forgotten] | None = None
        self._levels: tuple[States, NDArray[np.uint8]] | None = None
        self._contents = ContentIndex()

    def __reduce__(self) -> tuple[type[StoredDocuments], tuple[Reader]]:
        """Pickle without the lock; the reader pickles as its path."""
        return StoredDocuments, (self._reader,)

    @property
    def table(self) -> TableReader:
        """``/documents``."""
        return self._reader.table(tables.DOCUMENTS)

    def __iter__(self) -> Iterator[CachedDocument]:
        """One document per place, in the order in which places were first seen.

        The first one costs as much in a large cache as in a small one.
        """
        for block in self._places().blocks():
            yield from self._documents_at(block)

    def n_places(self) -> int:
        """How many places have a document, without reading them."""
        return len(self._places())

    def rows_present(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of every document, in order, its row in ``/sources`` and its row in ``/documents``.

        16 bytes a document; `document_at` makes one of a pair.
        """
        places = self._places().rows_present()[:, 0]
        if not len(places) or tables.DOCUMENTS not in self._reader:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys = np.asarray(self._reader.table(tables.SOURCES).gather("document", places), np.uint8)
        rows = self.table.find(keys)
        return places[rows >= 0], rows[rows >= 0]

    def document_at(self, place: int, row: int) -> CachedDocument:
        """A document by its row in ``/sources`` and its row in ``/documents``."""
        [found] = self._places().read(np.array([place]))
        return CachedDocument(found.id, found.path, row, found.key, self)

    def find(self, name: str) -> CachedDocument | None:
        """The document of this id or path, if there is one.

        Where no such file exists, the end of an id will do that only one document has: the ids of
        the first caches began below the folder that was given.
        """
        found = self.find_all(name)
        return found[0] if len(found) == 1 else None

    def find_all(self, name: str) -> list[CachedDocument]:
        """As `find`; several where they share the end of their ids."""
        with self._lock:
            self._reader.refresh()
            places = self._places()
            for whole in dict.fromkeys((name, absolute_name(name))):
                at = places.find_path(whole)
                exact = self._documents_at([at] if at else [])
                exact = exact or self._documents_at(places.find_id(whole))
                if exact:
                    return exact[:1]
            end = f"/{name.removeprefix('/')}"
            if name.endswith("/") or _exists(name):
                return []
            last = self._documents_at(places.find_last_part(last_part(name)))
            return [one for one in last if f"/{one.id}".endswith(end) or one.path.endswith(end)]

    def find_content(self, bytes_hash: str, media_type: str | None = None) -> CachedDocument | None:
        """A document whose file has these bytes, by `featpipe.documents.hash_bytes`.

        Args:
            bytes_hash: of the file.
            media_type: under which it was read; by default any. The same bytes give one text as
                Markdown and another as plain text.

        """
        with self._lock:
            self._reader.refresh()
            if tables.DOCUMENTS not in self._reader:
                return None
            kinds = self._contents.find(self.table, bytes_hash, media_type)
            found = self._documents_at(self._places().find_contents(kinds))
        same = [one for one in found if kinds[one.key] == kinds[found[0].key]]
        return same[-1] if same else None

    def _documents_at(self, places: Sequence[Place]) -> list[CachedDocument]:
        """The documents of these places; none where no content is stored."""
        if not places or tables.DOCUMENTS not in self._reader:
            return []
        rows = self.table.find(join_keys(place.key for place in places)).tolist()
        return [
            CachedDocument(place.id, place.path, row, place.key, self)
            for place, row in zip(places, rows, strict=True)
            if row >= 0
        ]

    def find_only(self, name: str) -> CachedDocument | None:
        """As `find`, but the end of several ids is an error.

        Raises:
            MissingDocuments: the end of several ids, which are named.

        """
        found = self.find_all(name)
        if len(found) > 1:
            raise MissingDocuments(
                f"{name!r} is the end of {len(found)} ids in the cache",
                hint=f"name one of them: {', '.join(one.id for one in found[:_NAMED])}",
            )
        return found[0] if found else None

    def require(self, name: str) -> CachedDocument:
        """As `find`.

        Raises:
            MissingDocuments: no such document; the nearest ids are named.

        """
        found = self.find_only(name)
        if found is not None:
            return found
        places = self._places()
        some = [place.id for place in islice(places, _COMPARED)]
        near = get_close_matches(name, some, n=3)
        raise MissingDocuments(
            f"{self._reader.path} holds no document {name!r}, but {len(places)} others",
            hint=f"nearest: {', '.join(near)}"
            if near
            else "featpipe documents list shows them; build-cache takes in others",
        )

    def forgotten(self) -> Forgotten:
        """What only forgotten documents hold, as of the last refresh."""
        state = self.states(tables.SOURCES, tables.PLACES)
        if self._forgotten is None or self._forgotten[0] != state:
            self._forgotten = state, Forgotten(self._reader)
        return self._forgotten[1]

    def _places(self) -> PlaceIndex:
        """Places as of the last refresh."""
        state = self.states(tables.SOURCES, tables.PLACES)
        if self._index is None or self._index[0] != state:
            self._index = state, open_place_index(self._reader)
        return self._index[1]

    def states(self, *names: str) -> States:
        """What changes with the rows of these tables."""
        held = (self._reader.table(n) if n in self._reader else None for n in names)
        return tuple((table, table.n_rows if table else 0) for table in held)

    def are_of_level(self, texts: NDArray[np.uint8], level: str) -> NDArray[np.bool_]:
        """Whether the texts of these keys (n, 16) occur at a level in a document: (n,)."""
        return np.asarray((self.bits_of(texts) & LEVEL_BIT[level]) != 0)

    def bits_of(self, texts: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Levels of the texts of these keys (n, 16), as bits of `LEVEL_BIT`; 0 of others: (n,)."""
        bits = self.level_bits()
        if not len(bits):
            return np.zeros(len(texts), np.uint8)
        rows = self._reader.table(tables.TEXTS).find(texts)
        # A text that was stored since has no bits yet.
        is_known = (rows >= 0) & (rows < len(bits))
        return np.asarray(np.where(is_known, bits[np.where(is_known, rows, 0)], 0), np.uint8)

    def level_bits(self) -> NDArray[np.uint8]:
        """Levels by row of ``/texts``, as of the last refresh."""
        state = self.states(tables.SOURCES, tables.DOCUMENTS, tables.TEXTS, tables.TEXT_LEVELS)
        if self._levels is None or self._levels[0] != state:
            forgotten = self.forgotten()
            keep = forgotten.kept if forgotten.documents else None
            self._levels = state, kept_level_bits(self._reader, keep)
        return self._levels[1]

    def taggers(self) -> list[str]:
        """Names of the taggers whose entities are stored."""
        prefix = "entities/"
        return [name[len(prefix) :] for name in self._reader.tables() if name.startswith(prefix)]

    def entities_of(self, document: CachedDocument, tagger: str | None) -> list[Entity]:
        """Entities of one document, with offsets into its text.

        Raises:
            UnknownSpace: no such tagger, or several match the name.

        """
        names = self.taggers()
        if not names and tagger is None:
            return []
        matching = tables.find_named(names, tagger)
        if len(matching) != 1:
            asked = "a tagger must be named" if tagger is None else f"no tagger {tagger!r}"
            raise UnknownSpace(
                f"{asked}: the cache holds entities by {', '.join(names) or 'none'}",
                hint='document.entities("name@fingerprint")',
            )
        table = self._reader.table(f"entities/{matching[0]}")
        labels = json.loads(table.attributes["types"])
        return list(_place_entities(document, table, labels))


@contextmanager
def _reading_for(document: CachedDocument) -> Iterator[None]:
    """Errors about damaged rows name the document."""
    try:
        yield
    except DamagedRows as error:
        raise of_documents(error, [document.id]) from None


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


def absolute_name(name: str) -> str:
    """The name as an absolute path, where it can be one."""
    try:
        return str(absolute(Path(name)))
    except (OSError, ValueError):
        return name


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False
