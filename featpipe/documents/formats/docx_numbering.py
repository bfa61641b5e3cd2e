"""The numbers Word puts before paragraphs: in the file they are rules, on the page they are text.

``第三条``, ``（一）`` and ``1.2.3`` of a contract are mostly such numbers; without them a reference
to a clause points nowhere. Source of the rules: ECMA-376 part 1, section 17.9.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from featpipe.documents.formats.zip_xml import attribute, children, is_on, value_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element

_DIGITS = "〇一二三四五六七八九"
_LEGAL = "零壹贰叁肆伍陆柒捌玖"
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_MAX_LEVELS = 9


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a list.

    Attributes:
        start: the first number.
        style: how it is written.
        text: around it.
        is_legal: the numbers of the levels above are written as decimals beside it (isLgl).
        restart: the level (from 1) that begins it anew, as all above that do; 0 for none, None for
            the level above it.
        of_style: the style of paragraphs that are at this level.
    """

    start: int = 1
    style: str = "decimal"
    text: str = "%1."
    is_legal: bool = False
    restart: int | None = None
    of_style: str = ""

    def begins_anew(self, level: int, used: int) -> bool:
        """Whether it does, being at ``level``, after a number at the level ``used``."""
        return used < (level if self.restart is None else min(self.restart, level))


@dataclass(slots=True)
class Numbering:
    """Rules and running counters of all lists of a document."""

    lists: dict[str, tuple[str, dict[int, Level]]] = field(default_factory=dict)
    counters: dict[str, list[int | None]] = field(default_factory=dict)
    started: set[tuple[str, int]] = field(default_factory=set)
    overridden: dict[str, set[int]] = field(default_factory=dict)
    #: List and style of paragraphs -> the level whose paragraphs have that style.
    of_styles: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Element | None) -> Numbering:
        """From the root of ``numbering.xml``."""
        numbering = cls()
        elements = list(children(root, "abstractNum"))
        abstract = {attribute(one, "abstractNumId") or "": _levels(one) for one in elements}
        links = _links(elements)
        for element in children(root, "num"):
            number = attribute(element, "numId") or ""
            name = value_of(element, "abstractNumId") or ""
            name = links.get(name, name)
            own, restarts = _overrides(element, abstract.get(name, {}))
            numbering.lists[number] = (name, own)
            numbering.of_styles |= {(number, rule.of_style): at for at, rule in own.items()}
            numbering.overridden[number] = restarts
        return numbering

    def linked(self, number: tuple[str, int] | None, style: str) -> tuple[str, int] | None:
        """List and level of a style: the level that names the style, whatever the style says."""
        return number and (number[0], self.of_styles.get((number[0], style), number[1]))

    def next_label(self, number: str, level: int) -> str:
        """Count one paragraph; the label before it, "" for bullets and unknown lists."""
        if number not in self.lists or not 0 <= level < _MAX_LEVELS:
            return ""
        name, levels = self.lists[number]
        counters = self.counters.setdefault(name, [None] * _MAX_LEVELS)
        rule = levels.get(level, Level())
        before = None if self._restarts(number, level) else counters[level]
        counters[level] = rule.start if before is None else before + 1
        for lower in range(level + 1, _MAX_LEVELS):
            if levels.get(lower, Level()).begins_anew(lower, level):
                counters[lower] = None
        for upper in range(level):
            if counters[upper] is None:
                counters[upper] = levels.get(upper, Level()).start
        return _label(rule, levels, counters)

    def count_from(self, number: str, level: int, first: int) -> None:
        """Let the next paragraph of a level have the number ``first``."""
        name, _ = self.lists[number]
        if 0 <= level < _MAX_LEVELS:
            self.counters.setdefault(name, [None] * _MAX_LEVELS)[level] = first - 1

    def _restarts(self, number: str, level: int) -> bool:
        """Whether a list counts anew at its first use of a level."""
        is_first = (number, level) not in self.started
        self.started.add((number, level))
        return is_first and level in self.overridden[number]


def labelled(label: str, text: str) -> str:
    """A paragraph with the number before it."""
    separator = "" if label[-1] in "、）．，：)" and not label.isascii() else " "
    return label + separator + text.lstrip()


def _links(elements: list[Element]) -> dict[str, str]:
    """List without rules of its own -> the one whose style it names (numStyleLink, styleLink)."""
    styled = {value_of(one, "styleLink"): attribute(one, "abstractNumId") or "" for one in elements}
    named = {
        attribute(one, "abstractNumId") or "": value_of(one, "numStyleLink") for one in elements
    }
    return {name: styled[link] for name, link in named.items() if link and link in styled}


def _levels(element: Element) -> dict[int, Level]:
    found = {}
    for level in children(element, "lvl"):
        index = attribute(level, "ilvl") or ""
        if index.isdecimal():
            start = _value(level, "start", "1")
            found[int(index)] = Level(
                int(start) if start.isdecimal() else 1,
                _value(level, "numFmt", "decimal"),
                _value(level, "lvlText", ""),
                is_on(level, "isLgl"),
                int(restart) if (restart := _value(level, "lvlRestart", "")).isdecimal() else None,
                _value(level, "pStyle", ""),
            )
    return found


def _overrides(element: Element, levels: dict[int, Level]) -> tuple[dict[int, Level], set[int]]:
    own, restarts = dict(levels), set()
    for override in children(element, "lvlOverride"):
        index = attribute(override, "ilvl") or ""
        if not index.isdecimal():
            continue
        own.update({int(index): level for level in _levels(override).values()})
        start = _value(override, "startOverride", "")
        if start.isdecimal():
            old = own.get(int(index), Level())
            own[int(index)] = replace(old, start=int(start))
            restarts.add(int(index))
    return own, restarts


def _value(element: Element, name: str, default: str) -> str:
    value = value_of(element, name)
    return default if value is None else value


def _label(rule: Level, levels: dict[int, Level], counters: list[int | None]) -> str:
    if rule.style in {"bullet", "none"}:
        return ""

    def write(match: re.Match[str]) -> str:
        level = int(match[1]) - 1
        number = counters[level] if level < _MAX_LEVELS else None
        style = "decimal" if rule.is_legal else levels.get(level, rule).style
        return "" if number is None else written(number, style)

    return re.sub(r"%([1-9])", write, rule.text)


def written(number: int, style: str) -> str:
    """A number in one of Word's number formats; decimal where the format is not known."""
    if number < 1:
        return str(number)
    return _STYLES.get(style, str)(number)


def chinese(number: int, digits: str = "零一二三四五六七八九", units: str = "十百千") -> str:
    """12 -> 十二, 110 -> 一百一十; decimal from 10,000 on."""
    if number >= 10_000:
        return str(number)
    text = ""
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if digit:
            text += digits[digit] + (units[power - 1] if power else "")
        elif text and not text.endswith(digits[0]) and number % 10**power:
            text += digits[0]
    return text[1:] if 10 <= number < 20 and units[0] == "十" else text


def _roman(number: int) -> str:
    text = ""
    for value, sign in (
        (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
        (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
    ):  # fmt: skip
        text += sign * (number // value)
        number %= value
    return text


def _letters(number: int) -> str:
    """Write 1 to 26 as a to z, then aa, bb ... (Word repeats the letter)."""
    times, index = divmod(number - 1, 26)
    return chr(ord("a") + index) * (times + 1)


def _circled(number: int) -> str:
    return chr(0x2460 + number - 1) if number <= 20 else str(number)


def _legal(number: int) -> str:
    return chinese(number, _LEGAL, "拾佰仟")


_STYLES: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda n: f"{n:02d}",
    "upperRoman": lambda n: _roman(n).upper(),
    "lowerRoman": _roman,
    "upperLetter": lambda n: _letters(n).upper(),
    "lowerLetter": _letters,
    "decimalEnclosedCircle": _circled,
    "decimalEnclosedFullstop": lambda n: chr(0x2487 + n) if n <= 20 else f"{n}.",
    "decimalEnclosedParen": lambda n: chr(0x2473 + n) if n <= 20 else f"({n})",
    "ideographEnclosedCircle": lambda n: chr(0x327F + n) if n <= 10 else chinese(n),
    "numberInDash": lambda n: f"- {n} -",
    "decimalEnclosedCircleChinese": _circled,
    "chineseCounting": chinese,
    "chineseCountingThousand": chinese,
    "japaneseCounting": chinese,
    "taiwaneseCounting": chinese,
    "taiwaneseCountingThousand": chinese,
    "ideographDigital": lambda n: "".join(_DIGITS[int(d)] for d in str(n)),
    "chineseLegalSimplified": _legal,
    "ideographLegalTraditional": _legal,
    "ideographTraditional": lambda n: _STEMS[(n - 1) % 10],
    "ideographZodiac": lambda n: _BRANCHES[(n - 1) % 12],
    "decimalFullWidth": str,
}
