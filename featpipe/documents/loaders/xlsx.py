"""Excel files (.xlsx, .xlsm): a sheet is a page, its name a heading, its rows a table.

Cells show what the sheet shows (dates, percentages, results of formulas as last saved). Sheets that
are hidden are read like the others, which is noted.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from featpipe.documents.draft import Draft, RawCell
from featpipe.documents.loaders.container import (
    Container,
    child,
    children,
    local,
)
from featpipe.documents.loaders.xlsx_formats import Formats
from featpipe.errors import DocumentTooLarge, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

_PLACE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_UNICODE = re.compile("_x([0-9A-Fa-f]{4})_")
_MAX_COLUMNS = 16_384


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:  # noqa: ARG001
    """Read an .xlsx file.

    Raises:
        UnreadableDocument: damaged, or locked by a password.
        DocumentTooLarge: beyond one of the limits.
    """
    container = Container(data, limits)
    return _Workbook(container, limits).read()


class _Workbook:
    """One pass over the sheets."""

    def __init__(self, container: Container, limits: LoadLimits) -> None:
        self.container = container
        self.limits = limits
        self.draft = Draft(limits, title=container.title())
        part = container.main_part("xl/workbook.xml")
        self.root = container.xml(part)
        self.related = container.related(part)
        parts = {kind: name for kind, name in self.related.values() if kind != "worksheet"}
        self.texts = list(_shared_texts(container, parts.get("sharedStrings", "")))
        properties = child(self.root, "workbookPr")
        is_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        self.formats = Formats(container.xml_or_none(parts.get("styles", "")), is_1904=is_1904)
        self.n_cells = 0

    def read(self) -> Draft:
        """The text of all sheets."""
        listed = child(self.root, "sheets")
        sheets = list(children(listed, "sheet")) if listed is not None else []
        if len(sheets) > self.limits.max_pages:
            raise DocumentTooLarge(f"more than {self.limits.max_pages:,} sheets")
        for number, sheet in enumerate(sheets, start=1):
            kind, name = self.related.get(_relation_id(sheet), ("", ""))
            if kind != "worksheet" or name not in self.container:
                continue
            if sheet.get("state", "visible") != "visible":
                self.draft.note("hidden sheets are read like the others")
            start = self.draft.length
            cells = self._cells(name)
            if any(cell.text for cell in cells):
                self.draft.add(sheet.get("name", ""), level=1)
                self.draft.add_table(cells)
            self.draft.end_page(number, start)
        return self.draft

    def _cells(self, name: str) -> list[RawCell]:
        """The cells of a sheet that hold something, read as a stream: a sheet can be large."""
        cells: list[RawCell] = []
        spans: dict[tuple[int, int], tuple[int, int]] = {}
        row = -1
        source = io.BytesIO(self.container.safe_xml(name))
        try:
            for _, element in ET.iterparse(source):  # noqa: S314 - entities are refused
                tag = local(element.tag)
                if tag == "row":
                    row = _row_number(element, row)
                    self._add_row(element, row, cells)
                    element.clear()
                elif tag == "mergeCell":
                    spans.update(_merged(element.get("ref", "")))
        except ET.ParseError as error:
            raise UnreadableDocument(f"damaged: part {name!r} ({error})") from error
        return [_widened(cell, spans) for cell in cells] if spans else cells

    def _add_row(self, element: Element, row: int, cells: list[RawCell]) -> None:
        column = -1
        for cell in element:
            if local(cell.tag) != "c":
                continue
            match = _PLACE.match(cell.get("r", ""))
            column = _column_number(match[1]) if match else column + 1
            text = self._text(cell)
            if text:
                cells.append(RawCell(row, column, text))
                self.n_cells += 1
        if self.n_cells > self.limits.max_cells:
            raise DocumentTooLarge(f"more than {self.limits.max_cells:,} cells")

    def _text(self, cell: Element) -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            inline = child(cell, "is")
            return _rich_text(inline) if inline is not None else ""
        value = child(cell, "v")
        raw = (value.text or "") if value is not None else ""
        if kind == "s":
            return self.texts[int(raw)] if raw.isdecimal() and int(raw) < len(self.texts) else ""
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(raw, raw)
        if kind == "n" and raw:
            style = cell.get("s", "0")
            return self.formats.written(raw, int(style) if style.isdecimal() else 0)
        return _unescaped(raw)


def _relation_id(element: Element) -> str:
    for key, value in element.attrib.items():
        if key.startswith("{") and key.endswith("}id"):
            return value
    return ""


def _shared_texts(container: Container, name: str) -> Iterator[str]:
    root = container.xml_or_none(name)
    for entry in root if root is not None else ():
        yield _rich_text(entry)


def _rich_text(element: Element) -> str:
    """The runs of a text; phonetic hints (rPh) are no part of it."""
    texts: list[str] = []
    for inner in element:
        name = local(inner.tag)
        if name == "t":
            texts.append(inner.text or "")
        elif name == "r":
            texts.extend(t.text or "" for t in children(inner, "t"))
    return _unescaped("".join(texts))


def _unescaped(text: str) -> str:
    """``_x000D_`` is how a sheet writes a character that XML cannot hold."""
    return _UNICODE.sub(lambda m: chr(int(m[1], 16)), text) if "_x" in text else text


def _row_number(element: Element, previous: int) -> int:
    number = element.get("r", "")
    return int(number) - 1 if number.isdecimal() and int(number) else previous + 1


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return min(number, _MAX_COLUMNS) - 1


def _merged(reference: str) -> dict[tuple[int, int], tuple[int, int]]:
    """``A1:B3`` -> {(0, 0): (3, 2)}: place -> rows and columns covered."""
    places = [
        (int(m[2]) - 1, _column_number(m[1]))
        for m in map(_PLACE.fullmatch, reference.split(":"))
        if m
    ]
    if len(places) != 2:
        return {}
    (top, left), (bottom, right) = places
    return {(top, left): (bottom - top + 1, right - left + 1)}


def _widened(cell: RawCell, spans: dict[tuple[int, int], tuple[int, int]]) -> RawCell:
    rows, columns = spans.get((cell.row, cell.column), (1, 1))
    return RawCell(cell.row, cell.column, cell.text, (), rows, columns)
