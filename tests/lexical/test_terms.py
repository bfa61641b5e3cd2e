"""Terms: what BM25 counts."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featpipe.errors import UsageError
from featpipe.lexical import terms
from featpipe.lexical.terms import ANALYSERS, Analyser

TEXT = "甲方支付违约金1,234.56元。\r\nHello ＡＢＣ 12.5%"
TEXTS = [TEXT, "", "。，！", "违约金 违约金", "1.", "5", "\ud800", TEXT]


@pytest.fixture(scope="module", autouse=True)
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables compiled here are kept for this file's tests only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", params=ANALYSERS)
def analyser(request: pytest.FixtureRequest) -> Analyser:
    return Analyser(request.param)


def test_words_keep_numbers_fold_case_and_drop_punctuation() -> None:
    expected = ["甲方", "支付", "违约金", "1", "234.56", "元", "hello", "a", "b", "c", "12.5%"]
    assert Analyser("words").terms(TEXT) == expected


def test_search_mode_adds_the_words_inside_words() -> None:
    assert Analyser("search").terms("违约金") == ["违约", "违约金"]


def test_grams_are_characters_and_pairs_with_latin_words_whole() -> None:
    expected = ["违", "违约", "约", "约金", "金", "abc", "12.5"]
    assert Analyser("chars").terms("违约金 ABC-12.5%") == expected


def test_a_number_does_not_reach_into_the_next_text() -> None:
    batch = Analyser("chars").count(["1.", "5"])
    assert batch.vocabulary == ["1", "5"]


def test_words_and_grams_together_count_each_span_once() -> None:
    assert Analyser("words+chars").terms("违约金") == ["违", "违约", "违约金", "约", "约金", "金"]


def test_large_batches_are_counted_in_parts(
    analyser: Analyser, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = analyser.count(TEXTS * 3)
    monkeypatch.setattr(terms, "_PART", 20)
    parts = analyser.count(TEXTS * 3)
    assert parts.vocabulary == whole.vocabulary
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.lengths.tolist() == whole.lengths.tolist()


def test_a_batch_gives_each_text_its_own_terms(analyser: Analyser) -> None:
    batch = analyser.count(TEXTS)
    assert batch.ids.dtype == np.int32
    assert batch.lengths.tolist() == [len(analyser.terms(text)) for text in TEXTS]
    spelled = [batch.vocabulary[number] for number in batch.ids.tolist()]
    assert spelled == [term for text in TEXTS for term in analyser.terms(text)]


def test_numbers_are_given_in_order_of_first_appearance(analyser: Analyser) -> None:
    batch = analyser.count(TEXTS)
    assert len(set(batch.vocabulary)) == len(batch.vocabulary)
    assert list(dict.fromkeys(batch.ids.tolist())) == list(range(len(batch.vocabulary)))


def test_no_texts_have_no_terms(analyser: Analyser) -> None:
    batch = analyser.count([])
    assert (batch.vocabulary, len(batch.ids), len(batch.lengths)) == ([], 0, 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=6))
def test_a_text_has_the_same_terms_in_any_company(analyser: Analyser, texts: list[str]) -> None:
    batch = analyser.count(texts)
    spelled = [batch.vocabulary[number] for number in batch.ids.tolist()]
    assert spelled == [term for text in texts for term in analyser.terms(text)]


def test_fingerprints_tell_analysers_apart_and_survive_pickling() -> None:
    seen = {Analyser(name).fingerprint for name in ANALYSERS}
    assert len(seen) == len(ANALYSERS)
    for name in ANALYSERS:
        analyser = Analyser(name)
        arrived = pickle.loads(pickle.dumps(analyser))  # noqa: S301  # our own bytes
        assert arrived.fingerprint == analyser.fingerprint
        assert arrived.terms(TEXT) == analyser.terms(TEXT)


def test_an_unknown_analyser_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown analyser"):
        Analyser("bigrams")  # type: ignore[arg-type]  # what the test is about


def test_fingerprints_are_those_of_stored_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches made by earlier versions hold them."""
    monkeypatch.setattr(terms, "unidata_version", "15.0.0")
    assert Analyser("chars").spec == {
        "terms": 1,
        "analyser": "chars",
        "unicode": "15.0.0",
        "stopwords": None,
        "words": None,
        "pieces": None,
    }
    assert Analyser("chars").fingerprint == "001d7f3c931a07a5df677ecaa003836a"
