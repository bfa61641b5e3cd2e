"""Kinds of words: what the words of a span are, however they read.

Samples show few of the words that values hold; that names are unknown words or nouns, and hold no
verb, holds for the next document as well. A kind is a word's class in jieba's dictionary
(:mod:`featpipe.lexical.word_classes`), the length of a word that no dictionary holds, "digits",
"Latin", or the mark itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.clause_words import ClauseWords
from featpipe.extraction.scoring.tokens import mix
from featpipe.extraction.values.text import points_of
from featpipe.lexical.word_classes import CLASSES, open_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]

#: Kinds that are no class of the dictionary: unknown words of 1 to 4 characters, digits, Latin.
_UNKNOWN = len(CLASSES)
_LONGEST_UNKNOWN = 4
_DIGITS, _LATIN = _UNKNOWN + _LONGEST_UNKNOWN + 1, _UNKNOWN + _LONGEST_UNKNOWN + 2
#: Marks are numbered by their code point from here on.
_MARKS = 1000
#: Before the first token and behind the last.
_EDGE = 999


@dataclass(frozen=True, slots=True, eq=False)
class WordKinds:
    """Kinds by token. Shapes: (n_tokens + 1,) each; row i is the place before token i."""

    before: Ints
    """Kind of the word of the token before a place."""
    behind: Ints
    sums: Ints
    """Running sums of mixed kinds of the words that begin at a token: equal for equal kinds."""
    clause_words: ClauseWords
    """The nearest verbs and prepositions."""

    @classmethod
    def of(cls, page: Page, folded: str, tokens: Tokens) -> WordKinds:
        """Of a page; ``folded`` is its text after :func:`fold_width`."""
        of_token, steps = np.full(len(tokens), _EDGE), np.zeros(len(tokens) + 1, np.int64)
        kinds, first, last = _kinds_of_words(page, folded, tokens)
        counts = last - first
        inner = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        of_token[np.repeat(first, counts) + inner] = np.repeat(kinds, counts)
        steps[first + 1] = mix(kinds, 7)
        # Not as words: a line break is one in some ways of cutting a document, and none in others.
        at = np.flatnonzero(tokens.is_mark)
        of_token[at] = points_of(folded)[tokens.start[at]].astype(np.int64) + _MARKS
        steps[at + 1] = mix(of_token[at], 7)
        edge = np.full(1, _EDGE)
        return cls(
            np.concatenate((edge, of_token)),
            np.concatenate((of_token, edge)),
            np.cumsum(steps),
            ClauseWords.of(tokens, kinds, first, last),
        )

    def around(self, places: Ints) -> Ints:
        """One number (n,) for the kinds on both sides of places."""
        return mix(self.before[places], self.behind[places])

    def ends(self, first: Ints, last: Ints) -> Ints:
        """One number (n,) for the kinds of the first and the last word of each span of tokens."""
        return mix(self.behind[first], self.before[last])

    def inside(self, first: Ints, last: Ints) -> Ints:
        """One number (n,) for the kinds of all words that begin in each span of tokens."""
        return self.sums[last] - self.sums[first]


def _kinds_of_words(page: Page, folded: str, tokens: Tokens) -> tuple[Ints, Ints, Ints]:
    """Kind (n_words,) of each word that begins with no mark, first and last token (half-open)."""
    first = np.searchsorted(tokens.end, page.words[:, 0], side="right")
    last = np.searchsorted(tokens.start, page.words[:, 1], side="left")
    keep = np.flatnonzero(last > first)
    keep = keep[~tokens.is_mark[first[keep]]]
    starts, ends = page.words[keep, 0], page.words[keep, 1]
    points = points_of(folded)
    classes = open_classes().of(points, starts, ends).astype(np.int64)
    unknown = _UNKNOWN + np.minimum(ends - starts, _LONGEST_UNKNOWN)
    kinds = np.where(classes > 0, classes, unknown)
    begin = points[starts]
    is_digit = (begin >= ord("0")) & (begin <= ord("9"))
    is_latin = (begin >= ord("a")) & (begin <= ord("z"))
    return np.select((is_digit, is_latin), (_DIGITS, _LATIN), kinds), first[keep], last[keep]
