"""LangChain's own classes meet a cache: embeddings, a vector store over them, and bytes by name."""

from __future__ import annotations

import asyncio
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from face_texts import KNOWN, UNKNOWN

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.embeddings import Embeddings
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import InMemoryVectorStore

from featpipe import Cache
from featpipe.errors import DictionaryLocked, UsageError
from featpipe.integrations.langchain import CacheByteStore, FeatpipeEmbeddings
from featpipe.store import Writer


def test_a_vector_store_finds_known_and_new_texts(filled: Path, model: Path) -> None:
    with FeatpipeEmbeddings(filled, model) as embeddings:
        assert isinstance(embeddings, Embeddings)
        store = InMemoryVectorStore(embeddings)
        store.add_texts([*KNOWN, *UNKNOWN])
        assert embeddings.encoder.n_encoded == len(UNKNOWN)
        (found, score), *_ = store.similarity_search_with_score(UNKNOWN[0], k=1)
        assert found.page_content == UNKNOWN[0]
        assert score == pytest.approx(1, abs=1e-4)
        assert embeddings.encoder.n_encoded == len(UNKNOWN)
        vector = asyncio.run(embeddings.aembed_query(KNOWN[0]))
    with Cache.open(filled) as cache:
        stored = np.asarray(cache.dictionary()[KNOWN[0]], np.float32)
    np.testing.assert_array_equal(np.array(vector, np.float32), stored)
    assert all(type(number) is float for number in vector)


def test_a_byte_store_behaves_like_a_dict(tmp_path: Path) -> None:
    model: dict[str, bytes] = {}
    with CacheByteStore(tmp_path / "c.h5") as store:
        assert isinstance(store, BaseStore)
        assert store.mget(["a"]) == [None]
        for pairs in (
            [("a", b"1"), ("b", b"")],
            [("a", b"\0\xff" * 900)],
            [("长/名", b"3"), ("a", b"4")],
        ):
            store.mset(pairs)
            model.update(pairs)
            assert store.mget([*model, "none"]) == [*model.values(), None]
        store.mdelete(["b", "none", "b"])
        del model["b"]
        assert sorted(store.yield_keys()) == sorted(model)
        assert list(store.yield_keys(prefix="长")) == ["长/名"]
        store.mset([("b", b"again")])
        store.mset([])
        assert store.mget(["b"]) == [b"again"]
        copy = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    with copy:
        assert copy.mget(["a", "b"]) == [b"4", b"again"]


def test_a_byte_store_shares_a_cache_with_everything_else(filled: Path, tmp_path: Path) -> None:
    cache = Path(shutil.copy(filled, tmp_path / "c.h5"))
    first, second = CacheByteStore(cache, "one"), CacheByteStore(cache, "one")
    other = CacheByteStore(cache, "two")
    first.mset([("a", b"1")])
    assert second.mget(["a"]) == [b"1"]
    second.mset([("a", b"2")])
    assert first.mget(["a"]) == [b"2"]
    assert other.mget(["a"]) == [None]
    for store in (first, second, other):
        store.close()
    with Cache.open(cache) as opened:
        assert KNOWN[0] in opened.dictionary()
    # Compacted: a new file, in which the rows may have other numbers.
    subprocess.run(
        [sys.executable, "-m", "featpipe", "compact", str(cache)], check=True, capture_output=True
    )
    assert first.mget(["a"]) == [b"2"]
    first.close()


def test_a_locked_cache_is_said_to_be_locked(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "c.h5"), CacheByteStore(tmp_path / "c.h5", wait_s=0) as store:
        with pytest.raises(DictionaryLocked):
            store.mset([("a", b"1")])
        assert store.mget(["a"]) == [None]
    with pytest.raises(UsageError, match="no namespace"):
        CacheByteStore(tmp_path / "c.h5", "../texts")
