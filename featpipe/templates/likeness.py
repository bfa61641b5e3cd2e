"""Likeness: how much each sentence of a document is like the sentences that held sample values.

Two views of it, both per sentence and standardised within the document: BM25 over neighbouring
word pairs, and cosine of the cached vectors. A document is never compared with its own values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.templates.terms import sentence_terms

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
        return like_words(view, [self])[0]

    def by_vectors(self, view: View) -> Floats:
        """Cosine (n_sentences,); zeros where there are no vectors."""
        n = max(len(view.sentences), 1)
        if self.vectors is None or view.vectors is None or n < 2:
            return np.zeros(n)
        return _standardised(_nearest((view.vectors @ self.vectors.T).astype(np.float64)))


def like_words(view: View, many: Sequence[Anchors]) -> list[Floats]:
    """:meth:`Anchors.by_words` of many fields in one pass; each as if it were alone."""
    n = len(view.sentences)
    if n < 2 or not len(view.tokens):
        return [np.zeros(max(n, 1)) for _ in many]
    queries = [query for anchors in many for query in anchors.queries]
    scores = view.terms.score(queries)
    found, at = [], 0
    for anchors in many:
        own = scores[at : at + len(anchors.queries)]
        at += len(own)
        found.append(_standardised(_nearest(own.T)) if len(own) else np.zeros(n))
    return found


def _nearest(likeness: Floats) -> Floats:
    """Mean of the best few of (n_sentences, n_anchors): one odd sample decides nothing alone."""
    n = min(_NEAREST, likeness.shape[1])
    return np.asarray(np.sort(likeness, axis=1)[:, -n:].mean(axis=1))


def _standardised(values: Floats) -> Floats:
    spread = values.std()
    if spread < 1e-6:
        return np.zeros(len(values))
    return np.asarray(np.clip((values - values.mean()) / (2 * spread), -1.0, 1.5), np.float64)
