"""The numbers that an OpenDocument text puts before items of lists and headings.

In the file they are rules, as in a Word file, and are counted likewise. Source: OpenDocument 1.3
part 3, sections 5.3 (lists), 16.30 to 16.34 (their styles) and 19.500 (formats of numbers).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.documents.formats.docx_numbering import Level, Numbering
from featpipe.documents.formats.zip_xml import attribute, local

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element

#: How a format of OpenDocument begins -> Word's name of it.
_FORMATS = {
    "1": "decimal", "１": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman",
    "I": "upperRoman", "一": "chineseCounting", "〇": "ideographDigital",
    "壹": "chineseLegalSimplified", "壱": "chineseLegalSimplified", "①": "decimalEnclosedCircle",
    "甲": "ideographTraditional", "子": "ideographZodiac", "01": "decimalZero",
}  # fmt: skip
_OUTLINE = "outline"


@dataclass(slots=True)
class OpenList:
    """A list, or one in its items: which counters it has, its style and its level (from 0)."""

    counters: str
    style: str
    level: int = 0


@dataclass(slots=True)
class ListNumbers:
    """Styles of lists and running counters.

    Attributes:
        styles: by name, the levels of each style that has numbers.
        plain: styles of paragraphs that have no number, whatever the outline says.
    """

    styles: dict[str, dict[int, Level]] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)
    _numbering: Numbering = field(default_factory=Numbering)
    _by_id: dict[str, str] = field(default_factory=dict)
    _last: dict[str, str] = field(default_factory=dict)
    _n_lists: int = 0

    @classmethod
    def read(cls, roots: Iterable[Element]) -> ListNumbers:
        """From the roots of the parts that hold styles."""
        found = cls()
        for element in (element for root in roots for element in root.iter()):
            name = local(element.tag)
            if name == "list-style":
                found.styles[attribute(element, "name") or ""] = _levels(element)
            elif name == "outline-style":
                found.styles[_OUTLINE] = _levels(element)
            elif name == "style" and attribute(element, "list-style-name") == "":
                found.plain.add(attribute(element, "name") or "")
        return found

    def open(self, element: Element, outer: OpenList | None) -> OpenList:
        """A list by its element; one in an item of another counts as its next level."""
        own = attribute(element, "style-name")
        if outer is not None:
            return OpenList(outer.counters, own or outer.style, outer.level + 1)
        style = own or ""
        counters = self._by_id.get(attribute(element, "continue-list") or "", "")
        if not counters and attribute(element, "continue-numbering") == "true":
            counters = self._last.get(style, "")
        self._n_lists += 1
        counters = counters or f"list {self._n_lists}"
        self._last[style] = self._by_id[attribute(element, "id") or counters] = counters
        return OpenList(counters, style)

    def item_label(self, item: Element, within: OpenList) -> str:
        """Count an item: what stands before its first paragraph."""
        return self._next(within, attribute(item, "start-value"))

    def heading_label(self, heading: Element, level: int) -> str:
        """Count a heading that stands in no list."""
        is_plain = attribute(heading, "style-name") in self.plain
        if is_plain or attribute(heading, "is-list-header") == "true":
            return ""
        restarts = attribute(heading, "restart-numbering") == "true"
        start = attribute(heading, "start-value") or "1" if restarts else None
        return self._next(OpenList(_OUTLINE, _OUTLINE, level - 1), start)

    def _next(self, place: OpenList, start: str | None) -> str:
        key = f"{place.counters}/{place.style}"
        levels = self.styles.get(place.style, {})
        self._numbering.lists[key] = (place.counters, levels)
        self._numbering.overridden.setdefault(key, set())
        if start and start.isdecimal():
            self._numbering.count_from(key, place.level, int(start))
        label = self._numbering.next_label(key, place.level)
        return label if place.level in levels else ""


def _levels(style: Element) -> dict[int, Level]:
    """The levels that have numbers."""
    found = {}
    for element in style:
        index, number = attribute(element, "level") or "", attribute(element, "num-format")
        if not index.isdecimal() or not number:
            continue
        n_shown = attribute(element, "display-levels") or "1"
        first = int(index) - int(n_shown) + 1 if n_shown.isdecimal() else int(index)
        shown = ".".join(f"%{level}" for level in range(max(first, 1), int(index) + 1))
        before, after = (attribute(element, f"num-{end}") or "" for end in ("prefix", "suffix"))
        start = attribute(element, "start-value") or ""
        found[int(index) - 1] = Level(
            int(start) if start.isdecimal() else 1,
            _FORMATS.get(number.split(",")[0].strip(), "decimal"),
            before + shown + after,
        )
    return found
