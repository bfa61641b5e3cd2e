"""LlamaIndex's own classes meet a cache."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from known_texts import KNOWN, UNKNOWN

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core.base.embeddings.base import BaseEmbedding, similarity
from llama_index.core.schema import TextNode

from featpipe import Cache
from featpipe.integrations.llamaindex import FeatpipeEmbedding


def test_nodes_and_queries_get_the_cache_s_vectors(filled: Path, model: Path) -> None:
    with FeatpipeEmbedding(filled, model, embed_batch_size=2) as embedding:
        assert isinstance(embedding, BaseEmbedding)
        assert embedding.model_name.startswith("tiny@")
        nodes = embedding([TextNode(text=text) for text in (*KNOWN, *UNKNOWN)])
        assert embedding.encoder.n_encoded == len(UNKNOWN)
        query = embedding.get_query_embedding(UNKNOWN[1])
        assert similarity(query, nodes[-1].embedding) == pytest.approx(1, abs=1e-4)
        assert asyncio.run(embedding.aget_text_embedding_batch(list(KNOWN))) == [
            node.embedding for node in nodes[: len(KNOWN)]
        ]
        assert embedding.encoder.n_encoded == len(UNKNOWN)
        assert embedding.to_dict()["class_name"] == "FeatpipeEmbedding"
    with Cache.open(filled) as cache:
        stored = np.asarray(cache.dictionary()[KNOWN[0]], np.float32)
    np.testing.assert_array_equal(np.array(nodes[0].embedding, np.float32), stored)


def test_a_query_has_the_query_prompt_and_a_text_has_none(filled: Path, model: Path) -> None:
    with FeatpipeEmbedding(filled, model, query_prompt="合同：") as embedding:
        query = embedding.get_query_embedding(KNOWN[0])
        assert query != embedding.get_text_embedding(KNOWN[0])
        assert query == embedding.get_text_embedding(f"合同：{KNOWN[0]}")
        assert query == asyncio.run(embedding.aget_query_embedding(KNOWN[0]))
