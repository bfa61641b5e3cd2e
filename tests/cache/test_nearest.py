"""Nearest texts: the oracle is a sort of every score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from featpipe import Cache, Pipeline
from featpipe.cache.nearest import as_queries, find_rows
from featpipe.errors import UsageError

SMALL = st.integers(-3, 3).map(float)


def scores_of(vectors: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    if metric == "dot":
        return vectors @ query
    if metric == "euclidean":
        return -np.sqrt(((vectors - query) ** 2).sum(axis=1))
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return np.divide(vectors @ query, lengths, out=np.zeros(len(vectors)), where=lengths > 0)


@given(
    vectors=arrays.arrays(np.float32, (17, 3), elements=SMALL),
    queries=arrays.arrays(np.float32, (2, 3), elements=SMALL),
    k=st.integers(1, 20),
    step=st.integers(1, 17),
    metric=st.sampled_from(["dot", "euclidean"]),
)
def test_blocks_of_any_size_give_what_a_full_sort_gives(
    vectors: np.ndarray, queries: np.ndarray, k: int, step: int, metric: str
) -> None:
    blocks = [
        (np.arange(start, min(start + step, 17)), vectors[start : start + step])
        for start in range(0, 17, step)
    ]
    rows, scores = find_rows(blocks, queries, k, metric)  # type: ignore[arg-type]  # a sampled string
    for query, found, given_scores in zip(queries, rows, scores, strict=True):
        wanted = scores_of(vectors, query, metric).astype(np.float32)
        order = np.lexsort((np.arange(17), -wanted))[:k]
        assert found.tolist() == order.tolist()
        np.testing.assert_allclose(given_scores, wanted[order], rtol=1e-6)


def test_cosine_agrees_with_its_formula_and_zeros_are_like_nothing() -> None:
    vectors = np.random.default_rng(3).normal(size=(50, 8)).astype(np.float32)
    vectors[7] = 0
    queries = np.random.default_rng(4).normal(size=(3, 8)).astype(np.float32)
    rows, scores = find_rows([(np.arange(50), vectors)], queries, 50, "cosine")
    for query, found, given_scores in zip(queries, rows, scores, strict=True):
        wanted = scores_of(vectors.astype(np.float64), query.astype(np.float64), "cosine")
        assert found.tolist() == np.argsort(-wanted, kind="stable").tolist()
        np.testing.assert_allclose(given_scores, wanted[found], atol=1e-6)
        assert given_scores[found.tolist().index(7)] == 0


@pytest.mark.parametrize(
    ("vectors", "k", "metric", "message"),
    [
        (np.zeros(5), 1, "cosine", "has 4 numbers, not 5"),
        (np.full(4, np.nan), 1, "cosine", "not finite"),
        (np.zeros(4), 0, "cosine", "k must be at least 1"),
        (np.zeros(4), 1, "angular", "no metric 'angular'"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    vectors: np.ndarray, k: int, metric: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        find_rows([], as_queries(vectors, 4), k, metric)  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("level", [None, "sentence", "word"])
def test_a_text_of_the_cache_is_nearest_to_itself(
    tmp_path: Path, corpus: Path, encoder_folder: Path, dtype: str, level: str | None
) -> None:
    from featpipe.encoders.spec import EncoderSettings

    settings = EncoderSettings(dtype=dtype)  # type: ignore[arg-type]  # a parameter
    with Pipeline(
        tmp_path / "c.h5", encoder_folder, "none", devices=["cpu"], encoder=settings
    ) as pipeline:
        pipeline.build(corpus)
    with Cache.open(tmp_path / "c.h5") as cache:
        dictionary = cache.dictionary(level=level)
        texts = list(dictionary.texts())
        assert len(dictionary.keys()) == len(texts)
        vectors, found = dictionary.lookup(texts[:5])
        assert found.all()
        for text, neighbours in zip(texts, dictionary.nearest(vectors, 3), strict=False):
            # Tiny random models give equal vectors to unlike texts: it is among the best.
            assert neighbours[0].score == pytest.approx(1, abs=1e-3)
            assert {n.text for n in neighbours} <= set(texts)
            best = dictionary[neighbours[0].text]
            own = np.asarray(dictionary[text], np.float32)
            np.testing.assert_allclose(np.asarray(best, np.float32), own, atol=2e-2)
        n_rows = sum(len(rows) for rows, _ in dictionary.blocks())
        assert n_rows == len(texts)


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_a_score_does_not_depend_on_the_place_of_its_row(metric: str) -> None:
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((3000, 61)).astype(np.float16).astype(np.float32)
    queries = rng.standard_normal((3, 61)).astype(np.float32)
    rows, scores = find_rows([(np.arange(3000), vectors)], queries, 25, metric)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(3000)
        pieces = np.split(order, [1, 700, 1007])
        blocks = [(piece, vectors[piece]) for piece in pieces]
        other_rows, other_scores = find_rows(blocks, queries, 25, metric)
        assert np.array_equal(other_rows, rows)
        assert other_scores.tobytes() == scores.tobytes()
