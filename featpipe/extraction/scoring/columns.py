"""Columns: the features of candidates, one row each, hashed and measured.

Hashed columns are words around and inside the span (sparse, learned per field); measured ones mean
the same in every field, so that each has a prior weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.candidates import ORIGINS, Candidates
from featpipe.extraction.scoring.context import (
    N_HASHED,
    number_columns,
)
from featpipe.extraction.scoring.entities import ENTITY_COLUMN
from featpipe.extraction.scoring.field_names import NAMES, name_columns
from featpipe.extraction.scoring.hashed_rows import HashedRows, distinct_below
from featpipe.extraction.scoring.similarity import INSIDE, SIMILARITIES, SpanMeasures
from featpipe.extraction.scoring.tokens import mix
from featpipe.store.sorted_values import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.sentence_model import SentenceScores
    from featpipe.extraction.scoring.similarity import SampleMentions

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: Of clauses alone: the log odds of the sentence that a span begins in, the mean of those that it
#: goes on in, and whether it begins and ends where sentences do.
SENTENCES = ("sentence odds", "further sentences", "starts sentence", "ends sentence")
#: Log odds that count as one; bound of both.
_MUCH_OF_ODDS, _MOST_ODDS = 4.0, 2.0
#: Names of the measured columns, in order.
_SHARED = (
    "unbalanced", "behind colon", "behind opener", "before stop", "line start", "line end",
    "whole line", "marks inside", "log length", "cuts a word", "position", "early",
    "function words", "organisation", "person", "n words", "all digits", "clean start",
    "clean end", "cuts entity", "before bracket", "behind bracket",
)  # fmt: skip
_GROUPS = {
    "shared": _SHARED,
    "of spans": ("repeats", "vector", "words of sentence"),
    "sentences": SENTENCES,
    "names": NAMES,
    "origins": tuple(f"from {name}" for name in ORIGINS),
    "similarities": SIMILARITIES,
    "inside": INSIDE,
}
MEASURED = tuple(name for names in _GROUPS.values() for name in names)
#: Where the columns of each group are.
_PLACES = {
    group: slice(MEASURED.index(names[0]), MEASURED.index(names[0]) + len(names))
    for group, names in _GROUPS.items()
}
_ORIGIN_BITS = (1 << np.arange(len(ORIGINS)))[:, None]


def hashed_rows(features: PageFeatures, found: Candidates) -> HashedRows:
    """The hashed columns of candidates."""
    tokens, context, kinds = features.tokens, features.context, features.word_kinds
    near = kinds.clause_words
    first, last = found.first, found.last
    starts, start = distinct_below(len(tokens) + 1, first)
    ends, end = distinct_below(len(tokens) + 1, last)
    left, before_end = context.left[first], context.left[last]
    columns = [
        mix(left, context.right[last]),
        mix(left, before_end),
        mix(context.pair_left[first], context.pair_left[last]),
        np.minimum(np.log2(last - first) * 3, 24).astype(np.int64),
        mix(np.minimum(tokens.line[first], 4), before_end),
        _inside(context.sums, found),
        features.entities.labels(first, last),
        kinds.inside(first, last),
        kinds.ends(first, last),
        mix(near.verb_before[first], near.verb_behind[last]),
        mix(near.preposition_before[first], near.verb_behind[last]),
    ]
    at_start = [kinds.around(starts), near.verb_before[starts], near.preposition_before[starts]]
    at_end = [kinds.around(ends), near.verb_behind[ends], near.preposition_behind[ends]]
    return HashedRows(
        np.vstack((context.at_start.take(starts, axis=1), _hashed(at_start, _KINDS_AT_START))),
        np.vstack((context.at_end.take(ends, axis=1), _hashed(at_end, _KINDS_AT_END))),
        _hashed(columns, _OF_BOTH),
        start,
        end,
    )


def _hashed(columns: list[Ints], numbers: tuple[int, ...]) -> NDArray[np.int32]:
    """Places in the hashed space, for each span or place."""
    return np.asarray(number_columns(columns, numbers) & (N_HASHED - 1), np.int32)


#: Numbers of the columns that depend on both ends of a span.
_OF_BOTH = (13, 14, 16, 20, 22, 23, ENTITY_COLUMN, 25, 26, 34, 35)
_KINDS_AT_START, _KINDS_AT_END = (27, 30, 31), (28, 32, 33)


def _inside(sums: Ints, found: Candidates) -> Ints:
    """One number (n,) for all tokens of each span, equal for equal sequences of tokens."""
    return mix(sums[found.last] - sums[found.first], found.last - found.first)


@dataclass(frozen=True, slots=True, eq=False)
class SpanRows:
    """Features of spans that are the same for all fields; the spans ascend by ``codes``.

    Shapes: ``codes`` (n,), ``shared`` (n_shared, n), ``inside`` (n,) the same number for the same
    words.
    """

    codes: Ints
    hashed: HashedRows
    shared: Floats
    measures: SpanMeasures
    inside: Ints

    def of(self, found: Candidates) -> SpanRows:
        """Those of candidates that are among the spans."""
        if len(found) == len(self.codes):
            return self
        places = np.searchsorted(self.codes, found.codes)
        return SpanRows(
            self.codes[places],
            self.hashed.at(places),
            self.shared.take(places, axis=1),
            self.measures.at(places),
            self.inside[places],
        )


def span_rows(features: PageFeatures, many: Sequence[Candidates]) -> SpanRows:
    """Rows for the distinct spans of the candidates of many fields."""
    codes = distinct(np.concatenate([found.codes for found in many]))
    first, last = codes >> 32, codes & 0xFFFFFFFF
    found = Candidates(first, last, np.zeros(len(codes), np.int64))
    return SpanRows(
        codes,
        hashed_rows(features, found),
        _shared_columns(features, found),
        SpanMeasures.of(features, found),
        np.unique(_inside(features.context.exact_sums, found), return_inverse=True)[1],
    )


def measured_columns(
    features: PageFeatures,
    found: Candidates,
    rows: SpanRows,
    sentences: SentenceScores,
    mentions: SampleMentions,
    aliases: Sequence[str] = (),
) -> Floats:
    """Measured columns (n_candidates, len(MEASURED)), each roughly in [-1, 1].

    Args:
        features: of the document.
        found: candidates of one field.
        rows: features of their spans, and of no others.
        sentences: scores of the sentences.
        mentions: true mentions of the samples.
        aliases: names of the field, folded.

    """
    sentence = features.tokens.sentence[found.first]
    # A column lies in one piece: they are written one by one.
    columns = np.empty((len(MEASURED), len(found)))
    columns[_PLACES["shared"]] = rows.shared
    columns[_PLACES["of spans"]] = (
        _repeats(rows.inside),
        sentences.by_vectors[sentence],
        sentences.by_words[sentence],
    )
    columns[_PLACES["sentences"]] = _sentence_columns(features, found, sentences.log_odds).T
    columns[_PLACES["names"]] = name_columns(features, found, aliases).T
    np.not_equal(found.origin & _ORIGIN_BITS, 0, out=columns[_PLACES["origins"]], casting="unsafe")
    mentions.similarity(rows.hashed, rows.measures, out=columns[_PLACES["similarities"]])
    mentions.likeness_inside(features, found, out=columns[_PLACES["inside"]])
    return columns.T


def _shared_columns(features: PageFeatures, found: Candidates) -> Floats:
    context = features.context
    first, last = found.first, found.last
    length = last - first
    counts = context.counts.take(last, axis=1) - context.counts.take(first, axis=1)
    n_marks, n_function_words, n_words, n_digits, n_latin, n_capitalised = counts[:6]
    before, behind = context.before.take(first, axis=1), context.behind.take(last, axis=1)
    colon, opener, line_start, clean_start, word_start, early, surname = before
    stop, line_end, clean_end, word_end, organisation = behind
    is_name = (surname & (n_latin == 0) & (length <= 3)) | (n_capitalised == length)
    columns = [
        (counts[6:10] != 0).any(axis=0) | (counts[10] % 2 == 1),
        colon,
        opener,
        stop,
        line_start,
        line_end,
        line_start & line_end,
        np.minimum(n_marks, 4) / 4,
        np.log(length) / 3,
        ~(word_start & word_end),
        first / max(len(features.tokens), 1),
        early,
        np.minimum(n_function_words, 3) / 2,
        organisation,
        (n_marks == 0) & (length >= 2) & (length <= 4) & is_name,
        np.minimum(n_words, 12) / 6,
        n_digits == length,
        clean_start,
        clean_end,
        features.entities.cuts(first, last),
        features.brackets.goes_on[last],
        features.brackets.went_on[first],
    ]
    shared = np.empty((len(_SHARED), len(found)))
    for number, column in enumerate(columns):
        shared[number] = column
    return shared


def _sentence_columns(features: PageFeatures, found: Candidates, log_odds: Floats) -> Floats:
    """Columns (n, len(SENTENCES))."""
    if not len(log_odds):
        return np.zeros((len(found), len(SENTENCES)))
    odds = np.clip(log_odds / _MUCH_OF_ODDS, -_MOST_ODDS, _MOST_ODDS)
    sentence = features.tokens.sentence
    first, last = sentence[found.first], sentence[found.last - 1]
    sums = np.append(0.0, np.cumsum(odds))
    further = (sums[last + 1] - sums[first + 1]) / np.maximum(last - first, 1)
    begins = np.append(np.diff(sentence, prepend=-1) > 0, True)
    return np.column_stack((odds[first], further, begins[found.first], begins[found.last]))


def _repeats(inside: Ints) -> Floats:
    """Log number of candidates with the same words: names are repeated, parts of them are not."""
    return np.asarray(np.log2(np.bincount(inside)[inside]) / 2)
