"""Manner: how the values of the samples stand and look, and how like them a candidate is.

One sample says a good deal: what stands before its value and behind it, how long the value is, of
which characters it is made, where in the document it is found. Each is compared on its own, as a
number that means the same for every field, so that how much it counts can be stated beforehand.
A document is never compared with its own values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.hashing import is_in, mix
from featpipe.lexical.bm25 import Okapi, compute_statistics

# Terms: neighbouring word pairs of a document by sentence, numbered by its own vocabulary.


if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page

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

        To the last bit :func:`featpipe.lexical.bm25.score_fields`, and so rank-bm25: every sum is
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


def make_terms(page: Page) -> Terms:
    """For :attr:`Page.terms`."""
    tokens = page.tokens
    fresh = np.ones(len(tokens), bool)
    fresh[1:] = tokens.sentence[1:] != tokens.sentence[:-1]
    before = np.zeros(len(tokens), np.int64)
    before[1:] = tokens.code[:-1]
    pairs = mix(np.where(fresh, 0, before), tokens.code)
    distinct, first, ids = np.unique(pairs, return_index=True, return_inverse=True)
    n_sentences = max(len(page.sentences), 1)
    lengths = np.bincount(tokens.sentence, minlength=n_sentences).astype(np.int64)
    cells, frequencies = np.unique(ids * n_sentences + tokens.sentence, return_counts=True)
    terms, sentences = np.divmod(cells, n_sentences)
    pointers = np.searchsorted(terms, np.arange(len(distinct) + 1))
    order = np.argsort(first).astype(np.int32)
    okapi = Okapi()
    known = compute_statistics(okapi, np.diff(pointers), n_sentences, len(tokens), order)
    norms = okapi.norms(lengths, known.mean_length)[sentences] if len(tokens) else np.empty(0)
    weights = known.idf[terms] * okapi.factors(frequencies, norms)
    return Terms(pairs, distinct, lengths, pointers, sentences, weights)


def sentence_terms(page: Page, number: int) -> Ints:
    """Distinct word pairs of one sentence, ascending."""
    first, last = np.searchsorted(page.tokens.sentence, (number, number + 1))
    return np.unique(page.terms.pairs[first:last])


# Likeness: how much each sentence of a document is like the sentences that held sample values.
#
# Two pages of it, both per sentence and standardised within the document: BM25 over neighbouring
# word pairs, and cosine of the cached vectors. A document is never compared with its own values.


if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page


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
    def of(cls, samples: Sequence[tuple[Page, Sequence[tuple[int, int]]]]) -> Anchors:
        """From located values, character spans per page."""
        places = [
            (page, number)
            for page, spans in samples
            for number in sorted({page.sentence_of(start) for start, _ in spans})
        ]
        step = max(1, -(-len(places) // _MOST_SENTENCES))
        queries = [sentence_terms(page, n)[:_LONGEST_QUERY] for page, n in places[::step]]
        vectors = [page.vectors[n] for page, n in places if page.vectors is not None]
        return cls(
            tuple(query for query in queries if len(query)), np.stack(vectors) if vectors else None
        )

    def by_words(self, page: Page) -> Floats:
        """BM25 (n_sentences,), the document's own statistics; zeros without a query."""
        return like_words(page, [self])[0]

    def by_vectors(self, page: Page) -> Floats:
        """Cosine (n_sentences,); zeros where there are no vectors."""
        n = max(len(page.sentences), 1)
        if self.vectors is None or page.vectors is None or n < 2:
            return np.zeros(n)
        return _standardised(_nearest((page.vectors @ self.vectors.T).astype(np.float64)))


def like_words(page: Page, many: Sequence[Anchors]) -> list[Floats]:
    """:meth:`Anchors.by_words` of many fields in one pass; each as if it were alone."""
    n = len(page.sentences)
    if n < 2 or not len(page.tokens):
        return [np.zeros(max(n, 1)) for _ in many]
    queries = [query for anchors in many for query in anchors.queries]
    scores = page.terms.score(queries)
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


if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.page import Page


#  Hashed columns (:func:`featpipe.extraction.scoring.columns.hashed_columns`) that are compared
# together.
_GROUPS = {
    "left like": range(4),
    "right like": range(4, 7),
    "first words like": range(7, 9),
    "last words like": range(9, 12),
    "both sides like": range(12, 16),
    "label like": range(16, 18),
    "heading like": range(18, 19),
    "entity like": range(23, 24),
    "words before like": range(24, 32),
    "words behind like": range(32, 37),
}
#: Numbers (:func:`manner_numbers`) that are compared together, and the distance that halves it.
_NUMBERS = {
    "length like": (slice(0, 1), 0.35),
    "letters like": (slice(1, 6), 0.35),
    "place like": (slice(6, 7), 0.1),
    "lines above like": (slice(7, 8), 0.35),
    "lines below like": (slice(8, 9), 0.35),
}
MANNERS = (*_GROUPS, *_NUMBERS)
N_NUMBERS = 9
#: Mentions compared with one by one; more of them add nothing but time.
_MOST_MENTIONS = 24
#: As like the samples as this are true and other candidates about equally often.
_NEUTRAL = 1 / 3


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """What is known of true mentions.

    Shapes: ``hashes`` (n,) places in the hashed space, ascending; ``shares`` (n,) of the samples
    that have each; ``numbers`` (m, N_NUMBERS), a row per mention.
    """

    hashes: NDArray[np.int32]
    shares: Floats
    numbers: Floats

    @classmethod
    def of(cls, samples: Sequence[tuple[NDArray[np.int32], Floats]]) -> Manner:
        """From hashed columns (n, width) and numbers (n, N_NUMBERS) of each sample's mentions."""
        known = [(hashed, numbers) for hashed, numbers in samples if len(hashed)]
        if not known:
            none = np.empty(0)
            return cls(none.astype(np.int32), none, np.empty((0, N_NUMBERS)))
        # What one sample says ten times is still said by one sample.
        seen = np.concatenate([np.unique(hashed) for hashed, _ in known])
        hashes, counts = np.unique(seen, return_counts=True)
        numbers = np.concatenate([part[:_MOST_MENTIONS] for _, part in known])
        step = max(1, -(-len(numbers) // _MOST_MENTIONS))
        return cls(hashes.astype(np.int32), counts / len(known), numbers[::step])

    def columns(self, hashed: NDArray[np.int32], numbers: Floats) -> Floats:
        """Likeness (n, len(MANNERS)) of candidates: above 0 speaks for one, below 0 against it.

        All zeros without a known mention, as nothing is known then.
        """
        columns = np.zeros((len(hashed), len(MANNERS)))
        if not len(self.hashes) or not len(hashed):
            return columns
        at = np.minimum(np.searchsorted(self.hashes, hashed), len(self.hashes) - 1)
        shares = np.where(self.hashes[at] == hashed, self.shares[at], 0.0)
        for number, places in enumerate(_GROUPS.values()):
            columns[:, number] = shares[:, places.start : places.stop].mean(axis=1)
        for number, (part, half) in enumerate(_NUMBERS.values(), len(_GROUPS)):
            apart = np.abs(numbers[:, None, part] - self.numbers[None, :, part]).sum(axis=2)
            columns[:, number] = np.exp2(-apart / half).mean(axis=1)
        return columns - _NEUTRAL


def manner_numbers(page: Page, found: Candidates) -> Floats:
    """Shape (n, N_NUMBERS): log length, shares of five kinds of character, place, log lines."""
    tokens = page.tokens
    first, last = found.first, found.last
    start, end = tokens.start[first], tokens.end[last - 1]
    width = np.maximum(end - start, 1)
    n_lines = tokens.line[-1] if len(tokens) else 0
    kinds = [sums[end] - sums[start] for sums in page.letters]
    columns = [
        np.log(last - first),
        *(count / width for count in kinds),
        start / max(len(page.text), 1),
        np.log1p(tokens.line[first]),
        np.log1p(n_lines - tokens.line[first]),
    ]
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def letter_sums(text: str) -> tuple[Ints, ...]:
    """Running counts (len(text) + 1,): digits, capitals, small letters, other letters, marks."""
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    digit = (code >= 48) & (code <= 57)
    capital = (code >= 65) & (code <= 90)
    small = (code >= 97) & (code <= 122)
    # Chinese characters and letters of other scripts; the blocks of marks left out.
    other = (code >= 0xC0) & ~((code >= 0x2000) & (code <= 0x303F))
    other &= ~((code >= 0xFF00) & (code <= 0xFF0F))
    rest = ~(digit | capital | small | other) & (code > 32)
    return tuple(
        np.concatenate(([0], np.cumsum(kind))) for kind in (digit, capital, small, other, rest)
    )
