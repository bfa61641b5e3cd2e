"""A repaired cache and a build give what an undamaged one holds; damage names its document."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from building import build
from flipped_bits import damage
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.cache import tables
from featpipe.cache.forgotten import compact_cache
from featpipe.cache.place_index import documents_of_rows
from featpipe.cache.repair import repair_cache
from featpipe.errors import DamagedRows, DictionaryError, UnreadableDictionary
from featpipe.store import Reader, key_of
from featpipe.store.verify import verify_dictionary

#: Of each kind of table a column to damage.
COLUMNS = {"documents": "text", "embeddings": "vectors", "entities": "scores", "levels": "bits",
           "places": "source", "sources": "path", "texts": "text",
           "vocabulary": "term", "units": "ids"}  # fmt: skip


def first_with_values(path: Path, table: str, column: str, start: int) -> int:
    """The first row from ``start`` on that has something to damage."""
    with Reader(path) as reader:
        found = reader.table(table)
        if column not in found.now.view.values:
            return start
        rows = range(start, found.n_rows)
        return next(row for row in rows if len(found.ragged(column, row)))


def damage_every_table(path: Path, start: int) -> dict[str, int]:
    """One row of each, by table."""
    with Reader(path) as reader:
        names = [name for name in reader.tables() if name != "runs"]
    rows = {}
    for name in names:
        group, _, last = name.rpartition("/")
        column = COLUMNS[last if last in COLUMNS else group]
        rows[name] = first_with_values(path, name, column, min(start, n_rows(path, name) - 1))
        damage(path, name, column, rows[name])
    return rows


def n_rows(path: Path, table: str) -> int:
    with Reader(path) as reader:
        return reader.table(table).n_rows


@pytest.mark.usefixtures("scripts_are_importable")
def test_a_repair_and_a_build_give_what_an_undamaged_cache_holds(
    tmp_path: Path, corpus: Path, encoder_folder: Path, tagger_folder: Path
) -> None:
    from cache_contents import contents, differences

    path = tmp_path / "c.h5"
    build(path, corpus, encoder_folder, ner=tagger_folder)
    quiet = contents(path)
    rows = damage_every_table(path, 5)
    damaged = {name: (row,) for name, row in rows.items()}
    found = verify_dictionary(path, is_deep=True)
    assert {t.name: t.damaged_rows for t in found.tables if t.damaged_rows} == damaged
    done = repair_cache(path)
    assert {t.name: t.dropped for t in done.tables if t.dropped} == damaged
    assert verify_dictionary(path, is_deep=True).is_good
    report = build(path, corpus, encoder_folder, ner=tagger_folder)
    assert not differences(quiet, path)
    assert report.n_encoded == 1, "of vectors one was lost, and one is computed"
    assert verify_dictionary(path, is_deep=True).is_good


DOCUMENTS = {
    "a.txt": ["甲方付款。", "双方盖章。"],
    "b.txt": ["乙方交货。", "双方盖章。"],
    "c.txt": ["解除合同。"],
}


def write(path: Path, documents: Mapping[str, list[str]] = DOCUMENTS) -> None:
    write_documents(path, documents)


def terms_tables(path: Path) -> tuple[str, str]:
    with Reader(path) as reader:
        vocabulary = next(name for name in reader.tables() if name.endswith("/vocabulary"))
    return vocabulary, vocabulary.replace("/vocabulary", "/units")


def test_texts_without_one_of_their_terms_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    vocabulary, units = terms_tables(path)
    with Reader(path) as reader:
        row = int(reader.table(vocabulary).find_one(key_of("盖")))
        number = int(reader.table(vocabulary).gather("id", [row])[0])
        table = reader.table(units)
        lost = sum(number in table.ragged("ids", row) for row in range(table.n_rows))
        before = table.n_rows
    damage(path, vocabulary, "term", row)
    done = {table.name: table for table in repair_cache(path).tables}
    assert lost == 1
    assert done[vocabulary].dropped == (row,)
    assert (done[units].n_kept, done[units].n_dependent) == (before - lost, lost)
    write(path, {"d.txt": ["双方盖章。", "新的条款。"]})
    with Reader(path) as reader:
        numbers = reader.table(vocabulary).column("id").tolist()
    assert len(set(numbers)) == len(numbers), "no two terms have one number"
    with Cache.open(path) as cache:
        assert {hit.document for hit in cache.search("盖章")} >= {"d.txt"}


def test_terms_are_dropped_whose_vocabulary_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    vocabulary, units = terms_tables(path)
    found = set()
    for share in range(1, 8):
        cut = tmp_path / f"{share}.h5"
        cut.write_bytes(path.read_bytes()[: path.stat().st_size * share // 8])
        try:
            done = repair_cache(cut)
        except UnreadableDictionary:
            continue  # nothing could be saved
        assert not done.is_whole
        with Reader(cut) as reader:
            held = [name in reader and reader.table(name).n_rows for name in (units, vocabulary)]
        found.add(tuple(map(bool, held)))
    assert (True, False) not in found
    assert len(found) > 1


def test_documents_without_one_of_their_texts_are_dropped(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    path = tmp_path / "c.h5"
    build(path, corpus, encoder_folder)
    with Cache.open(path) as cache:
        document = cache.document("docs/01.txt")
        own = next(unit.text for unit in document.units("sentence") if unit.text[0] != "第")
        holders = {
            one.id
            for one in cache.documents()
            if any(own == unit.text for level in ("paragraph", "sentence", "word")
                   for unit in one.units(level))
        }  # fmt: skip
        ids = {one.id for one in cache.documents()}
        row = int(cache.reader.table(tables.TEXTS).find_one(key_of(own)))
    damage(path, tables.TEXTS, "text", row)
    done = {table.name: table for table in repair_cache(path).tables}
    assert done[tables.TEXTS].dropped == (row,)
    assert done[tables.DOCUMENTS].n_dependent == len(holders) >= 1
    with Cache.open(path) as cache:
        assert {one.id for one in cache.documents()} == ids - holders


def test_damage_names_the_document(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    damage(path, tables.DOCUMENTS, "text", 1)
    with Cache.open(path) as cache:
        with pytest.raises(DamagedRows, match=r"row 1 .*\(document b.txt\)") as caught:
            _ = cache.document("b.txt").text
        assert (caught.value.table, caught.value.rows) == (tables.DOCUMENTS, (1,))
        assert caught.value.document == "b.txt"
        assert caught.value.hint == f"featpipe repair {path}"
        with pytest.raises(DamagedRows, match=r"\(document b.txt\)"):
            cache.reader.table(tables.DOCUMENTS).ragged_many("text", np.arange(3))
        assert cache.document("a.txt").text == "".join(DOCUMENTS["a.txt"])


def test_damage_names_the_document_whose_key_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    with Cache.open(path) as cache:
        document = cache.document("c.txt")
        damage(path, tables.DOCUMENTS, "keys", 2)
        with pytest.raises(DamagedRows, match=r"\(document c.txt\)"):
            _ = document.text


def test_damage_is_named_also_where_the_log_of_places_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    damage(path, tables.DOCUMENTS, "text", 1)
    damage(path, tables.SOURCES, "path", 0)
    with Reader(path, name_rows=documents_of_rows) as reader:
        documents = reader.table(tables.DOCUMENTS)
        with pytest.raises(DamagedRows, match="table documents row 1") as caught:
            documents.ragged("text", 1)
        assert caught.value.document == ""


def test_checks_of_a_cache_can_be_turned_off(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    damage(path, tables.DOCUMENTS, "text", 1)
    with Cache.open(path, checks_rows=False) as cache:
        copy = pickle.loads(pickle.dumps(cache))  # noqa: S301 - our own bytes
        for one in (cache, copy):
            found = one.reader.table(tables.DOCUMENTS).ragged("text", 1).tobytes()
            assert found != "".join(DOCUMENTS["b.txt"]).encode()
            assert found[1:] == "".join(DOCUMENTS["b.txt"]).encode()[1:]
        copy.close()


def test_a_cache_that_lost_a_term_is_not_compacted_before_it_is_repaired(tmp_path: Path) -> None:
    """What needs the lost rows would stay: the number of a lost term went to another."""
    path = tmp_path / "c.h5"
    write_documents(path, {"a.txt": ["合同金额一百万元。", "乙方承担违约责任。"]})
    with Reader(path) as reader:
        [table] = [name for name in reader.tables() if name.endswith("/vocabulary")]
    damage(path, table, "term", 1)
    before = path.stat().st_ino
    with pytest.raises(DictionaryError, match=r"not as written[\s\S]*featpipe repair"):
        compact_cache(path)
    assert path.stat().st_ino == before
    repair_cache(path)
    compact_cache(path)
