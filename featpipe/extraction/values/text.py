"""Folding: texts reduced to one spelling, with a way back to every original character.

:func:`fold_width` keeps the length, so typed patterns can run on its result and offsets need no
map. :func:`compact` also drops blanks and thousands separators, and carries the place of every kept
character, so that a match in the compact text is a span of the original.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Points = NDArray[np.uint32]

_N_POINTS = 0x110000
#: Bits of a character's traits.
LETTER, DECIMAL, DIGIT, BREAK, BLANK, PLAIN, UPPER, _KNOWN = (1 << n for n in range(8))


def points_of(text: str) -> Points:
    """Code points (len(text),)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(points: Points) -> str:
    """The text of code points."""
    return points.astype(np.uint32, copy=False).tobytes().decode("utf-32-le", "surrogatepass")


_Number = TypeVar("_Number", bound=np.generic)


class CharacterTable(Generic[_Number]):
    """One number for each character, computed when it is first met. Any thread may look up.

    The array is as long as Unicode, but most of its memory is never touched. Two threads that fill
    it at the same time write equal numbers.

    Args:
        compute: character -> a number; called again each time for 0.
        dtype: of the numbers.

    """

    def __init__(self, compute: Callable[[str], int], dtype: type[_Number]) -> None:
        self._compute = compute
        self._values: NDArray[_Number] = np.zeros(_N_POINTS, dtype)

    def look_up(self, points: Points) -> NDArray[_Number]:
        """The numbers of code points, in their shape."""
        found = self._values[points]
        if not found.all():
            for point in np.unique(points[found == 0]).tolist():
                self._values[point] = self._compute(chr(point))
            found = self._values[points]
        return found


def traits_of(char: str) -> int:
    r"""Bits of a folded character.

    ``LETTER`` is a to z, ``DECIMAL`` what ``\d`` matches, ``DIGIT`` any digit, ``BREAK`` a line
    break or tab, ``BLANK`` any blank, ``PLAIN`` letters and digits of any script.
    """
    bits = _KNOWN
    bits |= LETTER * ("a" <= char <= "z") | DECIMAL * char.isdecimal() | DIGIT * char.isdigit()
    bits |= BREAK * (char in "\n\t") | BLANK * char.isspace()
    return bits | PLAIN * char.isalnum() | UPPER * char.isupper()


TRAITS = CharacterTable(traits_of, np.uint8)

#: Characters of one meaning -> their folded form.
_SAME = {
    char: folded
    for folded, chars in (
        ("(", "（〔"), (")", "）〕"), ("[", "【［"), ("]", "】］"), ('"', "“”„「」"), ("'", "‘’"),
        ("-", "–—－‐‑−﹣"), ("~", "～〜"), ("〇", "○"), ("o", "Ｏ"), ("¥", "￥"), (":", "："),
        (";", "；"), (",", "，"), (".", "．"), ("%", "％"),
    )
    for char in chars
}  # fmt: skip

#: Dropped from a compact text: they differ between spellings of one value.
_DROPPED = frozenset(",'´`\u200b\u200c\u200d\ufeff\u00ad")


@lru_cache(maxsize=65536)
def _fold_char(char: str) -> str:
    if char in _SAME:
        return _SAME[char]
    if unicodedata.category(char) == "No":
        return char  # ①: as 1 it would be the first digit of a number behind it
    folded = unicodedata.normalize("NFKC", char).lower()
    return folded if len(folded) == 1 else char


#: From this many characters on, a table is faster than a call for each.
_LONG = 200
_FOLDED = CharacterTable(lambda char: ord(_fold_char(char)), np.uint32)


def fold_width(text: str) -> str:
    """Half width, lower case, one form of bracket, quote and dash. The length is kept."""
    return _fold_short(text) if len(text) < _LONG else text_of(_FOLDED.look_up(points_of(text)))


@lru_cache(maxsize=65536)
def _fold_short(text: str) -> str:
    return "".join(map(_fold_char, text))


#: Upright strokes between the cells of a row, and the wider ones that boxes are drawn with.
STROKES = "|│┃"
STROKE = re.compile(rf"(?<!\\)[{STROKES}]")


#: A label in lenticular brackets, with its value behind it in the line.
_bracketed = re.compile(r"(?<!\S)【(?P<label>[^【】\d\n]{2,12})】(?=[^\S\n]*[^\s【:：])")


def fold_page(text: str) -> str:
    """The same of a document, with tabs between the cells of its tables and colons behind labels.

    Strokes between cells are tabs, and 【公告编号】2024-021 is 公告编号:2024-021.
    """
    folded = fold_width(text)
    if any(stroke in folded for stroke in STROKES):
        folded = STROKE.sub("\t", folded)
    if "【" not in text:
        return folded
    parts, done = [], 0
    for marked in _bracketed.finditer(text):
        start, end = marked.span()
        parts += [folded[done:start], " ", folded[start + 1 : end - 1], ":"]
        done = end
    return "".join((*parts, folded[done:]))


@dataclass(frozen=True, slots=True, eq=False)
class Compact:
    """A compact text; ``places[i]`` is the place of its character i in the original.

    Shapes: ``places`` (len(text),) int64, ascending (several characters may share one place).
    """

    text: str
    places: np.ndarray[tuple[int], np.dtype[np.int64]]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Half-open span of the original text that folded to ``text[start:end]`` (not empty)."""
        return int(self.places[start]), int(self.places[end - 1]) + 1

    def find_all(self, wanted: str, most: int | None = None) -> list[tuple[int, int]]:
        """Original spans of the first ``most`` occurrences of a compact text, in order."""
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
        # Their places in ``whole``, where each is one character so far.
        at = np.cumsum(lengths > 0)[several] - 1
        whole = _spelled_out(whole, at.tolist(), [text[place] for place in several.tolist()])
    return Compact(whole, np.repeat(np.arange(len(text), dtype=np.int64), lengths))


#: What a number counts, before or behind a blank: names may begin with digits, too.
_COUNTED = "年月日号时分点元万亿千百股票人名位家个项倍届次期起至笔张台套吨米%"
#: Single ones: two of them part columns.
_spacing = re.compile(
    rf"[^\S\n\t](?:(?<=[\u4e00-\u9fff].)(?=\d[\d,.]{{0,20}}[^\S\n\t]?[{_COUNTED}])"
    rf"|(?<=\d.)(?=[{_COUNTED}])|(?<=\d%.)(?=[的股]))"
)


def close_spacing(folded: str) -> Compact:
    """A folded text without single blanks that set off numbers: 于 2023 年 5 月完成 2 亿元融资."""
    blanks = [match.start() for match in _spacing.finditer(folded)]
    places = np.arange(len(folded), dtype=np.int64)
    if not blanks:
        return Compact(folded, places)
    return Compact(_spacing.sub("", folded), np.delete(places, blanks))


#: Between lines of one sentence that were broken where a page ends: before neither the number of
#: an item nor a blank. What stands before a break is looked at behind it: tried at every character,
#: that took forty times as long.
_wrap = re.compile(
    r"\n(?<=[^\n\t]{24}[\u4e00-\u9fffa-z\d,、%.]\n)(?=[\u4e00-\u9fff\d,。;)a-z])(?![一二三四五六七八九十]{1,3}、|\d{1,2}[.、)])"
)


def close_wraps(closed: Compact) -> Compact:
    """The same without breaks of lines that are long, and go on in the next one."""
    breaks = [match.start() for match in _wrap.finditer(closed.text)]
    if not breaks:
        return closed
    text = _wrap.sub("", closed.text)
    return Compact(text, np.delete(closed.places, breaks))


_LENGTHS = CharacterTable(lambda char: len(_compact_char(char)) + 1, np.uint8)
_COMPACT = CharacterTable(lambda char: ord((_compact_char(char) or " ")[0]), np.uint32)


def _spelled_out(whole: str, places: Sequence[int], chars: Sequence[str]) -> str:
    """Replace one character by several at ``places``, such as ``…`` by three dots."""
    parts, done = [], 0
    for place, char in zip(places, chars, strict=True):
        parts += [whole[done:place], _compact_char(char)]
        done = place + 1
    return "".join([*parts, whole[done:]])


@lru_cache(maxsize=65536)
def fold(text: str) -> str:
    """The compact text alone: two spellings of one name fold to the same string."""
    return "".join(map(_compact_char, text))


def matches_at(
    pattern: re.Pattern[str], text: str, places: Iterable[int]
) -> Iterator[re.Match[str]]:
    """The matches of ``pattern.finditer(text)`` that begin at some places, which ascend.

    They are all of its matches if it matches nowhere else. No match may be empty.
    """
    done = 0
    for place in places:
        match = pattern.match(text, place) if place >= done else None
        if match is not None:
            done = match.end()
            yield match


def matches_near(
    pattern: re.Pattern[str], text: str, places: Iterable[int], n_before: int, n_behind: int
) -> Iterator[re.Match[str]]:
    """The matches of ``pattern.finditer(text)`` that hold some places, which ascend.

    They begin and end so many characters before and behind one, at most.
    """
    low = high = 0
    for place in places:
        if place - n_before > high:
            yield from pattern.finditer(text, low, high)
            low = place - n_before
        high = place + n_behind
    yield from pattern.finditer(text, low, high)


def placed_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its end, and the character that it begins at."""
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line
        start += len(line)


def line_starts(text: str) -> list[int]:
    """Where the lines of a text begin: a pattern with ``^`` tries every character."""
    return [0, *(place + 1 for place in places_of(("\n",), text))]


def places_of(words: Iterable[str], text: str) -> list[int]:
    """Where any of some words begin in a text, in longer words as well, ascending."""
    found: set[int] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            found.add(at)
            at = text.find(word, at + 1)
    return sorted(found)
