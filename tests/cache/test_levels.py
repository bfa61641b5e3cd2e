"""Levels of texts: those of the documents' own keys, whoever wrote the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from building import build
from sentence_cache import append_document, write_documents

from featpipe import Cache
from featpipe.cache import tables
from featpipe.cache.derived import DerivedRows, complete
from featpipe.cache.forgotten import compact_cache
from featpipe.cache.levels import level_bits, n_covered
from featpipe.cache.merge import merge_caches
from featpipe.cache.texts import LEVEL_BIT, Texts
from featpipe.settings import BuildSettings
from featpipe.store import Reader, Writer, keys_of
from featpipe.store.rewrite import rows_of


def bits_by_text(path: Path) -> dict[str, int]:
    with Cache.open(path) as cache:
        stored = cache.stored_documents
        bits = level_bits(cache.reader, stored.forgotten().kept).tolist()
        texts = cache.reader.table(tables.TEXTS)
        found = Texts(*texts.ragged_many("text", np.arange(texts.n_rows))).strings()
        return {text: bit for text, bit in zip(found, bits, strict=True) if bit}


def expected(path: Path) -> dict[str, int]:
    """From the units of every document."""
    found: dict[str, int] = {}
    with Cache.open(path) as cache:
        for document in cache.documents():
            for level, bit in LEVEL_BIT.items():
                for unit in document.units(level):
                    found[unit.text] = found.get(unit.text, 0) | bit
    return found


def covered(path: Path) -> tuple[int, int]:
    """(documents whose levels are in the log, documents)."""
    with Reader(path) as reader:
        return n_covered(reader), reader.table(tables.DOCUMENTS).n_rows


def logged(path: Path) -> list[tuple[bytes, int]]:
    with Reader(path) as reader:
        log = reader.table(tables.TEXT_LEVELS)
        keys, bits = (np.asarray(log.column(name)) for name in ("text", "bits"))
        return [(key.tobytes(), int(bit)) for key, bit in zip(keys, bits, strict=True) if bit]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("合同编号\n甲方与乙方签订合同。乙方付款。", "utf-8")
    (folder / "b.txt").write_text("合同\n乙方付款。\n机密。", "utf-8")
    return folder


@pytest.fixture
def cache(tmp_path: Path, docs: Path, encoder_folder: Path) -> Path:
    path = tmp_path / "c.h5"
    assert build(path, docs, encoder_folder, settings=BuildSettings(levels=("word",))).is_complete
    return path


def test_a_build_logs_every_level_of_a_text_once(
    cache: Path, docs: Path, encoder_folder: Path
) -> None:
    assert bits_by_text(cache) == expected(cache)
    assert covered(cache) == (2, 2)
    (docs / "c.txt").write_text("乙方\n付款", "utf-8")  # words until now
    build(cache, docs, encoder_folder, settings=BuildSettings(levels=("word",)))
    assert bits_by_text(cache) == expected(cache)
    assert covered(cache) == (3, 3)
    rows = logged(cache)
    assert len(rows) == len(set(rows))
    n_rows = len(rows)
    build(cache, docs, encoder_folder, settings=BuildSettings(levels=("word",)))
    assert len(logged(cache)) == n_rows


def test_documents_of_a_writer_from_before_the_log_count(cache: Path) -> None:
    new = ["合同。", "甲方。", "合同。"]
    with Writer.open(cache) as writer:
        texts = {"keys": keys_of(new[:2]), "text": Texts.from_strings(new[:2]).ragged}
        writer.table(tables.TEXTS, tables.texts_spec()).append(texts)
        append_document(writer, "old.txt", new)
    assert covered(cache) == (2, 3)
    assert bits_by_text(cache) == expected(cache)
    with Writer.open(cache) as writer:
        complete(writer)
    assert covered(cache) == (3, 3)
    assert bits_by_text(cache) == expected(cache)


def test_a_cache_from_before_the_log_gains_it_with_the_next_commit(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write_documents(path, {"a.txt": ["甲。", "乙。"], "b.txt": ["乙。"]})
    with Writer.open(path) as writer:
        texts = {
            "keys": keys_of(["甲。", "乙。"]),
            "text": Texts.from_strings(["甲。", "乙。"]).ragged,
        }
        writer.table(tables.TEXTS, tables.texts_spec()).append(texts)
    before = bits_by_text(path)
    with Writer.open(path) as writer:
        complete(writer)
    assert bits_by_text(path) == before == expected(path)
    assert covered(path) == (2, 2)
    assert len(logged(path)) == 2


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_merging_and_compacting_keep_the_levels_of_what_stays(
    cache: Path, tmp_path: Path, *, is_forgotten: bool
) -> None:
    old = tmp_path / "old.h5"
    write_documents(old, {"old.txt": ["乙方付款。", "机密。"]})
    if is_forgotten:
        with Cache.open(cache) as opened:
            opened.forget("docs/b.txt")
    for sources in ([old, cache], [cache, old]):
        merged = tmp_path / f"merged_{sources[0].stem}.h5"
        merge_caches(sources, merged)
        assert (
            bits_by_text(merged).items()
            == {
                text: bits
                for text, bits in expected(merged).items()
                if text in bits_by_text(merged)
            }.items()
        )
        assert len(set(covered(merged))) == 1
    assert bits_by_text(cache) == expected(cache)
    compact_cache(cache)
    assert bits_by_text(cache) == expected(cache)
    assert len(set(covered(cache))) == 1
    with Cache.open(cache) as opened:
        texts = set(opened.dictionary(level="word").texts())
        assert texts == {text for text, bits in expected(cache).items() if bits & LEVEL_BIT["word"]}


def test_a_lost_row_of_the_log_voids_what_it_covers(cache: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.h5"
    with Reader(cache) as reader, Writer.open(copy) as writer:
        for name in reader.tables():
            table = reader.table(name)
            first = int(name == tables.TEXT_LEVELS)
            writer.table(name, table.spec).append(rows_of(table, np.arange(first, table.n_rows)))
    assert covered(copy) == (0, 2)
    assert bits_by_text(copy) == expected(copy)


def test_after_a_failed_commit_nothing_is_taken_for_logged(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    keys, texts = keys_of(["甲"]), Texts.from_strings(["甲"])
    with Writer.open(path) as writer:
        derived = DerivedRows(writer, {tables.TEXT_LEVELS})
        rows = {tables.TEXT_LEVELS: {"text": keys, "bits": np.array([4], np.uint8)}}
        writer.table(tables.TEXTS, tables.texts_spec()).append({"keys": keys, "text": texts.ragged})
        derived.append(rows)
        writer.commit()
        derived.append(rows)
        assert writer.table(tables.TEXT_LEVELS, tables.levels_spec()).n_rows == 1
        derived.forget()
        derived.append(rows)
        assert writer.table(tables.TEXT_LEVELS, tables.levels_spec()).n_rows == 1
