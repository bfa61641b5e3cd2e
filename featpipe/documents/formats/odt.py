"""OpenDocument texts (.odt): paragraphs, headings, lists and tables of ``content.xml``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.documents.builder import Draft, RawCell
from featpipe.documents.formats.zip_xml import Container, attribute, children, local, text_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

_UNREAD = frozenset({"tracked-changes", "annotation", "note-citation", "sequence-decls", "forms"})


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:  # noqa: ARG001
    """Read an .odt file.

    Raises:
        UnreadableDocument: damaged, or locked by a password.
        DocumentTooLarge: beyond one of the limits.
    """
    container = Container(data, limits)
    meta = container.xml_or_none("meta.xml")
    title = " ".join(text_of(meta, "title").split()) if meta is not None else ""
    draft = Draft(limits, title=title)
    _blocks(container.xml("content.xml"), draft)
    return draft


def _blocks(element: Element, draft: Draft) -> None:
    for block in element:
        name = local(block.tag)
        if name in {"p", "h"}:
            _paragraph(block, draft)
        elif name == "table":
            _table(block, draft)
        elif name not in _UNREAD:
            _blocks(block, draft)


def _paragraph(element: Element, draft: Draft) -> None:
    level = attribute(element, "outline-level") if local(element.tag) == "h" else None
    boxes: list[Element] = []
    text = _text(element, boxes)
    for line in text.split("\v"):
        draft.add(line, level=min(int(level), 9) if level and level.isdecimal() else 0)
    for box in boxes:
        _blocks(box, draft)


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


def _table(table: Element, draft: Draft) -> None:
    rows = [element for element in table.iter() if local(element.tag) == "table-row"]
    cells: list[RawCell] = []
    for row, element in enumerate(rows):
        for column, cell in enumerate(children(element, "table-cell")):
            paragraphs = [p for p in cell.iter() if local(p.tag) in {"p", "h"}]
            text = "\n".join(_text(p, []).replace("\v", "\n") for p in paragraphs)
            cells.append(RawCell(row, column, text))
    if all(cell.column == 0 for cell in cells):
        for only in cells:
            draft.add(only.text)
    else:
        draft.add_table(cells)
