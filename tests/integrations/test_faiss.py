"""FAISS over a space: the exact index says what the exact search says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from featpipe import Cache, Dictionary, Pipeline
from featpipe.errors import UnknownSpace, UsageError

pytest.importorskip("faiss", reason="faiss is not installed")

from featpipe.integrations.faiss import SpaceIndex


def test_exact_and_approximate_indexes_agree_with_the_exact_search(
    filled: Path, tmp_path: Path
) -> None:
    with Cache.open(filled) as cache:
        dictionary = cache.dictionary()
        vectors = np.concatenate([block for _, block in dictionary.blocks()])[:7]
        wanted = dictionary.nearest(vectors, 4)
        for factory in ("Flat", "HNSW16", "IVF2,Flat"):
            index = SpaceIndex.build(dictionary, factory)
            if factory.startswith("IVF"):
                index.index.nprobe = 2
            found = index.search(vectors, 4)
            for ours, theirs in zip(wanted, found, strict=True):
                np.testing.assert_allclose(
                    [n.score for n in ours], [n.score for n in theirs], atol=1e-5
                )
        index.save(tmp_path / "space.faiss")
        again = SpaceIndex.load(dictionary, tmp_path / "space.faiss")
        again.index.nprobe = 2
        assert again.search(vectors[0], 3) == index.search(vectors[0], 3)
        with pytest.raises(UnknownSpace, match="indexes"):
            SpaceIndex.load(cache.dictionary(level="word"), tmp_path / "space.faiss")
        with pytest.raises(UsageError, match="FAISS cannot make"):
            SpaceIndex.build(dictionary, "Cube7")
        with pytest.raises(UsageError, match="no index"):
            SpaceIndex.load(dictionary, tmp_path / "none.faiss")
        n = sum(1 for _ in cache.dictionary(level="sentence").texts())
        assert len(SpaceIndex.build(cache.dictionary(level="sentence")).keys) == n


def test_an_index_takes_in_what_was_stored_since(filled: Path, model: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(filled, tmp_path / "c.h5"))
    (tmp_path / "new.txt").write_text("一份全新的文书。", "utf-8")
    with Cache.open(path) as cache:
        index = SpaceIndex.build(cache.dictionary())
        n_before = len(index.keys)
        with Pipeline(path, model, "none", devices=["cpu"]) as pipeline:
            pipeline.build(tmp_path / "new.txt")
        cache.refresh()
        assert index.update() == len(cache.dictionary()) - n_before > 0
        assert index.update() == 0
        assert len(index.keys) == len(cache.dictionary()) == index.index.ntotal
        vector = np.asarray(cache.dictionary()["一份全新的文书。"], np.float32)
        assert index.search(vector, 1)[0][0].score == pytest.approx(1, abs=1e-3)


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The factories of the indexes that were built, with kept files in a folder of their own."""
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    built: list[str] = []
    build = SpaceIndex.build.__func__

    def counted(cls: type[SpaceIndex], dictionary: Dictionary, factory: str = "Flat") -> SpaceIndex:
        built.append(factory)
        return build(cls, dictionary, factory)

    monkeypatch.setattr(SpaceIndex, "build", classmethod(counted))
    return built


def assert_kept_index_is_exact(path: Path, level: str | None = None) -> None:
    with Cache.open(path) as cache:
        dictionary = cache.dictionary(level=level)
        vectors = np.concatenate([block for _, block in dictionary.blocks()])[-5:]
        found = SpaceIndex.kept(dictionary).search(vectors, 4)
        exact = dictionary.nearest(vectors, 4)
    assert [row[0].key for row in found] == [row[0].key for row in exact]
    for ours, theirs in zip(found, exact, strict=True):
        np.testing.assert_allclose([n.score for n in ours], [n.score for n in theirs], atol=1e-5)


def test_a_kept_index_is_read_again_and_takes_in_what_was_stored_since(
    filled: Path, model: Path, tmp_path: Path, builds: list[str]
) -> None:
    path = Path(shutil.copy(filled, tmp_path / "c.h5"))
    for level, n in ((None, 1), (None, 1), ("sentence", 2), ("sentence", 2)):
        assert_kept_index_is_exact(path, level)
        assert len(builds) == n
    (tmp_path / "new.txt").write_text("一份全新的文书。", "utf-8")
    with Pipeline(path, model, "none", devices=["cpu"]) as pipeline:
        pipeline.build(tmp_path / "new.txt")
    for level, n in ((None, 2), (None, 2), ("sentence", 3), ("sentence", 3)):
        assert_kept_index_is_exact(path, level)
        assert len(builds) == n
    with Cache.open(path) as cache:
        cache.forget(tmp_path / "new.txt")
    assert_kept_index_is_exact(path)  # what only a forgotten document held is not found
    assert len(builds) == 4


def test_a_kept_index_that_is_damaged_is_built_anew(
    filled: Path, tmp_path: Path, builds: list[str]
) -> None:
    path = Path(shutil.copy(filled, tmp_path / "c.h5"))
    assert_kept_index_is_exact(path)
    [index] = (tmp_path / "kept").rglob("*.index")
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    index.write_bytes(data)
    assert_kept_index_is_exact(path)
    assert len(builds) == 2
    index.with_suffix(".arrays").unlink()
    assert_kept_index_is_exact(path)
    assert len(builds) == 3
    gone = Path(shutil.copy(filled, tmp_path / "gone.h5"))
    assert_kept_index_is_exact(gone)
    gone.unlink()
    index.unlink()
    assert_kept_index_is_exact(path)
    assert len(list((tmp_path / "kept").rglob("*.index"))) == 1


def test_an_index_takes_in_what_was_stored_after_documents_were_forgotten(
    filled: Path, model: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(filled, tmp_path / "c.h5"))
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "first.txt").write_text("先来后去的文书。", "utf-8")
    (folder / "last.txt").write_text("一直都在的文书。", "utf-8")

    def build() -> None:
        with Pipeline(path, model, "none", devices=["cpu"]) as pipeline:
            pipeline.build(folder)

    build()
    with Cache.open(path) as cache:
        cache.forget(folder / "first.txt")
        (folder / "first.txt").unlink()
        index = SpaceIndex.build(cache.dictionary())
        (folder / "new.txt").write_text("一份全新的文书。", "utf-8")
        build()
        cache.refresh()
        assert index.update() > 0
        assert len(index.keys) == index.index.ntotal == len(cache.dictionary().keys())
        for text in ("一直都在的文书。", "一份全新的文书。"):
            vector = np.asarray(cache.dictionary()[text], np.float32)
            assert index.search(vector, 1)[0][0].text == text
