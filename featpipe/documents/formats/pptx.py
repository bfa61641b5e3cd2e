"""PowerPoint files (.pptx): slides as pages; shapes, groups, tables, diagrams and speaker notes.

Shapes come in their order on the slide, the title as a heading; speaker notes follow the slide they
belong to. Paragraphs have their numbers, as `pptx_numbering` tells. Slide numbers and dates that
the program fills in are left out; so are comments and charts, which is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, RawCell, count_of
from featpipe.documents.formats.pptx_numbering import TITLES, Layouts, Placeholder, numbered
from featpipe.documents.formats.zip_xml import (
    Container,
    attribute,
    child,
    children,
    drawn_text,
    local,
    relation_id,
)
from featpipe.errors import DocumentTooLarge

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

_FILLED_IN = frozenset({"sldNum", "dt", "sldImg", "hdr"})


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a .pptx file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    container = Container(data, limits)
    part = container.main_part("ppt/presentation.xml")
    slides = _slides(container, part)
    if len(slides) > limits.max_pages:
        raise DocumentTooLarge(f"{len(slides):,} slides are more than {limits.max_pages:,}")
    builder = DocumentBuilder(limits, title=container.title())
    layouts = Layouts(container)
    for number, slide in enumerate(slides, start=1):
        start = builder.length
        _Slide(container, slide, builder, layouts).read()
        builder.end_page(number, start)
    return builder


def _slides(container: Container, part: str) -> list[str]:
    """Members of the slides, in the order of the show."""
    related = container.related(part)
    listed = child(container.xml(part), "sldIdLst")
    ids = [relation_id(slide) for slide in (() if listed is None else listed)]
    return [related[i][1] for i in ids if i in related and related[i][1] in container]


class _Slide:
    """One slide with its diagrams and notes."""

    def __init__(
        self, container: Container, part: str, builder: DocumentBuilder, layouts: Layouts
    ) -> None:
        self.container = container
        self.part = part
        self.related = container.related(part)
        self.builder = builder
        self.layouts = layouts
        #: Whose layout shapes inherit from: notes have none.
        self.styled_part = part

    def read(self) -> None:
        """Add the text of the slide."""
        root = self.container.xml(self.part)
        if attribute(root, "show") in {"0", "false"}:
            self.builder.note("hidden slides are read like the others")
        self._shapes(root)
        for kind, name in self.related.values():
            if kind == "notesSlide" and name in self.container:
                self.styled_part = ""
                self._shapes(self.container.xml(name))
        for what in self.container.left_out(self.part):
            self.builder.note(what)

    def _shapes(self, root: Element) -> None:
        tree = child(child(root, "cSld"), "spTree")
        if tree is not None:
            self._group(tree)

    def _group(self, group: Element) -> None:
        for shape in group:
            name = local(shape.tag)
            if name in {"sp", "cxnSp"}:
                self._shape(shape)
            elif name == "grpSp":
                self._group(shape)
            elif name == "graphicFrame":
                self._frame(shape)
            elif name == "AlternateContent":
                chosen = child(shape, "Choice")
                fallback = child(shape, "Fallback")
                self._group(next((one for one in (chosen, fallback) if one is not None), shape))

    def _shape(self, shape: Element) -> None:
        placeholder = Placeholder.of(shape)
        kind = placeholder.kind
        body = child(shape, "txBody")
        if kind in _FILLED_IN or body is None:
            return
        own = child(body, "lstStyle")
        inherited = self.layouts.styles(self.styled_part, placeholder)
        styles = inherited if own is None else [own, *inherited]
        for line in "\v".join(numbered(children(body, "p"), styles)).split("\v"):
            self.builder.add(line, level=1 if kind in TITLES else 0)

    def _frame(self, frame: Element) -> None:
        for inner in frame.iter():
            name = local(inner.tag)
            if name == "tbl":
                self._table(inner)
            elif name == "relIds":
                self._diagram(inner)

    def _table(self, table: Element) -> None:
        cells: list[RawCell] = []
        for row, element in enumerate(children(table, "tr")):
            for column, cell in enumerate(children(element, "tc")):
                if cell.get("hMerge") in {"1", "true"} or cell.get("vMerge") in {"1", "true"}:
                    continue
                text = CELL_BREAK.join(numbered(children(child(cell, "txBody"), "p")))
                cells.append(
                    RawCell(
                        row,
                        column,
                        text,
                        (),
                        count_of(cell.get("rowSpan")),
                        count_of(cell.get("gridSpan")),
                    )
                )
        self.builder.add_table(cells)

    def _diagram(self, ids: Element) -> None:
        """SmartArt: the texts of its points, in their order."""
        _, name = self.related.get(attribute(ids, "dm") or "", ("", ""))
        root = self.container.xml_or_none(name)
        for point in root.iter() if root is not None else ():
            if local(point.tag) == "pt":
                for paragraph in point.iter():
                    if local(paragraph.tag) == "p":
                        self.builder.add(drawn_text(paragraph))
