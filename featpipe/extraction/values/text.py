"""Folding: texts compared as people compare them, with a way back to every original character.

``widen``-safe folding keeps the length (one character stays one), so offsets need no map and typed
patterns can run on it. Compact folding also drops blanks and thousands separators; it carries the
place of every kept character, so a match in the folded text is a span of the original.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# Characters: what holds of each one, looked up for a whole text at once.
#
# The tables are as long as Unicode and empty at first: a character is looked at in Python when
# it is
# met for the first time, so that most of their memory is never touched. Filling them twice, by two
# threads, writes the same.


if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Points = NDArray[np.uint32]

_N_POINTS = 0x110000
#: Bits of a character's traits.
LETTER, DECIMAL, DIGIT, BREAK, BLANK, PLAIN, UPPER, _KNOWN = (1 << n for n in range(8))


def points_of(text: str) -> Points:
    """Code points (len(text),)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(points: Points) -> str:
    """The text back."""
    return points.astype(np.uint32, copy=False).tobytes().decode("utf-32-le", "surrogatepass")


class CharacterTable:
    """One number for each character, computed when it is first met. Any thread may look up.

    Args:
        compute: character -> a number; for 0 it is asked every time.
        dtype: that holds it.

    """

    def __init__(self, compute: Callable[[str], int], dtype: type[np.generic]) -> None:
        self._compute = compute
        self._values: NDArray[Any] = np.zeros(_N_POINTS, dtype)

    def look_up(self, points: Points) -> NDArray[Any]:
        """Shape of ``points``."""
        found = self._values[points]
        if not found.all():
            for point in np.unique(points[found == 0]).tolist():
                self._values[point] = self._compute(chr(point))
            found = self._values[points]
        return found


def traits_of(char: str) -> int:
    """Bits: a to z; part of a number as patterns see it; any digit; line break or tab; blank ...

    ``PLAIN`` are letters and digits of any writing.
    """
    bits = _KNOWN
    bits |= LETTER * ("a" <= char <= "z") | DECIMAL * char.isdecimal() | DIGIT * char.isdigit()
    bits |= BREAK * (char in "\n\t") | BLANK * char.isspace()
    return bits | PLAIN * char.isalnum() | UPPER * char.isupper()


TRAITS = CharacterTable(traits_of, np.uint8)

#: Written in many ways and meaning one thing; the folded form stands on the right.
_SAME = {
    "（": "(",
    "）": ")",
    "〔": "(",
    "〕": ")",
    "【": "[",
    "】": "]",
    "［": "[",
    "］": "]",
    "“": '"',
    "”": '"',
    "„": '"',
    "「": '"',
    "」": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "—": "-",
    "－": "-",
    "‐": "-",
    "‑": "-",
    "−": "-",
    "～": "~",
    "〜": "~",
    "﹣": "-",
    "○": "〇",
    "Ｏ": "o",
    "￥": "¥",
    "：": ":",
    "；": ";",
    "，": ",",
    "．": ".",
    "％": "%",
}

#: Left out of a compact text: they differ between spellings of one value.
_DROPPED = frozenset(",'´`\u200b\u200c\u200d\ufeff\u00ad")


@lru_cache(maxsize=65536)
def _fold_char(char: str) -> str:
    """One character for one character: half width, lower case, one form of each bracket."""
    if char in _SAME:
        return _SAME[char]
    folded = unicodedata.normalize("NFKC", char).lower()
    return folded if len(folded) == 1 else char


#: From this many characters on a table is faster than one call for each.
_LONG = 200
_FOLDED = CharacterTable(lambda char: ord(_fold_char(char)), np.uint32)


def fold_width(text: str) -> str:
    """As long as before: half width, lower case, one form of bracket, quote and dash."""
    if len(text) < _LONG:
        return "".join(map(_fold_char, text))
    return text_of(_FOLDED.look_up(points_of(text)))


@dataclass(frozen=True, slots=True, eq=False)
class Compact:
    """``text`` without blanks and separators; ``places[i]`` is where its character i came from.

    Shapes: ``places`` (len(text),) int64, ascending (several characters may share one place).
    """

    text: str
    places: np.ndarray[tuple[int], np.dtype[np.int64]]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Half-open span of the original text that folded to ``text[start:end]`` (not empty)."""
        return int(self.places[start]), int(self.places[end - 1]) + 1

    def find_all(self, wanted: str, most: int | None = None) -> list[tuple[int, int]]:
        """Original spans of every occurrence of an already compact text, in order."""
        found: list[tuple[int, int]] = []
        at = self.text.find(wanted) if wanted else -1
        while at >= 0 and (most is None or len(found) < most):
            found.append(self.original_span(at, at + len(wanted)))
            at = self.text.find(wanted, at + len(wanted))
        return found


@lru_cache(maxsize=65536)
def _compact_char(char: str) -> str:
    if char.isspace():
        return ""
    folded = _SAME.get(char) or unicodedata.normalize("NFKC", char).lower()
    return "".join(c for c in folded if c not in _DROPPED and not c.isspace())


def compact(text: str) -> Compact:
    """Fold, and drop blanks, thousands separators and invisible characters."""
    points = points_of(text)
    lengths = _LENGTHS.look_up(points).astype(np.int64) - 1
    whole = text_of(_COMPACT.look_up(points)[lengths > 0])
    several = np.flatnonzero(lengths > 1)
    if len(several):
        # Where each of them stands in ``whole``, in which it is one character.
        at = np.cumsum(lengths > 0)[several] - 1
        whole = _spelled_out(whole, at.tolist(), [text[place] for place in several.tolist()])
    return Compact(whole, np.repeat(np.arange(len(text), dtype=np.int64), lengths))


_LENGTHS = CharacterTable(lambda char: len(_compact_char(char)) + 1, np.uint8)
_COMPACT = CharacterTable(lambda char: ord((_compact_char(char) or " ")[0]), np.uint32)


def _spelled_out(whole: str, places: Sequence[int], chars: Sequence[str]) -> str:
    """With ``…`` as three dots and ``㎡`` as m2 where one character stands for each."""
    parts, done = [], 0
    for place, char in zip(places, chars, strict=True):
        parts += [whole[done:place], _compact_char(char)]
        done = place + 1
    return "".join([*parts, whole[done:]])


@lru_cache(maxsize=65536)
def fold(text: str) -> str:
    """The compact text alone: two spellings of one name fold to the same string."""
    return "".join(map(_compact_char, text))
