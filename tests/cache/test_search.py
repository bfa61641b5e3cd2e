"""Search over a cache: rank-bm25's scores over its sentences, and vectors where asked for."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from building import build
from click.testing import CliRunner
from rank_bm25 import BM25Okapi
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.cache.forgotten import compact_cache
from featpipe.cache.search import SentenceSearch
from featpipe.cache.search_worker import SearchQuery, SearchRole
from featpipe.cli.search import search as search_command
from featpipe.encoders.encoder import Encoder
from featpipe.errors import UnknownSpace, UsageError
from featpipe.lexical.terms import Analyser
from featpipe.on_demand.space import find_space
from featpipe.on_demand.text_encoder import TextEncoder

QUERY = "合同金额为万元"
LEVELS: list[Literal["sentence", "document"]] = ["sentence", "document"]


@pytest.fixture(scope="module")
def documents() -> list[str]:
    return [
        "甲方与乙方签订合同。合同金额为三万元。双方协商解决争议。",
        "本公司收到中标通知书。中标金额为五亿元。",
        "违约责任由违约方承担。合同金额为三万元。",
        "会议审议通过了利润分配方案。",
    ]


@pytest.fixture
def cache(tmp_path: Path, documents: list[str], encoder_folder: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number, text in enumerate(documents):
        (tmp_path / "docs" / f"{number}.txt").write_text(text, "utf-8")
    build(tmp_path / "c.h5", tmp_path / "docs", encoder_folder)
    return tmp_path / "c.h5"


def test_scores_are_those_of_rank_bm25_over_all_sentences(cache: Path) -> None:
    with Cache.open(cache) as opened:
        search = SentenceSearch(opened)
        analyser = Analyser("chars")
        sentences = [u for d in opened.documents() for u in d.units("sentence")]
        oracle = BM25Okapi([analyser.terms(unit.text) for unit in sentences])
        scores = oracle.get_scores(analyser.terms(QUERY))
        asked = set(analyser.terms(QUERY))
        holding = [at for at in range(8) if asked & set(analyser.terms(sentences[at].text))]
        order = sorted(holding, key=lambda at: -scores[at])[:5]
        hits = search.search(QUERY, 5)
    assert search.n_sentences == len(sentences) == 8
    assert [hit.score for hit in hits] == [scores[at] for at in order]
    assert [hit.text for hit in hits] == [sentences[at].text for at in order]


def test_a_hit_points_at_its_characters(cache: Path, documents: list[str]) -> None:
    with Cache.open(cache) as opened:
        for hit in SentenceSearch(opened).search(QUERY, 8):
            number = int(Path(hit.path).stem)
            assert documents[number][hit.start : hit.end] == hit.text


def test_documents_are_ranked_by_their_best_sentence(cache: Path) -> None:
    with Cache.open(cache) as opened:
        hits = SentenceSearch(opened).search(QUERY, 4, level="document")
    assert len({hit.document for hit in hits}) == 3  # the fourth holds none of the terms
    assert "合同金额" in hits[0].text


def test_hybrid_with_vectors_alone_ranks_by_cosine(cache: Path, encoder_folder: Path) -> None:
    with Cache.open(cache) as opened:
        dictionary, settings = find_space(opened, encoder_folder)
        [vector] = Encoder.load(encoder_folder, settings).encode(["合同金额为三万元。"]).vectors
        hits = SentenceSearch(opened).search_hybrid("", vector, dictionary, 2, weight=0.0)
        np.testing.assert_allclose(vector, dictionary["合同金额为三万元。"], atol=2e-3)
    assert {hit.text for hit in hits} == {"合同金额为三万元。"}


def test_another_model_is_refused_with_the_difference(cache: Path, tagger_folder: Path) -> None:
    with Cache.open(cache) as opened, pytest.raises(UnknownSpace, match="weights"):
        find_space(opened, tagger_folder)


def test_terms_that_are_not_there_are_said_not_to_be(cache: Path) -> None:
    with Cache.open(cache) as opened, pytest.raises(UnknownSpace, match="chars"):
        SentenceSearch(opened, "words")


@pytest.mark.parametrize("query", ["", "zzz", "龘"])
def test_what_no_sentence_holds_is_not_found(cache: Path, query: str) -> None:
    with Cache.open(cache) as opened:
        assert SentenceSearch(opened).search(query) == []


@pytest.mark.parametrize("query", ["", " \n　"])
def test_a_query_of_blanks_finds_nothing_by_meaning_either(
    cache: Path, encoder_folder: Path, query: str
) -> None:
    with Cache.open(cache) as opened, TextEncoder(cache, encoder_folder) as encoder:
        assert opened.search(query, encoder=encoder) == []
        assert encoder.n_encoded == 0
        vector = np.ones(encoder.dim, np.float32)
    role = SearchRole(str(cache), encoder.space, None)
    blank, words = role.run([SearchQuery(text, 3, vector=vector) for text in (query, "zzz")])
    role.close()
    assert blank == []
    assert len(words) == 3


@pytest.mark.parametrize("query", [QUERY, "zzz"])
def test_another_level_and_no_hits_at_all_are_refused(cache: Path, query: str) -> None:
    with Cache.open(cache) as opened:
        with pytest.raises(UsageError, match="unknown level 'paragraph'"):
            opened.search(query, level="paragraph")  # type: ignore[arg-type]  # on purpose
        with pytest.raises(UsageError, match="k must be at least 1"):
            opened.search(query, 0)


@pytest.mark.parametrize("k", [2.5, 2.0, True, "3", None, float("nan")])
def test_hits_are_a_whole_number_for_every_search(cache: Path, k: int) -> None:
    with Cache.open(cache) as opened:
        dictionary, search = opened.dictionary(), opened.sentence_search()
        vector = np.ones(dictionary.dim, np.float32)
        searches = (
            *(lambda query=query: opened.search(query, k) for query in (QUERY, "zzz")),
            lambda: opened.search(QUERY, k, level="document"),
            lambda: search.search_hybrid(QUERY, vector, dictionary, k),
            lambda: dictionary.nearest(vector, k),
        )
        for each in searches:
            with pytest.raises(UsageError, match="k must be a whole number"):
                each()
        assert len(opened.search(QUERY, np.int64(2))) == 2


def test_a_sentence_that_holds_the_words_is_found_whatever_its_score(tmp_path: Path) -> None:
    """One sentence: all scores negative. Two: a word in one of them has an idf of zero."""
    for sentences in (["合同金额。"], ["合同金额。", "利润分配。"]):
        path = tmp_path / f"{len(sentences)}.h5"
        write_documents(path, {f"{n}.txt": [text] for n, text in enumerate(sentences)})
        with Cache.open(path) as opened:
            search = SentenceSearch(opened, backend="numpy")
            for level in LEVELS:
                (hit,) = search.search("金额", level=level)
                assert hit.text == "合同金额。"
                assert hit.score <= 0


def test_documents_without_a_positive_score_are_ranked_once_each(tmp_path: Path) -> None:
    """金 is in half of the sentences and adds nothing; 额 in one."""
    documents = {"a": ["金甲。", "乙丙。", "金丁。"], "b": ["戊。", "己。", "金额。"]}
    write_documents(tmp_path / "c.h5", documents)
    with Cache.open(tmp_path / "c.h5") as opened:
        hits = SentenceSearch(opened, backend="numpy").search("金额", level="document")
    assert [(hit.document, hit.text) for hit in hits] == [("b", "金额。"), ("a", "金甲。")]
    assert hits[1].score == 0


def test_a_cache_finds_what_the_command_finds(tmp_path: Path) -> None:
    documents = {"a": ["金甲。", "乙丙。", "金丁。"], "b": ["戊。", "己。", "金额。"]}
    write_documents(tmp_path / "c.h5", documents)
    with Cache.open(tmp_path / "c.h5") as opened:
        for level in LEVELS:
            options = ["金额", "-k", "3", "--level", level, "--json"]
            said = CliRunner().invoke(search_command, [str(tmp_path / "c.h5"), *options])
            told = [json.loads(line) for line in said.output.splitlines()]
            assert [asdict(hit) for hit in opened.search("金额", 3, level=level)] == told != []


def test_a_cache_searches_what_was_written_since_and_keeps_its_index_otherwise(
    tmp_path: Path,
) -> None:
    write_documents(tmp_path / "c.h5", {"a": ["金额。"], "z": ["无关。"]})
    with Cache.open(tmp_path / "c.h5") as opened:
        assert [hit.document for hit in opened.search("金额")] == ["a"]
        assert opened.sentence_search() is opened.sentence_search()
        write_documents(tmp_path / "c.h5", {"b": ["金额也有。"]})
        assert {hit.document for hit in opened.search("金额")} == {"a", "b"}
        assert repr(opened) == f"<Cache {tmp_path / 'c.h5'}>"
        assert "3 sentences by chars@" in repr(opened.sentence_search())


def test_an_open_cache_searches_the_file_that_replaced_its_own_with_as_many_rows(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.h5"
    write_documents(path, {"a": ["无关。"], "b": ["金额。"], "c": ["甲方。"]})
    with Cache.open(path) as opened:
        opened.search("金额")
        with Cache.open(path) as other:
            other.forget("a")
        compact_cache(path)
        write_documents(path, {"d": ["甲方有金额。"]})
        with Cache.open(path) as fresh:
            expected = fresh.search("金额")
        assert {hit.document for hit in expected} == {"b", "d"}
        assert opened.search("金额") == expected


def test_the_cache_ranks_by_meaning_with_an_encoder_and_names_the_prompt(
    cache: Path, encoder_folder: Path
) -> None:
    with Cache.open(cache) as opened, TextEncoder(cache, encoder_folder, query_prompt="合") as by:
        hits = opened.search("金额", 3, encoder=by)
        vector, search = by.encode_queries(["金额"])[0], SentenceSearch(opened)
        expected = search.search_hybrid("金额", vector, by.dictionary, 3)
        assert [replace(hit, query_prompt=None) for hit in hits] == expected
        assert {hit.query_prompt for hit in hits} == {"合"}
        with pytest.raises(UsageError, match="leave the level out"):
            opened.search("金额", level="document", encoder=by)


def test_an_encoder_that_was_opened_before_ranks_by_vectors_that_came_since(
    cache: Path, encoder_folder: Path
) -> None:
    with Cache.open(cache) as opened, TextEncoder(cache, encoder_folder, query_prompt="合") as by:
        opened.search("租赁", encoder=by)
        (cache.parent / "docs" / "4.txt").write_text("租赁期限为三年。", "utf-8")
        build(cache, cache.parent / "docs", encoder_folder)
        found = opened.search("租赁期限", encoder=by)
        with (
            Cache.open(cache) as fresh,
            TextEncoder(cache, encoder_folder, query_prompt="合") as to,
        ):
            assert found == fresh.search("租赁期限", encoder=to)


def test_an_encoder_of_another_space_is_refused(
    tmp_path: Path, cache: Path, encoder_folder: Path
) -> None:
    write_documents(tmp_path / "other.h5", {"a": ["合同金额。"]})
    with (
        Cache.open(tmp_path / "other.h5") as other,
        TextEncoder(cache, encoder_folder) as by,
        pytest.raises(UnknownSpace, match=r"other\.h5 holds no vectors of tiny@"),
    ):
        other.search("合同", encoder=by)
