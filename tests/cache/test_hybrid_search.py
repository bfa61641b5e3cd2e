"""Hybrid search against its formula over every sentence, in whatever pieces vectors are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.cache import tables, vector_pieces
from featpipe.cache.search import SentenceSearch
from featpipe.errors import DictionaryError, UsageError
from featpipe.store import Writer, keys_of

DIM, N_DOCUMENTS, EACH = 17, 60, 7


def sentences_of(document: int) -> list[str]:
    """Some sentences, of which each document shares the first with all others."""
    return [
        "甲方与乙方签订合同。",
        *(f"合同{number * number % 23}金额{document}。" for number in range(1, EACH)),
    ]


@pytest.fixture(scope="module", params=["float16", "bfloat16", "float32"])
def path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A cache in which each seventh sentence has no vector, and the vectors are in no order."""
    path = tmp_path_factory.mktemp("hybrid") / "c.h5"
    write_documents(path, {f"{n}": sentences_of(n) for n in range(N_DOCUMENTS)})
    texts = sorted({text for n in range(N_DOCUMENTS) for text in sentences_of(n)})
    keys = keys_of([text for at, text in enumerate(texts) if at % 7])
    vectors = np.random.default_rng(1).standard_normal((len(keys), DIM)).astype(np.float32)
    vectors[5] = 0
    values = vectors.astype(np.float16) if request.param == "float16" else vectors
    spec = tables.vectors_spec({"model": "m"}, "0" * 12, DIM, request.param)
    with Writer.open(path) as writer:
        writer.table(tables.space_table("m", "0" * 12), spec).append(
            {"keys": keys, "vectors": values}
        )
        writer.commit()
    return path


def expected(
    cache: Cache, query: str, vector: np.ndarray, weight: float
) -> list[tuple[str, float]]:
    """All sentences in order, by the formula over whole matrices."""
    search, dictionary = SentenceSearch(cache, backend="numpy"), cache.dictionary()
    texts = [text for n in range(N_DOCUMENTS) for text in sentences_of(n)]
    rows, found = dictionary.lookup(texts)
    whole = np.asarray(rows, np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", whole, whole)) * np.linalg.norm(vector)
    cosines = np.zeros(len(texts))
    products = np.einsum("ij,j->i", whole, vector)
    np.divide(products, norms, out=cosines, where=found & (norms > 0))
    words = np.zeros(len(texts))
    ranked = {(hit.document, hit.start): hit.score for hit in search.search(query, len(texts))}
    at = 0
    for n in range(N_DOCUMENTS):
        start = 0
        for text in sentences_of(n):
            words[at] = ranked.get((str(n), start), 0.0)
            at, start = at + 1, start + len(text)
    scores = weight * scaled(words) + (1 - weight) * scaled(cosines)
    return [(texts[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def scaled(scores: np.ndarray) -> np.ndarray:
    spread = scores.max() - scores.min()
    return (scores - scores.min()) / spread if spread > 0 else np.zeros_like(scores)


@pytest.mark.parametrize("pieces", [None, (DIM, DIM, DIM), (300, 40, 500)])
def test_every_score_is_that_of_the_formula(
    path: Path, pieces: tuple[int, int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pieces:  # a row at a time in eight threads; several unequal pieces
        for name, value in zip(("_READ", "_PIECE", "_THREAD"), pieces, strict=True):
            monkeypatch.setattr(vector_pieces, f"{name}_VALUES", value)
        monkeypatch.setattr(vector_pieces, "usable_cores", lambda: 8)
    with Cache.open(path) as cache:
        search, dictionary = SentenceSearch(cache, backend="numpy"), cache.dictionary()
        vectors = np.random.default_rng(2).standard_normal((2, DIM)).astype(np.float32)
        for vector in vectors:  # the second search has the lengths of the first
            for query, weight in (("合同金额3", 0.8), ("甲方", 0.3), ("", 0.0)):
                wanted = expected(cache, query, vector, weight)
                for k in (1, 10, len(wanted) + 5):
                    hits = search.search_hybrid(query, vector, dictionary, k, weight=weight)
                    assert [(hit.text, hit.score) for hit in hits] == wanted[:k]


def test_no_hits_at_all_cannot_be_asked_for(path: Path) -> None:
    with Cache.open(path) as cache:
        search = SentenceSearch(cache)
        with pytest.raises(UsageError, match="k must be at least 1, not 0"):
            search.search_hybrid("合同", np.ones(DIM, np.float32), cache.dictionary(), 0)


def test_a_fault_in_a_thread_is_raised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_pieces, "_THREAD_VALUES", DIM)
    monkeypatch.setattr(vector_pieces, "usable_cores", lambda: 4)
    with Cache.open(path) as cache:
        dictionary = cache.dictionary()
        beyond = np.arange(len(dictionary) + 1)
        with pytest.raises(DictionaryError, match="of table embeddings/m"):
            dictionary.for_each_piece(beyond, lambda *_: None)
