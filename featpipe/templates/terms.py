"""Terms: neighbouring word pairs of a document by sentence, numbered by its own vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.features.bm25 import Okapi
from featpipe.features.bm25.statistics import compute_statistics
from featpipe.templates.hashing import is_in, mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.templates.view import View

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Shapes: ``pairs`` (n_tokens,), ``distinct`` (n_terms,), ``lengths`` (n_sentences,).

    ``pointers`` (n_terms + 1,) say where the sentences of each term begin in ``sentences`` and
    ``weights``: what the term adds to the BM25 of each of them, the document being the corpus.
    """

    pairs: Ints
    """Hash of each token with the one before it in its sentence."""
    distinct: Ints
    """Ascending; terms are places in it."""
    lengths: Ints
    pointers: Ints
    sentences: Ints
    weights: Floats

    def ids_of(self, pairs: Ints) -> Ints:
        """Numbers of those word pairs that this document has, in their order."""
        return np.searchsorted(self.distinct, pairs[is_in(pairs, self.distinct)])

    def score(self, queries: Sequence[Ints]) -> Floats:
        """BM25 (n_queries, n_sentences) for queries of word pairs.

        To the last bit :func:`featpipe.features.bm25.score_fields`, and so rank-bm25: every sum is
        made in the order of its query. Only what a query and the document share costs time.
        """
        shared = [self.ids_of(query) for query in queries]
        terms = np.concatenate([np.empty(0, np.int64), *shared])
        owners = np.repeat(np.arange(len(queries)), [len(ids) for ids in shared])
        counts = self.pointers[terms + 1] - self.pointers[terms]
        ends = np.cumsum(counts)
        places = np.arange(int(counts.sum())) + np.repeat(
            self.pointers[terms] - ends + counts, counts
        )
        shape = len(queries), len(self.lengths)
        cells = np.repeat(owners, counts) * shape[1] + self.sentences[places]
        scores = np.bincount(cells, self.weights[places], shape[0] * shape[1])
        return np.asarray(scores.reshape(shape), np.float64)


def make_terms(view: View) -> Terms:
    """For :attr:`View.terms`."""
    tokens = view.tokens
    fresh = np.ones(len(tokens), bool)
    fresh[1:] = tokens.sentence[1:] != tokens.sentence[:-1]
    before = np.zeros(len(tokens), np.int64)
    before[1:] = tokens.code[:-1]
    pairs = mix(np.where(fresh, 0, before), tokens.code)
    distinct, first, ids = np.unique(pairs, return_index=True, return_inverse=True)
    n_sentences = max(len(view.sentences), 1)
    lengths = np.bincount(tokens.sentence, minlength=n_sentences).astype(np.int64)
    cells, frequencies = np.unique(ids * n_sentences + tokens.sentence, return_counts=True)
    terms, sentences = np.divmod(cells, n_sentences)
    pointers = np.searchsorted(terms, np.arange(len(distinct) + 1))
    order = np.argsort(first).astype(np.int32)
    variant = Okapi()
    known = compute_statistics(variant, np.diff(pointers), n_sentences, len(tokens), order)
    norms = variant.norms(lengths, known.mean_length)[sentences] if len(tokens) else np.empty(0)
    weights = known.idf[terms] * variant.columns(frequencies, norms).factor
    return Terms(pairs, distinct, lengths, pointers, sentences, weights)


def sentence_terms(view: View, number: int) -> Ints:
    """Distinct word pairs of one sentence, ascending."""
    first, last = np.searchsorted(view.tokens.sentence, (number, number + 1))
    return np.unique(view.terms.pairs[first:last])
