"""Likeness by words is BM25 over the document's sentences, to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import features_of

from featpipe.lexical.bm25 import Okapi, score_fields

TEXTS = st.text(st.sampled_from("ab。公司\n12 "), max_size=60)


@given(text=TEXTS, others=st.lists(TEXTS, max_size=3))
@settings(deadline=None)
def test_scores_are_those_of_bm25(text: str, others: list[str]) -> None:
    features, asked = features_of(text), [features_of(other) for other in others]
    queries = [
        one.word_pairs.of_sentence(one.tokens, n)
        for one in asked
        for n in range(len(one.page.sentences))
    ]
    terms = features.word_pairs
    scores = terms.score(queries)
    assert scores.shape == (len(queries), max(len(features.page.sentences), 1))
    if not len(terms.pairs):
        assert not scores.any()
        return
    ids = np.searchsorted(terms.distinct, terms.pairs).astype(np.int32)
    numbers = dict(zip(terms.distinct.tolist(), range(len(terms.distinct)), strict=True))
    numbered = [np.array([numbers.get(p, -1) for p in q.tolist()], np.int32) for q in queries]
    expected = score_fields(ids, terms.lengths, numbered, Okapi())
    assert scores.tobytes() == expected.tobytes()
