"""An index that grows scores like a fresh rank-bm25 over all its documents."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import rank_bm25
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from featpipe.lexical.index import Index
from featpipe.lexical.segment import Segment
from tests.lexical.term_numbers import TermNumbers

KernelBackend = Literal["numba", "numpy"]

NAMES = st.sampled_from([f"文件{number}" for number in range(12)])
SENTENCES = st.lists(st.lists(st.sampled_from("甲乙丙丁戊己庚辛"), max_size=6), max_size=5)
QUERIES = [["甲"], ["乙", "丙", "乙"], ["辛", "庚", "无", "己", "戊", "丁"], []]


class IndexMachine(RuleBasedStateMachine):
    """The model is a dict of documents in order; the oracle is rank-bm25 built from it anew."""

    @initialize(backend=st.sampled_from(["numpy", "numba"]))
    def begin(self, backend: KernelBackend) -> None:
        self.backend = backend
        self.index = Index(backend=backend)
        self.vocabulary = TermNumbers("壬癸")
        self.model: dict[str, list[list[str]]] = {}
        self.batches: list[list[str]] = []

    def rows(self, sentences: list[list[str]]) -> tuple[Any, Any]:
        ids = [self.vocabulary.add(sentence) for sentence in sentences]
        return np.concatenate([*ids, np.zeros(0, np.int32)]), np.array(
            list(map(len, sentences)), int
        )

    @rule(documents=st.dictionaries(NAMES, SENTENCES, min_size=1, max_size=3))
    def add_many(self, documents: dict[str, list[list[str]]]) -> None:
        new = {name: each for name, each in documents.items() if name not in self.model}
        sentences = [sentence for each in new.values() for sentence in each]
        self.index.add_many(list(new), *self.rows(sentences), [len(each) for each in new.values()])
        self.model |= new
        self.batches += [list(new)] if new else []

    @precondition(lambda self: self.model)
    @rule()
    def keep_and_take_back(self) -> None:
        segments, self.index = self.index.segments, Index(backend=self.backend)
        for names, segment in zip(self.batches, segments, strict=True):
            again = Segment.from_arrays(segment.lengths, segment.derived())
            self.index.add_segment(names, again, [len(self.model[name]) for name in names])

    @invariant()
    def scores_are_those_of_a_fresh_rank_bm25(self) -> None:
        corpus = [sentence for sentences in self.model.values() for sentence in sentences]
        assert self.index.n_rows == len(corpus)
        assert self.index.documents == list(self.model)
        asked = [self.vocabulary.find(query) for query in QUERIES]
        scores = self.index.scores(asked)
        if not any(corpus):
            assert not scores.any()
            return
        peer = rank_bm25.BM25Okapi(corpus)
        assert np.array_equal(scores, [peer.get_scores(query) for query in QUERIES])
        ranking = self.index.top_k(asked, 4)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :4]
        assert np.array_equal(ranking.rows, order)

    @invariant()
    def documents_are_ranked_by_their_best_row(self) -> None:
        asked = [self.vocabulary.find(query) for query in QUERIES]
        scores = self.index.scores(asked)
        names = [name for name, each in self.model.items() for _ in each]
        best = self.index.top_k(asked, 3, level="document")
        for query, own in enumerate(scores):
            order = sorted(range(len(names)), key=lambda row: (-own[row], row))  # used at once
            firsts = {names[row]: row for row in reversed(order)}
            assert best.rows[query].tolist() == [row for row in order if row in firsts.values()][:3]

    @invariant()
    def rows_with_a_term_are_found_whatever_their_score(self) -> None:
        corpus = [set(sentence) for sentences in self.model.values() for sentence in sentences]
        for query in QUERIES:
            holding = [row for row, terms in enumerate(corpus) if terms & set(query)]
            assert self.index.rows_with(self.vocabulary.find(query)).tolist() == holding

    @invariant()
    def rows_are_found_in_their_documents(self) -> None:
        places = [
            (name, number) for name, each in self.model.items() for number in range(len(each))
        ]
        assert self.index.locate(np.arange(self.index.n_rows)) == places


IndexMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, print_blob=True
)
test_an_index_scores_like_a_fresh_rank_bm25_whatever_came_before = IndexMachine.TestCase
