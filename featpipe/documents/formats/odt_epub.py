"""OpenDocument texts (.odt) and EPUB books: zip archives of XML.

Of an .odt file the paragraphs, headings, lists and tables of ``content.xml`` are read with their
numbers, then heads and feet of its pages; comments and hidden text are left out, with a note, and
readings above characters (ruby) and descriptions of pictures without one. Of a book the chapters of
the spine, in reading order, each as HTML.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, RawCell, count_of
from featpipe.documents.formats.docx_numbering import labelled
from featpipe.documents.formats.html import decode_page, read_html
from featpipe.documents.formats.odt_numbering import ListNumbers, OpenList
from featpipe.documents.formats.zip_xml import (
    Container,
    attribute,
    child,
    is_page_number,
    local,
    text_of,
)
from featpipe.documents.segment import words_in
from featpipe.errors import UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

_UNREAD = words_in(
    "tracked-changes annotation note-citation sequence-decls forms ruby-text script event-listeners"
)
#: The namespace of titles and descriptions of pictures, which are not displayed.
_DESCRIBING = "svg-compatible"
#: What stands beside its paragraph; of shapes the lines that are written in them.
_BESIDE = words_in(
    """
    text-box note-body custom-shape rect line polyline polygon regular-polygon path circle ellipse
    connector caption measure g
    """
)


def load_odt(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an .odt file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    container = Container(data, limits)
    title = text_of(container.xml_or_none("meta.xml"), "title")
    builder = DocumentBuilder(limits, title=" ".join(title.split()))
    content, styles = container.xml("content.xml"), container.xml_or_none("styles.xml")
    roots = [root for root in (styles, content) if root is not None]
    text = _Text(roots, builder)
    body = child(content, "body")
    text.blocks(content if body is None else body)
    if styles is not None:
        text.heads(styles)
    return builder


class _Text:
    """One pass over an OpenDocument text."""

    def __init__(self, roots: list[Element], builder: DocumentBuilder) -> None:
        self.builder = builder
        self.numbers = ListNumbers.read(roots)
        self.hidden = set(_hidden_styles(roots))

    def blocks(self, element: Element) -> None:
        """Add the paragraphs, lists and tables of an element."""
        for block, label in self._labelled(element, None):
            if local(block.tag) == "table":
                self._table(block)
            else:
                self._paragraph(block, label)

    def heads(self, styles: Element) -> None:
        """Add the heads and feet of the pages, each text once; bare page numbers are left out."""
        seen: set[str] = set()
        for part in styles.iter():
            is_head = local(part.tag).partition("-")[0] in {"header", "footer"}
            if not is_head or attribute(part, "display") == "false":
                continue
            for line in self._lines(part):
                shown = "".join(line.split())
                if shown not in seen and not is_page_number(shown):
                    self.builder.add(line)
                seen.add(shown)

    def _labelled(self, element: Element, within: OpenList | None) -> Iterator[tuple[Element, str]]:
        """The paragraphs and tables in an element, with the number that a paragraph begins with."""
        label = ""
        if within and local(element.tag) == "list-item" and _begins_with_text(element):
            label = self.numbers.item_label(element, within)
        for block in element:
            name = local(block.tag)
            if name in {"p", "h"}:
                if name == "h" and within is None:
                    label = self.numbers.heading_label(block, _level(block))
                yield block, label
                label = ""
            elif name == "table":
                yield block, ""
            elif name == "list":
                yield from self._labelled(block, self.numbers.open(block, within))
            elif self._is_seen(block):
                yield from self._labelled(block, within)

    def _is_seen(self, element: Element) -> bool:
        name = local(element.tag)
        if name == "annotation":
            self.builder.note("comments are left out")
        is_hidden = (
            attribute(element, "display") == "none"
            or attribute(element, "is-hidden") == "true"
            or attribute(element, "style-name") in self.hidden
        )
        if is_hidden:
            self.builder.note("hidden text is left out")
        return not is_hidden and name not in _UNREAD and _DESCRIBING not in element.tag

    def _paragraph(self, element: Element, label: str) -> None:
        level = _level(element) if local(element.tag) == "h" else 0
        boxes: list[Element] = []
        text = self._text(element, boxes)
        if label and text.strip():
            text = labelled(label, text)
        for line in text.split(CELL_BREAK):
            self.builder.add(line, level=level)
        for box in boxes:
            self.blocks(box)

    def _text(self, element: Element, boxes: list[Element]) -> str:
        if not self._is_seen(element):
            return ""
        texts = [element.text or ""]
        for inner in element:
            name = local(inner.tag)
            if name in {"s", "tab"}:
                texts.append(" ")
            elif name == "line-break":
                texts.append(CELL_BREAK)
            elif name in _BESIDE:
                boxes.append(inner)
            else:
                texts.append(self._text(inner, boxes))
            texts.append(inner.tail or "")
        return "".join(texts)

    def _table(self, table: Element) -> None:
        rows = [list(_cells_of(row)) for row in _rows_of(table)]
        if all(len(row) <= 1 for row in rows) or any(_holds_table(c) for r in rows for _, c in r):
            for _, cell in (cell for row in rows for cell in row):
                self.blocks(cell)
            return
        cells = [self._raw(n, column, cell) for n, row in enumerate(rows) for column, cell in row]
        self.builder.add_table(cells)

    def _raw(self, row: int, column: int, cell: Element) -> RawCell:
        height, width = (attribute(cell, f"number-{name}-spanned") for name in ("rows", "columns"))
        text = CELL_BREAK.join(self._lines(cell))
        return RawCell(row, column, text, (), count_of(height), count_of(width))

    def _lines(self, element: Element) -> Iterator[str]:
        """The lines of a cell, those of its text boxes and notes included."""
        for block, label in self._labelled(element, None):
            boxes: list[Element] = []
            text = self._text(block, boxes)
            text = labelled(label, text) if label and text.strip() else text
            yield from text.split(CELL_BREAK)
            for box in boxes:
                yield from self._lines(box)


def _hidden_styles(roots: list[Element]) -> Iterator[str]:
    """The styles whose text is not displayed."""
    for style in (one for root in roots for one in root.iter() if local(one.tag) == "style"):
        properties = child(style, "text-properties")
        if properties is not None and attribute(properties, "display") == "none":
            yield attribute(style, "name") or ""


def _begins_with_text(item: Element) -> bool:
    """Whether an item is one of its own, and does not only hold a list of the next level."""
    return next((local(block.tag) in {"p", "h"} for block in item), False)


def _level(heading: Element) -> int:
    level = attribute(heading, "outline-level") or ""
    return min(int(level), 9) if level.isdecimal() else 0


def _rows_of(element: Element) -> Iterator[Element]:
    """The rows of a table, not those of tables in its cells."""
    for inner in element:
        name = local(inner.tag)
        if name == "table-row":
            yield inner
        elif name in {"table-header-rows", "table-rows", "table-row-group"}:
            yield from _rows_of(inner)


def _cells_of(row: Element) -> Iterator[tuple[int, Element]]:
    """The cells of a row, each with its column; covered and repeated ones count."""
    column = 0
    for cell in row:
        name = local(cell.tag)
        if name == "table-cell":
            yield column, cell
        if name in {"table-cell", "covered-table-cell"}:
            column += count_of(attribute(cell, "number-columns-repeated"))


def _holds_table(cell: Element) -> bool:
    return any(local(inner.tag) == "table" for inner in cell.iter())


def load_epub(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an EPUB book.

    Raises:
        UnreadableDocument: damaged, or locked (digital rights management).
        DocumentTooLarge: beyond one of the limits.
    """
    container = Container(data, limits)
    if "META-INF/rights.xml" in container:
        raise UnreadableDocument("a book locked by digital rights management")
    package = _package(container)
    root = container.xml(package)
    builder = DocumentBuilder(limits, title=" ".join(text_of(root, "title").split()))
    items = _items(root, posixpath.dirname(package))
    for reference in root.iter():
        if local(reference.tag) != "itemref":
            continue
        identifier = attribute(reference, "idref")
        name = items.get(identifier, "")
        if name not in container:
            builder.note(f"the chapter {name or identifier!r} is missing")
            continue
        decoded = decode_page(container.read(name))
        for doubt in decoded.notes:
            builder.note(f"{name}: {doubt}")
        read_html(decoded.text, builder)
    return builder


def _items(root: Element, folder: str) -> dict[str | None, str]:
    """By id, the parts that a package lists."""
    return {
        attribute(item, "id"): posixpath.normpath(
            posixpath.join(folder, unquote(urldefrag(attribute(item, "href") or "").url))
        )
        for item in root.iter()
        if local(item.tag) == "item"
    }


def _package(container: Container) -> str:
    for element in container.xml("META-INF/container.xml").iter():
        if local(element.tag) == "rootfile":
            return attribute(element, "full-path") or ""
    raise UnreadableDocument("damaged: an EPUB without a package")
