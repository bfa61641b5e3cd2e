"""HTML pages: blocks become paragraphs, tables become rows, entities characters.

Guarantees: text comes out in the order of the source; inline elements join as a browser joins
them; blocks, line breaks and cells divide it; every character can be traced to the source. No tree
is built: only the ends of blocks matter, so broken nesting (most of the web) costs nothing.

One pass of one regular expression finds all tags; what lies between two is text. A megabyte of
embedded images is a single step. Comments, scripts and the like are matched whole, so nothing in
them is taken for a tag. Every quantifier that could be retried is possessive: the time is linear in
the source, whatever it holds.

The items of an ordered list have their numbers. Elements that are not displayed are left out, which
is noted; a page that displays the lesser part of its text is shown by its program, and read whole.

Of a form the values are read, as ☒ and ☐ those of boxes, and of a list that opens its choice.
Readings above characters (ruby) are left out, as in a Word file.

Announcement pages made from PDF (``<div type="paragraph" title="一、概况">``) keep their
headings in attributes only; these become paragraphs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING

from featpipe.documents.builder import DocumentBuilder, Pieces
from featpipe.documents.decode import Decoded, decode
from featpipe.documents.formats.html_hidden import HiddenElement, StyleSheet, may_hide
from featpipe.documents.formats.html_lists import OpenList, lacks_numbers, open_list
from featpipe.documents.formats.html_tables import (
    Block,
    OpenTable,
    attributes_of,
    open_cell,
    placed,
)
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
    | r[tp](?=[\s>])[^>]*+>[^<]*+                                    # a reading, with its text
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
_ENTITY = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*;?)")

_BLOCKS = words_in(
    """
    address article aside blockquote body br caption center dd details dialog dir div dl dt
    fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend
    li main menu nav ol optgroup option p pre section select summary table tbody td tfoot th thead
    title tr ul head textarea button
    """
)
_TAGS = _BLOCKS | {"input"}
_MAX_NESTED = 32
#: Elements whose line breaks are shown; inputs that show no value of their own.
_PREFORMATTED = frozenset({"pre", "textarea"})
_VALUELESS = words_in("hidden password submit button reset image file color range")
_TABLE_TAGS = frozenset({"table", "tr", "td", "th"})
_LIST_TAGS = frozenset({"ol", "ul", "menu", "dir", "li"})
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_DECLARED = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,200}encoding=["']([\w.:-]+)""",
    re.IGNORECASE,
)
_ALL_READ = "more text is hidden than shown: all of it is read"
#: A list of which several lines are shown.
_LISTED = re.compile(r"\s(?:multiple|size)\b", re.IGNORECASE)
_SECTION_TYPE = re.compile(r"""\stype=["'](pdf|paragraph)["']""")
_SECTION_TITLE = re.compile(r'\stitle="([^"]*)"')
_SECTION_LEVEL = {"pdf": 1, "paragraph": 2}
#: The numbers before an item, and where they come from.
_NO_LABEL: tuple[str, Pieces] = ("", ())


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an HTML page, as a :class:`~featpipe.documents.load.LoadFunction`."""
    decoded = decode_page(data)
    builder = DocumentBuilder.for_text(decoded, limits, is_traced=is_traced)
    read_html(decoded.text, builder)
    return builder


def decode_page(data: bytes) -> Decoded:
    """The source of a page, with the encoding that it declares as evidence."""
    match = _DECLARED.search(data[:4096])
    return decode(data, (match[1] or match[2]).decode("ascii", "replace") if match else None)


def read_html(source: str, builder: DocumentBuilder) -> None:
    """Add the text of an HTML source to a builder."""
    sheet = StyleSheet.of(source) if may_hide(source) else None
    n_shown, n_hidden = _count(source, sheet) if sheet else (0, 0)
    hidden = HiddenElement(sheet) if sheet else None
    if n_hidden > n_shown:
        hidden = None
    if n_hidden:
        builder.note("hidden text is left out" if hidden else _ALL_READ)
    page = _Page(builder, hidden)
    page.has_numbers = not lacks_numbers(source)
    page.read(source)


def read_html_within(source: str, start: int, end: int, builder: DocumentBuilder) -> None:
    """Add the text of a part of a source that is HTML, such as a table in Markdown."""
    _Page(builder).read(source, start, end)


def _count(source: str, sheet: StyleSheet) -> tuple[int, int]:
    """About how many characters of a page are displayed, and how many are not."""
    hidden = HiddenElement(sheet)
    counts = [0, 0]
    at = 0
    for match in _TOKEN.finditer(source):
        start, end = match.span()
        counts[bool(hidden.name)] += len(source[at:start].strip())
        hidden.covers(match[_NAME], match[_ATTRIBUTES], is_open=not match[_CLOSE])
        at = end
    counts[bool(hidden.name)] += len(source[at:].strip())
    return counts[0], counts[1]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A line of a list that opens."""

    is_chosen: bool
    text: str
    pieces: Pieces


class _Page:
    """One pass over the tokens of a page."""

    def __init__(self, builder: DocumentBuilder, hidden: HiddenElement | None = None) -> None:
        self.builder = builder
        self.hidden = hidden
        self.is_traced = builder.is_traced
        self.texts: list[str] = []  # the block under construction
        self.pieces: list[tuple[int, int, int]] = []
        self.level = 0
        self.tables: list[OpenTable] = []
        self.is_title = False
        self.n_pre = 0
        self.choices: list[_Choice] | None = None  # of an open list
        self.is_chosen = False
        self.lists: list[OpenList] = []
        self.has_numbers = True
        self.label = self.outer = _NO_LABEL  # of the item that begins here, and of one around it
        self.n_flattened = 0  # open tables that are too deep to be kept apart

    def read(self, source: str, start: int = 0, stop: int | None = None) -> None:
        """Add the text of a source, or of a part of it."""
        at, stop = start, len(source) if stop is None else stop
        texts, hidden = self.texts, self.hidden
        for match in _TOKEN.finditer(source, start, stop):
            start, end = match.span()
            if start > at and not (hidden and hidden.name):
                text = source[at:start]
                if texts or not text.isspace():  # blanks before a block's first word are dropped
                    self._text(text, at)
            at = end
            name = match[_NAME]
            if hidden and hidden.covers(name, match[_ATTRIBUTES], is_open=not match[_CLOSE]):
                continue
            if name is None:
                if match[_CDATA]:
                    self._text(match[_CDATA], match.start(_CDATA))
            elif (name := name.lower()) in _TAGS:
                self._tag(name, match)
        if at < stop and not (hidden and hidden.name):
            self._text(source[at:stop], at)
        self._finish()

    def _finish(self) -> None:
        self._end_block()
        self._end_choices()
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

    def _tag(self, name: str, match: re.Match[str]) -> None:
        if name == "input":
            self._input(match)
        else:
            self._block_tag(name, match)

    def _block_tag(self, name: str, match: re.Match[str]) -> None:
        is_open = not match[_CLOSE]
        if self.texts:
            self._end_block()
        if self.choices is not None or name == "select":
            self._choice_tag(name, match)
        self.is_title = is_open and name == "title"
        self.level = _LEVELS.get(name, 0) if is_open else 0
        if name == "div":
            if is_open and "title" in match[_ATTRIBUTES]:
                self._section(match)
        elif name in _TABLE_TAGS:
            self._table_tag(name, is_open, match)
        elif name in _LIST_TAGS:
            self._list_tag(name, is_open, match)
        elif name in _PREFORMATTED:
            self.n_pre = max(0, self.n_pre + (1 if is_open else -1))

    def _input(self, match: re.Match[str]) -> None:
        """What an input of a form shows."""
        attributes = attributes_of(match[_ATTRIBUTES])
        kind = attributes.get("type", ("text", 0))[0].lower()
        if kind in {"checkbox", "radio"}:
            self.texts.append("☒" if "checked" in attributes else "☐")
            self.pieces.append((1, *match.span()))
        elif kind not in _VALUELESS and "value" in attributes:
            value, at = attributes["value"]
            self._text(value, match.start(_ATTRIBUTES) + at)

    def _choice_tag(self, name: str, match: re.Match[str]) -> None:
        """A tag of a list that opens, or one that ends it."""
        is_open = not match[_CLOSE]
        if name in {"option", "optgroup"}:
            self.is_chosen = is_open and "selected" in attributes_of(match[_ATTRIBUTES])
            return
        self._end_choices()
        if name == "select" and is_open and not _LISTED.search(match[_ATTRIBUTES]):
            self.choices = []

    def _end_choices(self) -> None:
        """Of a list that opens, the choice is shown, or its first line."""
        choices, self.choices = self.choices or [], None
        chosen = [choice for choice in choices if choice.is_chosen] or choices
        for choice in chosen[:1]:
            self.texts.append(choice.text)
            self.pieces += choice.pieces
            self._end_block()

    def _list_tag(self, name: str, is_open: bool, match: re.Match[str]) -> None:
        """A list or an item; an item in whose place another list begins keeps its number."""
        if name == "li" and is_open:
            open_lists = self.lists if self.has_numbers else []
            number = open_lists[-1].next_label(match[_ATTRIBUTES]) if open_lists else ""
            pieces = ((len(number), *match.span()),) if number else ()
            self.label = (self.outer[0] + number, (*self.outer[1], *pieces))
        elif is_open:
            self.lists.append(open_list(name, match[_ATTRIBUTES]))
            self.outer = self.label if len(self.lists) < _MAX_NESTED else _NO_LABEL
            return
        else:
            self.label = _NO_LABEL
            if name != "li" and self.lists:
                self.lists.pop()
        self.outer = _NO_LABEL

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
        if self.label[0]:
            text, pieces = self.label[0] + text, [*self.label[1], *pieces]
            self.label = self.outer = _NO_LABEL
        if self.choices is not None:
            self.choices.append(_Choice(self.is_chosen, text, pieces))
        elif self.is_title:
            self.builder.title = self.builder.title or " ".join(text.split())
        elif self.tables:
            self.tables[-1].sink().append(Block(text, pieces, self.level))
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
                table.rows[-1].append(open_cell(match[_ATTRIBUTES]))

    def _table_edge(self, *, is_open: bool) -> None:
        if is_open and len(self.tables) >= _MAX_NESTED:
            self.n_flattened += 1
            self.builder.note(f"tables nested more than {_MAX_NESTED} deep are read as text")
        elif is_open:
            self.tables.append(OpenTable())
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

    def _write_blocks(self, blocks: list[Block | OpenTable]) -> None:
        for block in blocks:
            if isinstance(block, Block):
                self.builder.add(block.text, block.pieces, level=block.level)
            else:
                self._write_table(block)

    def _write_table(self, table: OpenTable) -> None:
        self._write_blocks(table.caption)
        if table.is_layout():
            for row in table.rows:
                for cell in row:
                    self._write_blocks(cell.blocks)
        else:
            self.builder.add_table(placed(table))


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
