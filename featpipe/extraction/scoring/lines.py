"""Lines: the runs of whole lines of a document, and the lines beside each place in it.

In forms and receipts a value is a line or several; in prose the lines are those of paragraphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.tokens import hash_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]

_BREAK = hash_of("\n")
#: Tokens of a line that are looked at beside a place.
_REACH = 10


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The lines of one document, blank ones aside.

    Shapes: ``first``, ``last`` (n_lines,) token numbers, half-open, without the breaks; ``since``,
    ``until`` (n_tokens + 1,).
    """

    first: Ints
    last: Ints
    since: Ints
    """First of the tokens that stand before each place: those of its line, or, where that begins,
    of the line above, at most the nearest ten."""
    until: Ints
    """Behind the last of the tokens that stand behind each place, likewise."""
    n_before: Ints
    """How many tokens that is, at least one; ``n_behind`` likewise."""
    n_behind: Ints

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(cls, tokens: Tokens) -> Lines:
        """From the tokens of a document."""
        is_break = tokens.code == _BREAK
        # With a break before the document and one behind it.
        padded = np.concatenate(([True], is_break, [True]))
        first = np.flatnonzero(padded[:-1] & ~padded[1:])
        last = np.flatnonzero(~padded[:-1] & padded[1:])
        places = np.arange(len(tokens) + 1)
        since = np.append(0, first)[np.searchsorted(first, places)]
        until = np.append(last, len(tokens))[np.searchsorted(last, places, side="right")]
        since, until = np.maximum(since, places - _REACH), np.minimum(until, places + _REACH)
        n_before, n_behind = np.maximum(places - since, 1), np.maximum(until - places, 1)
        return cls(first, last, since, until, n_before, n_behind)

    def runs(self, most: int) -> tuple[Ints, Ints]:
        """First and last token (half-open) of every run of one to ``most`` lines."""
        n = len(self)
        begin = np.repeat(np.arange(n), most)
        end = begin + np.tile(np.arange(most), n)
        is_whole = end < n
        return self.first[begin[is_whole]], self.last[end[is_whole]]
