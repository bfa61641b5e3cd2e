"""``/rerank``, ``/embed``, ``/info`` and ``/v1/models/NAME``: shapes of others, figures of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from service_watch import QUERY_PROMPT

from featpipe.cache.cache import Cache
from featpipe.cache.search import BM25_WEIGHT, SentenceSearch
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import fingerprint_of
from featpipe.lexical.fusion import combine, normalise
from featpipe.on_demand.space import find_space

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from service_watch import Service

QUERY = "合同的违约责任"
TEXTS = [
    "第1号合同的违约责任由双方承担。",
    "公告编号：2020-010",
    "违约",
    "本公司保证公告内容真实。",
]


@pytest.fixture(scope="module")
def encoder(service: Service, encoder_folder: Path) -> Encoder:
    with Cache.open(service.home / "c.h5") as cache:
        return Encoder.load(encoder_folder, find_space(cache, encoder_folder)[1])


@pytest.fixture(scope="module")
def words(service: Service) -> np.ndarray:
    with Cache.open(service.home / "c.h5") as cache:
        return SentenceSearch(cache).score_texts(QUERY, TEXTS)


@pytest.fixture(scope="module")
def cosines(encoder: Encoder) -> np.ndarray:
    query, *rows = encoder.encode([QUERY_PROMPT + QUERY, *TEXTS]).vectors.astype(np.float64)
    return np.array([row @ query / np.linalg.norm(row) / np.linalg.norm(query) for row in rows])


def post(service: Service, path: str, **body: object) -> httpx.Response:
    answer = service.client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer


def test_texts_of_the_cache_score_as_the_search_scores_them(service: Service) -> None:
    with Cache.open(service.home / "c.h5") as cache:
        search = SentenceSearch(cache)
        hits = search.search(QUERY, 100)
        scores = search.score_texts(QUERY, [hit.text for hit in hits])
        assert len(hits) > 3
        assert scores.tolist() == [hit.score for hit in hits]
        unseen = search.score_texts("鲸鱼", ["鲸鱼", "公司"])
        assert unseen[0] > 0 == unseen[1]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_documents_are_answered_as_cohere_and_jina_do(
    service: Service, words: np.ndarray, cosines: np.ndarray, path: str
) -> None:
    expected = combine(words, cosines, BM25_WEIGHT)
    documents = [TEXTS[0], {"text": TEXTS[1], "id": 7}, *TEXTS[2:]]
    answer = post(service, path, query=QUERY, documents=documents, top_n=3, max_tokens_per_doc=9)
    body = answer.json()
    assert body["model"] == answer.headers["x-rerank-model"] == "bm25+tiny"
    assert [one["index"] for one in body["results"]] == np.argsort(-expected)[:3].tolist()
    found = {one["index"]: one["relevance_score"] for one in body["results"]}
    np.testing.assert_allclose(list(found.values()), expected[list(found)], atol=1e-6)
    assert {one["document"] for one in body["results"]} == {None}
    assert body["id"] == answer.headers["x-request-id"]
    assert body["meta"]["api_version"]["version"] == "2"
    assert body["usage"]["total_tokens"] > len(TEXTS)


@pytest.mark.parametrize("model", ["bm25", "tiny"])
def test_the_model_chooses_what_ranks(
    service: Service, words: np.ndarray, cosines: np.ndarray, model: str
) -> None:
    expected = normalise(words if model == "bm25" else cosines)
    given = {"query": QUERY, "documents": TEXTS, "model": model, "return_documents": True}
    body = post(service, "/v1/rerank", **given).json()
    assert body["model"] == model
    assert (body["usage"]["total_tokens"] == 0) == (model == "bm25")
    for one in body["results"]:
        assert one["relevance_score"] == pytest.approx(expected[one["index"]], abs=1e-6)
        assert one["document"] == {"text": TEXTS[one["index"]]}


def test_texts_are_answered_as_tei_does(
    service: Service, words: np.ndarray, cosines: np.ndarray
) -> None:
    given = {"query": QUERY, "texts": TEXTS, "truncate": True}
    found = post(service, "/rerank", **given).json()
    expected = combine(words, cosines, BM25_WEIGHT)
    assert [one["index"] for one in found] == np.argsort(-expected, kind="stable").tolist()
    assert [one["score"] for one in found] == sorted((o["score"] for o in found), reverse=True)
    assert found[0]["text"] is None
    raw = post(service, "/rerank", **given, raw_scores=True, return_text=True, model="bm25")
    assert raw.headers["x-rerank-model"] == "bm25"
    assert {one["text"]: one["score"] for one in raw.json()} == dict(
        zip(TEXTS, words.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"query": "a", "documents": ["a"], "model": "rerank-v3.5"}, 404, "model_not_found"),
        ({"query": "a"}, 422, "invalid_request"),
        ({"query": "", "texts": ["a"]}, 422, "invalid_request"),
        ({"query": "a", "texts": []}, 422, "invalid_request"),
        ({"query": "a", "documents": [{"title": "a"}]}, 422, "invalid_request"),
    ],
)
def test_a_mistake_is_explained(
    service: Service, body: dict[str, object], status: int, code: str
) -> None:
    answer = service.client.post("/rerank", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_embed_answers_as_tei_does(service: Service, encoder: Encoder) -> None:
    plain = encoder.encode(TEXTS).vectors.astype(np.float32)
    found = post(service, "/embed", inputs=TEXTS, normalize=False).json()
    assert np.array(found, np.float32).tobytes() == plain.tobytes()
    scaled = np.array(post(service, "/embed", inputs=TEXTS[0]).json())
    np.testing.assert_allclose(scaled, plain[:1] / np.linalg.norm(plain[0]), atol=1e-6)
    asked = post(service, "/embed", inputs=QUERY, prompt_name="query", dimensions=8).json()
    whole = encoder.encode([QUERY_PROMPT + QUERY]).vectors.astype(np.float32)[0, :8]
    np.testing.assert_allclose(asked[0], whole / np.linalg.norm(whole), atol=1e-6)
    ids = service.client.post("/embed", json={"inputs": [[5, 6]]})
    assert (ids.status_code, ids.json()["error"]["param"]) == (400, "inputs")


def test_the_model_and_its_limits_are_told(service: Service, encoder: Encoder) -> None:
    info = service.client.get("/info").json()
    assert info["model_id"] == "tiny"
    assert info["model_sha"] == fingerprint_of(encoder.spec)
    assert info["model_type"] == {"embedding": {"pooling": encoder.spec["pooling"]}}
    model = service.client.get("/v1/models/tiny").json()
    assert model == service.client.get("/v1/models").json()["data"][0]
    unknown = service.client.get("/v1/models/BAAI/bge-m3")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
