"""Forgotten documents: which rows only they hold, and the file without them.

A document that left every place it was found at is forgotten. Its rows stay until the file is
compacted, so that one that comes back costs nothing; until then no reader shows them. A row stays
for good where another document holds it too. Former contents of a document that is still there are
none of these: a file that is changed back finds its vectors.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.atomic_write import Access
from featpipe.cache import tables
from featpipe.cache.derived import complete, derived_tables
from featpipe.cache.place_index import PlaceIndex, rows_holding
from featpipe.cache.places import GONE, read_places
from featpipe.cache.texts import Texts, join_keys, split_keys
from featpipe.settings import LEVELS
from featpipe.store import Writer, open_reader
from featpipe.store.rewrite import compact_dictionary, copy_table, rows_of, sound_blocks
from featpipe.store.schema import KEYS
from featpipe.store.sorted_values import is_in, places_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from featpipe.store import Reader, TableReader
    from featpipe.store.rewrite import Compaction
    from featpipe.store.schema import ColumnData

_FORGOTTEN = "(forgotten)"
_UPWARDS = re.compile(r"\A(\.{1,2}/)+")
#: What sets apart samples that are of one document.
_NUMBER = re.compile(r" \(\d+\)\Z")


def compact_cache(path: str | Path) -> Compaction:
    """Rewrite a cache without damaged rows and without what only forgotten documents hold.

    Afterwards no byte of their texts, vectors, entities, values, names and paths is in the file,
    unless another document or an import holds it too; run records name them no more.

    Raises:
        DictionaryError: rows are damaged that others need: a repair drops these, too.
        Else as `featpipe.store.rewrite.compact_dictionary`.
    """
    return compact_dictionary(
        path,
        pick_of=lambda reader: Forgotten(reader).pick,
        leave_out=derived_tables,
        complete=complete,
        is_needed=lambda name: name == tables.TEXTS or name.endswith("/vocabulary"),
    )


@contextmanager
def without_forgotten(path: str | Path) -> Iterator[Path]:
    """The path of a cache, or of a copy for the time being where it holds forgotten documents.

    Only those may read the copy who may read the cache.

    Raises:
        WriteFailed: no room for the copy, in the folder for temporary files.
    """
    with open_reader(path) as reader:
        forgotten = Forgotten(reader)
        if not forgotten:
            yield reader.path  # of a URL, the local folder
            return
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "cache.h5"
            with Writer.open(copy, access=Access.common([reader.path])) as target:
                for name in sorted(set(reader.tables()) - derived_tables(reader)):
                    copy_table(reader.table(name), target, forgotten.pick)
                complete(target)
            yield copy


class Forgotten:
    """What only forgotten documents hold, in a cache as its reader sees it now."""

    def __init__(self, reader: Reader) -> None:
        self._reader = self._terms = reader
        self._ids: dict[str, NDArray[np.uint32]] = {}
        self.paths = _forgotten_paths(reader)
        #: Keys of contents.
        self.documents = frozenset(self._find_left() if self.paths else ())

    def _find_left(self) -> set[bytes]:
        """Keys of contents that were at the places which documents left, and at no other."""
        log = self._reader.table(tables.SOURCES)
        index = PlaceIndex(self._reader)
        rows = index.rows_of_paths(self.paths)
        left = {place.key for place in index.read(rows)} - {GONE}
        others = np.setdiff1d(rows_holding(log, left), rows)
        return left - {place.key for place in index.read(others)}

    @property
    def names(self) -> frozenset[str]:
        """Ids and paths that no document has now, and one had."""
        return self._names[1]

    @property
    def _kept_names(self) -> frozenset[str]:
        return self._names[0]

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of documents, and names of forgotten ones alone. Reads all places."""
        kept: set[str] = set()
        gone: set[str] = set()
        for place in read_places(self._reader) if self.paths else ():
            (gone if place.path in self.paths else kept).update((place.path, place.id))
        return frozenset(kept), frozenset(gone - kept)

    def settle(self) -> None:
        """Read all that it depends on now, since the files are about to change."""
        if self:
            _ = self._units, self._texts, self._values, self._names

    def of_file(self, reader: Reader) -> Forgotten:
        """The same of one file of a folder, which counts its own ids of terms."""
        own = copy(self)
        own._terms, own._ids = reader, {}
        return own

    def __bool__(self) -> bool:
        """Whether the file holds anything of forgotten documents."""
        return bool(self.paths)

    def pick(self, table: TableReader, rows: NDArray[np.int64]) -> dict[str, ColumnData]:
        """These rows as `TableWriter.append` takes them, without what is forgotten."""
        if not self:
            return rows_of(table, rows)
        data = rows_of(table, self.kept(table, rows))
        if table.name == tables.RUNS:
            texts = Texts(*table.ragged_many("record", rows)).strings()
            data["record"] = Texts.from_strings([self._without_names(t) for t in texts]).ragged
        return data

    def kept(self, table: TableReader, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of these rows of a table those that are not forgotten."""
        return rows if not self else rows[self._is_kept(table, rows)]

    def kept_rows(self, table: TableReader) -> NDArray[np.int64]:
        """All rows of a table that are not forgotten."""
        return self.kept(table, np.arange(table.n_rows))

    def _is_kept(self, table: TableReader, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        special = {
            tables.TEXTS: lambda: self._lacks(table, rows, self._texts),
            tables.DOCUMENTS: lambda: self._lacks(table, rows, self._documents),
            tables.SOURCES: lambda: self._is_kept_place(table, rows),
            tables.VALUES: lambda: (
                self._lacks(table, rows, self._values)
                & self._names_none(table, rows, _names_in_values)
            ),
            tables.LOG: lambda: self._of_kept(table, rows),
            tables.FACTS: lambda: self._names_none(table, rows, _names_in_facts),
            # Some may be of forgotten documents alone; all follow from the documents.
            tables.TEXT_LEVELS: lambda: rows < 0,
        }
        group, _, last = table.name.rpartition("/")
        if table.name in special:
            return special[table.name]()
        if group.startswith("terms/") and last == "vocabulary":
            return is_in(np.asarray(table.gather("id", rows), np.uint32), self._ids_in_use(group))
        if table.spec.keyed and not _is_imported(table):
            return self._lacks(table, rows, self._units)
        return np.ones(len(rows), np.bool_)

    def _is_kept_place(self, table: TableReader, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        paths = Texts(*table.ragged_many("path", rows)).strings()
        keys = split_keys(np.asarray(table.gather("document", rows)))
        stays = (p not in self.paths and k != GONE for p, k in zip(paths, keys, strict=True))
        return np.fromiter(stays, np.bool_, len(rows))

    @staticmethod
    def _lacks(
        table: TableReader, rows: NDArray[np.int64], keys: NDArray[np.void]
    ) -> NDArray[np.bool_]:
        """Whether the keys of rows are none of these, which are sorted."""
        return ~is_in(_as_items(table.gather(KEYS, rows)), keys)

    @cached_property
    def _documents(self) -> NDArray[np.void]:
        """Keys of the contents, sorted."""
        return np.sort(_as_items(join_keys(self.documents)))

    @cached_property
    def _units(self) -> NDArray[np.void]:
        """Keys of the units of forgotten documents that no other document has, sorted."""
        if tables.DOCUMENTS not in self._reader or not self.documents:
            return _as_items(join_keys([]))
        table = self._reader.table(tables.DOCUMENTS)
        rows = np.concatenate([rows for rows, _ in sound_blocks(table)] or [np.zeros(0, np.int64)])
        is_kept = self._lacks(table, rows, self._documents)
        units = np.unique(np.concatenate(list(_units_of(table, rows[~is_kept]))))
        is_held = np.zeros(len(units), np.bool_)
        for some in np.array_split(rows[is_kept], len(rows) // 256 + 1):
            for others in _units_of(table, some):
                places = places_in(others, units)
                is_held[places[places >= 0]] = True
        return units[~is_held]

    @cached_property
    def _texts(self) -> NDArray[np.void]:
        """As `_units`, without the texts of imported vectors, which are no document's."""
        units = self._units
        is_held = np.zeros(len(units), np.bool_)
        for name in self._reader.tables():
            table = self._reader.table(name)
            for rows, _ in sound_blocks(table) if _is_imported(table) else ():
                places = places_in(_as_items(table.gather(KEYS, rows)), units)
                is_held[places[places >= 0]] = True
        return units[~is_held]

    def _ids_in_use(self, group: str) -> NDArray[np.uint32]:
        """Ids of terms that a kept unit has, sorted; found once."""
        if group not in self._ids:
            self._ids[group] = self._find_ids_in_use(group)
        return self._ids[group]

    def _find_ids_in_use(self, group: str) -> NDArray[np.uint32]:
        units = self._terms.table(f"{group}/units")
        used = [np.zeros(0, np.uint32)]
        for rows, _ in sound_blocks(units):
            ids, _lengths = units.ragged_many("ids", self.kept(units, rows))
            used.append(np.unique(ids).astype(np.uint32))
        return np.unique(np.concatenate(used))

    @cached_property
    def _values(self) -> NDArray[np.void]:
        """Keys of values that only the results of forgotten documents name, sorted."""
        left: set[bytes] = set()
        held: set[bytes] = set()
        if tables.LOG in self._reader:
            table = self._reader.table(tables.LOG)
            for rows, _ in sound_blocks(table):
                for record in _records(table, rows):
                    keys = map(bytes.fromhex, record["fields"].values())
                    (left if str(record["path"]) in self.paths else held).update(keys)
        return np.sort(_as_items(join_keys(left - held)))

    def _of_kept(self, table: TableReader, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        kept = [
            str(record["path"]) not in self.paths and str(record["document"]) not in self.names
            for record in _records(table, rows)
        ]
        return np.array(kept, np.bool_)

    def _names_none(
        self, table: TableReader, rows: NDArray[np.int64], names_in: Callable[[Any], Iterator[str]]
    ) -> NDArray[np.bool_]:
        """Whether a record names no forgotten document, as a sample or the nearest one."""
        records = _records(table, rows)
        return np.array([not any(map(self._is_forgotten, names_in(r))) for r in records], np.bool_)

    def _is_forgotten(self, name: str) -> bool:
        """Whether a template's name of a document is that of a forgotten one.

        It is an id, a path or the end of one, as templates name samples; or a relative path.
        """
        ends = list(_ends(_UPWARDS.sub("", name)))
        if ends[0] in self._ends_of_kept:
            return False
        # The longest end decides: a document of another folder may have the shorter one.
        known = next((e for e in ends if e in self._kept_names or e in self.names), "")
        return known in self.names or ends[0] in self._ends_of_forgotten

    @cached_property
    def _ends_of_kept(self) -> frozenset[str]:
        return frozenset(end for name in self._kept_names for end in _ends(name))

    @cached_property
    def _ends_of_forgotten(self) -> frozenset[str]:
        return frozenset(end for name in self.names for end in _ends(name))

    def _is_in(self, text: str) -> bool:
        return any(name in text for name in self.names)

    def _without_names(self, text: str) -> str:
        """The record of a run that says what was left out, but not of which forgotten document."""
        if not self._is_in(_unescaped(text)):
            return text
        record = json.loads(text)
        for one in (*record["quarantined"], *record["failed"]):
            if any(self._is_in(str(value)) for value in one.values()):
                one |= {name: _FORGOTTEN for name in ("source", "reason") if name in one}
        notes = record["notes"]
        record["notes"] = [_FORGOTTEN if self._is_in(note) else note for note in notes]
        return json.dumps(record, ensure_ascii=False)


def _forgotten_paths(reader: Reader) -> frozenset[str]:
    """Paths that documents have left, and none is at."""
    if tables.SOURCES not in reader:
        return frozenset()
    log, index = reader.table(tables.SOURCES), PlaceIndex(reader)
    paths = {place.path for place in index.read(rows_holding(log, [GONE]))}
    return frozenset(paths - {seen.place.path for seen in index.present(sorted(paths))})


def _units_of(table: TableReader, rows: NDArray[np.int64]) -> Iterator[NDArray[np.void]]:
    yield _as_items(join_keys([]))
    for level in LEVELS:
        keys, _ = table.ragged_many(f"{level}_keys", rows)
        yield _as_items(np.asarray(keys).reshape(-1, 16))


def _as_items(keys: NDArray[np.generic]) -> NDArray[np.void]:
    """Keys (n, 16) as items (n,) that can be sorted and compared."""
    return np.ascontiguousarray(keys).view("V16").reshape(-1)


def _records(table: TableReader, rows: NDArray[np.int64]) -> Iterator[Any]:
    for text in Texts(*table.ragged_many("record", rows)).strings():
        yield json.loads(text)


def _names_in_values(record: list[dict[str, Any]]) -> Iterator[str]:
    """The nearest samples of a field's values."""
    return (value.get("nearest", "") for value in record)


def _names_in_facts(record: dict[str, Any]) -> Iterator[str]:
    """The samples of a template's fields."""
    for facts in record["facts"].values():
        yield from (_NUMBER.sub("", name) for name in facts["samples"])


def _ends(name: str) -> Iterator[str]:
    """A name and its ends, from the longest to the last part."""
    parts = name.split("/")
    return ("/".join(parts[n:]) for n in range(len(parts)))


def _unescaped(text: str) -> str:
    """JSON with its quotes and backslashes as in the strings that it holds."""
    return text.replace('\\"', '"').replace("\\\\", "\\") if "\\" in text else text


def _is_imported(table: TableReader) -> bool:
    """Whether the vectors were taken over from a file: they are no document's."""
    spec = table.attributes.get("spec")
    return spec is not None and json.loads(spec).get("feature") == "imported"
