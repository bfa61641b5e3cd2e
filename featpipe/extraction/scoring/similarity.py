"""Similarity of a document's sentences and candidates to those of the samples.

Sentences are compared by BM25 over word pairs and by the cosine of the cached vectors. Candidates
are compared by their neighbours, words, length, characters and place, each on its own, as numbers
that mean the same for every field, so that a prior weight can be given to each. A sample document
is never compared with its own values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.context import N_HASHED
from featpipe.extraction.scoring.entities import NO_ENTITY_PLACE
from featpipe.extraction.scoring.hashed_rows import distinct_below
from featpipe.extraction.scoring.marks import log_odds_of_marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.hashed_rows import HashedRows
    from featpipe.extraction.scoring.lines import Lines

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: Sample sentences compared with; more of them cost time and change no result.
_MOST_SENTENCES = 8
_LONGEST_QUERY = 120
_NEAREST = 3


@dataclass(frozen=True, slots=True, eq=False)
class SampleSentences:
    """Sentences that held sample values: their word pairs, and their vectors where there are any.

    Shapes: ``queries`` one (n_terms,) each; ``vectors`` (n, dim) float32 unit vectors or None.
    """

    queries: tuple[Ints, ...]
    vectors: NDArray[np.float32] | None

    @classmethod
    def of(
        cls, samples: Sequence[tuple[PageFeatures, Sequence[tuple[int, int]]]]
    ) -> SampleSentences:
        """From located values, character spans per page."""
        places = [
            (features, number)
            for features, spans in samples
            for number in sorted({features.page.sentence_of(start) for start, _ in spans})
        ]
        step = max(1, -(-len(places) // _MOST_SENTENCES))
        queries = [
            features.word_pairs.of_sentence(features.tokens, number)[:_LONGEST_QUERY]
            for features, number in places[::step]
        ]
        vectors = [
            features.page.vectors[number]
            for features, number in places
            if features.page.vectors is not None
        ]
        return cls(
            tuple(query for query in queries if len(query)), np.stack(vectors) if vectors else None
        )

    def by_words(self, features: PageFeatures) -> Floats:
        """Standardised BM25 (n_sentences,); zeros without a query."""
        return similarity_by_words(features, [self])[0]

    def by_vectors(self, features: PageFeatures) -> Floats:
        """Standardised cosine (n_sentences,); zeros where there are no vectors."""
        page = features.page
        n = max(len(page.sentences), 1)
        if self.vectors is None or page.vectors is None or n < 2:
            return np.zeros(n)
        return _standardised(_nearest((page.vectors @ self.vectors.T).astype(np.float64)))


def similarity_by_words(
    features: PageFeatures, of_fields: Sequence[SampleSentences]
) -> list[Floats]:
    """:meth:`SampleSentences.by_words` of many fields in one pass, with the same bits."""
    n = len(features.page.sentences)
    if n < 2 or not len(features.tokens):
        return [np.zeros(max(n, 1)) for _ in of_fields]
    queries = [query for sentences in of_fields for query in sentences.queries]
    scores = features.word_pairs.score(queries)
    found, at = [], 0
    for sentences in of_fields:
        own = scores[at : at + len(sentences.queries)]
        at += len(own)
        found.append(_standardised(_nearest(own.T)) if len(own) else np.zeros(n))
    return found


def _nearest(similarity: Floats) -> Floats:
    """Mean (n_sentences,) of the best few columns, so that no single sample sentence decides."""
    n = min(_NEAREST, similarity.shape[1])
    return np.asarray(np.sort(similarity, axis=1)[:, -n:].mean(axis=1))


def _standardised(values: Floats) -> Floats:
    """Distance from the document's mean in double standard deviations, clipped."""
    spread = values.std()
    if spread < 1e-6:
        return np.zeros(len(values))
    return np.asarray(np.clip((values - values.mean()) / (2 * spread), -1.0, 1.5), np.float64)


#: Columns of :class:`~featpipe.extraction.scoring.hashed_rows.HashedRows`, compared together:
#: where they are kept, and which they are.
_GROUPS = {
    "left like": ("at_start", slice(0, 4)),
    "right like": ("at_end", slice(0, 3)),
    "first words like": ("at_start", slice(4, 6)),
    "last words like": ("at_end", slice(3, 6)),
    "both sides like": ("of_both", slice(0, 3)),
    "label like": ("at_start", slice(6, 8)),
    "heading like": ("at_start", slice(8, 9)),
    "entity like": ("of_both", slice(6, 7)),
    "words before like": ("at_start", slice(10, 18)),
    "words behind like": ("at_end", slice(7, 12)),
    "kinds like": ("of_both", slice(7, 9)),
    "kinds before like": ("at_start", slice(18, 19)),
    "kinds behind like": ("at_end", slice(12, 13)),
}
#: Of what is kept together: the number of each group, and its columns.
_KEPT = {
    kept: [(n, own) for n, (where, own) in enumerate(_GROUPS.values()) if where == kept]
    for kept in ("at_start", "at_end", "of_both")
}
#: Columns of :func:`measure_spans` that are compared together, and the distance that halves the
#: similarity.
_MEASURES = {
    "length like": (slice(0, 1), 0.35),
    "letters like": (slice(1, 6), 0.35),
    "place like": (slice(6, 7), 0.1),
    "lines above like": (slice(7, 8), 0.35),
    "lines below like": (slice(8, 9), 0.35),
}
SIMILARITIES = (*_GROUPS, *_MEASURES)
#: By what stands in a span, its words and its amount or date; and by the words of its last line and
#: of the lines beside it: where those are words of values too, the span is cut.
INSIDE = (
    "words inside like", "marks like", "last line like", "line before like", "line behind like",
)  # fmt: skip
#: Tokens on each side of a value whose words are compared with those inside it.
_BESIDE = 24
#: What every word counts for, inside and beside values, before any sample has shown it.
_UNSEEN = 0.5
#: Log odds of words, and of marks, that count as one; bounds of both.
_MUCH_OF_WORDS, _MUCH_OF_MARKS, _MOST_INSIDE = 10.0, 4.0, 2.0
N_MEASURES = 9
#: Mentions compared with one by one; more of them cost time and change no result.
_MOST_MENTIONS = 24
#: Columns that many spans share the values of: length, place, and the lines above and below.
_SHARED_MEASURES = (0, 6, 7, 8)
#: At this similarity a candidate is true about as often as not.
_NEUTRAL = 1 / 3


class OwnMentions(NamedTuple):
    """The true mentions of one sample.

    Shapes: ``hashed`` (n, width), ``measures`` (n, N_MEASURES); ``inside`` and ``beside`` (m,) the
    distinct places in the hashed space of tokens inside its values, and of those beside them;
    ``marks`` as :meth:`Marks.shares` gives them.
    """

    hashed: NDArray[np.int32]
    measures: Floats
    inside: NDArray[np.int32]
    beside: NDArray[np.int32]
    marks: tuple[Floats, Floats]


def words_of(
    features: PageFeatures, spans: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct places in the hashed space of the tokens in some character spans, and beside them.

    A shape has no words to be known by: leave the spans of such values out.
    """
    is_inside, is_near = np.zeros((2, len(features.tokens)), bool)
    for first, last in zip(*features.tokens.spans(spans), strict=True):
        is_inside[first:last] = True
        is_near[max(first - _BESIDE, 0) : last + _BESIDE] = True
    places = features.words_inside
    return np.unique(places[is_inside]), np.unique(places[is_near & ~is_inside])


def _log_odds_inside(
    inside: Sequence[NDArray[np.int32]], beside: Sequence[NDArray[np.int32]]
) -> NDArray[np.float32]:
    """Log odds (N_HASHED,) that a token is inside a value, 0 for tokens that no sample shows."""
    n_inside, n_beside = np.zeros((2, N_HASHED), np.float32)
    for places in inside:
        n_inside[places] += np.float32(1)
    for places in beside:
        n_beside[places] += np.float32(1)
    odds = (n_inside + np.float32(_UNSEEN)) / (n_beside + np.float32(_UNSEEN))
    return np.asarray(np.log(odds), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class SampleMentions:
    """Context, measures and words of the true mentions in the samples.

    Shapes: ``shares`` (N_HASHED,) float32, of the samples that have each place of the hashed space;
    ``measures`` (m, N_MEASURES), a row per mention; ``inside`` (N_HASHED,) float32 log odds of a
    token to be inside a value; ``marks`` (sum(N_MARKS),) log odds of an amount's or a date's marks.
    """

    shares: NDArray[np.float32]
    measures: Floats
    inside: NDArray[np.float32]
    marks: Floats

    @classmethod
    def of(cls, samples: Sequence[OwnMentions]) -> SampleMentions:
        """From the mentions of each sample."""
        inside = _log_odds_inside([own.inside for own in samples], [own.beside for own in samples])
        marks = log_odds_of_marks([own.marks for own in samples])
        known = [(own.hashed, own.measures) for own in samples if len(own.hashed)]
        shares = np.zeros(N_HASHED, np.float32)
        if not known:
            return cls(shares, np.empty((0, N_MEASURES)), inside, marks)
        for hashed, _ in known:
            shares[hashed.ravel()] += np.float32(1)  # once, however many mentions a sample has
        measures = np.concatenate([part[:_MOST_MENTIONS] for _, part in known])
        step = max(1, -(-len(measures) // _MOST_MENTIONS))
        shares /= np.float32(len(known))
        # No tagger may have seen the documents: to be no entity speaks against a span at most.
        shares[NO_ENTITY_PLACE] = min(shares[NO_ENTITY_PLACE], np.float32(_NEUTRAL))
        return cls(shares, measures[::step], inside, marks)

    def likeness_inside(self, features: PageFeatures, found: Candidates, out: Floats) -> None:
        """Columns, written to ``out`` (len(INSIDE), n): log odds to be inside a value.

        Of what stands in each span, and the means over the words of the lines at its edges.
        """
        first, last = found.first, found.last
        sums = np.append(0.0, np.cumsum(self.inside.take(features.words_inside), dtype=np.float64))
        words = (sums[last] - sums[first]) / _MUCH_OF_WORDS
        marks = features.marks.likeness(first, last, self.marks)
        out[:2] = words, marks / _MUCH_OF_MARKS
        out[2:] = _means_of_lines(features.lines, sums, first, last)
        np.clip(out, -_MOST_INSIDE, _MOST_INSIDE, out=out)

    def similarity(self, hashed: HashedRows, measures: SpanMeasures, out: Floats) -> None:
        """Columns of candidates, above 0 for more similar than neutral: see :data:`SIMILARITIES`.

        All zeros without a known mention. They are written to ``out`` (len(SIMILARITIES), n).
        """
        if not len(self.measures) or not len(hashed):
            out[:] = 0.0
            return
        places = {"at_start": hashed.start, "at_end": hashed.end, "of_both": slice(None)}
        for kept, groups in _KEPT.items():
            shares = self.shares.take(getattr(hashed, kept), mode="clip")
            for number, group in groups:
                own = shares[group]
                means = np.add.reduce(own, axis=0, dtype=np.float64) / len(own)
                out[number] = means[places[kept]]
        for number, (part, half) in enumerate(_MEASURES.values(), len(_GROUPS)):
            out[number] = measures.nearness(part, self.measures[:, part], half)
        out -= _NEUTRAL


def _means_of_lines(
    lines: Lines, sums: Floats, first: Ints, last: Ints
) -> tuple[Floats, Floats, Floats]:
    """Means (n,) over the tokens of the last line of each span, before it and behind it.

    ``sums`` (n_tokens + 1,) are running.
    """
    before = (sums - sums[lines.since]) / lines.n_before
    behind = (sums[lines.until] - sums) / lines.n_behind
    start = np.maximum(first, lines.since[last])
    return (sums[last] - sums[start]) / (last - start), before[first], behind[last]


class SpanMeasures(NamedTuple):
    """Measures of spans.

    Shapes: ``columns`` (N_MEASURES, n); by the first of those that are compared together,
    ``distinct`` has the values (w, m) that many spans share, and the number (n,) of each span's
    among them.
    """

    columns: Floats
    distinct: dict[int, tuple[Floats, Ints]]

    @classmethod
    def of(cls, features: PageFeatures, found: Candidates) -> SpanMeasures:
        """Of candidates."""
        columns = measure_spans(features, found)
        line = features.tokens.line[found.first]
        keys = (found.last - found.first, found.first, line, line)
        distinct = {}
        for column, key in zip(_SHARED_MEASURES, keys, strict=True):
            used, number = distinct_below(int(key.max(initial=0)) + 1, key)
            values = np.empty((1, len(used)))
            values[0, number] = columns[column]
            distinct[column] = values, number
        return cls(columns, distinct)

    def at(self, places: Ints) -> SpanMeasures:
        """Of some of the spans."""
        distinct = {
            column: (values, number[places]) for column, (values, number) in self.distinct.items()
        }
        return SpanMeasures(self.columns.take(places, axis=1), distinct)

    def nearness(self, part: slice, known: Floats, half: float) -> Floats:
        """Mean (n,) of 2 to the minus distance, in units of ``half``, to rows (m, w) of a part."""
        values, number = self.columns[part], None
        shared = self.distinct.get(part.start)
        if shared is not None and shared[0].shape[1] < values.shape[1]:
            values, number = shared
        # By mentions, in float32: the sums of rows in float64 took four times as long.
        columns, wanted = values.astype(np.float32), known.T.astype(np.float32)
        distance = np.abs(columns[0] - wanted[0, :, None])
        difference = np.empty_like(distance)
        for own, other in zip(columns[1:], wanted[1:], strict=True):
            np.subtract(own, other[:, None], out=difference)
            distance += np.abs(difference, out=difference)
        distance *= np.float32(-1 / half)
        near = np.exp2(distance, out=distance)
        means = np.add.reduce(near, axis=0, dtype=np.float64) / len(known)
        return np.asarray(means if number is None else means[number])


def measure_spans(features: PageFeatures, found: Candidates) -> Floats:
    """Log length, shares of five kinds of characters, place, log lines: (N_MEASURES, n)."""
    tokens = features.tokens
    first, last = found.first, found.last
    start, end = tokens.start[first], tokens.end[last - 1]
    width = np.maximum(end - start, 1)
    n_lines = tokens.line[-1] if len(tokens) else 0
    kinds = [counts[end] - counts[start] for counts in features.character_counts]
    columns = [
        np.log(last - first),
        *(count / width for count in kinds),
        start / max(len(features.page.text), 1),
        np.log1p(tokens.line[first]),
        np.log1p(n_lines - tokens.line[first]),
    ]
    return np.stack([np.asarray(column, np.float64) for column in columns])
