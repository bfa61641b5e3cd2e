"""Kept levels of a folder: those of its documents, after whatever was done to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from flipped_bits import flip, offset_of
from folder_cache import build_folder
from sentence_cache import append_document

from featpipe import Cache
from featpipe.cache import compact_folder, kept_levels, tables
from featpipe.cache.levels import level_bits
from featpipe.cache.repair_folder import repair_folder
from featpipe.cache.texts import LEVEL_BIT, Texts, split_keys
from featpipe.store import Reader, Writer, keys_of
from featpipe.store.folder_layout import FolderLayout

if TYPE_CHECKING:
    from folder_cache import Pair

    from featpipe.cache.levels import Bits


@pytest.fixture(autouse=True)
def keeps_for_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_levels, "_FEW_UNITS", 0)
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))


@pytest.fixture
def own(pair: Pair, tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(pair.folder, tmp_path / "own.fp"))


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The caches whose documents were read for levels."""
    found: list[Path] = []

    def read(reader: Reader, *rest: object) -> Bits:
        found.append(reader.path)
        return level_bits(reader, *rest)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(kept_levels, "level_bits", read)
    return found


def told(path: Path) -> dict[bytes, int]:
    """Levels by key of every text that has any."""
    with Cache.open(path) as cache:
        keys = cache.reader.table(tables.TEXTS).column("keys")
        bits = cache.stored_documents.level_bits().tolist()
        return {key: bit for key, bit in zip(split_keys(keys), bits, strict=True) if bit}


def of_documents(path: Path) -> dict[bytes, int]:
    """The same from the units of every document that is shown; of texts that are stored."""
    found: dict[bytes, int] = {}
    with Cache.open(path) as cache:
        stored = set(split_keys(cache.reader.table(tables.TEXTS).column("keys")))
        for document in cache.documents():
            for level, bit in LEVEL_BIT.items():
                for key in split_keys(document.keys(level)):
                    found[key] = found.get(key, 0) | bit
    return {key: bits for key, bits in found.items() if key in stored}


def are_right(path: Path) -> bool:
    """Whether levels are those of the documents, when read and when mapped."""
    oracle = of_documents(path)
    return told(path) == oracle and told(path) == oracle


def kept_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "kept" / "levels").glob("*"))


def test_documents_are_read_once_for_a_state_and_its_copies(
    own: Path, pair: Pair, tmp_path: Path, readings: list[Path]
) -> None:
    assert are_right(own)
    assert told(pair.folder) == told(own)  # a copy has the same
    assert readings == [own]
    with Cache.open(own) as cache:
        cache.forget("docs/03.txt")
    assert are_right(own)
    assert readings == [own, own]
    assert len(kept_files(tmp_path)) == 2


def forget(own: Path, _: Pair) -> None:
    with Cache.open(own) as cache:
        cache.forget("docs/03.txt", "docs/04.txt", "docs/12.txt")


def compact(own: Path, _: Pair) -> None:
    compact_folder.compact_folder(own)


def damage_and_repair(own: Path, _: Pair) -> None:
    for number, place in ((1, 1), (2, 3)):
        damaged = FolderLayout.read(own).shard_file(number)
        flip(damaged, offset_of(damaged, "texts", "text", place))
    assert not repair_folder(own).is_whole


def build_again(own: Path, pair: Pair) -> None:
    build_folder(own, pair.documents, pair.models)


ORDERS = [
    (forget, compact, damage_and_repair),
    (forget, damage_and_repair, compact),
    (damage_and_repair, forget, compact),
]


@pytest.mark.parametrize("steps", ORDERS, ids=lambda steps: "_".join(one.__name__ for one in steps))
def test_in_any_order_of_forgetting_compacting_and_repairing(
    own: Path, pair: Pair, steps: tuple[Callable[[Path, Pair], None], ...]
) -> None:
    assert are_right(own)
    for step in steps:
        step(own, pair)
        assert are_right(own)


def test_jobs_that_are_done_again_bring_documents_and_levels_back(own: Path, pair: Pair) -> None:
    for step in (forget, compact, damage_and_repair):
        step(own, pair)
    assert told(own) != told(pair.file)
    build_again(own, pair)
    assert are_right(own)
    assert told(own) == told(pair.file)


@pytest.mark.parametrize("n_done", [1, 3])
def test_where_compacting_ended_between_two_files(
    own: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch, n_done: int
) -> None:
    forget(own, pair)
    assert are_right(own)
    done = compact_folder._compact
    files: list[Path] = []

    def stop_after(file: Path, *rest: object) -> object:
        files.append(file)
        if len(files) > 3 * n_done:
            raise InterruptedError
        return done(file, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, suppress(InterruptedError):
        patch.setattr(compact_folder, "_compact", stop_after)
        compact(own, pair)
    assert are_right(own)
    compact(own, pair)
    assert are_right(own)


def test_shards_compacted_and_parts_not(own: Path, pair: Pair) -> None:
    copy = own.with_name("copy.fp")
    shutil.copytree(own, copy)
    forget(own, pair)
    compact(own, pair)
    forget(copy, pair)
    for file in (own / "shards").iterdir():
        shutil.copyfile(file, copy / "shards" / file.name)
    assert are_right(copy)


def test_a_flipped_bit_in_a_kept_file_is_noticed(
    own: Path, tmp_path: Path, readings: list[Path]
) -> None:
    oracle = told(own)
    [kept] = kept_files(tmp_path)
    whole = bytearray(kept.read_bytes())
    for place in range(0, len(whole), 97):
        whole[place] ^= 4
        kept.write_bytes(whole)
        assert told(own) == oracle
        whole = bytearray(kept.read_bytes())
    assert len(readings) > 3


def test_what_cannot_be_kept_is_read_by_each_process(
    own: Path, tmp_path: Path, readings: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kept").write_text("a file in the place of the folder", "utf-8")
    assert are_right(own)
    assert len(readings) == 2
    assert caplog.text.count("levels of texts are read anew") == 1


def test_of_a_file_levels_are_kept_only_where_documents_were_forgotten(
    pair: Pair, tmp_path: Path
) -> None:
    file = tmp_path / "own.h5"
    shutil.copyfile(pair.file, file)
    assert are_right(file)
    assert not kept_files(tmp_path)
    with Cache.open(file) as cache:
        cache.forget("docs/03.txt")
    assert are_right(file)
    assert len(kept_files(tmp_path)) == 1
    new = ["本文件没有的一句。"]
    with Writer.open(file) as writer:
        texts = {"keys": keys_of(new), "text": Texts.from_strings(new).ragged}
        writer.table(tables.TEXTS, tables.texts_spec()).append(texts)
        append_document(writer, "other.txt", new)
    assert are_right(file)


def test_rows_that_were_not_checked_are_not_kept(own: Path, tmp_path: Path) -> None:
    with Cache.open(own, checks_rows=False) as cache:
        bits = cache.stored_documents.level_bits()
    assert not kept_files(tmp_path)
    with Cache.open(own) as cache:
        assert np.array_equal(cache.stored_documents.level_bits(), bits)
    assert len(kept_files(tmp_path)) == 1
