"""The numbers before paragraphs of a slide: their own, or inherited as the program inherits them.

A paragraph is numbered (buAutoNum) by itself, by its shape, by the placeholder of the layout and of
the master that the shape fills, or by the master's styles of text, the first of which that says
anything about the bullet. Source: ECMA-376 part 1, sections 19.3.1.36 and 21.1.2.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.documents.builder import count_of
from featpipe.documents.formats.docx_numbering import labelled, written
from featpipe.documents.formats.zip_xml import Container, attribute, child, drawn_text, local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from xml.etree.ElementTree import Element

TITLES = frozenset({"title", "ctrTitle"})
#: What a paragraph says about its bullet.
_BULLETS = frozenset({"buNone", "buChar", "buAutoNum", "buBlip"})
#: How kinds of numbers begin -> their names in a Word file.
_STYLES = {
    "alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman",
    "romanUc": "upperRoman", "circleNum": "decimalEnclosedCircle", "ea1Chs": "chineseCounting",
    "ea1Cht": "chineseCounting", "ea1JpnKor": "chineseCounting", "ea1JpnChs": "chineseCounting",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placeholder:
    """What a shape fills: its kind, "" for a shape of its own, and its number."""

    kind: str = ""
    index: str = "0"

    @classmethod
    def of(cls, shape: Element) -> Placeholder:
        """Of a shape of a slide, a layout or a master."""
        for inner in shape:
            if local(inner.tag).startswith("nv"):
                for mark in inner.iter():
                    if local(mark.tag) == "ph":
                        kind = attribute(mark, "type") or "obj"
                        return cls(kind, attribute(mark, "idx") or "0")
        return cls()

    def is_filled_by(self, other: Placeholder) -> bool:
        """Whether a placeholder of a layout is that of a shape on a slide."""
        kinds = {self.kind, other.kind}
        if not kinds.isdisjoint(TITLES):
            return kinds <= TITLES
        return self.index == other.index and (len(kinds) == 1 or "obj" in kinds) and "" not in kinds


@dataclass(slots=True)
class Layouts:
    """The styles of lists that layouts and masters have; each part is read once."""

    container: Container
    _read: dict[str, tuple[Element | None, str]] = field(default_factory=dict)

    def styles(self, slide: str, placeholder: Placeholder) -> list[Element]:
        """The styles of lists that a shape of a slide inherits, the nearest first."""
        if not placeholder.kind:
            return []
        layout, layout_part = self._above(slide, "slideLayout")
        master, _ = self._above(layout_part, "slideMaster")
        found = [
            style
            for root, is_master in ((layout, False), (master, True))
            for shape in _shapes_of(root)
            if _is_for(Placeholder.of(shape), placeholder, is_master=is_master)
            if (style := child(child(shape, "txBody"), "lstStyle")) is not None
        ]
        name = "titleStyle" if placeholder.kind in TITLES else "bodyStyle"
        style = child(child(master, "txStyles"), name)
        return found if style is None else [*found, style]

    def _above(self, part: str, kind: str) -> tuple[Element | None, str]:
        """The root of the layout of a slide, or of the master of a layout, and its member."""
        if part not in self._read:
            related = self.container.related(part) if part else {}
            name = next((name for word, name in related.values() if word == kind), "")
            self._read[part] = (self.container.xml_or_none(name), name)
        return self._read[part]


def _is_for(its: Placeholder, shape: Placeholder, *, is_master: bool) -> bool:
    """Whether a placeholder is the one that a shape of a slide fills; a master has one a kind."""
    if not is_master:
        return its.is_filled_by(shape)
    return its.kind == ("title" if shape.kind in TITLES else "body")


def _shapes_of(root: Element | None) -> Iterator[Element]:
    tree = child(child(root, "cSld"), "spTree")
    for shape in tree if tree is not None else ():
        if local(shape.tag) == "sp":
            yield shape


def numbered(paragraphs: Iterable[Element], inherited: Sequence[Element] = ()) -> Iterator[str]:
    """The texts of paragraphs with their numbers.

    Args:
        paragraphs: of one shape or cell.
        inherited: styles of lists that hold for it, the nearest first.
    """
    open_lists: dict[int, tuple[str, int]] = {}  # level -> kind and last number
    for paragraph in paragraphs:
        text, properties = drawn_text(paragraph), child(paragraph, "pPr")
        if not text.strip():
            yield text
            continue
        level = count_of(properties.get("lvl"), least=0) if properties is not None else 0
        open_lists = {above: one for above, one in open_lists.items() if above <= level}
        bullet = _bullet(properties, level, inherited)
        if bullet is None or local(bullet.tag) != "buAutoNum":
            open_lists.pop(level, None)
            yield text
            continue
        kind = f"{bullet.get('type')} {bullet.get('startAt')}"
        before, last = open_lists.get(level, ("", 0))
        number = last + 1 if before == kind else count_of(bullet.get("startAt"))
        open_lists[level] = kind, number
        yield labelled(_label(bullet.get("type", ""), number), text)


def _label(kind: str, number: int) -> str:
    """A number as a kind of bullet writes it, such as arabicPeriod or ea1ChsPlain."""
    style = next((word for start, word in _STYLES.items() if kind.startswith(start)), "decimal")
    text = written(number, style)
    if kind.endswith("ParenBoth"):
        return f"({text})"
    return text + (")" if kind.endswith("ParenR") else "." if kind.endswith("Period") else "")


def _bullet(properties: Element | None, level: int, inherited: Sequence[Element]) -> Element | None:
    """What is said first about the bullet of a paragraph."""
    levels = (child(style, f"lvl{level + 1}pPr") for style in inherited)
    for said in (properties, *levels):
        for inner in said if said is not None else ():
            if local(inner.tag) in _BULLETS:
                return inner
    return None
