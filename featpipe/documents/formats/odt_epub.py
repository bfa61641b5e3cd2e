"""OpenDocument texts (.odt) and EPUB books: zip archives of XML.

Of an .odt file the paragraphs, headings, lists and tables of ``content.xml`` are read; of a book
the chapters of the spine, in reading order, each as HTML.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, RawCell, count_of
from featpipe.documents.formats.html import decode_page, read_html
from featpipe.documents.formats.zip_xml import Container, attribute, local, text_of
from featpipe.errors import UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

_UNREAD = frozenset({"tracked-changes", "annotation", "note-citation", "sequence-decls", "forms"})


def load_odt(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an .odt file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    container = Container(data, limits)
    title = text_of(container.xml_or_none("meta.xml"), "title")
    builder = DocumentBuilder(limits, title=" ".join(title.split()))
    _blocks(container.xml("content.xml"), builder)
    return builder


def _blocks(element: Element, builder: DocumentBuilder) -> None:
    for block in element:
        name = local(block.tag)
        if name in {"p", "h"}:
            _paragraph(block, builder)
        elif name == "table":
            _table(block, builder)
        elif name not in _UNREAD:
            _blocks(block, builder)


def _paragraph(element: Element, builder: DocumentBuilder) -> None:
    level = attribute(element, "outline-level") if local(element.tag) == "h" else None
    boxes: list[Element] = []
    text = _text(element, boxes)
    for line in text.split("\v"):
        builder.add(line, level=min(int(level), 9) if level and level.isdecimal() else 0)
    for box in boxes:
        _blocks(box, builder)


def _text(element: Element, boxes: list[Element]) -> str:
    texts = [element.text or ""]
    for inner in element:
        name = local(inner.tag)
        if name in {"s", "tab"}:
            texts.append(" ")
        elif name == "line-break":
            texts.append("\v")
        elif name in {"text-box", "note-body"}:
            boxes.append(inner)
        elif name not in _UNREAD:
            texts.append(_text(inner, boxes))
        texts.append(inner.tail or "")
    return "".join(texts)


def _table(table: Element, builder: DocumentBuilder) -> None:
    rows = [list(_cells_of(row)) for row in _rows_of(table)]
    if all(len(row) <= 1 for row in rows) or any(_holds_table(c) for r in rows for _, c in r):
        for _, cell in (cell for row in rows for cell in row):
            _blocks(cell, builder)
        return
    builder.add_table([_raw(n, column, cell) for n, row in enumerate(rows) for column, cell in row])


def _raw(row: int, column: int, cell: Element) -> RawCell:
    height, width = (attribute(cell, f"number-{name}-spanned") for name in ("rows", "columns"))
    text = CELL_BREAK.join(_lines(cell))
    return RawCell(row, column, text, (), count_of(height), count_of(width))


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


def _lines(element: Element) -> Iterator[str]:
    """The lines of a cell, those of its text boxes and notes included."""
    for inner in element:
        name = local(inner.tag)
        if name in {"p", "h"}:
            boxes: list[Element] = []
            yield from _text(inner, boxes).split("\v")
            for box in boxes:
                yield from _lines(box)
        elif name not in _UNREAD:
            yield from _lines(inner)


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
