"""The index of places against the log itself: a dict that takes the rows one by one."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.cache import place_index, tables
from featpipe.cache.derived import DerivedRows, complete
from featpipe.cache.folder_place_index import open_place_index
from featpipe.cache.forgotten import Forgotten, compact_cache
from featpipe.cache.merge import merge_caches
from featpipe.cache.place_index import PlaceIndex, count_rows, keys_of_names, last_part
from featpipe.cache.places import GONE, Place
from featpipe.cache.repair import repair_cache
from featpipe.cache.texts import Texts, join_keys
from featpipe.errors import DamagedRows
from featpipe.store import Reader, Writer, open_reader
from featpipe.store.folder_layout import FolderLayout
from featpipe.store.rewrite import rows_of

if TYPE_CHECKING:
    from folder_cache import Pair
    from numpy.typing import NDArray

PATHS = ["/d/a.txt", "/d/b.txt", "/d/x/a.txt", "/e@1", "<given>"]
IDS = ["a.txt", "d/a.txt", "x/a.txt", "b.txt", "given"]
KEYS = [GONE, b"1" * 16, b"2" * 16]

places = st.builds(Place, st.sampled_from(PATHS), st.sampled_from(IDS), st.sampled_from(KEYS))
#: Commits; of each, whether its writer keeps the index.
histories = st.lists(st.tuples(st.lists(places, max_size=6), st.booleans()), max_size=8)


def append(writer: Writer, rows: list[Place], *, is_indexed: bool) -> None:
    derived = DerivedRows(writer, {tables.SOURCES})
    given_rows = {
        "document": join_keys(place.key for place in rows),
        "path": Texts.from_strings([place.path for place in rows]).ragged,
        "id": Texts.from_strings([place.id for place in rows]).ragged,
    }
    if is_indexed:
        derived.catch_up()
    writer.table(tables.SOURCES, tables.sources_spec()).append(given_rows)
    if is_indexed:
        derived.append({tables.SOURCES: given_rows})
    writer.commit()


def replay(rows: list[Place]) -> dict[str, Place]:
    """What the log means: the last row of a path counts, and one without content ends it."""
    found: dict[str, Place] = {}
    for place in rows:
        if place.key == GONE:
            found.pop(place.path, None)
        else:
            found[place.path] = place
    return found


def check(path: Path, rows: list[Place]) -> None:
    expected = replay(rows)
    present = list(expected.values())
    with open_reader(path) as reader:
        index = open_place_index(reader)
        assert list(index) == present
        assert len(index) == len(present)
        for name in PATHS:
            assert index.find_path(name) == expected.get(name)
        for name in IDS:
            assert index.find_id(name) == [place for place in present if place.id == name]
        for last in {last_part(name) for name in IDS}:
            same = [place for place in present if last_part(place.id) == last]
            assert index.find_last_part(last) == same
        for key in KEYS[1:]:
            assert index.find_contents([key]) == [p for p in present if p.key == key]
        forgotten = {place.path for place in rows} - expected.keys()
        gone = {place.key for place in rows if place.path in forgotten} - {GONE}
        kept = {place.key for place in rows if place.path in expected}
        assert Forgotten(reader).paths == forgotten
        assert Forgotten(reader).documents == gone - kept


@settings(max_examples=60, deadline=None)
@given(histories)
def test_the_index_answers_as_the_log_does(history: list[tuple[list[Place], bool]]) -> None:
    with TemporaryDirectory() as folder:
        path, rows = Path(folder) / "c.h5", list[Place]()
        with Writer.open(path) as writer:
            for new, is_indexed in history:
                append(writer, new, is_indexed=is_indexed)
                rows += new
        check(path, rows)
        with Writer.open(path) as writer:
            complete(writer)
        check(path, rows)
        with Reader(path) as reader:
            index = PlaceIndex(reader)
            assert index.n_covered == index.n_rows == len(rows)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.lists(places, max_size=6), st.booleans()), min_size=1, max_size=4))
def test_the_index_of_a_folder_answers_as_all_its_logs_do(
    history: list[tuple[list[Place], bool]],
) -> None:
    with TemporaryDirectory() as folder:
        layout, rows = FolderLayout(Path(folder), 0), list[Place]()
        layout.description.write_text(json.dumps({"format": 1, "bits": 0}), "utf-8")
        layout.part_file("run", 0).parent.mkdir()
        for number, (new, is_indexed) in enumerate(history):
            with Writer.open(layout.part_file("run", number)) as writer:
                append(writer, new, is_indexed=is_indexed)
            rows += new
        check(Path(folder), rows)


def test_a_document_of_a_folder_is_found_without_looking_through_all_places(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cache.open(pair.file) as cache:
        expected = [(found.id, found.path, found.text) for found in cache.documents()]
    monkeypatch.setattr(PlaceIndex, "rows_present", None)
    look_through = place_index._Later._look_through

    def only_nothing(self: place_index._Later) -> NDArray[np.int64]:
        assert not self._n
        return look_through(self)

    monkeypatch.setattr(place_index._Later, "_look_through", only_nothing)
    with Cache.open(pair.folder) as cache:
        for id_, path, text in expected:
            for name in (id_, path, Path(path).name):
                assert cache.document(name).text == text
        documents = cache.documents()
        for wanted in expected[:5]:
            found = next(documents)
            assert (found.id, found.path, found.text) == wanted


@given(st.lists(st.integers(0, 40), max_size=6))
def test_rows_of_a_name_are_counted_with_few_look_ups(counts: list[int]) -> None:
    names = [f"n{number}" for number in range(len(counts))]
    held = {
        keys_of_names(b"p", [name], [number]).tobytes()
        for name, count in zip(names, counts, strict=True)
        for number in range(count)
    }
    n_asked = 0

    def find(keys: np.ndarray) -> np.ndarray:
        nonlocal n_asked
        n_asked += 1
        return np.array([-1 + (key.tobytes() in held) for key in keys], np.int64)

    assert count_rows(find, b"p", names).tolist() == counts
    assert n_asked <= 12


def test_an_index_of_another_log_is_not_used(tmp_path: Path) -> None:
    """A featpipe from before the index copies both tables when it compacts, row by row."""
    path, copy = tmp_path / "c.h5", tmp_path / "copy.h5"
    rows = [Place(PATHS[at], IDS[at], KEYS[1]) for at in range(3)]
    with Writer.open(path) as writer:
        append(writer, rows, is_indexed=True)
    with Reader(path) as reader, Writer.open(copy) as writer:
        for name, first in ((tables.SOURCES, 1), (tables.PLACES, 0)):
            table = reader.table(name)
            writer.table(name, table.spec).append(rows_of(table, np.arange(first, table.n_rows)))
    check(copy, rows[1:])
    with Writer.open(copy) as writer:
        append(writer, rows[:1], is_indexed=True)
    check(copy, [*rows[1:], rows[0]])
    compact_cache(copy)
    check(copy, [*rows[1:], rows[0]])
    with Reader(copy) as reader:
        assert PlaceIndex(reader).n_covered == 3


def test_compacting_leaves_no_entry_of_a_forgotten_name(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write_documents(path, {"secret.txt": ["甲。"], "b.txt": ["乙。"]})
    with Writer.open(path) as writer:
        complete(writer)
    key = keys_of_names(b"i", ["secret.txt"], [0])
    with Cache.open(path) as cache:
        assert cache.reader.table(tables.PLACES).find(key)[0] >= 0
        cache.forget("secret.txt")
        assert cache.find_document("secret.txt") is None
    compact_cache(path)
    assert key.tobytes() not in path.read_bytes()
    with Cache.open(path) as cache:
        assert cache.reader.table(tables.PLACES).n_rows == 2
        assert [document.id for document in cache.documents()] == ["b.txt"]


def test_a_merged_cache_has_an_index_of_its_own(tmp_path: Path) -> None:
    for name, documents in (
        ("a", {"1.txt": ["甲。"]}),
        ("b", {"1.txt": ["乙。"], "2.txt": ["丙。"]}),
    ):
        write_documents(tmp_path / name, documents)
        with Writer.open(tmp_path / name) as writer:
            complete(writer)
    merge_caches([tmp_path / "a", tmp_path / "b"], tmp_path / "m.h5")
    with Cache.open(tmp_path / "m.h5") as cache:
        assert [(d.id, d.text) for d in cache.documents()] == [("1.txt", "乙。"), ("2.txt", "丙。")]
        index = PlaceIndex(cache.reader)
        assert index.n_covered == index.n_rows == 3


def test_a_damaged_entry_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    with Writer.open(path) as writer:
        append(writer, [Place("/d/a.txt", "a.txt", KEYS[1])], is_indexed=True)
    with Reader(path) as reader:
        key = reader.table(tables.PLACES).row("keys", 1).tobytes()
    data = bytearray(path.read_bytes())
    at = data.index(key)
    data[at] ^= 1
    path.write_bytes(data)
    with Reader(path) as reader, pytest.raises(DamagedRows, match="places"):
        PlaceIndex(reader).find_path("/d/a.txt")
    [_, repaired] = sorted(repair_cache(path).tables, key=lambda table: table.name, reverse=True)
    assert (repaired.name, repaired.n_kept, repaired.n_dependent) == (tables.PLACES, 2, 0)
    check(path, [Place("/d/a.txt", "a.txt", KEYS[1])])
    with Reader(path) as reader:
        assert PlaceIndex(reader).n_covered == 1
