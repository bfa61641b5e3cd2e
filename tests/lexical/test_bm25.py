"""BM25's scores are those of the installed rank-bm25, to the last bit."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
import rank_bm25
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import HANG_S

from featpipe.errors import DictionaryError, UsageError
from featpipe.lexical.bm25 import Okapi, score_fields
from featpipe.lexical.index import Index
from featpipe.lexical.score_numpy import best_rows
from featpipe.lexical.segment import Segment
from tests.lexical.term_numbers import TermNumbers

Case = tuple[Okapi, dict[str, float]]
KernelBackend = Literal["numba", "numpy"]

PARAMETERS: list[Case] = [
    (Okapi(), {}),
    (Okapi(k1=0.9, b=0.4, epsilon=0.1), {"k1": 0.9, "b": 0.4, "epsilon": 0.1}),
]

BACKENDS: list[KernelBackend] = ["numpy", "numba"]

Corpus = list[list[str]]


def zipf_corpus(n_rows: int, seed: int, n_terms: int = 800) -> Corpus:
    """Rows of words whose frequencies fall off as in real text; some rows empty, some long."""
    choice = random.Random(seed)  # noqa: S311  # a fixed sample, not a secret
    words = [f"词{number}" for number in range(n_terms)]
    weights = [1 / (number + 1) for number in range(n_terms)]
    lengths = [choice.choice([0, 1, 3, 8, 12, 20, 45]) for _ in range(n_rows)]
    return [choice.choices(words, weights, k=length) for length in lengths]


def flatten(
    corpus: Sequence[Sequence[str]], vocabulary: TermNumbers
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    ids = [vocabulary.add(row) for row in corpus]
    return np.concatenate([*ids, np.zeros(0, np.int32)]), np.array([len(row) for row in corpus])


def build(
    corpus: Corpus, okapi: Okapi, backend: KernelBackend, parts: int = 1
) -> tuple[Index, TermNumbers]:
    vocabulary, index = TermNumbers(), Index(okapi, backend=backend)
    for number, part in enumerate(np.array_split(np.arange(len(corpus)), parts)):
        index.add(f"document {number}", *flatten([corpus[row] for row in part], vocabulary))
    return index, vocabulary


def queries_for(corpus: Corpus, seed: int, n: int) -> Corpus:
    choice = random.Random(seed)  # noqa: S311  # a fixed sample, not a secret
    rows = [row for row in corpus if row] or [["词1"]]
    asked = [choice.sample(row, min(len(row), 9)) for row in choice.choices(rows, k=n)]
    return [*asked, [], ["未知"], ["词0", "词0", "未知", "词5"]]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> KernelBackend:
    return request.param  # type: ignore[no-any-return]  # pytest's params are untyped


@pytest.fixture(params=PARAMETERS, ids=lambda each: repr(each[0]))
def case(request: pytest.FixtureRequest) -> Case:
    return request.param  # type: ignore[no-any-return]  # pytest's params are untyped


@pytest.mark.parametrize("parts", [1, 7])
def test_scores_are_rank_bm25s_to_the_last_bit(
    case: Case, backend: KernelBackend, parts: int
) -> None:
    okapi, parameters = case
    corpus = zipf_corpus(1500, seed=3)
    index, vocabulary = build(corpus, okapi, backend, parts)
    peer = rank_bm25.BM25Okapi(corpus, **parameters)
    queries = queries_for(corpus, 4, 40)
    scores = index.scores([vocabulary.find(query) for query in queries])
    assert np.array_equal(scores, [peer.get_scores(query) for query in queries])


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 60])
def test_fields_are_rank_bm25s_over_one_document(
    case: Case, backend: KernelBackend, n_rows: int
) -> None:
    okapi, parameters = case
    corpus = zipf_corpus(n_rows, seed=n_rows, n_terms=40)
    corpus[0] = ["词1", "词2", "词1"]
    vocabulary = TermNumbers(f"垫{number}" for number in range(1000))
    ids, lengths = flatten(corpus, vocabulary)
    queries = queries_for(corpus, 5, 30)
    peer = rank_bm25.BM25Okapi(corpus, **parameters)
    scores = score_fields(
        ids, lengths, [vocabulary.find(query) for query in queries], okapi, backend=backend
    )
    assert np.array_equal(scores, [peer.get_scores(query) for query in queries])


@settings(max_examples=60, deadline=None)
@given(
    corpus=st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=7), min_size=1, max_size=12),
    query=st.lists(st.sampled_from("abcdefghxyz"), max_size=6),
    which=st.sampled_from(PARAMETERS),
    backend=st.sampled_from(BACKENDS),
)
def test_any_small_corpus_scores_as_rank_bm25(
    corpus: Corpus, query: list[str], which: Case, backend: KernelBackend
) -> None:
    okapi, parameters = which
    index, vocabulary = build(corpus, okapi, backend)
    asked = vocabulary.find(query)
    if not any(corpus):
        assert not index.statistics.is_defined
        assert not index.scores([asked]).any()
        return
    expected = rank_bm25.BM25Okapi(corpus, **parameters).get_scores(query)
    assert np.array_equal(index.scores([asked])[0], expected)
    ids, lengths = flatten(corpus, vocabulary)
    assert np.array_equal(score_fields(ids, lengths, [asked], okapi, backend=backend)[0], expected)


def test_the_best_rows_go_by_score_and_then_by_position(case: Case, backend: KernelBackend) -> None:
    corpus = zipf_corpus(700, seed=12, n_terms=30) * 2  # every row twice: ties everywhere
    index, vocabulary = build(corpus, case[0], backend, parts=3)
    queries = [vocabulary.find(query) for query in queries_for(corpus, 13, 12)]
    scores = index.scores(queries)
    for k in (1, 10, 333, 5000):
        ranking = index.top_k(queries, k)
        expected = np.lexsort((np.tile(np.arange(len(corpus)), (len(queries), 1)), -scores))[:, :k]
        assert np.array_equal(ranking.rows, expected)
        assert np.array_equal(ranking.scores, np.take_along_axis(scores, expected, axis=1))


def test_documents_are_ranked_by_their_best_sentence(backend: KernelBackend) -> None:
    corpus = zipf_corpus(300, seed=15)
    index, vocabulary = build(corpus, Okapi(), backend, parts=20)
    queries = [vocabulary.find(query) for query in queries_for(corpus, 16, 10)]
    scores = index.scores(queries)
    ranking = index.top_k(queries, 8, level="document")
    documents = [name for name, _ in index.locate(np.arange(index.n_rows))]
    for query in range(len(queries)):
        order = sorted(range(len(corpus)), key=lambda row: (-scores[query, row], row))
        best = {documents[row]: row for row in reversed(order)}
        rows = [row for row in order if best[documents[row]] == row]
        assert ranking.rows[query].tolist() == rows[:8]
        assert np.array_equal(ranking.scores[query], scores[query, rows[:8]])


@pytest.mark.parametrize("corpus", [[], [[]], [[], []]])
def test_a_corpus_without_terms_scores_zero(corpus: Corpus, backend: KernelBackend) -> None:
    index, _ = build(corpus, Okapi(), backend)
    query = np.array([0, 1], np.int32)
    assert index.scores([query]).tolist() == [[0.0] * len(corpus)]
    assert not index.statistics.is_defined
    assert index.top_k([query], 5).rows.tolist() == [list(range(len(corpus)))]
    fields = score_fields(*flatten(corpus, TermNumbers()), [query], Okapi(), backend=backend)
    assert fields.tolist() == [[0.0] * len(corpus)]
    with pytest.raises(ZeroDivisionError):
        rank_bm25.BM25Okapi(corpus)


def test_kept_postings_are_taken_back_unread(backend: KernelBackend) -> None:
    corpus = zipf_corpus(500, seed=21)
    vocabulary = TermNumbers()
    ids, lengths = flatten(corpus, vocabulary)
    derived = Segment.from_ids(ids, lengths, backend=backend).derived()
    index = Index(backend=backend)
    index.add_segment(["all"], Segment.from_arrays(lengths, derived), [500])
    query = vocabulary.find(["词1", "词9"])
    assert np.array_equal(
        index.scores([query])[0], rank_bm25.BM25Okapi(corpus).get_scores(["词1", "词9"])
    )
    with pytest.raises(DictionaryError, match="do not belong"):
        Segment.from_arrays(lengths[:-1], derived)
    with pytest.raises(DictionaryError, match="do not belong"):
        Segment.from_arrays(lengths[::-1] + 1, derived)
    with pytest.raises(DictionaryError, match="lack 'rows'"):
        Segment.from_arrays(lengths, {k: v for k, v in derived.items() if k != "rows"})


def test_both_backends_derive_the_same_postings() -> None:
    for seed, rows in ((1, 0), (2, 1), (3, 40), (4, 900)):
        ids, lengths = flatten(zipf_corpus(rows, seed), TermNumbers())
        one, other = (Segment.from_ids(ids, lengths, backend=each).derived() for each in BACKENDS)
        assert {name: array.tolist() for name, array in one.items()} == {
            name: array.tolist() for name, array in other.items()
        }
        assert {name: array.dtype for name, array in one.items()} == {
            name: array.dtype for name, array in other.items()
        }


def test_many_tokens_are_transposed_to_the_same_postings(monkeypatch: pytest.MonkeyPatch) -> None:
    from featpipe.lexical import score_numpy as numpy_kernels
    from featpipe.lexical import segment

    ids, lengths = flatten(zipf_corpus(900, 5), TermNumbers())
    expected = Segment.from_ids(ids, lengths, backend="numpy").derived()
    monkeypatch.setattr(numpy_kernels, "_MANY_TOKENS", 1)
    monkeypatch.setattr(segment, "_DENSE_PAIRS", 1)
    found = Segment.from_ids(ids, lengths, backend="numpy").derived()
    for name, array in expected.items():
        assert array.dtype == found[name].dtype
        assert np.array_equal(array, found[name]), name


def test_frequent_terms_have_rank_bm25s_idf_too(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    from featpipe.lexical import bm25 as statistics

    monkeypatch.setattr(statistics, "_SMALL", 4)
    corpus = zipf_corpus(300, seed=23, n_terms=60)
    index, vocabulary = build(corpus, case[0], "numpy")
    queries = queries_for(corpus, 24, 20)
    peer = rank_bm25.BM25Okapi(corpus, **case[1])
    scores = index.scores([vocabulary.find(query) for query in queries])
    assert np.array_equal(scores, [peer.get_scores(query) for query in queries])


@given(
    st.lists(st.sampled_from([0.0, 0.5, 0.5, 1.0, 2.5, -1.0]), max_size=3000),
    st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_best_rows_are_those_of_a_full_sort(values: list[float], k: int) -> None:
    scores = np.array(values)
    expected = sorted(range(len(values)), key=lambda row: (-values[row], row))[:k]
    assert best_rows(scores, min(k, len(values))).tolist() == expected


@pytest.mark.parametrize("k", [1, 7, 30])
def test_best_of_many_rows_are_those_of_a_full_sort(k: int) -> None:
    choice = np.random.default_rng(k)
    for scores in (choice.integers(0, 9, 20_001) / 2, choice.random(20_001), np.zeros(20_001)):
        expected = np.argsort(-scores, kind="stable")[:k]
        assert np.array_equal(best_rows(scores, k), expected)


def test_scoring_with_numpy_loads_neither_numba_nor_scipy() -> None:
    program = (
        "import sys, numpy as np\n"
        "from featpipe.lexical.index import Index\n"
        "index = Index(backend='numpy')\n"
        "index.add('a', np.array([0, 1, 0], np.int32), np.array([2, 1]))\n"
        "index.top_k([np.array([1], np.int32)], 1)\n"
        "assert not {'numba', 'scipy', 'jieba', 'torch', 'h5py'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANG_S)


def test_wrong_arguments_are_named(backend: KernelBackend) -> None:
    index, _ = build([["a"]], Okapi(), backend)
    one = np.array([0], np.int32)
    with pytest.raises(UsageError, match="'document 0' is in the index"):
        index.add("document 0", one, np.array([1]))

    with pytest.raises(UsageError, match="not add up"):
        index.add("short", one, np.array([2]))
    with pytest.raises(UsageError, match="from 0 on"):
        index.add("negative", np.array([-1], np.int32), np.array([1]))
    with pytest.raises(UsageError, match="at least 1"):
        index.top_k([one], 0)
    with pytest.raises(UsageError, match="k1 > 0"):
        Okapi(k1=0.0)
