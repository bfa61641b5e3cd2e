"""The index of places: documents by path, id and the last part of the id, without reading them all.

``/places`` is kept by the writer beside the log of places, ``/sources``. Its keys are hashes of a
kind of name, a name and a number: 0 for the first row of the log with this name, then 1, 2 ...; so
a few look-ups find all rows with a name, or the last. Rows of the log that the index does not cover
are looked through once, all of them in a cache from before the index.

Guarantee: answers are those of the log. The index holds checksums of the log's rows, which are
salted by table; one that was made for another log, or for one of several files, is not used.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from featpipe.cache import tables
from featpipe.cache.places import GONE, read_rows
from featpipe.cache.texts import join_keys, split_keys
from featpipe.errors import DictionaryError
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.places import Place
    from featpipe.store import Reader, TableReader

    Numbers = NDArray[np.int64]
    #: Rows of keys (n, 16), -1 when absent.
    Find = Callable[[NDArray[np.uint8]], Numbers]

PATH, ID, LAST = b"p", b"i", b"l"  #: kinds of names
#: In the column ``listed``, which else holds the row by which a place has been listed since: a
#: document left here, none was here to leave, the row is not that of a path.
LEFT, WAS_GONE, NO_PATH = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

_EMPTY = blake2b(digest_size=16, person=b"featpipe-name-v1")
#: Rows listed at a time: at first, so that one document costs little, and at most.
_FIRST_BLOCK, _MOST_BLOCK = 64, 8192
_STREAMED, _COUNTED = 1 << 14, 1 << 18
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def last_part(name: str) -> str:
    """The last part of an id."""
    return name.rpartition("/")[2]


def keys_of_names(kind: bytes, names: Sequence[str], numbers: Sequence[int]) -> NDArray[np.uint8]:
    """The keys (n, 16) of the numbered rows with these names."""
    digests = []
    for name, number in zip(names, numbers, strict=True):
        state = _EMPTY.copy()
        state.update(kind + number.to_bytes(8, "little") + name.encode("utf-8", "surrogatepass"))
        digests.append(state.digest())
    return join_keys(digests)


def count_rows(find: Find, kind: bytes, names: Sequence[str]) -> Numbers:
    """How many rows have each of these names: (n,). Looks up about 2 log n keys for n rows."""
    low = np.zeros(len(names), np.int64)  # numbers below are there
    high = np.full(len(names), -1, np.int64)  # absent, once known
    while (open_ := np.flatnonzero(low != high)).size:
        further = np.where(low < 2, low, 2 * low)
        asked = np.where(high < 0, further, (low + high) // 2)[open_]
        some = [names[at] for at in open_.tolist()]
        is_there = find(keys_of_names(kind, some, asked.tolist())) >= 0
        low[open_[is_there]] = asked[is_there] + 1
        high[open_[~is_there]] = asked[~is_there]
    return low


def last_rows(find: Find, kind: bytes, names: Sequence[str]) -> Numbers:
    """The last row of the index with each of these names, -1 where there is none: (n,)."""
    counts = count_rows(find, kind, names)
    found = np.full(len(names), -1, np.int64)
    held = np.flatnonzero(counts)
    some = [names[at] for at in held.tolist()]
    found[held] = find(keys_of_names(kind, some, (counts[held] - 1).tolist()))
    return found


def n_covered(index: TableReader, log: TableReader) -> int:
    """How many rows of the log, from the first, the index covers; 0 where it is another log's."""
    for stop in range(index.n_rows, 0, -_MOST_BLOCK):
        start = max(0, stop - _MOST_BLOCK)
        sources = np.asarray(index.slice("source", start, stop))
        is_path = np.asarray(index.slice("listed", start, stop)) != NO_PATH
        # The path comes last of the names of a row. A reader may see the index of a commit first.
        whole = np.flatnonzero(is_path & (sources < log.n_rows))
        if len(whole):
            last, source = int(whole[-1]) + start, int(sources[whole[-1]])
            made_for = index.slice("check", last, last + 1)
            same = np.array_equal(made_for, log.slice("checks", source, source + 1))
            return source + 1 if same else 0
    return 0


def rows_holding(log: TableReader, keys: Collection[bytes]) -> Numbers:
    """Rows of ``/sources`` with one of these keys of documents. Memory for one block."""
    wanted = np.sort(join_keys(sorted(keys)).view("<u8")[:, 0])
    found = [np.zeros(0, np.int64)]
    for start in range(0, log.n_rows if len(wanted) else 0, _COUNTED):
        stop = min(start + _COUNTED, log.n_rows)
        heads = np.ascontiguousarray(log.slice("document", start, stop)).view("<u8")[:, 0]
        rows = np.flatnonzero(is_in(heads, wanted)) + start
        held = split_keys(np.asarray(log.gather("document", rows)))
        found.append(rows[[key in keys for key in held]])
    return np.concatenate(found)


class Seen(NamedTuple):
    """A place as it is now; ``listed`` is the row of the log by which it has been listed."""

    listed: int
    place: Place


class PlaceIndex:
    """The places of a cache at one time.

    Of the reader it uses ``table`` and ``in``, of tables ``n_rows``, ``find``, ``slice``,
    ``slices``, ``gather`` and ``ragged_many``. A reader without ``/places`` will do, or one of
    several files.

    Args:
        reader: of the cache.

    """

    def __init__(self, reader: Reader) -> None:
        self._log = reader.table(tables.SOURCES) if tables.SOURCES in reader else None
        self._index = reader.table(tables.PLACES) if tables.PLACES in reader else None
        self.n_rows = self._log.n_rows if self._log else 0
        self.n_covered = n_covered(self._index, self._log) if self._index and self._log else 0
        self._n_entries = self._index.n_rows if self._index and self.n_covered else 0
        self._later = _Later(self)

    def __len__(self) -> int:
        """How many places have a document."""
        n = self._later.n_listed
        for start in range(0, self._n_entries, _COUNTED):
            sources, listed, _ = self._columns(start, start + _COUNTED)
            n += int((sources == listed).sum() - (listed == LEFT).sum())
        return n

    def __iter__(self) -> Iterator[Place]:
        """Every place with a document, as last seen, in the order in which they were listed."""
        for block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[list[Place]]:
        """Every place with a document, as last seen, in the order in which they were listed.

        That is the order in which they were first seen since they were last gone. The first blocks
        are small, and cost as much in a large cache as in a small one.
        """
        step, start, seen = _FIRST_BLOCK, 0, -1
        while start < min(self._n_entries, _STREAMED):
            sources, listed, _ = self._columns(start, start + step)
            seen = int(sources[listed != NO_PATH].max(initial=seen))
            rows = sources[sources == listed]
            last = self._find_last([place.path for place in self.read(rows)])
            yield self.read(last[last[:, 1] == rows, 0])
            start, step = start + step, 2 * step
        if start < self._n_entries or self.n_rows > self.n_covered:
            yield from self.blocks_after(seen)

    def blocks_after(self, seen: int) -> Iterator[list[Place]]:
        """As `blocks`, of the places that were listed by later rows of the log. Reads all."""
        rest = self.rows_present()
        rows = rest[rest[:, 1] > seen, 0]
        for at in range(0, len(rows), _MOST_BLOCK):
            yield self.read(rows[at : at + _MOST_BLOCK])

    def rows_present(self) -> Numbers:
        """Of every place with a document its last row of the log, and the one it is listed by.

        Shape (n, 2), in the order of listing. Reads no names of what the index covers.
        """
        # By the first entry of a path; a row of the log has one, so that it is never this number.
        last = np.full((self._n_entries, 2), NO_PATH, np.uint32)
        for start in range(0, self._n_entries, _COUNTED):
            sources, listed, first = self._columns(start, start + _COUNTED)
            rows = np.flatnonzero(listed != NO_PATH)
            last[first[rows]] = np.stack([sources[rows], listed[rows]], axis=1)
        found = last[last[:, 1] != NO_PATH].astype(np.int64)
        found = self._later.continued(found)
        found = found[found[:, 1] < NO_PATH]
        return found[np.argsort(found[:, 1], kind="stable")]

    def find_path(self, path: str) -> Place | None:
        """The place of this path; None where no document is."""
        found = self.present([path])
        return found[0].place if found else None

    def find_id(self, id_: str) -> list[Place]:
        """Places whose document has this id, in order."""
        found = self.present(self._paths_of(ID, id_))
        return [seen.place for seen in found if seen.place.id == id_]

    def find_last_part(self, last: str) -> list[Place]:
        """Places whose document has an id with this last part, in order."""
        found = self.present([*self._paths_of(LAST, last), *self._paths_of(ID, last)])
        return [seen.place for seen in found if last_part(seen.place.id) == last]

    def find_contents(self, keys: Collection[bytes]) -> list[Place]:
        """Places whose document has one of these keys, in order. Reads the keys of all places."""
        rows = rows_holding(self._log, keys) if self._log and keys else np.zeros(0, np.int64)
        found = self.present([place.path for place in self.read(rows[rows < self.n_rows])])
        return [seen.place for seen in found if seen.place.key in keys]

    def rows_of_paths(self, paths: Iterable[str]) -> Numbers:
        """All rows of the log with one of these paths, in order."""
        rows = [row for path in paths for row in self._rows_of(PATH, path)]
        return np.unique(np.array(rows, np.int64))

    def present(self, paths: Sequence[str]) -> list[Seen]:
        """Those of some paths at which there is a document, in order."""
        last = self._find_last(list(dict.fromkeys(paths)))
        last = last[last[:, 1] < NO_PATH]
        last = last[np.argsort(last[:, 1], kind="stable")]
        return list(map(Seen, last[:, 1].tolist(), self.read(last[:, 0])))

    def read(self, rows: Numbers) -> list[Place]:
        """Rows of the log."""
        return read_rows(self._log, rows) if self._log else []

    def _find_last(self, paths: Sequence[str]) -> Numbers:
        """Of each path the last row of the log, and the row by which it is listed: (n, 2)."""
        found = self.find_covered(paths)
        for number, path in enumerate(paths if self.n_rows > self.n_covered else ()):
            rows = self._later.rows(PATH, path)
            if rows:
                found[number] = rows[-1], self._later.listed(rows[-1])
        return found

    def find_covered(self, paths: Sequence[str]) -> Numbers:
        """As `_find_last`, of the rows that the index covers; `LEFT` where there is none."""
        found = np.full((len(paths), 2), LEFT, np.int64)
        if self._index is not None and self.n_covered:
            at = last_rows(self._find, PATH, paths)
            for column, name in enumerate(("source", "listed")):
                found[at >= 0, column] = self._index.gather(name, at[at >= 0])
        return found

    def _find(self, keys: NDArray[np.uint8]) -> Numbers:
        """Rows of the index, of those that belong to rows of the log seen here."""
        if self._index is None:
            return np.full(len(keys), -1, np.int64)
        rows = self._index.find(keys)
        held = np.flatnonzero(rows >= 0)
        is_beyond = np.asarray(self._index.gather("source", rows[held])) >= self.n_covered
        rows[held[is_beyond]] = -1
        return rows

    def _paths_of(self, kind: bytes, name: str) -> list[str]:
        """Paths whose document has, or had, this name."""
        rows = np.array(self._rows_of(kind, name), np.int64)
        return [place.path for place in self.read(rows)]

    def _rows_of(self, kind: bytes, name: str) -> list[int]:
        """Rows of the log with a name, of ids some; in order."""
        rows = self._later.rows(kind, name)
        if self._index is not None and self.n_covered:
            [n] = count_rows(self._find, kind, [name]).tolist()
            at = self._find(keys_of_names(kind, [name] * n, range(n)))
            rows = np.asarray(self._index.gather("source", at)).tolist() + rows
        return rows

    def _columns(self, start: int, stop: int) -> tuple[Numbers, Numbers, Numbers]:
        """``source``, ``listed`` and ``first`` of the entries start:stop, as far as they count."""
        index, stop = self._index, min(stop, self._n_entries)
        if index is None:
            return (np.zeros(0, np.int64),) * 3
        names = ("source", "listed", "first")
        found = index.slices(names, start, stop)
        columns = [np.asarray(column).astype(np.int64) for column in found]
        is_seen = columns[0] < self.n_covered
        columns = [column[: int(is_seen.sum())] for column in columns]  # entries are in order
        return columns[0], columns[1], columns[2]


def documents_of_rows(reader: Reader, table: str, keys: Sequence[bytes]) -> list[str]:
    """Ids of the documents whose rows of ``/documents`` have these keys; of other tables none.

    For errors about damaged rows: where places are damaged, too, they are not known.
    """
    if table != tables.DOCUMENTS:
        return []
    try:
        return [place.id for place in PlaceIndex(reader).find_contents(keys)]
    except DictionaryError:
        return []


class _Later:
    """The rows of the log that the index does not cover, looked through when first asked for.

    Args:
        index: of the others.

    """

    def __init__(self, index: PlaceIndex) -> None:
        self._index = index
        self._first = index.n_covered
        self._n = index.n_rows - index.n_covered
        self._listed: Numbers | None = None
        self._n_listed = 0
        self._before: Numbers = np.zeros(0, np.int64)  #: covered rows that were the last of a path
        #: By kind: hashes of names, sorted, and the row of each.
        self._hashes: dict[bytes, tuple[Numbers, Numbers]] = {}

    @property
    def n_listed(self) -> int:
        """How many more places have a document than before these rows."""
        self._look_through()
        return self._n_listed

    def rows(self, kind: bytes, name: str) -> list[int]:
        """Rows with this name, in order."""
        self._look_through()
        hashes, rows = self._hashes[kind]
        begin, end = (int(np.searchsorted(hashes, hash(name), side)) for side in _SIDES)
        return [
            row
            for row in sorted(rows[begin:end].tolist())
            if name_of(kind, *self._index.read(np.array([row]))) == name
        ]

    def listed(self, row: int) -> int:
        """The row by which the place of a row is listed, as of this row."""
        return int(self._look_through()[row - self._first])

    def continued(self, covered: Numbers) -> Numbers:
        """The last rows of all paths, and by which they are listed, given those covered: (n, 2)."""
        if not self._n:
            return covered
        listed = self._look_through()
        hashes, rows = self._hashes[PATH]
        rows = rows[np.append(hashes[1:] != hashes[:-1], [True])]
        more = np.stack([rows, listed[rows - self._first]], axis=1)
        return np.concatenate([covered[~np.isin(covered[:, 0], self._before)], more])

    def _look_through(self) -> Numbers:
        if self._listed is not None:
            return self._listed
        hashes = {kind: np.zeros(self._n, np.int64) for kind in (PATH, ID, LAST)}
        listed, last = np.zeros(self._n, np.int64), dict[int, int]()
        before: list[Numbers] = []
        for start in range(0, self._n, _MOST_BLOCK):
            rows = np.arange(start, min(start + _MOST_BLOCK, self._n))
            places = self._index.read(rows + self._first)
            known_rows, known = self._index.find_covered([place.path for place in places]).T
            before.append(known_rows[known != LEFT])
            for at, place, state in zip(rows.tolist(), places, known.tolist(), strict=True):
                for kind, each in hashes.items():
                    each[at] = hash(name_of(kind, place))
                path = int(hashes[PATH][at])
                listed[at] = last[path] = next_listed(
                    place, at + self._first, last.get(path, state)
                )
        orders = {kind: np.argsort(each, kind="stable") for kind, each in hashes.items()}
        self._hashes = {
            kind: (hashes[kind][order], order + self._first) for kind, order in orders.items()
        }
        starts = listed == np.arange(self._n) + self._first
        self._n_listed = int(starts.sum() - (listed == LEFT).sum())
        self._before = np.concatenate([np.zeros(0, np.int64), *before])
        self._listed = listed
        return listed


def name_of(kind: bytes, place: Place) -> str:
    """One of the names of a place."""
    if kind == PATH:
        return place.path
    return place.id if kind == ID else last_part(place.id)


def next_listed(place: Place, row: int, before: int) -> int:
    """The value of ``listed`` for one more row of a place; ``before`` is its last one."""
    is_gone = before >= NO_PATH
    if place.key == GONE:
        return WAS_GONE if is_gone else LEFT
    return row if is_gone else before
