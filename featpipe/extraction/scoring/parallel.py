"""Parallel places: further values of a field, found by the place of its likeliest one.

A document of several contracts, pledges or sellers names each of them in a like place: joined by 、
or "and", or behind the same words. A value's own probability is that of being the value of the
field; whether it is one beside the first, its place tells as well. A logistic regression over both
says how likely. Its weights were learnt once over the parts for development of announcements, event
sentences and receipts (``scripts/extraction_sets.py``), from fewer draws than
``scripts/learn_parallel.py`` takes: that gives .98, 1.54, 1.23, -1.04 and a bias of -1.04, by which
F1 is the same within .002.

Guarantee: the likeliest value of a field never depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.logistic import sigmoid
from featpipe.extraction.scoring.tokens import hash_of, hashes_of
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Whether one list joins a value and the first; the share of the tokens before both that are equal;
#: how far one is longer, up to 1 for e times as long. All in [0, 1].
PARALLEL = ("listed with first", "left like first", "length unlike first")
#: Weights of the log odds of a value, and of the columns.
WEIGHTS = np.array([1.07, 1.7, 1.05, -1.0])
BIAS = -0.8
#: Least probability of a further value that is reported.
LEAST = 0.25
#: Least probability of a further value by itself, without its place.
LEAST_OWN = 0.01
#: Tokens before two values that are compared.
_WINDOW = 6
#: Most tokens between two values of one list.
_LONGEST_GAP = 80

_LIST_MARK = hash_of("、")
_CONNECTORS = hashes_of((*"、和及与跟或&/", "and", "or"))
_OPENING, _CLOSING = hashes_of("(["), hashes_of(")]")


@dataclass(frozen=True, slots=True, eq=False)
class ListContext:
    """Where a page's tokens join values into lists; ``n`` tokens have n + 1 places."""

    code: Ints
    """(_WINDOW + n,) codes of the tokens, behind codes of none."""
    connects_before: Bools
    """(n + 1,) whether the token before a place joins values, as 、 does."""
    connects_behind: Bools
    """(n + 1,) whether the token at a place does, words in brackets left out."""
    n_stops: Ints
    """(n + 1,) running count of marks outside brackets that no list goes beyond."""

    @classmethod
    def of(cls, tokens: Tokens) -> ListContext:
        """From the tokens of a page."""
        connects = is_in(tokens.code, _CONNECTORS)
        opens, closes = is_in(tokens.code, _OPENING), is_in(tokens.code, _CLOSING)
        is_outside = (np.cumsum(opens.astype(np.int64) - closes) == 0) & ~closes
        is_stop = tokens.is_mark & is_outside & ~connects
        return cls(
            np.concatenate((-np.arange(1, _WINDOW + 1), tokens.code)),
            np.concatenate(([False], connects)),
            np.append(connects, False)[_behind_brackets(opens, closes)],
            np.concatenate(([0], np.cumsum(is_stop))),
        )

    def likeness(self, spans: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> Floats:
        """Columns (n, len(PARALLEL)): how far the places of n spans are like one of m others.

        Args:
            spans: the tokens (n,) that they begin at, and those that they end before.
            others: the same (m,) of the others. A span that overlaps one is like none.

        """
        (start, end), (its_start, its_end) = (spans[0][:, None], spans[1][:, None]), others
        is_apart = ((its_end <= start) | (end <= its_start)).all(axis=1, keepdims=True)
        low = np.minimum(end, its_end)
        high = np.maximum(low, np.maximum(start, its_start))
        listed = self.connects_behind[low] & self.connects_before[high] & (high - low > 0)
        listed &= (self.n_stops[low] == self.n_stops[high]) & (high - low <= _LONGEST_GAP)
        same = self._before(spans[0])[:, None] == self._before(its_start)
        left = np.cumprod(same, axis=2).sum(axis=2) / _WINDOW
        length = np.minimum(np.abs(np.log((end - start) / (its_end - its_start)[:1])), 1.0)
        return np.hstack([part.max(axis=1, keepdims=True) for part in (listed, left, length)]) * (
            is_apart
        )

    def _before(self, places: Ints) -> Ints:
        """Codes (n, _WINDOW) of the tokens before some places, the nearest first."""
        return np.asarray(self.code[places[:, None] + np.arange(_WINDOW)[::-1]])


def _behind_brackets(opens: Bools, closes: Bools) -> Ints:
    """Place (n + 1,) behind the brackets that open at a place; the place itself elsewhere."""
    behind = np.arange(len(opens) + 1)
    opened: list[int] = []
    for at in np.flatnonzero(opens | closes).tolist():
        if opens[at]:
            opened.append(at)
        elif opened:
            behind[opened.pop()] = at + 1
    return behind


def terms_of(probabilities: Floats, columns: Floats) -> Floats:
    """Terms (n, len(WEIGHTS)) of values with such probabilities."""
    p = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.column_stack((np.log(p / (1 - p)), columns))


def further_probabilities(probabilities: Floats, columns: Floats) -> Floats:
    """Probability (n,) that each value is one beside the first, 0 for the least likely ones."""
    p = sigmoid(np.einsum("nt,t->n", terms_of(probabilities, columns), WEIGHTS) + BIAS)
    return np.where(probabilities < LEAST_OWN, 0.0, p)


def is_listed(columns: Floats) -> Bools:
    """Whether each value (n,) is in one list with the first."""
    return np.asarray(columns[:, 0] > 0)
