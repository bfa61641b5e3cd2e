"""LangChain's own classes meet a cache: embeddings, a vector store over them, and bytes by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from known_texts import KNOWN, UNKNOWN

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from featpipe import Cache
from featpipe.integrations.langchain import FeatpipeEmbeddings


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


def test_a_query_has_the_query_prompt_and_a_document_has_none(filled: Path, model: Path) -> None:
    with FeatpipeEmbeddings(filled, model, query_prompt="合同：") as embeddings:
        query = embeddings.embed_query(KNOWN[0])
        assert query != embeddings.embed_documents([KNOWN[0]])[0]
        assert query == embeddings.embed_documents([f"合同：{KNOWN[0]}"])[0]
