"""Words of a clause that say who does what: its verbs and prepositions, by how near they stand.

A party is told by them more than by its neighbours: in 某公司将其所持股份质押给某银行 the verb 质押
is behind the first name, however many words stand between. Only the nearest verb and preposition on
each side count, and none from another clause. They are words for a field's weights to learn:
that values share them with those of the samples has no prior weight, since labelled lines have none
in common, and with such a weight F1 of announcements fell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.tokens import hashes_of, mix
from featpipe.lexical.word_classes import CLASSES
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]

_VERB, _PREPOSITION = CLASSES.index("v"), CLASSES.index("p")
#: Marks that end a clause, and line breaks: what a label names is told by no other line.
_STOPS = hashes_of(",;。:!?\n")


class ClauseWords(NamedTuple):
    """By place: place i is the one before token i. Shapes: (n_tokens + 1,) each.

    Each number stands for a word, 0 for none: before a place, in the clause of the token behind it;
    behind a place, in the clause of the token before it.
    """

    verb_before: Ints
    verb_behind: Ints
    preposition_before: Ints
    preposition_behind: Ints

    @classmethod
    def of(cls, tokens: Tokens, kinds: Ints, first: Ints, last: Ints) -> ClauseWords:
        """From the kinds of a page's words and their tokens, half-open: (n_words,) each."""
        sums = np.append(0, np.cumsum(mix(tokens.code, 3)))
        words = mix(sums[last] - sums[first], last - first)
        is_stop = is_in(tokens.code, _STOPS)
        clause: Ints = np.cumsum(is_stop) - is_stop  # a mark belongs to the clause that it ends
        found: list[Ints] = []
        for kind in (_VERB, _PREPOSITION):
            at = np.flatnonzero(kinds == kind)
            found += _nearest(clause, words[at], first[at], last[at])
        return cls(*found)


def _nearest(clause: Ints, words: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """The nearest of some words (n_words,), ascending, before and behind each place."""
    places = np.arange(len(clause) + 1)
    if not len(words):
        return np.zeros_like(places), np.zeros_like(places)
    at = np.searchsorted(last, places, side="right") - 1
    own = clause[np.minimum(places, len(clause) - 1)]
    is_same = (at >= 0) & (clause[last[at] - 1] == own)
    before = np.where(is_same, words[at], 0)
    at = np.searchsorted(first, places)
    within = np.minimum(at, len(words) - 1)
    own = clause[np.maximum(places - 1, 0)]
    is_same = (at < len(words)) & (clause[first[within]] == own)
    return before, np.where(is_same, words[within], 0)
