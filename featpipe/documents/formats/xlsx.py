"""Excel files (.xlsx, .xlsm): a sheet is a page, its name a heading, its rows a table.

Cells show what the sheet shows (dates, percentages, units, results of formulas as last saved), as
`xlsx_formats` tells. Text boxes follow the cells of their sheet. Hidden sheets, rows and columns
are read like the others, which is noted, as are comments, charts, and heads and feet of printed
pages, which are left out.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, RawCell
from featpipe.documents.formats.xlsx_formats import Formats
from featpipe.documents.formats.zip_xml import (
    Container,
    child,
    children,
    drawn_text,
    local,
    relation_id,
)
from featpipe.errors import DocumentTooLarge, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

    #: Row, column and text: no more, as a sheet may have millions.
    _Cell = tuple[int, int, str]
    #: Place -> rows and columns covered.
    _Spans = dict[tuple[int, int], tuple[int, int]]

_PLACE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_UNICODE = re.compile("_x([0-9A-Fa-f]{4})_")
_MAX_COLUMNS = 16_384
_NO_RESULT = "formulas without a stored result"
_FORMULA_HINT = "open the file in Excel or WPS and save it"
_PRINTED = frozenset(
    f"{page}{end}" for page in ("odd", "even", "first") for end in ("Header", "Footer")
)
#: Codes of a head or foot, such as &C, &P or &"font"; with page, date or file in their place.
_PRINT_CODE = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|\d+|.)|[第页共，,/\s-]|Page|of', re.DOTALL)


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an .xlsx file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    container = Container(data, limits)
    return _Workbook(container, limits).read()


class _Workbook:
    """One pass over the sheets."""

    def __init__(self, container: Container, limits: LoadLimits) -> None:
        self.container = container
        self.limits = limits
        self.builder = DocumentBuilder(limits, title=container.title())
        self.part = part = container.main_part("xl/workbook.xml")
        self.root = container.xml(part)
        self.related = container.related(part)
        parts = {kind: name for kind, name in self.related.values() if kind != "worksheet"}
        self.texts = list(_shared_texts(container, parts.get("sharedStrings", "")))
        properties = child(self.root, "workbookPr")
        is_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        self.formats = Formats(container.xml_or_none(parts.get("styles", "")), is_1904=is_1904)
        self.n_cells = 0
        #: Formulas without a stored result.
        self.n_unknown = 0

    def read(self) -> DocumentBuilder:
        """The text of all sheets."""
        sheets = list(children(child(self.root, "sheets"), "sheet"))
        if len(sheets) > self.limits.max_pages:
            raise DocumentTooLarge(f"more than {self.limits.max_pages:,} sheets")
        for number, sheet in enumerate(sheets, start=1):
            kind, name = self.related.get(relation_id(sheet), ("", ""))
            if kind == "worksheet" and name in self.container:
                self._read_sheet(number, sheet, name)
        for what in self.container.left_out(self.part):
            self.builder.note(what)
        if self.n_unknown:
            self.builder.note(f"{_NO_RESULT} are left out: {self.n_unknown:,}; {_FORMULA_HINT}")
        return self.builder

    def _read_sheet(self, number: int, sheet: Element, name: str) -> None:
        if sheet.get("state", "visible") != "visible":
            self.builder.note("hidden sheets are read like the others")
        start = self.builder.length
        cells, spans = self._cells(name)
        boxes = list(self._boxes(name))
        if cells or boxes:
            self.builder.add(sheet.get("name", ""), level=1)
            self.builder.add_table(_raw(cell, spans) for cell in cells)
        for line in boxes:
            self.builder.add(line)
        for what in self.container.left_out(name):
            self.builder.note(what)
        self.builder.end_page(number, start)

    def _boxes(self, sheet: str) -> Iterator[str]:
        """The lines of the text boxes and shapes that are drawn on a sheet."""
        for kind, name in self.container.related(sheet).values():
            root = self.container.xml_or_none(name) if kind == "drawing" else None
            for paragraph in _paragraphs(root) if root is not None else ():
                yield from filter(str.strip, drawn_text(paragraph).split("\v"))
            if kind == "drawing":
                for what in self.container.left_out(name):
                    self.builder.note(what)

    def _cells(self, name: str) -> tuple[list[_Cell], _Spans]:
        """The cells of a sheet that hold something, read as a stream, and those that are merged."""
        cells: list[_Cell] = []
        spans: _Spans = {}
        try:
            self._parse(io.BytesIO(self.container.safe_xml(name)), cells, spans)
        except ET.ParseError as error:
            raise UnreadableDocument(f"damaged: part {name!r} ({error})") from error
        return cells, spans

    def _parse(self, source: io.BytesIO, cells: list[_Cell], spans: _Spans) -> None:
        row, hidden = -1, False
        for _, element in ET.iterparse(source):  # noqa: S314 - entities are refused
            tag = local(element.tag)
            if tag in {"row", "col"}:
                hidden |= element.get("hidden") in {"1", "true"}
            if tag == "row":
                row = _row_number(element, row)
                self._add_row(element, row, cells)
                element.clear()
            elif tag in _PRINTED and _PRINT_CODE.sub("", element.text or "").strip():
                self.builder.note("heads and feet of printed pages are left out")
            elif tag == "mergeCell":
                spans.update(_merged(element.get("ref", "")))
        if hidden:
            self.builder.note("hidden rows and columns are read like the others")

    def _add_row(self, element: Element, row: int, cells: list[_Cell]) -> None:
        column = -1
        for cell in element:
            if local(cell.tag) != "c":
                continue
            match = _PLACE.match(cell.get("r", ""))
            column = _column_number(match[1]) if match else column + 1
            text = self._text(cell)
            if "\n" in text:
                text = CELL_BREAK.join(text.splitlines())
            if not text and cell.get("t") != "str":  # a text may be the result, and empty
                self.n_unknown += child(cell, "f") is not None
            if text:
                cells.append((row, column, text))
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


def _paragraphs(drawing: Element) -> Iterator[Element]:
    """The paragraphs of a drawing, without those for programs that cannot show it."""
    for inner in drawing:
        name = local(inner.tag)
        if name == "p":
            yield inner
        elif name != "Fallback":
            yield from _paragraphs(inner)


def _shared_texts(container: Container, name: str) -> Iterator[str]:
    root = container.xml_or_none(name)
    for entry in root if root is not None else ():
        yield _rich_text(entry)


def _rich_text(element: Element) -> str:
    """The runs of a text, without phonetic hints (rPh)."""
    texts: list[str] = []
    for inner in element:
        name = local(inner.tag)
        if name == "t":
            texts.append(inner.text or "")
        elif name == "r":
            texts.extend(t.text or "" for t in children(inner, "t"))
    return _unescaped("".join(texts))


def _unescaped(text: str) -> str:
    """Replace ``_x000D_`` and the like, which stand for characters that XML cannot hold."""
    return _UNICODE.sub(lambda m: chr(int(m[1], 16)), text) if "_x" in text else text


def _row_number(element: Element, previous: int) -> int:
    number = element.get("r", "")
    return int(number) - 1 if number.isdecimal() and int(number) else previous + 1


@lru_cache(maxsize=_MAX_COLUMNS)
def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return min(number, _MAX_COLUMNS) - 1


def _merged(reference: str) -> _Spans:
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


def _raw(cell: _Cell, spans: _Spans) -> RawCell:
    row, column, text = cell
    rows, columns = spans.get((row, column), (1, 1))
    return RawCell(row, column, text, (), rows, columns)
