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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.templates.candidates import Candidates
    from featpipe.templates.view import View

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: Hashed columns (:func:`featpipe.templates.evidence.hashed_columns`) that are compared together.
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


def manner_numbers(view: View, found: Candidates) -> Floats:
    """Shape (n, N_NUMBERS): log length, shares of five kinds of character, place, log lines."""
    tokens = view.tokens
    first, last = found.first, found.last
    start, end = tokens.start[first], tokens.end[last - 1]
    width = np.maximum(end - start, 1)
    n_lines = tokens.line[-1] if len(tokens) else 0
    kinds = [sums[end] - sums[start] for sums in view.letters]
    columns = [
        np.log(last - first),
        *(count / width for count in kinds),
        start / max(len(view.text), 1),
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
