"""Texts as one run of code points, which is what every kernel here walks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

N_CODE_POINTS = 0x110000

Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]


class CodedTexts(NamedTuple):
    """Texts laid end to end.

    ``codes`` (n_characters,) int32 holds one number per Python character, so offsets into it are
    Python string offsets; ``bounds`` (n_texts + 1,) int64 says where each text starts. Lone
    surrogates, NUL and everything else a ``str`` may hold go through unchanged.
    """

    codes: Codes
    bounds: Offsets

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> CodedTexts:
        """Lay texts end to end; four bytes a character."""
        joined = "".join(texts)
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.int32)
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
        return cls(codes, bounds)

    @property
    def n_texts(self) -> int:
        """Texts, empty ones included."""
        return len(self.bounds) - 1


def text_of(codes: Codes) -> str:
    """The string these code points spell; the inverse of :meth:`CodedTexts.from_texts`."""
    return np.ascontiguousarray(codes, np.int32).tobytes().decode("utf-32-le", "surrogatepass")


class CharacterTable:
    """One number per character, computed when the character is first met.

    Python's own view of a character (is it a letter, what is its lower case) is the only truth,
    and asking it 1.1 million times would cost a worker 80 ms at its start; texts hold a few
    thousand distinct characters. Untouched pages of the table take no memory. Safe to share
    between threads: two may compute the same entry, and write the same number.
    """

    def __init__(self, answer: Callable[[int], int]) -> None:
        self._answer = answer
        self._table = np.zeros(N_CODE_POINTS, np.int32)  # zero means: not asked yet

    def __getitem__(self, codes: Codes) -> Codes:
        """The number of each code point: (n,) int32 -> (n,) int32."""
        found = self._table.take(codes)
        unknown = np.unique(codes[found == 0])
        if len(unknown):
            self._table[unknown] = [self._answer(code) + 1 for code in unknown.tolist()]
            found = self._table.take(codes)
        found -= 1
        return found
