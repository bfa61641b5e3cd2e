"""Word documents (.docx): paragraphs with their clause numbers, tables, text boxes, notes.

Read from the package's XML directly: the usual library leaves numbers, text boxes and content
controls out. Order: the body as it stands, a text box after the paragraph that holds it; then
footnotes and endnotes; then heads and feet, each text once. Deleted text (tracked changes), hidden
text, prompts of empty content controls, comments and field codes are no text of the document, and
a paragraph of nothing else has no number; comments, prompts and hidden text are noted, as are
charts, diagrams and embedded files, which are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, RawCell, count_of
from featpipe.documents.formats.docx_fields import OpenField, form_field
from featpipe.documents.formats.docx_numbering import Numbering, labelled
from featpipe.documents.formats.symbol_fonts import describe, read_in, sign_of
from featpipe.documents.formats.zip_xml import (
    Container,
    attribute,
    child,
    children,
    is_on,
    is_page_number,
    local,
    value_of,
)
from featpipe.documents.segment import words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

#: Elements whose content is text of the paragraph.
_TRANSPARENT = frozenset(
    {"hyperlink", "smartTag", "sdt", "sdtContent", "ins", "moveTo", "fldSimple", "customXml", "dir"}
    | {"bdo", "ruby", "rubyBase", "AlternateContent", "Choice", "oMath", "oMathPara"}
)
#: Those of a formula, such as the two parts of a fraction.
_FORMULA = words_in(
    """
    acc bar borderBox box d deg den e eqArr f fName func groupChr lim limLow limUpp m mr nary num
    phant rad sPre sSub sSubSup sSup sub sup
    """
)
_SIGNS = {"tab": " ", "noBreakHyphen": "-", "ptab": " ", "cr": "\v"}
#: A line break inside a paragraph, while its text is put together.
_BREAK = "\v"
#: What Word shows in an empty content control, whatever its style.
_PROMPT = re.compile(
    r"(?:[单點点]击|單擊|點擊|按一下).{0,12}[输輸]入.{0,12}|[选選][择擇]一[项項].?"
    r"|Click (?:here|or tap).{0,40}|Choose an item\.?"
)
_HEX = re.compile("[0-9A-Fa-f]{1,6}")


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a .docx file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    container = Container(data, limits)
    part = container.main_part("word/document.xml")
    related = container.related(part)
    builder = DocumentBuilder(limits, title=container.title())
    _Word(container, related, builder).read(container.xml(part))
    for what in container.left_out(part):
        builder.note(what)
    return builder


@dataclass(slots=True)
class _Style:
    """What a style says of its paragraphs or characters, inherited or not.

    Attributes:
        level: of a heading.
        number: list and level.
        is_hidden: None where it says nothing.
    """

    level: int = 0
    number: tuple[str, int] | None = None
    is_hidden: bool | None = None


@dataclass(slots=True)
class _Paragraph:
    text: str
    level: int = 0
    boxes: list[Element] = field(default_factory=list)


class _Place(NamedTuple):
    """A cell in its column of the grid."""

    column: int
    width: int
    cell: Element


class _Word:
    """One pass over a Word document."""

    def __init__(
        self, container: Container, related: dict[str, tuple[str, str]], builder: DocumentBuilder
    ) -> None:
        self.builder = builder
        self.parts: dict[str, list[str]] = {}
        for kind, name in related.values():
            self.parts.setdefault(kind, []).append(name)
        self.container = container
        #: Signs that are left out, by their font.
        self.lost: Counter[str] = Counter()
        styles = self._root("styles")
        self.numbering = Numbering.read(self._root("numbering"))
        self.styles = _read_styles(styles, self.numbering)
        self.may_hide = any(style.is_hidden for style in self.styles.values())
        #: Of the open paragraph.
        self.style = _Style()
        self.fields: list[OpenField] = []
        self.prompt_styles = {
            attribute(style, "styleId")
            for style in children(styles, "style")
            if (value_of(style, "name") or "").lower() == "placeholder text"
        }

    def _root(self, kind: str) -> Element | None:
        names = self.parts.get(kind, [])
        return self.container.xml_or_none(names[0]) if names else None

    def read(self, document: Element) -> None:
        """Add the text of the document."""
        self._blank_prompts(document)
        body = child(document, "body")
        self._blocks(body if body is not None else document)
        for kind in ("footnotes", "endnotes"):
            root = self._root(kind)
            self._blank_prompts(root)
            for note in root if root is not None else ():
                if attribute(note, "type") in {None, "normal"}:
                    self._blocks(note)
        self._heads()
        for lost in describe(self.lost):
            self.builder.note(lost)
        if self.parts.get("diagramData"):
            self.builder.note("diagrams are left out")

    def _blank_prompts(self, root: Element | None) -> None:
        """Take the text from content controls that show a prompt (showingPlcHdr) and no value.

        Programs that fill a control may leave its mark: a text in another style is a value.
        """
        space = root.tag.rpartition("}")[0] + "}" if root is not None else ""
        for control in root.iter(f"{space}sdt") if root is not None else ():
            content = child(control, "sdtContent")
            if content is None or not is_on(child(control, "sdtPr"), "showingPlcHdr"):
                continue
            shown = "".join(text.text or "" for text in content.iter(f"{space}t"))
            for run in content.iter(f"{space}r"):
                style = value_of(child(run, "rPr"), "rStyle")
                if style in self.prompt_styles or _PROMPT.fullmatch(shown.strip()):
                    self.builder.note("prompts of empty content controls are left out")
                    for text in run.iter(f"{space}t"):
                        text.text = ""

    def _heads(self) -> None:
        seen: set[str] = set()
        for kind in ("header", "footer"):
            for name in sorted(self.parts.get(kind, [])):
                root = self.container.xml_or_none(name)
                self._blank_prompts(root)
                for paragraph in root.iter() if root is not None else ():
                    if local(paragraph.tag) != "p":
                        continue
                    text = self._paragraph(paragraph).text
                    shown = "".join(text.split())
                    if shown not in seen and not is_page_number(shown):
                        self.builder.add(text)
                    seen.add(shown)

    def _blocks(self, element: Element) -> None:
        for block in element:
            name = local(block.tag)
            if name == "p":
                self._add(self._paragraph(block))
            elif name == "tbl":
                self._table(block)
            elif name in {"sdt", "sdtContent", "ins", "moveTo", "customXml", "body"}:
                self._blocks(block)
            elif name == "AlternateContent":
                self._blocks(_chosen(block))

    def _add(self, paragraph: _Paragraph) -> None:
        for line in paragraph.text.split(_BREAK):
            self.builder.add(line, level=paragraph.level)
        for box in paragraph.boxes:
            self._blocks(box)

    def _paragraph(self, element: Element) -> _Paragraph:
        properties = child(element, "pPr")
        self.style = style = self._style(properties)
        self.fields.clear()
        found = _Paragraph("", style.level)
        texts: list[str] = []
        self._inline(element, texts, found.boxes)
        found.text = "".join(texts)
        number = _number_of(properties, style)
        is_shown = found.text.strip() or not (found.boxes or self._is_gone(properties))
        if number and is_shown:
            label = self.numbering.next_label(*number)
            if label and found.text.strip():
                found.text = labelled(label, found.text)
        return found

    def _is_gone(self, properties: Element | None) -> bool:
        """Whether the end of a paragraph was deleted or moved away, or is hidden."""
        end = child(properties, "rPr")
        is_deleted = any(child(end, name) is not None for name in ("del", "moveFrom"))
        return is_deleted or self._is_hidden(end)

    def _is_hidden(self, properties: Element | None) -> bool:
        """Whether a run is not displayed, by its properties, its style or that of its paragraph."""
        own = _vanishes(properties)
        if own is None and self.may_hide:
            own = self.styles.get(value_of(properties, "rStyle") or "", self.style).is_hidden
            own = self.style.is_hidden if own is None else own
        return bool(own)

    def _style(self, properties: Element | None) -> _Style:
        style = self.styles.get(value_of(properties, "pStyle") or "", _Style())
        value = value_of(properties, "outlineLvl")
        if value and value.isdecimal() and int(value) < 9:
            return replace(style, level=int(value) + 1)
        return style

    def _inline(self, element: Element, texts: list[str], boxes: list[Element]) -> None:
        for inner in element:
            name = local(inner.tag)
            if name == "r":
                if self._is_hidden(child(inner, "rPr")):
                    self.builder.note("hidden text is left out")
                else:
                    self._run(inner, texts, boxes)
            elif name == "AlternateContent":
                self._inline(_chosen(inner), texts, boxes)
            elif name in _TRANSPARENT or name in _FORMULA:
                if name == "den":
                    texts.append("/")
                self._inline(inner, texts, boxes)
            elif name == "t":  # mathematics: m:r/m:t
                texts.append(inner.text or "")

    def _run(self, run: Element, texts: list[str], boxes: list[Element]) -> None:
        font = _font(run)
        for inner in run:
            name = local(inner.tag)
            if name in {"t", "sym"} or name in _SIGNS:
                texts.append(self._piece(inner, name, font))
            elif name == "fldChar":
                self._field_mark(inner, texts)
            elif name == "instrText" and self.fields:
                self.fields[-1].add(inner.text or "")
            elif name == "br":
                texts.append(_BREAK if attribute(inner, "type") in {None, "textWrapping"} else " ")
            elif name == "AlternateContent":
                self._run(_chosen(inner), texts, boxes)
            elif name in {"drawing", "pict", "object"}:
                boxes.extend(_text_boxes(inner))
            elif name == "ruby":
                self._inline(inner, texts, boxes)

    def _piece(self, element: Element, name: str, font: str) -> str:
        if name == "t":
            return read_in(font, element.text or "")
        return self._symbol(element) if name == "sym" else _SIGNS[name]

    def _field_mark(self, mark: Element, texts: list[str]) -> None:
        """A mark of a field: its code goes, with the fields that stand in it; its result stays."""
        kind = attribute(mark, "fldCharType")
        if kind == "begin":
            texts.append(form_field(child(mark, "ffData")))
            self.fields.append(OpenField(len(texts)))
        elif kind in {"separate", "end"} and self.fields:
            field = self.fields[-1]
            if field.is_code:
                texts[field.start :] = [field.shown()]
                field.is_code = False
            if kind == "end":
                self.fields.pop()

    def _symbol(self, element: Element) -> str:
        font, code = attribute(element, "font") or "", attribute(element, "char") or ""
        sign = sign_of(font, int(code, 16)) if _HEX.fullmatch(code) else ""
        if not sign:
            self.lost[font] += 1
        return sign

    def _table(self, table: Element) -> None:
        rows = [_placed(row) for row in _inner(table, "tr")]
        cells = [place.cell for row in rows for place in row]
        if all(len(row) <= 1 for row in rows) or any(_holds_table(cell) for cell in cells):
            for cell in cells:
                self._blocks(cell)
            return
        self.builder.add_table(list(self._cells(rows, _continued(rows))))

    def _cells(
        self, rows: list[list[_Place]], continued: set[tuple[int, int]]
    ) -> Iterator[RawCell]:
        """The cells of a table; a vertical merge is its first cell."""
        for row, places in enumerate(rows):
            for column, width, cell in places:
                if (row, column) not in continued:
                    height = next(n for n in count(1) if (row + n, column) not in continued)
                    yield RawCell(row, column, self._cell_text(cell), (), height, width)

    def _cell_text(self, cell: Element) -> str:
        return CELL_BREAK.join(line for line in self._lines(cell) if line.strip())

    def _lines(self, element: Element) -> Iterable[str]:
        """The lines of a cell, those of its text boxes included."""
        for block in element:
            name = local(block.tag)
            if name == "p":
                paragraph = self._paragraph(block)
                yield from paragraph.text.split(_BREAK)
                for box in paragraph.boxes:
                    yield from self._lines(box)
            elif name == "AlternateContent":
                yield from self._lines(_chosen(block))
            elif name in {"sdt", "sdtContent", "ins", "moveTo", "customXml"}:
                yield from self._lines(block)


def _placed(row: Element) -> list[_Place]:
    """The cells of a row in their columns; the first may stand in from the edge of the table."""
    column = count_of(value_of(child(row, "trPr"), "gridBefore"), least=0)
    places = []
    for cell in _inner(row, "tc"):
        width = count_of(value_of(child(cell, "tcPr"), "gridSpan"))
        places.append(_Place(column, width, cell))
        column += width
    return places


def _continued(rows: list[list[_Place]]) -> set[tuple[int, int]]:
    """Rows and columns of the cells that go on with the cell above, in a vertical merge.

    A cell that says so below one that is not merged begins a merge.
    """
    merged: set[tuple[int, int]] = set()
    continued: set[tuple[int, int]] = set()
    for row, places in enumerate(rows):
        for column, _, cell in places:
            merge = child(child(cell, "tcPr"), "vMerge")
            if merge is None:
                continue
            merged.add((row, column))
            if attribute(merge, "val") != "restart" and (row - 1, column) in merged:
                continued.add((row, column))
    return continued


def _chosen(alternatives: Element) -> Element:
    """The first choice of ``mc:AlternateContent``, or its fallback."""
    for name in ("Choice", "Fallback"):
        found = child(alternatives, name)
        if found is not None:
            return found
    return alternatives


def _text_boxes(element: Element) -> Iterable[Element]:
    """The outermost text boxes in a drawing."""
    for inner in element:
        name = local(inner.tag)
        if name == "txbxContent":
            yield inner
        elif name == "AlternateContent":
            yield from _text_boxes(_chosen(inner))
        else:
            yield from _text_boxes(inner)


def _inner(element: Element, name: str) -> Iterable[Element]:
    """Rows of a table and cells of a row, also those in content controls."""
    for inner in element:
        if local(inner.tag) == name:
            yield inner
        elif local(inner.tag) in {"sdt", "sdtContent", "ins", "customXml"}:
            yield from _inner(inner, name)


def _holds_table(cell: Element) -> bool:
    return any(local(inner.tag) == "tbl" for inner in cell.iter())


def _font(run: Element) -> str:
    """The font of a run's letters, where the run names one."""
    fonts = child(child(run, "rPr"), "rFonts")
    return attribute(fonts, "ascii") or "" if fonts is not None else ""


def _vanishes(properties: Element | None) -> bool | None:
    """Whether properties hide their text; None where they say nothing of it."""
    return None if child(properties, "vanish") is None else is_on(properties, "vanish")


def _number_of(properties: Element | None, style: _Style) -> tuple[str, int] | None:
    own = child(properties, "numPr")
    if own is None:
        return style.number
    inherited = style.number or ("", 0)
    name, index = value_of(own, "numId") or inherited[0], value_of(own, "ilvl")
    if name in {"", "0"}:
        return None
    return name, int(index) if index and index.isdecimal() else inherited[1]


def _read_styles(root: Element | None, numbering: Numbering) -> dict[str, _Style]:
    elements = {attribute(style, "styleId") or "": style for style in children(root, "style")}
    return {name: _style_of(name, elements, numbering) for name in elements}


def _style_of(name: str, elements: dict[str, Element], numbering: Numbering) -> _Style:
    found = _Style()
    seen: set[str] = set()
    while name in elements and name not in seen:
        seen.add(name)
        element = elements[name]
        properties = child(element, "pPr")
        found.level = found.level or _heading_level(element, properties)
        found.number = found.number or numbering.linked(_number_of(properties, _Style()), name)
        if found.is_hidden is None:
            found.is_hidden = _vanishes(child(element, "rPr"))
        name = value_of(element, "basedOn") or ""
    return found


def _heading_level(style: Element, properties: Element | None) -> int:
    value = value_of(properties, "outlineLvl")
    if value and value.isdecimal():
        return int(value) + 1 if int(value) < 9 else 0
    title = (value_of(style, "name") or "").lower()
    if title == "title":
        return 1
    last = title.removeprefix("heading ").strip()
    return int(last) if title.startswith("heading ") and last in set("123456789") else 0
