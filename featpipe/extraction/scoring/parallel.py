"""Parallel places: further values of a field, found by the places of those that are found.

A document of several contracts, pledges or sellers names each of them in a like place: joined by 、
or "and", between the same words, of a like length. A value's own probability is that of being the
value of the field; whether it is one beside others, its place tells as well, and the fewer samples
there are, how far its best mention is behind the best of all. A logistic regression over these says
how likely, the likeliest is taken, and its own places count for those that are left: a list is
followed to its end. How likely a value is right that is reported beside others, its confidence by
itself tells as well. The weights were learnt once over the parts for development of announcements,
event sentences, receipts, freezes, case facts and trades of shares (``scripts/learn_parallel.py``).

Guarantee: the likeliest value of a field never depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.bare_labels import JUDGES
from featpipe.extraction.scoring.logistic import log_odds, sigmoid
from featpipe.extraction.scoring.tokens import SAYING, hash_of, hashes_of
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Of a value and another: whether one list joins them, or one role that labels give to both, and
#: less so cells below one header; the share of the tokens before both, and behind both, that are
#: equal; how far one is longer, up to 1 for e times as long. All in [0, 1].
PARALLEL = ("listed", "left like", "right like", "length unlike")
_LISTED, _LEFT, _LENGTH = map(PARALLEL.index, ("listed", "left like", "length unlike"))
#: Terms of the log odds that a value is one beside others, and their weights: its own log odds,
#: those of the likeliest, and PARALLEL: the most over the others, but for the length, which is
#: compared with the likeliest's; how far it is behind the best mention, alone and by how few
#: samples there are, and so whether they rejected it.
TERMS = (
    "log odds", "log odds of first", *PARALLEL, "behind best", "few behind best", "few rejected",
)  # fmt: skip
WEIGHTS = np.array([0.72, 0.24, 1.96, 0.8, 0.97, 0.27, 1.23, 0.62, -2.75])
BIAS = -0.63
#: Least probability of being one beside the others, of a further value that is reported.
LEAST = 0.35
#: Of a further value that is reported, what tells how likely it is right.
FURTHER_TERMS = ("log odds beside", "confidence")
FURTHER_WEIGHTS = np.array([0.36, 3.02])
FURTHER_BIAS = -1.09
#: Least probability by itself, where most documents have several values: in the sets that the
#: weights were learnt on, few have.
LEAST_USUAL = 0.5
#: Least probability by itself of values whose places are looked at.
LEAST_OWN = 0.005
#: Log odds that a further value gains where all fields that should have as many have enough, and
#: loses where none has, if they are many and certain. Chosen on the halves for development of
#: announcements, event sentences and freezes.
MOST_EXPECTED = 1.5
#: How many certain fields count half.
_HALF_EXPECTED = 0.5
#: Tokens before two values, and behind them, that are compared.
_WINDOW = 6
#: Besides the characters of a label, the mark behind it and what is before it.
_BEFORE_LABEL = 2
#: Most tokens between two values of one list.
_LONGEST_GAP = 80

#: How far cells below one header, each of them all of one value, are in a list. F1 of invoices of
#: other institutions rises by it, and that of announcements (part for development) falls by .002 at
#: most; as a whole list, fewer of the values at .9 and more would be right.
_BELOW_ONE_HEADER = 0.5

_EDGE = np.arange(1, _WINDOW + 1)
_LIST_MARK, _COLON = hash_of("、"), hash_of(":")
_CONNECTORS = hashes_of((*"、和及与跟或&/", "and", "or"))
_OPENING, _CLOSING = hashes_of("(["), hashes_of(")]")


@dataclass(frozen=True, slots=True, eq=False)
class ListContext:
    """Where a page's tokens join values into lists; ``n`` tokens have n + 1 places."""

    code: Ints
    """(_WINDOW + n + _WINDOW,) codes of the tokens, between codes of none."""
    connects_before: Bools
    """(n + 1,) whether the token before a place joins values, as 、 does."""
    connects_behind: Bools
    """(n + 1,) whether the token at a place does, words in brackets left out."""
    n_stops: Ints
    """(n + 1,) running count of marks outside brackets that no list goes beyond."""
    role: Ints
    """(n + 1,) the role that a label before a place names; 0 for none."""
    column: Ints
    """(n + 1,) number of the header of the cell that begins at a place; 0 for none."""
    cell_end: Ints
    """(n + 1,) where that cell ends."""

    @classmethod
    def of(cls, tokens: Tokens, cells: tuple[Ints, Ints], headers: Sequence[str]) -> ListContext:
        """From the tokens of a page, those of cells (n_cells,) and the headers of these."""
        column, cell_end = np.zeros((2, len(tokens) + 1), np.int64)
        numbers = {header: number for number, header in enumerate(dict.fromkeys(headers), 1)}
        for header, first, last in zip(headers, *cells, strict=True):
            if last > first:
                column[first], cell_end[first] = numbers[header], last
        connects = is_in(tokens.code, _CONNECTORS)
        opens, closes = is_in(tokens.code, _OPENING), is_in(tokens.code, _CLOSING)
        is_outside = (np.cumsum(opens.astype(np.int64) - closes) == 0) & ~closes
        is_stop = tokens.is_mark & is_outside & ~connects
        return cls(
            np.concatenate((-_EDGE, tokens.code, -_EDGE - _WINDOW)),
            np.concatenate(([False], connects)),
            np.append(connects, False)[_behind_brackets(opens, closes)],
            np.concatenate(([0], np.cumsum(is_stop))),
            np.append(tokens.role, 0),
            column,
            cell_end,
        )

    def likeness(self, spans: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> Floats:
        """How far the places of n spans are like those of m others: (n, m, 3), of PARALLEL.

        Args:
            spans: the tokens (n,) that they begin at, and those that they end before.
            others: the same (m,) of the others.

        """
        (start, end), (its_start, its_end) = (spans[0][:, None], spans[1][:, None]), others
        low = np.minimum(end, its_end)
        high = np.maximum(low, np.maximum(start, its_start))
        listed = self.connects_behind[low] & self.connects_before[high] & (high - low > 0)
        listed &= (self.n_stops[low] == self.n_stops[high]) & (high - low <= _LONGEST_GAP)
        role = self.role[start]
        listed |= (role != 0) & (role == self.role[its_start])
        column = self.column[start] * (self.cell_end[start] == end)
        below = (column != 0) & (column == self.column[its_start])
        below &= self.cell_end[its_start] == its_end
        before, behind = np.arange(_WINDOW)[::-1], np.arange(_WINDOW) + _WINDOW
        return np.stack(
            (
                np.maximum(listed, _BELOW_ONE_HEADER * below),
                self._alike(spans[0], its_start, before),
                self._alike(spans[1], its_end, behind),
            ),
            axis=2,
        )

    def _alike(self, places: Ints, others: Ints, window: Ints) -> Floats:
        """Share (n, m) of the tokens in a window of places that are equal, from the nearest on."""
        same = self.code[places[:, None] + window][:, None] == self.code[others[:, None] + window]
        return np.asarray(np.logical_and.accumulate(same, axis=2).sum(axis=2) / _WINDOW)


def labelled_again(tokens: Tokens, places: Ints, parallel: Floats) -> Bools:
    """Whether n values (n, n) stand behind the same label again, or are told by the same sentence.

    A label comes again where it begins a like line, in the block of the same party or of none; an
    English one, whose words have no known number, where half of the words before it are alike.

    Args:
        tokens: of the page.
        places: (n,) first tokens of the values.
        parallel: (n, n, len(PARALLEL)) as :func:`parallel_places` gives it.

    """
    label, party = tokens.label[places], tokens.party[places]
    words = [tokens.label_text.get(code, "") for code in label.tolist()]
    # Who presides and who sits beside are told apart by fields that ask for one of them alone.
    label = np.where([own in JUDGES for own in words], hash_of("审判人员"), label)
    sizes = [_WINDOW // 2 if own.isascii() else len(own) + _BEFORE_LABEL for own in words]
    least = np.minimum(np.array(sizes, np.float64) / _WINDOW, 1.0)
    before = np.maximum(places - 1, 0)
    # 本院查明:2020年9月15日,被告借款: what is found is told by the sentence behind the colon.
    is_saying = [SAYING.search(tokens.label_text.get(code, "")) for code in tokens.label[before]]
    is_colon = (tokens.code[before] == _COLON) & ~np.array(is_saying, bool)
    is_told = ~is_colon & (label != 0)
    again = parallel[:, :, _LEFT] >= np.where(is_told, 0.0, least)
    again &= label == label[:, None]
    again &= (party == party[:, None]) | (party == 0) | (party == 0)[:, None]
    return np.asarray(again)


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


def parallel_places(
    lists: ListContext, mentions: tuple[Ints, Ints], counts: Sequence[int]
) -> Floats:
    """How far each of n values is like each other: (n, n, len(PARALLEL)).

    Values that overlap are like in nothing.

    Args:
        lists: of the page.
        mentions: the tokens that the mentions of all values begin at, and those that they end
            before; of each value the best first.
        counts: (n,) how many mentions each value has.

    """
    starts, ends = mentions
    at = np.cumsum([0, *counts[:-1]])
    start, end = starts[at], ends[at]
    n = len(counts)
    columns = np.empty((n, n, len(PARALLEL)))
    columns[:, :, :_LENGTH] = np.maximum.reduceat(
        lists.likeness((start, end), (starts, ends)), at, axis=1
    )
    length = np.log(end - start)
    columns[:, :, _LENGTH] = np.minimum(np.abs(length[:, None] - length), 1.0)
    overlaps = (starts < end[:, None]) & (start[:, None] < ends)
    return columns * ~np.logical_or.reduceat(overlaps, at, axis=1)[:, :, None]


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedNumber:
    """How many values of a field a document has, by fields that have as many in samples."""

    numbers: Ints
    """(m,) of values of each of these fields, that are reported of it by itself."""
    weights: Floats
    """(m,) how likely these values are on average."""

    def log_odds(self, number: int) -> float:
        """What a value gains that would be the field's number-th."""
        total = float(self.weights.sum())
        share = float(self.weights[self.numbers >= number].sum()) / total
        return MOST_EXPECTED * total / (total + _HALF_EXPECTED) * (2.0 * share - 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class RankedValues:
    """Values of a document that may stand beside each other, likeliest first.

    Shapes: (n,) unless noted.
    """

    probabilities: Floats
    """Of each by itself, by the field's own curve."""
    confidences: Floats
    """Of each by itself, as :mod:`featpipe.extraction.scoring.confidence` has them."""
    places: Floats
    """(n, n, len(PARALLEL)) as :func:`parallel_places` gives it."""
    behind_best: Floats
    """These two of the value columns (:mod:`featpipe.extraction.scoring.ranking`)."""
    rejected: Floats
    few: float
    """Of the field's :class:`~featpipe.extraction.scoring.calibration.Evidence`."""

    def listed(self, joined: Bools) -> RankedValues:
        """The same, of which some (n, n) are in one list, too."""
        places = self.places.copy()
        places[:, :, _LISTED] = np.maximum(places[:, :, _LISTED], joined)
        return replace(self, places=places)

    def log_odds(self, near: Floats, first: int) -> Floats:
        """Log odds (n,) that each is a value beside others; arguments as of :func:`terms_of`."""
        return np.asarray(np.einsum("nt,t->n", terms_of(self, near, first), WEIGHTS) + BIAS)


def terms_of(values: RankedValues, near: Floats, first: int = 0) -> Floats:
    """Terms (n, len(TERMS)) of the values of a document.

    Args:
        values: of the document.
        near: (n, len(PARALLEL)), the most over the values that each may stand beside.
        first: number of the likeliest one.

    """
    own = log_odds(values.probabilities)
    terms = np.empty((len(own), len(TERMS)))
    n = 2 + len(PARALLEL)
    terms[:, 0], terms[:, 1] = own, own[first]
    terms[:, 2:n] = near
    terms[:, n - 1] = values.places[:, first, _LENGTH]
    terms[:, n] = values.behind_best
    terms[:, n + 1] = values.few * values.behind_best
    terms[:, n + 2] = values.few * values.rejected
    return terms


def further_terms(
    chosen: Sequence[int],
    values: RankedValues,
    usual: Floats,
    expected: ExpectedNumber | None = None,
) -> Floats:
    """Terms (n - 1, len(FURTHER_TERMS)) of each value after the first, beside the others.

    A value too many, by other fields, is less likely; one that is not, is no likelier.

    Args:
        chosen: numbers of n values, the likeliest first.
        values: of the document.
        usual: of the values of the document, how likely each is without a like place.
        expected: how many there should be, if other fields tell.

    """
    first, *others = chosen
    near = values.places[:, list(chosen)].max(axis=1)
    odds = values.log_odds(near, first)[others]
    if expected is not None:
        odds += [min(expected.log_odds(number), 0.0) for number in range(2, len(chosen) + 1)]
    odds = np.maximum(odds, log_odds(usual[others]))
    return np.column_stack((odds, values.confidences[others]))


def further_probabilities(terms: Floats) -> Floats:
    """How likely reported further values (n,) are right, by :func:`further_terms`."""
    return np.asarray(sigmoid(np.einsum("nt,t->n", terms, FURTHER_WEIGHTS) + FURTHER_BIAS))


def choose_further(
    first: int,
    values: RankedValues,
    able: Bools,
    *,
    needs_list: bool = False,
    is_usual: Bools | None = None,
    expected: ExpectedNumber | None = None,
) -> list[int]:
    """Numbers of the values beside the likeliest one, the likeliest of them first.

    Args:
        first: number of the likeliest one.
        values: of the document.
        able: (n, n) whether each value may be given beside each other.
        needs_list: whether a list must join each with one that is given.
        is_usual: (n,) whether most documents have several and each is likely, so that it needs no
            like place.
        expected: how many there should be, if other fields tell.

    """
    near, is_left, chosen = values.places[:, first], able[:, first], [first]
    while True:
        gained = 0.0 if expected is None else expected.log_odds(len(chosen) + 1)
        p = sigmoid(values.log_odds(near, first) + gained)
        enough = is_left & (p >= LEAST if is_usual is None else (p >= LEAST) | is_usual)
        if needs_list:
            enough &= near[:, _LISTED] == 1
        if not enough.any():
            return chosen[1:]
        best = int(np.argmax(np.where(enough, p, 0.0)))
        chosen.append(best)
        near = np.maximum(near, values.places[:, best])
        is_left = is_left & able[:, best]
