"""Units: the distinct texts of a batch of documents, each with its key and the levels it occurs at.

Texts are sent between processes as one UTF-8 byte array with lengths, never as a list of strings:
the parent forwards them without decoding them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UsageError
from featpipe.settings import LEVELS
from featpipe.store import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    #: Shape (n, 16).
    Keys = NDArray[np.uint8]

#: One bit per level, so that a text which is a sentence and a paragraph is one unit with two bits.
LEVEL_BIT = {level: 1 << position for position, level in enumerate(LEVELS)}


def check_level(level: str) -> str:
    """The level itself.

    Raises:
        UsageError: no such level.

    """
    if level not in LEVEL_BIT:
        raise UsageError(f"unknown level {level!r}", hint=f"choose from {', '.join(LEVELS)}")
    return level


def join_keys(keys: Iterable[bytes]) -> Keys:
    """Keys of 16 bytes as an array (n, 16)."""
    return np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)


def split_keys(keys: NDArray[np.generic]) -> list[bytes]:
    """An array of keys (n, 16), or laid end to end, as 16 bytes each."""
    whole = keys.tobytes()
    return [whole[at : at + 16] for at in range(0, len(whole), 16)]


def decode(values: NDArray[np.generic]) -> str:
    """One text of a ragged column; lone surrogates are kept."""
    return np.asarray(values).tobytes().decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Many strings as bytes. Shapes: ``values`` (total bytes,) uint8, ``lengths`` (n,) int64."""

    values: NDArray[np.uint8]
    lengths: NDArray[np.int64]

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> Texts:
        """Pack strings; a lone surrogate is kept, as the key of its text counts it too."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(np.frombuffer(b"".join(encoded), np.uint8), lengths)

    def strings(self) -> list[str]:
        """Unpack."""
        whole = self.values.tobytes()
        ends = [0, *np.cumsum(self.lengths).tolist()]
        return [whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    @property
    def ragged(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """As a ragged column of the store."""
        return self.values, self.lengths

    def take(self, rows: NDArray[np.intp]) -> Texts:
        """The chosen strings, in that order, still packed."""
        ends = np.cumsum(self.lengths)
        lengths = self.lengths[rows]
        first = (ends - self.lengths)[rows]
        out_first = np.cumsum(lengths) - lengths
        positions = np.repeat(first - out_first, lengths) + np.arange(int(lengths.sum()))
        return Texts(self.values[positions], lengths)

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Distinct unit texts. Shapes: ``keys`` (n, 16) uint8, ``levels`` (n,) uint8 of LEVEL_BIT."""

    keys: Keys
    texts: Texts
    levels: NDArray[np.uint8]

    def take(self, rows: NDArray[np.intp]) -> Units:
        """The chosen units, in that order."""
        return Units(self.keys[rows], self.texts.take(rows), self.levels[rows])

    @classmethod
    def joined(cls, parts: Sequence[Units]) -> Units:
        """One after the other; they must be disjoint."""
        return cls(
            np.concatenate([part.keys for part in parts]),
            Texts.joined([part.texts for part in parts]),
            np.concatenate([part.levels for part in parts]),
        )

    def halves(self) -> tuple[Units, Units]:
        """Two parts of about the same number of units."""
        middle = len(self) // 2
        rows = np.arange(len(self))
        return self.take(rows[:middle]), self.take(rows[middle:])

    def __len__(self) -> int:
        return len(self.keys)


class UnitCollector:
    """Gathers occurrences of texts; every distinct text is hashed once."""

    def __init__(self) -> None:
        self._position: dict[str, int] = {}
        self._levels: list[int] = []

    def add(self, texts: Iterable[str], level: str) -> NDArray[np.int64]:
        """Positions (n,) of these occurrences among the distinct texts."""
        bit = LEVEL_BIT[level]
        position, levels = self._position, self._levels
        found = []
        for text in texts:
            at = position.get(text)
            if at is None:
                at = position[text] = len(levels)
                levels.append(bit)
            else:
                levels[at] |= bit
            found.append(at)
        return np.array(found, np.int64)

    def units(self) -> Units:
        """All distinct texts so far, in order of first occurrence."""
        distinct = list(self._position)
        return Units(
            keys_of(distinct), Texts.from_strings(distinct), np.array(self._levels, np.uint8)
        )
