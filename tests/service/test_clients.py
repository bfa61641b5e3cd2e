"""Clients that others wrote get vectors from the service as they do from their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from service_watch import Service

TEXTS = ["合同金额", "本公司保证公告内容真实、准确。"]


def plain(service: Service) -> np.ndarray:
    answer = service.client.post("/v1/embeddings", json={"model": "tiny", "input": TEXTS})
    return np.array([one["embedding"] for one in answer.json()["data"]], np.float32)


def test_openais_client_embeds_and_lists_the_model(service: Service) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
        answer = client.embeddings.create(model="tiny", input=TEXTS)  # asks for base64
        found = np.array([one.embedding for one in answer.data], np.float32)
        assert found.tobytes() == plain(service).tobytes()
        assert answer.usage.total_tokens > 0
        assert [model.id for model in client.models.list()] == ["tiny"]
        assert client.models.retrieve("tiny").id == "tiny"
        with pytest.raises(openai.NotFoundError) as caught:
            client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_langchains_openai_embeddings_take_texts(service: Service) -> None:
    module = pytest.importorskip("langchain_openai")
    embeddings = module.OpenAIEmbeddings(
        model="tiny",
        base_url=f"{service.url}/v1",
        api_key="none",
        check_embedding_ctx_length=False,  # else it sends ids of a tokenizer that is not ours
    )
    found = np.array(embeddings.embed_documents(TEXTS), np.float32)
    assert found.tobytes() == plain(service).tobytes()
    one = np.array(embeddings.embed_query(TEXTS[0]), np.float32)
    assert one.tobytes() == found[0].tobytes()
