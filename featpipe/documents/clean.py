"""Cleans the text of one paragraph.

Guarantees: the result has no control character, no tab or line break, no blank at either end and
no two blanks in a row; it is stable (cleaning it again changes nothing); every character of it can
be traced to the characters it was made from. Only this is changed:

- a run of white space becomes one blank; a run with a line break between two wide characters is
  removed (Chinese lines are joined without a blank, as a browser shows them);
- control characters, zero-width marks, bidirectional marks and soft hyphens are removed;
- full-width letters, digits and the signs of numbers become half-width; punctuation stays;
- radicals and compatibility ideographs (common in PDF) become the ordinary character,
  Latin ligatures their letters, a letter with combining marks its composed form;
- a lone surrogate becomes U+FFFD, so that the text can be written as UTF-8.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.documents.document import Offsets

#: Radicals that look like a character and are none to NFKC, each with that character: programs that
#: write PDF take one for the other. Source: Unicode 15, EquivalentUnifiedIdeograph.txt.
_RADICALS = (
    "⺁厂⺒巳⺓幺⺜日⺝月⺠民⺧牛⺬示⺶羊⻁虎⻄西⻅见⻆角⻉贝⻋车⻑長⻓长⻔门⻗雨⻘青⻙韦⻚页⻛风⻜飞⻝食⻢马⻣骨"
    "⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龜⻲亀"
)
_ORDINARY = str.maketrans(_RADICALS[::2], _RADICALS[1::2])
#: Characters set without blanks between them: ideographs, kana, their punctuation, full-width.
WIDE = "\u2e80-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\uffe0-\uffe6"
WIDE += "\U00020000-\U0003ffff"
#: Characters that are wide beside Chinese ones: dashes, curly quotes, dots, circled numbers.
EITHER = "\u00b7\u00d7\u2010-\u2027\u2030\u2103\u2460-\u24ff"

_NOISE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
)
_DIRTY = re.compile(
    rf"(?P<blank>[\s{_NOISE}]{{2,}}|(?! )[\s{_NOISE}])"
    r"|(?P<full>[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    r"\uff03\uff05\uff06\uff0a\uff0b\uff0d-\uff0f\uff1d\uff20\uff3f]+)"
    r"|(?P<variant>[\u2e80-\u2ef3\u2f00-\u2fd5\uf900-\ufa6d\ufa70-\ufad9\U0002f800-\U0002fa1d]"
    r"|[\ufb00-\ufb06])"
    r"|(?P<mark>\w[\u0300-\u036f]+|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?)"
    r"|(?P<surrogate>[\ud800-\udfff])"
)
#: Any character that a sweep could change, except white space.
_SUSPECT = re.compile(
    rf"[{_NOISE}\uff03\uff05\uff06\uff0a\uff0b\uff0d-\uff19\uff1d\uff20-\uff3a\uff3f\uff41-\uff5a"
    "\u2e80-\u2ef3\u2f00-\u2fd5\uf900-\ufad9\ufb00-\ufb06\u0300-\u036f\u1100-\u1112"
    "\ud800-\udfff\U0002f800-\U0002fa1d]"
)
_FULL = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_HAS_BREAK = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_IS_WIDE = re.compile(f"[{WIDE}]")
_IS_EITHER = re.compile(f"[{WIDE}{EITHER}]")

#: (start, end, replacement) in the raw text, in order, not touching one another's characters.
Edit = tuple[int, int, str]


def clean(raw: str) -> str:
    """The cleaned paragraph."""
    if raw.isascii():
        text = " ".join(raw.split())
        if text.isprintable():
            return text
    elif not _SUSPECT.search(raw):  # a sweep would change white space only
        return _joined_lines(raw) if _IS_WIDE.search(raw) else " ".join(raw.split())
    text, is_stable = _sweep(raw, None)
    while not is_stable:
        text, is_stable = _sweep(text, None)
    return text.strip(" ")


def clean_traced(raw: str, starts: Offsets, ends: Offsets) -> tuple[str, Offsets, Offsets]:
    """``clean``, carrying along the source span of every character.

    Shapes: starts, ends (len(raw),) -> (len(text),). The text is exactly ``clean(raw)``.
    """
    text, is_stable = raw, False
    while not is_stable:
        edits: list[Edit] = []
        text, is_stable = _sweep(text, edits)
        starts, ends = _follow(starts, ends, edits)
    kept = text.lstrip(" ")
    left = len(text) - len(kept)
    kept = kept.rstrip(" ")
    return kept, starts[left : left + len(kept)], ends[left : left + len(kept)]


def _joined_lines(raw: str) -> str:
    """The result of a sweep for a text in which it changes white space only."""
    words = raw.split()
    if len(words) < 2:
        return words[0] if words else ""
    lines = [line for line in (" ".join(line.split()) for line in raw.splitlines()) if line]
    if len(lines) < 2:
        return lines[0] if lines else ""
    parts = [lines[0]]
    for before, after in pairwise(lines):
        if not is_joined(before[-1], after[0]):
            parts.append(" ")
        parts.append(after)
    return "".join(parts)


def _sweep(text: str, edits: list[Edit] | None) -> tuple[str, bool]:
    """One pass, and whether the result is stable."""
    is_stable = True

    def replace(match: re.Match[str]) -> str:
        nonlocal is_stable
        new = _REPLACE[match.lastgroup or ""](match)
        if new != match[0]:  # equal: marks without a composed form, ideographs without another
            # White space that became a blank or was removed is stable; any other change may have
            # put a letter beside a mark that composes with it.
            is_stable &= match.lastgroup == "blank" and (new == " " or match[0].isspace())
            if edits is not None:
                edits.append((match.start(), match.end(), new))
        return new

    return _DIRTY.sub(replace, text), is_stable


def _blank(match: re.Match[str]) -> str:
    run, text = match[0], match.string
    if not any(map(str.isspace, run)):
        return ""
    before = text[max(0, match.start() - 1) : match.start()]
    after = text[match.end() : match.end() + 1]
    return "" if _HAS_BREAK.search(run) and is_joined(before, after) else " "


def is_joined(before: str, after: str) -> bool:
    """Whether a line break between two characters is removed without a blank."""
    if _IS_WIDE.match(before):
        return bool(_IS_EITHER.match(after))
    return bool(_IS_WIDE.match(after) and _IS_EITHER.match(before))


_REPLACE: dict[str, Callable[[re.Match[str]], str]] = {
    "blank": _blank,
    "full": lambda match: match[0].translate(_FULL),
    "variant": lambda match: unicodedata.normalize("NFKC", match[0].translate(_ORDINARY)),
    "mark": lambda match: unicodedata.normalize("NFC", match[0]),
    "surrogate": lambda _: "\ufffd",
}


def _follow(starts: Offsets, ends: Offsets, edits: list[Edit]) -> tuple[Offsets, Offsets]:
    if not edits:
        return starts, ends
    new_starts: list[Offsets] = []
    new_ends: list[Offsets] = []
    done = 0
    for start, end, new in edits:
        first, last = starts[start:end], ends[start:end]
        if len(new) != end - start:
            first, last = np.full(len(new), first[0]), np.full(len(new), last[-1])
        new_starts += starts[done:start], first
        new_ends += ends[done:start], last
        done = end
    return np.concatenate([*new_starts, starts[done:]]), np.concatenate([*new_ends, ends[done:]])
