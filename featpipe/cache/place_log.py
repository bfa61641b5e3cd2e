"""The writer's side of the index of places: entries for the rows that ``/sources`` is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.place_index import (
    ID,
    LAST,
    NO_PATH,
    PATH,
    PlaceIndex,
    count_rows,
    keys_of_names,
    last_part,
    next_listed,
)
from featpipe.cache.places import Place
from featpipe.cache.texts import Texts, split_keys
from featpipe.store import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.tables import Rows
    from featpipe.store import TableWriter, Writer

_BLOCK = 8192


class PlaceLog:
    """Keeps ``/places`` in step with ``/sources``. The caller commits.

    Args:
        writer: that owns the cache.

    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._is_void = False

    def catch_up(self) -> None:
        """Index the committed places that are not yet."""
        with Reader(self._writer.path) as reader:
            places = PlaceIndex(reader)
            held = reader.table(tables.PLACES).n_rows if tables.PLACES in reader else 0
            # An index of another log is left alone; compacting the cache makes a new one.
            self._is_void = bool(held and not places.n_covered)
            if self._is_void:
                return
            for start in range(places.n_covered, places.n_rows, _BLOCK):
                rows = np.arange(start, min(start + _BLOCK, places.n_rows))
                checks = reader.table(tables.SOURCES).gather("checks", rows)
                self._index(start, places.read(rows), np.asarray(checks))

    def append(self, rows: Rows) -> None:
        """Index these rows of ``/sources``, which were appended just now."""
        if self._is_void:
            return
        paths, names = (_strings(rows[column]) for column in ("path", "id"))
        places = list(map(Place, paths, names, split_keys(np.asarray(rows["document"]))))
        log = self._writer.table(tables.SOURCES, tables.sources_spec())
        start = log.n_rows - len(places)
        self._index(start, places, log.gather("checks", np.arange(start, log.n_rows)))

    def _index(self, start: int, places: Sequence[Place], checks: NDArray[np.generic]) -> None:
        index = self._writer.table(tables.PLACES, tables.places_spec())
        entries = _Entries(index, places)
        for row, place in enumerate(places, start):
            entries.add(place, row)
        index.append(entries.rows(checks, start))


@dataclass(slots=True)
class _Chain:
    """The entries of one name: how many, and of the last of them the two columns."""

    n: int
    listed: int = NO_PATH
    first: int = -1


class _Entries:
    """New entries of the index, in order: of each row of the log the path comes last."""

    def __init__(self, index: TableWriter, places: Sequence[Place]) -> None:
        self._n_before = index.n_rows
        self._chains = {
            PATH: _chains(index, PATH, (place.path for place in places)),
            ID: _chains(index, ID, (place.id for place in places)),
            LAST: _chains(index, LAST, (last_part(place.id) for place in places)),
        }
        #: By kind: (position among the new entries, name, its number).
        self._names: dict[bytes, list[tuple[int, str, int]]] = {kind: [] for kind in self._chains}
        self._columns: list[tuple[int, int, int]] = []

    def add(self, place: Place, row: int) -> None:
        chain = self._chains[PATH][place.path]
        if not chain.n:
            n_names = 2 if "/" in place.id else 1
            chain.first = self._n_before + len(self._columns) + n_names
        id_ = self._chains[ID][place.id]
        if id_.first != chain.first:  # else this path is found by this id already
            self._add(ID, place.id, id_, (row, NO_PATH, chain.first))
            if "/" in place.id:
                last = last_part(place.id)
                self._add(LAST, last, self._chains[LAST][last], (row, NO_PATH, chain.first))
        listed = next_listed(place, row, chain.listed)
        self._add(PATH, place.path, chain, (row, listed, chain.first))

    def _add(self, kind: bytes, name: str, chain: _Chain, columns: tuple[int, int, int]) -> None:
        self._names[kind].append((len(self._columns), name, chain.n))
        self._columns.append(columns)
        chain.n += 1
        _, chain.listed, chain.first = columns

    def rows(self, checks: NDArray[np.generic], start: int) -> Rows:
        """All of them; ``checks`` are of the rows of the log from ``start`` on."""
        keys = np.zeros((len(self._columns), 16), np.uint8)
        for kind, entries in self._names.items():
            at, names, numbers = zip(*entries, strict=True) if entries else ((), (), ())
            keys[list(at)] = keys_of_names(kind, names, numbers)
        columns = np.array(self._columns, np.uint32).reshape(-1, 3)
        found: Rows = {"keys": keys, "check": checks[columns[:, 0] - start]}
        for number, name in enumerate(("source", "listed", "first")):
            found[name] = np.ascontiguousarray(columns[:, number])
        return found


def _strings(
    column: NDArray[np.generic] | tuple[NDArray[np.generic], NDArray[np.int64]],
) -> list[str]:
    values, lengths = column
    return Texts(np.asarray(values, np.uint8), np.asarray(lengths)).strings()


def _chains(index: TableWriter, kind: bytes, names: Iterable[str]) -> dict[str, _Chain]:
    """What the index holds of each name."""
    distinct = list(dict.fromkeys(names))
    counts = count_rows(index.find, kind, distinct)
    chains = {name: _Chain(n) for name, n in zip(distinct, counts.tolist(), strict=True)}
    held = [name for name, chain in chains.items() if chain.n]
    if held:
        last = index.find(keys_of_names(kind, held, [chains[name].n - 1 for name in held]))
        columns = (index.gather(column, last).tolist() for column in ("listed", "first"))
        for name, listed, first in zip(held, *columns, strict=True):
            chains[name].listed, chains[name].first = listed, first
    return chains
