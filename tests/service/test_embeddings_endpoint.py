"""``/v1/embeddings`` and ``/search``: oracles are Encoder and SentenceSearch."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from service_watch import QUERY_PROMPT, running

from featpipe.cache.cache import Cache
from featpipe.cache.search import SentenceSearch
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import UsageError
from featpipe.on_demand.space import find_space
from featpipe.service.engine import Engine
from featpipe.service.settings import ServiceSettings

if TYPE_CHECKING:
    from service_watch import Service

TEXTS = ["合同金额", "本公司保证公告内容真实、准确。", "甲方", "合同金额"]


def ask(service: Service, given: object, **options: object) -> np.ndarray:
    body = {"model": "tiny", "input": given, **options}
    response = service.client.post("/v1/embeddings", json=body)
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    assert [one["index"] for one in data] == list(range(len(data)))
    if options.get("encoding_format") == "base64":
        return np.stack([np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in data])
    return np.array([one["embedding"] for one in data], np.float32)


@pytest.fixture(scope="module")
def encoder(service: Service, encoder_folder: Path) -> Encoder:
    with Cache.open(service.home / "c.h5") as cache:
        _, settings = find_space(cache, encoder_folder)
    return Encoder.load(encoder_folder, settings)


def test_vectors_are_those_of_the_library_and_of_the_cache(
    service: Service, encoder: Encoder
) -> None:
    found = ask(service, TEXTS)
    expected = encoder.encode(TEXTS).vectors.astype(np.float32)
    assert found.tobytes() == expected.tobytes()
    with Cache.open(service.home / "c.h5") as cache:
        stored = cache.dictionary()[TEXTS[1]]
    assert found[1].tobytes() == stored.astype(np.float32).tobytes()


def test_queries_have_the_query_prompt_and_passages_have_none(
    service: Service, encoder: Encoder
) -> None:
    asked = [QUERY_PROMPT + text for text in TEXTS]
    expected = encoder.encode(asked).vectors.astype(np.float32)
    assert ask(service, TEXTS, input_type="query").tobytes() == expected.tobytes()
    passages = encoder.encode(TEXTS).vectors.astype(np.float32)
    for name, prompt in (("query", QUERY_PROMPT), ("passage", None), ("document", None)):
        body = {"model": "tiny", "input": TEXTS, "input_type": name}
        answer = service.client.post("/v1/embeddings", json=body).json()
        assert answer["query_prompt"] == prompt
        if prompt is None:
            first = np.array(answer["data"][0]["embedding"], np.float32)
            assert first.tobytes() == passages[0].tobytes()
    body = {"model": "tiny", "input": "a", "input_type": "clustering"}
    assert service.client.post("/v1/embeddings", json=body).status_code == 422


def test_the_query_backend_computes_queries_and_no_passage(
    service: Service, encoder: Encoder, encoder_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from featpipe.encoders.query_backend import onnx_encoder

    home = shutil.copytree(service.home, tmp_path / "home")
    own = {"model": str(encoder_folder), "query_prompt": QUERY_PROMPT, "query_backend": "onnx"}
    expected = onnx_encoder(encoder).encode([QUERY_PROMPT + text for text in TEXTS]).vectors
    with running(home, **own) as (other, _):
        found = ask(other, TEXTS, input_type="query")
        np.testing.assert_allclose(found, expected.astype(np.float32), rtol=0, atol=4e-3)
        assert ask(other, TEXTS).tobytes() == ask(service, TEXTS).tobytes()
        assert "queries are computed in float32, onnxruntime" in other.log.read_text("utf-8")


def test_base64_and_numbers_hold_the_same(service: Service) -> None:
    assert ask(service, TEXTS).tobytes() == ask(service, TEXTS, encoding_format="base64").tobytes()


#: As LangChain sends by default: of a tokenizer with 100,000 tokens.
OF_ANOTHER_TOKENIZER = [[40862, 42016, 28542, 20834, 45456], [24326, 39607, 50338, 50667]]


@pytest.mark.parametrize("given", [OF_ANOTHER_TOKENIZER, OF_ANOTHER_TOKENIZER[0], [[5, 6]], [5]])
def test_token_ids_are_refused_as_nobody_says_whose_they_are(
    service: Service, given: object
) -> None:
    response = service.client.post("/v1/embeddings", json={"model": "tiny", "input": given})
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "input")
    assert error["code"] == "token_ids_refused"
    assert "check_embedding_ctx_length=False" in error["message"]
    assert "--token-ids" in error["hint"]


def test_token_ids_that_the_operator_allows_are_read_as_their_text(
    built: Path, tmp_path: Path, encoder_folder: Path, encoder: Encoder
) -> None:
    home = Path(shutil.copytree(built, tmp_path / "home"))
    tokens = encoder.tokenizer.encode(TEXTS)
    lists = [part.tolist() for part in np.split(tokens.ids, tokens.ends[:-1])]
    allowed = {"model": str(encoder_folder), "token_ids": "tiny"}
    with running(home, **allowed) as (service, _):
        assert ask(service, lists).tobytes() == ask(service, TEXTS).tobytes()
        assert ask(service, lists[0]).tobytes() == ask(service, TEXTS[0]).tobytes()
        beyond = {"model": "tiny", "input": [[5, 6], [1_000_000]]}
        response = service.client.post("/v1/embeddings", json=beyond)
        assert (response.status_code, response.json()["error"]["code"]) == (422, "cannot_encode")


@pytest.mark.parametrize("name", ["cl100k_base", "zh-small", ""])
def test_only_ids_of_the_models_own_tokenizer_can_be_allowed(
    built: Path, encoder_folder: Path, name: str
) -> None:
    settings = ServiceSettings(built / "c.h5", model=str(encoder_folder), token_ids=name)
    with pytest.raises(UsageError, match="the model here is tiny"):
        Engine(settings)


def test_fewer_dimensions_have_length_one_again(service: Service) -> None:
    whole, short = ask(service, TEXTS), ask(service, TEXTS, dimensions=8)
    assert short.shape == (4, 8)
    expected = whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(short, expected, atol=1e-6)


def test_usage_counts_the_tokens_that_were_read(service: Service, encoder: Encoder) -> None:
    body = {"model": "tiny", "input": TEXTS}
    usage = service.client.post("/v1/embeddings", json=body).json()["usage"]
    n_tokens = int(encoder.encode(TEXTS).n_tokens.sum())
    assert usage == {"prompt_tokens": n_tokens, "total_tokens": n_tokens}


def test_a_request_larger_than_a_piece_keeps_its_order(service: Service, encoder: Encoder) -> None:
    texts = [f"第{number}号合同" for number in range(700)]
    expected = encoder.encode(texts).vectors.astype(np.float32)
    assert ask(service, texts, encoding_format="base64").tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"input": "a", "model": "gpt"}, 404, "model_not_found"),
        ({"input": "a", "model": "tiny", "dimensions": 100_000}, 422, "too_many_dimensions"),
        ({"input": "a", "model": "tiny", "dimensions": 0}, 422, "invalid_request"),
        ({"input": [], "model": "tiny"}, 422, "invalid_request"),
        ({"input": "", "model": "tiny"}, 422, "invalid_request"),
        ({"input": [[1, 2], [-1]], "model": "tiny"}, 422, "invalid_request"),
        ({"input": ["a"] * 2049, "model": "tiny"}, 422, "invalid_request"),
        ({"input": "a", "model": "tiny", "encoding_format": "hex"}, 422, "invalid_request"),
    ],
)
def test_a_mistake_is_explained(
    service: Service, body: dict[str, object], status: int, code: str
) -> None:
    response = service.client.post("/v1/embeddings", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def test_the_model_is_listed(service: Service) -> None:
    found = service.client.get("/v1/models").json()
    assert [model["id"] for model in found["data"]] == ["tiny"]


@pytest.mark.parametrize("level", ["sentence", "document"])
def test_hits_are_those_of_the_library(service: Service, level: str) -> None:
    body = {"query": "违约责任", "k": 3, "level": level}
    response = service.client.post("/search", json=body)
    assert response.status_code == 200, response.text
    with Cache.open(service.home / "c.h5") as cache:
        expected = SentenceSearch(cache).search("违约责任", 3, level=level)  # type: ignore[arg-type]
    hits = response.json()["hits"]
    assert [(h["document"], h["start"], h["end"], h["text"]) for h in hits] == [
        (h.document, h.start, h.end, h.text) for h in expected
    ]


def test_a_hybrid_search_uses_the_vectors_of_the_cache(service: Service) -> None:
    query = "本公司保证公告内容真实、准确。"
    body = {"query": query, "k": 1, "hybrid": True}
    answer = service.client.post("/search", json=body).json()
    assert (answer["hits"][0]["text"], answer["query_prompt"]) == (query, QUERY_PROMPT)
    by_words = service.client.post("/search", json={"query": query}).json()
    assert by_words["query_prompt"] is None
    refused = service.client.post("/search", json={**body, "level": "document"})
    assert refused.json()["error"]["code"] == "no_hybrid"


def test_settings_are_those_of_the_cache(service: Service, encoder: Encoder) -> None:
    assert encoder.spec["dtype"] == EncoderSettings().dtype
    assert service.client.get("/v1/models").status_code == 200
