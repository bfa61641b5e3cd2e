"""Likeness: how much each sentence of a document is like the sentences that held sample values.

Two views of it, both per sentence and standardised within the document: BM25 over neighbouring
word pairs, and cosine of the cached vectors. A document is never compared with its own values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.features.bm25 import Okapi, score_fields
from featpipe.templates.hashing import mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.templates.view import View

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: Sample sentences compared with; more of them add nothing but time.
_MOST_SENTENCES = 8
_LONGEST_QUERY = 120
_NEAREST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Sentences that held sample values: their word pairs, and their vectors where there are any.

    Shapes: ``queries`` one (n_terms,) each; ``vectors`` (n, dim) float32 unit vectors or None.
    """

    queries: tuple[Ints, ...]
    vectors: NDArray[np.float32] | None

    @classmethod
    def of(cls, samples: Sequence[tuple[View, Sequence[tuple[int, int]]]]) -> Anchors:
        """From located values, character spans per view."""
        places = [
            (view, number)
            for view, spans in samples
            for number in sorted({view.sentence_of(start) for start, _ in spans})
        ]
        step = max(1, -(-len(places) // _MOST_SENTENCES))
        queries = [sentence_terms(view, n)[:_LONGEST_QUERY] for view, n in places[::step]]
        vectors = [view.vectors[n] for view, n in places if view.vectors is not None]
        return cls(
            tuple(query for query in queries if len(query)), np.stack(vectors) if vectors else None
        )

    def by_words(self, view: View) -> Floats:
        """BM25 (n_sentences,), the document's own statistics; zeros without a query."""
        n = len(view.sentences)
        tokens = view.tokens
        if not self.queries or n < 2 or not len(tokens):
            return np.zeros(max(n, 1))
        pairs = _terms(tokens.code, tokens.sentence)
        lengths = np.bincount(tokens.sentence, minlength=n)
        distinct, ids = np.unique(pairs, return_inverse=True)
        queries = [_ids_of(query, distinct) for query in self.queries]
        scores = score_fields(ids.astype(np.int32), lengths.astype(np.int64), queries, Okapi())
        return _standardised(_nearest(scores.T))

    def by_vectors(self, view: View) -> Floats:
        """Cosine (n_sentences,); zeros where there are no vectors."""
        n = max(len(view.sentences), 1)
        if self.vectors is None or view.vectors is None or n < 2:
            return np.zeros(n)
        return _standardised(_nearest((view.vectors @ self.vectors.T).astype(np.float64)))


def sentence_terms(view: View, number: int) -> Ints:
    """Word pairs of one sentence."""
    tokens = view.tokens
    inside = tokens.sentence == number
    return np.unique(_terms(tokens.code[inside], tokens.sentence[inside]))


def _terms(code: Ints, sentence: Ints) -> Ints:
    """Each token with the one before it in its sentence."""
    before = np.concatenate(([0], code[:-1]))
    fresh = np.concatenate(([True], sentence[1:] != sentence[:-1]))[: len(code)]
    return mix(np.where(fresh, 0, before), code)


def _ids_of(query: Ints, distinct: Ints) -> NDArray[np.int32]:
    at = np.minimum(np.searchsorted(distinct, query), len(distinct) - 1)
    return np.where(distinct[at] == query, at, -1).astype(np.int32)


def _nearest(likeness: Floats) -> Floats:
    """Mean of the best few of (n_sentences, n_anchors): one odd sample decides nothing alone."""
    n = min(_NEAREST, likeness.shape[1])
    return np.asarray(np.sort(likeness, axis=1)[:, -n:].mean(axis=1))


def _standardised(values: Floats) -> Floats:
    spread = values.std()
    if spread < 1e-6:
        return np.zeros(len(values))
    return np.asarray(np.clip((values - values.mean()) / (2 * spread), -1.0, 1.5), np.float64)
