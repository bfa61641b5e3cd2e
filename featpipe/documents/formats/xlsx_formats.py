"""Numbers of Excel files, as their formats show them (ECMA-376 part 1, section 18.8.30).

Numbers are stored bare: dates become ISO dates, durations (``[h]:mm``) hours, minutes and seconds,
percentages carry their sign. Other numbers are written without losing a digit that Excel keeps
(15), with what the format puts around them (``0.0"万元"``, a currency), its leading zeros, and in
its thousands or millions (``0.0,,"百万"``). Words that a format has in the place of a number are
read (``[=1]"男";[=2]"女"``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING

from featpipe.documents.formats.zip_xml import attribute, child, children

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

_DATES = {14: "d", 15: "d", 16: "d", 17: "d", 18: "t", 19: "t", 20: "t", 21: "t", 22: "dt"}
_DATES.update({45: "t", 46: "e", 47: "t"})
_DATES.update(dict.fromkeys((*range(27, 32), 36, *range(50, 55), 57, 58), "d"))
_DATES.update(dict.fromkeys((32, 33, 34, 35, 55, 56), "t"))
_PERCENT = {9: 0, 10: 2}
_LITERAL = re.compile(r'"[^"]*"|[\\!].|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)
_ELAPSED = re.compile(r"\[[hms]+\]", re.IGNORECASE)
_LAST_DAY = 2_958_466  # 10000-01-01
#: A part of a format: text that is shown, with its currency, or the places of digits.
_PART = re.compile(
    r'"(?P<quoted>[^"]*)"|[\\!](?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[[^\]]*\]'
    r"|(?P<digits>General|[#0?][#0?,.]*|\.[#0?]+)|(?P<plain>[^A-Za-z@])|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
_CONDITION = re.compile(r"\[[<>=]")
_COMPARED = re.compile(r"\[(=|<>|<=?|>=?)\s*(-?\d+(?:\.\d+)?)\]")
_HOLDS = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
#: The numbers that the sections of a format without conditions are for.
_SECTIONS = (((">=", -inf),), ((">=", 0), ("<", 0)), ((">", 0), ("<", 0), ("=", 0)))
#: How programs in Chinese write General.
_GENERAL = "G/通用格式"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """How a number that is no date is written: what stands around it, and how it is scaled."""

    before: str
    after: str
    n_places: int
    scale: int
    has_zero: bool
    """Whether zero has a format of its own."""

    def written(self, value: float) -> str:
        if value == 0 and self.has_zero:
            return plain(value)
        whole, point, rest = plain(abs(value) / self.scale).partition(".")
        sign = "-" if value < 0 else ""
        return f"{sign}{self.before}{whole.zfill(self.n_places)}{point}{rest}{self.after}".strip()


@dataclass(frozen=True, slots=True)
class _Words:
    """Words in the place of numbers: (comparison, with what, text), and how others are written."""

    choices: tuple[tuple[str, float, str], ...]
    other: _Pattern | None

    def written(self, value: float) -> str:
        for comparison, number, text in self.choices:
            if _HOLDS[comparison](value, number):
                return text or (self.other.written(value) if self.other else plain(value))
        return plain(value)


_Kind = str | int | _Pattern | _Words | None


class Formats:
    """Cell style number -> how its value is written."""

    def __init__(self, styles: Element | None, *, is_1904: bool) -> None:
        self._base = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)
        self._kinds: list[_Kind] = []
        if styles is None:
            return
        own: dict[int, str] = {}
        for entry in children(child(styles, "numFmts"), "numFmt"):
            own[int(entry.get("numFmtId", "0"))] = entry.get("formatCode", "")
        for entry in children(child(styles, "cellXfs"), "xf"):
            number = int(attribute(entry, "numFmtId") or 0)
            self._kinds.append(_kind(number, own.get(number)))

    def written(self, raw: str, style: int) -> str:
        """The text of a numeric cell; the raw text where it is not a number."""
        try:
            value = float(raw)
        except ValueError:
            return raw
        kind = self._kinds[style] if 0 <= style < len(self._kinds) else None
        if isinstance(kind, str) and 0 <= value < _LAST_DAY:
            return self._date(value, kind)
        if isinstance(kind, int):
            return f"{value * 100:.{kind}f}%"
        return kind.written(value) if isinstance(kind, _Pattern | _Words) else plain(value)

    def _date(self, value: float, kind: str) -> str:
        if kind == "e":
            minutes, seconds = divmod(round(value * 86_400), 60)
            return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
        moment = self._base + timedelta(days=int(value), seconds=round(value % 1 * 86_400))
        if self._base.year == 1899 and value < 61:
            moment += timedelta(days=1 if value >= 1 else 0)  # Excel's 29 February 1900
        if kind == "t" and value < 1:
            return moment.strftime("%H:%M:%S")
        has_time = value % 1 > 0 and kind != "d"
        return moment.strftime("%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d")


def plain(value: float) -> str:
    """A number without exponent and without noise beyond its 15th digit."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.15g}"
    if "e" not in text:
        return text
    if abs(value) >= 1:
        return f"{value:.0f}"
    return f"{value:.20f}".rstrip("0") if abs(value) > 1e-15 else text


def _kind(number: int, code: str | None) -> _Kind:
    """What a number is: d, t, dt (dates, times), e (durations), digits of a percentage ..."""
    if code is None:
        return _DATES.get(number, _PERCENT.get(number))
    code = code.replace(_GENERAL, "General")
    bare = _LITERAL.sub("", code.split(";")[0])
    if "%" in bare:
        return len(re.sub(r"^.*?\.|[^0#]", "", bare)) if "." in bare else 0
    if _ELAPSED.search(bare):
        return "e"
    letters = set(bare.lower())
    has_date = (
        bool(letters & set("yd"))
        or "aaa" in bare.lower()
        or ("m" in letters and not letters & set("hs"))
    )
    has_time = bool(letters & set("hs"))
    if not (has_date or has_time):
        return _words(code) or _pattern(code)
    if "general" in bare.lower():
        return None
    return ("d" if has_date else "") + ("t" if has_time else "")


def _words(code: str) -> _Words | None:
    """The words that a format has in the place of some numbers; None for a format without."""
    sections = code.split(";")[:3]
    texts = [_words_of(section) for section in sections]
    if not any(texts):
        return None
    numbers: Sequence[tuple[str, float]] = _SECTIONS[len(sections) - 1]
    if _CONDITION.search(code):
        stated = [_COMPARED.search(section) for section in sections]
        numbers = [(one[1], float(one[2])) if one else (">=", -inf) for one in stated]
    choices = tuple((*one, text) for one, text in zip(numbers, texts, strict=True))
    return _Words(choices, _pattern(code))


def _words_of(section: str) -> str:
    """The text of a section that is words alone; "" for others."""
    parts = list(_PART.finditer(section))
    text = "" if any(part["digits"] or part["other"] for part in parts) else _shown(parts)
    return text if any(map(str.isalnum, text)) else ""


def _pattern(code: str) -> _Pattern | None:
    """The pattern of a format with one number in it; None for bare numbers and stranger formats."""
    sections = code.split(";")
    parts = list(_PART.finditer(sections[0]))
    at = [n for n, part in enumerate(parts) if part["digits"]]
    if len(at) != 1 or _CONDITION.search(code) or any(part["other"] for part in parts):
        return None
    digits = parts[at[0]]["digits"]
    whole = digits.partition(".")[0]
    n_thousands = max(len(side) - len(side.rstrip(",")) for side in (whole, digits))
    before, after = (_shown(some) for some in (parts[: at[0]], parts[at[0] + 1 :]))
    n_places = whole.count("0")
    if not (before or after or n_thousands or n_places > 1):
        return None
    return _Pattern(before, after, n_places, 1000**n_thousands, len(sections) > 2)


def _shown(parts: list[re.Match[str]]) -> str:
    """The text of some parts, without blanks at its outer ends."""
    names = ("quoted", "escaped", "currency", "plain")
    return "".join(part[name] or "" for part in parts for name in names).strip()
