"""HTML pages: blocks become paragraphs, tables become rows, entities characters.

Guarantees: text comes out in the order of the source; inline elements join as a browser joins
them; blocks, line breaks and cells divide it; every character can be traced to the source. No tree
is built: only the ends of blocks matter, so broken nesting (most of the web) costs nothing.

One pass of one regular expression finds all tags; what lies between two is text. A megabyte of
embedded images is a single step. Comments, scripts and the like are matched whole, so nothing in
them is taken for a tag. Every quantifier that could be retried is possessive: the time is linear in
the source, whatever it holds.

Announcement pages made from PDF (``<div type="paragraph" title="一、概况">``) keep their
headings in attributes only; these become paragraphs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING

from featpipe.documents.builder import DocumentBuilder, Pieces, RawCell, count_of
from featpipe.documents.decode import decode
from featpipe.documents.segment import words_in

if TYPE_CHECKING:
    from featpipe.documents.limits import LoadLimits

#: Elements whose content is not shown as text of the page.
_UNSEEN = "script|style|template|noscript|iframe|noframes|object|svg|canvas|audio|video|datalist"
#: A quote opens a value only after an equals sign; one that never closes is an ordinary character.
_ATTRIBUTE_LIST = r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+"""

_TOKEN = re.compile(
    rf"""
    <(?:
      !--(?:-?>|.*?(?:--!?>|\Z))                                    # a comment
    | (?P<unseen>{_UNSEEN})(?=[\s/>]){_ATTRIBUTE_LIST}
      (?:(?<=/)>|>.*?(?:</(?P=unseen)\s*+>|\Z)|\Z)                  # ... with all it holds
    | (?P<close>/?)(?P<name>[a-z][^\s/>]*+)
      (?P<attributes>{_ATTRIBUTE_LIST})(?:>|\Z)                         # a tag
    | !\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    | !doctype[^>\[]*+\[(?:\s*+<![^>]*+>){{0,99}}+\s*+\]\s*+>           # with declarations in it
    | [!?/][^>]*+(?:>|\Z)                                           # doctype, instruction, bogus
    )
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
#: Numbers of the groups: by number they are found twice as fast as by name.
_CLOSE, _NAME, _ATTRIBUTES, _CDATA = (
    _TOKEN.groupindex[name] for name in ("close", "name", "attributes", "cdata")
)
_ATTRIBUTE = re.compile(
    r"""([^\s"'>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""", re.DOTALL
)
_ENTITY = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*;?)")

_BLOCKS = words_in(
    """
    address article aside blockquote body br caption center dd details dialog dir div dl dt
    fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend
    li main menu nav ol optgroup option p pre section select summary table tbody td tfoot th thead
    title tr ul head textarea button
    """
)
_MAX_NESTED = 32
_TABLE_TAGS = frozenset({"table", "tr", "td", "th"})
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_DECLARED = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,200}encoding=["']([\w.:-]+)""",
    re.IGNORECASE,
)
_SECTION_TYPE = re.compile(r"""\stype=["'](pdf|paragraph)["']""")
_SECTION_TITLE = re.compile(r'\stitle="([^"]*)"')
_SECTION_LEVEL = {"pdf": 1, "paragraph": 2}


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an HTML page, as a :class:`~featpipe.documents.load.LoadFunction`."""
    match = _DECLARED.search(data[:4096])
    declared = (match[1] or match[2]).decode("ascii", "replace") if match else None
    decoded = decode(data, declared)
    builder = DocumentBuilder.for_text(decoded, limits, is_traced=is_traced)
    read_html(decoded.text, builder)
    return builder


def read_html(source: str, builder: DocumentBuilder) -> None:
    """Add the text of an HTML source to a builder."""
    _Page(builder).read(source)


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    pieces: Pieces
    level: int = 0


@dataclass(slots=True)
class _OpenTable:
    """An open table; text before its first cell is its caption."""

    rows: list[list[_OpenCell]] = field(default_factory=list)
    caption: list[_Block | _OpenTable] = field(default_factory=list)

    def sink(self) -> list[_Block | _OpenTable]:
        """The list that text at this point is added to."""
        return self.rows[-1][-1].blocks if self.rows and self.rows[-1] else self.caption

    def is_layout(self) -> bool:
        """Whether it is page layout: it has one column, or tables and prose in cells."""
        if all(len(row) <= 1 for row in self.rows):
            return True
        return any(cell.holds_prose() for row in self.rows for cell in row)


@dataclass(slots=True)
class _OpenCell:
    row_span: int
    column_span: int
    blocks: list[_Block | _OpenTable] = field(default_factory=list)

    def holds_prose(self) -> bool:
        n_characters = 0
        for block in self.blocks:
            if isinstance(block, _OpenTable):
                return True
            n_characters += len(block.text)
        return len(self.blocks) > 3 and n_characters > 600


class _Page:
    """One pass over the tokens of a page."""

    def __init__(self, builder: DocumentBuilder) -> None:
        self.builder = builder
        self.is_traced = builder.is_traced
        self.texts: list[str] = []  # the block under construction
        self.pieces: list[tuple[int, int, int]] = []
        self.level = 0
        self.tables: list[_OpenTable] = []
        self.is_title = False
        self.n_pre = 0
        self.n_flattened = 0  # open tables that are too deep to be kept apart

    def read(self, source: str) -> None:
        at = 0
        texts = self.texts
        for match in _TOKEN.finditer(source):
            start, end = match.span()
            if start > at:
                text = source[at:start]
                if texts or not text.isspace():  # blanks before a block's first word are dropped
                    self._text(text, at)
            at = end
            name = match[_NAME]
            if name is None:
                if match[_CDATA]:
                    self._text(match[_CDATA], match.start(_CDATA))
            elif (name := name.lower()) in _BLOCKS:
                self._block_tag(name, match)
        if at < len(source):
            self._text(source[at:], at)
        self._end_block()
        while self.tables:
            self._end_table()

    def _text(self, raw: str, at: int) -> None:
        if self.n_pre and "\n" in raw:
            self._preformatted(raw, at)
        elif "&" not in raw:
            self.texts.append(raw)
            if self.is_traced:
                self.pieces.append((len(raw), at, at + len(raw)))
        elif self.is_traced:
            text, pieces = unescaped(raw, at)
            self.texts.append(text)
            self.pieces += pieces
        else:
            self.texts.append(unescape(raw))

    def _preformatted(self, raw: str, at: int) -> None:
        lines = raw.split("\n")
        for i, line in enumerate(lines):
            if i:
                self._end_block()
            if line:
                self._text(line, at)
            at += len(line) + 1

    def _block_tag(self, name: str, match: re.Match[str]) -> None:
        is_open = not match[_CLOSE]
        if self.texts:
            self._end_block()
        self.is_title = is_open and name == "title"
        self.level = _LEVELS.get(name, 0) if is_open else 0
        if name == "div":
            if is_open and "title" in match[_ATTRIBUTES]:
                self._section(match)
        elif name in _TABLE_TAGS:
            self._table_tag(name, is_open, match)
        elif name == "pre":
            self.n_pre = max(0, self.n_pre + (1 if is_open else -1))

    def _section(self, match: re.Match[str]) -> None:
        """A heading that stands in ``<div type=... title=...>`` only."""
        raw = match[_ATTRIBUTES]
        kind, title = _SECTION_TYPE.search(raw), _SECTION_TITLE.search(raw)
        if kind and title and title[1].strip():
            self.level = _SECTION_LEVEL[kind[1]]
            self._text(title[1], match.start(_ATTRIBUTES) + title.start(1))
            self._end_block()
            self.level = 0

    def _end_block(self) -> None:
        if not self.texts:
            return
        text = "".join(self.texts)
        pieces = self.pieces
        self.texts.clear()
        self.pieces = []
        if text.isspace():
            return
        if self.is_title:
            self.builder.title = self.builder.title or " ".join(text.split())
        elif self.tables:
            self.tables[-1].sink().append(_Block(text, pieces, self.level))
        else:
            self.builder.add(text, pieces, level=self.level)

    def _table_tag(self, name: str, is_open: bool, match: re.Match[str]) -> None:
        if name == "table":
            self._table_edge(is_open=is_open)
        elif self.tables and is_open:
            table = self.tables[-1]
            if name == "tr" or not table.rows:
                table.rows.append([])
            if name != "tr":
                table.rows[-1].append(_open_cell(match[_ATTRIBUTES]))

    def _table_edge(self, *, is_open: bool) -> None:
        if is_open and len(self.tables) >= _MAX_NESTED:
            self.n_flattened += 1
            self.builder.note(f"tables nested more than {_MAX_NESTED} deep are read as text")
        elif is_open:
            self.tables.append(_OpenTable())
        elif self.n_flattened:
            self.n_flattened -= 1
        elif self.tables:
            self._end_table()

    def _end_table(self) -> None:
        table = self.tables.pop()
        if self.tables:
            self.tables[-1].sink().append(table)
        else:
            self._write_table(table)

    def _write_blocks(self, blocks: list[_Block | _OpenTable]) -> None:
        for block in blocks:
            if isinstance(block, _Block):
                self.builder.add(block.text, block.pieces, level=block.level)
            else:
                self._write_table(block)

    def _write_table(self, table: _OpenTable) -> None:
        self._write_blocks(table.caption)
        if table.is_layout():
            for row in table.rows:
                for cell in row:
                    self._write_blocks(cell.blocks)
        else:
            self.builder.add_table(_placed(table))


def _open_cell(raw: str) -> _OpenCell:
    if "span" not in raw:
        return _OpenCell(1, 1)
    attributes = attributes_of(raw)
    return _OpenCell(
        count_of(attributes.get("rowspan", ("", 0))[0]),
        count_of(attributes.get("colspan", ("", 0))[0]),
    )


def _placed(table: _OpenTable) -> list[RawCell]:
    """Every cell in the first free column of its row (HTML's table model)."""
    cells: list[RawCell] = []
    taken: dict[int, int] = {}  # column -> first row in which it is free again
    for row, row_cells in enumerate(table.rows):
        column = 0
        for cell in row_cells:
            while taken.get(column, 0) > row:
                column += 1
            text, pieces = _joined(cell.blocks)
            cells.append(RawCell(row, column, text, pieces, cell.row_span, cell.column_span))
            if cell.row_span > 1:
                for covered in range(column, column + cell.column_span):
                    taken[covered] = row + cell.row_span
            column += cell.column_span
    return cells


def _joined(blocks: list[_Block | _OpenTable]) -> tuple[str, Pieces]:
    """The blocks of a cell as one text; a line break between two keeps them apart or joins them."""
    texts: list[str] = []
    pieces: list[tuple[int, int, int]] = []
    for block in blocks:
        if isinstance(block, _Block):
            if texts:
                texts.append("\n")
                pieces.append((1, pieces[-1][2], pieces[-1][2])) if pieces else None
            texts.append(block.text)
            pieces += block.pieces
    return "".join(texts), pieces


def attributes_of(raw: str) -> dict[str, tuple[str, int]]:
    """Name (lower case) -> (value, where it starts in ``raw``); the first wins."""
    found: dict[str, tuple[str, int]] = {}
    for match in _ATTRIBUTE.finditer(raw):
        group = next((g for g in (2, 3, 4) if match[g] is not None), 0)
        value = (match[group], match.start(group)) if group else ("", match.end())
        found.setdefault(match[1].lower(), value)
    return found


def unescaped(raw: str, at: int) -> tuple[str, list[tuple[int, int, int]]]:
    """Text with its entities resolved, and the pieces it came from.

    Args:
        raw: text as it stands in the source.
        at: where it starts there.
    """
    pieces: list[tuple[int, int, int]] = []
    parts: list[str] = []
    done = 0
    for match in _ENTITY.finditer(raw):
        text = unescape(match[0])
        if text == match[0]:
            continue
        start, end = match.span()
        if start > done:
            parts.append(raw[done:start])
            pieces.append((start - done, at + done, at + start))
        parts.append(text)
        # A one-character source cannot be an entity, so this piece is atomic by its lengths
        # unless both agree by chance; then mapping character by character is as good.
        pieces.append((len(text), at + start, at + end))
        done = end
    if done < len(raw):
        parts.append(raw[done:])
        pieces.append((len(raw) - done, at + done, at + len(raw)))
    return "".join(parts), pieces
