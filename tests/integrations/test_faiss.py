"""FAISS over a space: the exact index says what the exact search says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from featpipe import Cache, Pipeline
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
