"""Folding: texts compared as people compare them, with a way back to every original character.

``widen``-safe folding keeps the length (one character stays one), so offsets need no map and typed
patterns can run on it. Compact folding also drops blanks and thousands separators; it carries the
place of every kept character, so a match in the folded text is a span of the original.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

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


def fold_width(text: str) -> str:
    """As long as before: half width, lower case, one form of bracket, quote and dash."""
    return "".join(map(_fold_char, text))


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
    pieces = [_compact_char(char) for char in text]
    lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
    return Compact("".join(pieces), np.repeat(np.arange(len(pieces), dtype=np.int64), lengths))


@lru_cache(maxsize=65536)
def fold(text: str) -> str:
    """The compact text alone: two spellings of one name fold to the same string."""
    return "".join(map(_compact_char, text))
