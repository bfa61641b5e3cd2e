"""Word pairs: neighbouring tokens of each sentence as the terms of BM25, the page as the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.tokens import mix
from featpipe.lexical.bm25 import Okapi, compute_statistics
from featpipe.store.sorted_values import distinct, places_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WordPairs:
    """An inverted index of sentences.

    Shapes: ``pairs`` (n_tokens,), ``distinct`` (n_terms,), ``lengths`` (n_sentences,).
    The sentences of term i, and what it adds to the BM25 of each, are the entries from
    ``pointers[i]`` to ``pointers[i + 1]`` of ``sentences`` and ``weights``.
    """

    pairs: Ints
    """Hash of each token with the one before it in its sentence."""
    distinct: Ints
    """Ascending; the number of a term is its place here."""
    lengths: Ints
    pointers: Ints
    sentences: Ints
    weights: Floats

    def of_sentence(self, tokens: Tokens, number: int) -> Ints:
        """Distinct word pairs of one sentence, ascending."""
        first, last = np.searchsorted(tokens.sentence, (number, number + 1))
        return distinct(self.pairs[first:last])

    def score(self, queries: Sequence[Ints]) -> Floats:
        """BM25 (n_queries, n_sentences) for queries of word pairs.

        Equal to rank-bm25 to the last bit: every sum is made in the order of its query. Only the
        pairs that a query and the document share cost time.
        """
        shared = [self._ids_of(query) for query in queries]
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

    def _ids_of(self, pairs: Ints) -> Ints:
        places = places_in(pairs, self.distinct)
        return places[places >= 0]


def make_word_pairs(tokens: Tokens, n_sentences: int) -> WordPairs:
    """The index of a page with at least one sentence."""
    begins_sentence = np.ones(len(tokens), bool)
    begins_sentence[1:] = tokens.sentence[1:] != tokens.sentence[:-1]
    before = np.zeros(len(tokens), np.int64)
    before[1:] = tokens.code[:-1]
    pairs = mix(np.where(begins_sentence, 0, before), tokens.code)
    known_pairs, first, ids = np.unique(pairs, return_index=True, return_inverse=True)
    lengths = np.bincount(tokens.sentence, minlength=n_sentences).astype(np.int64)
    cells, frequencies = np.unique(ids * n_sentences + tokens.sentence, return_counts=True)
    terms, sentences = np.divmod(cells, n_sentences)
    pointers = np.searchsorted(terms, np.arange(len(known_pairs) + 1))
    order = np.argsort(first).astype(np.int32)
    okapi = Okapi()
    known = compute_statistics(okapi, np.diff(pointers), n_sentences, len(tokens), order)
    norms = okapi.norms(lengths, known.mean_length)[sentences] if len(tokens) else np.empty(0)
    weights = known.idf[terms] * okapi.factors(frequencies, norms)
    return WordPairs(pairs, known_pairs, lengths, pointers, sentences, weights)
