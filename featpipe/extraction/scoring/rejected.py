"""Rejected values: those of the samples that looked like a field's values and are none.

What stands in many documents of a kind without being a value, such as the name of a stock exchange
or of a notice that every document cites, is none in the next one either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.tokens import hash_of
from featpipe.store.sorted_values import places_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: Values that a field remembers, the most often rejected first.
_MOST_KEPT = 400


@dataclass(frozen=True, slots=True, eq=False)
class RejectedValues:
    """Log odds of being none of the field's values. One length; ``codes`` ascending, each once."""

    codes: Ints
    log_odds: Floats

    def of_values(self, keys: Sequence[str]) -> Floats:
        """Column (n_values,) by their keys: 0 for values that no sample rejects."""
        wanted = np.array([hash_of(key) for key in keys], np.int64)
        # The last of all, at -1, is what a value that is absent gets.
        return np.append(self.log_odds, 0.0)[places_in(wanted, self.codes)]


class Judgements:
    """Which of the likely values of each sample are right.

    Args:
        samples: keys of the values of each, and whether they are right.

    """

    def __init__(self, samples: Iterable[tuple[Sequence[str], Bools]]) -> None:
        self._samples = [_codes_of(*sample) for sample in samples]
        self._wrong = Counter(code for wrong, _ in self._samples for code in wrong)
        self._right = Counter(code for _, right in self._samples for code in right)

    def rejected(self) -> RejectedValues:
        """By all samples."""
        odds = {code: self._log_odds(code) for code in self._wrong}
        worst = sorted((code for code in odds if odds[code] > 0), key=lambda code: -odds[code])
        codes = np.array(sorted(worst[:_MOST_KEPT]), np.int64)
        return RejectedValues(codes, np.array([odds[code] for code in codes.tolist()]))

    def rejected_by_others(self, number: int) -> RejectedValues:
        """What the other samples say of the values of one sample."""
        wrong, right = self._samples[number]
        codes = sorted(wrong | right)
        odds = [self._log_odds(code, int(code in wrong), int(code in right)) for code in codes]
        return RejectedValues(np.array(codes, np.int64), np.array(odds))

    def _log_odds(self, code: int, own_wrong: int = 0, own_right: int = 0) -> float:
        """Of the samples that reject a value to those that have it, one of each more; halved."""
        n_wrong, n_right = self._wrong[code] - own_wrong, self._right[code] - own_right
        return max(float(np.log((n_wrong + 1) / (n_right + 1))), 0.0) / 2


def _codes_of(keys: Sequence[str], truth: Bools) -> tuple[set[int], set[int]]:
    codes = [hash_of(key) for key in keys]
    right = {code for code, is_right in zip(codes, truth.tolist(), strict=True) if is_right}
    return set(codes) - right, right
