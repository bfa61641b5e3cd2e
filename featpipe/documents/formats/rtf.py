r"""Rich Text files (.rtf): paragraphs, tables with the places of their cells, text boxes, notes.

Guarantees: a byte is decoded by the charset of its font (Chinese in ``\fcharset134`` also where the
file calls itself western), ``\uN`` is taken once and its substitute never; a byte that cannot be
decoded becomes U+FFFD and is counted in a note. Deleted text (tracked changes), hidden text,
comments and field codes are no text of the document, as in a .docx. Nothing embedded is opened.

Order as in a .docx: the body, a text box after the paragraph that holds it; then notes; then heads
and feet, each text once. Words and code pages are in `rtf_tokens`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.formats import rtf_tokens as rtf
from featpipe.documents.formats.rtf_state import Flow, FormField, State
from featpipe.documents.formats.rtf_tables import Row, placed
from featpipe.documents.formats.symbol_fonts import is_symbol_font, read_in
from featpipe.documents.formats.zip_xml import is_page_number
from featpipe.errors import DocumentTooLarge, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.documents.formats.rtf_tokens import Token
    from featpipe.documents.limits import LoadLimits

#: Groups within groups; Word writes about ten.
_MOST_NESTED = 10_000
#: Before the name of a font of signs, in the place of a codec.
_SYMBOLS = "signs of "
#: Targets whose text is kept, and those of them that are made of paragraphs.
_SEEN = ("body", "box", "note", "head", "title", "fonts", "styles", "choice")
_PARAGRAPHS = frozenset({"body", "box", "note", "head"})
#: What is looked for inside of what is not seen.
_INSIDE = {
    "drawing": ("box", "none"),
    "info": ("title", "none"),
    "field": ("form",),
    "form": ("choice",),
}


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an .rtf file, as a :class:`~featpipe.documents.load.LoadFunction`.

    Raises:
        UnreadableDocument: it ends in the middle of a group, and nothing was read until there.
        DocumentTooLarge: groups nested too deeply.
    """
    builder = DocumentBuilder(limits)
    reader = _Reader(builder)
    if b"\\ansicpg" not in data and (page := rtf.guessed_page(data)):
        builder.note(f"no code page is named: read as {page}")
        reader.pages = dict.fromkeys(rtf.PAGES, page)
    for token in rtf.tokens(data):
        reader.take(token)
    reader.finish()
    return builder


class _Reader:
    """One pass over the tokens."""

    def __init__(self, builder: DocumentBuilder) -> None:
        self.builder = builder
        self.state = State()
        self.stack: list[State] = []
        self.flows = {name: Flow() for name in _SEEN}
        self.fonts: dict[int, str] = {}
        self.styles: dict[int, int] = {}
        self.page = "cp1252"
        self.pages = rtf.PAGES
        self.default_font: int | None = None
        self.bytes = bytearray()
        self.codec = ""
        self.n_to_skip = 0
        self.is_star = False
        self.n_lost = 0
        self.row = Row()
        self.definition = Row()
        self.form: FormField | None = None

    def take(self, token: Token) -> None:
        if token.brace:
            self._brace(is_open=token.brace == b"{")
        elif token.raw:
            self._raw(token)
        elif token.symbol:
            self._symbol(token.symbol)
        else:
            self._word(token.word, token.number)

    def finish(self) -> None:
        """Write everything in its order."""
        self._decode()
        is_in_table = self.state.target == "body" and self.state.is_in_table
        self.state = State(is_in_table=is_in_table)
        self._end_paragraph()
        self._end_table()
        self._write(self.flows["body"].blocks)
        self._write(self.flows["note"].blocks)
        heads = dict.fromkeys(b for b in self.flows["head"].blocks if isinstance(b, tuple))
        self._write([head for head in heads if not is_page_number(head[0])])
        self.builder.encoding = self.page
        self.builder.title = self._text_of("title").strip()
        if self.n_lost:
            self.builder.note(f"{self.n_lost} bytes could not be decoded and became U+FFFD")
        if self.stack and not self.builder.length:
            raise UnreadableDocument("a Rich Text file that ends in the middle of a group")
        if self.stack:
            self.builder.note("the file ends in the middle of a group: it may be cut off")

    # ---- groups

    def _brace(self, *, is_open: bool) -> None:
        self.n_to_skip, self.is_star = 0, False
        if is_open:
            self.stack.append(self.state)
            if len(self.stack) > _MOST_NESTED:
                raise DocumentTooLarge(f"groups are nested more than {_MOST_NESTED:,} deep")
        elif self.stack:
            outer = self.stack.pop()
            if self.state.target == "styles":
                self._end_style()
            elif self.state.target == "fonts":
                self._end_font()
            elif outer.target != self.state.target:
                self._leave(outer)
            self.state = outer
            if self.form and len(self.stack) < self.form.n_groups:
                self._end_form(self.form)

    def _leave(self, outer: State) -> None:
        """The end of a destination: its last paragraph needs no mark."""
        self._decode()
        if self.state.target in _PARAGRAPHS:
            self._end_paragraph()
        elif self.state.target == "choice" and self.form:
            self.form.choices.append(self._text_of("choice"))
        elif self.state.target == "field" and self.form and outer.target in _PARAGRAPHS:
            self.form.n_groups = len(self.stack)
            self.form.n_parts = len(self.flows[outer.target].parts)

    def _end_form(self, form: FormField) -> None:
        """The end of a form field: what it shows, unless its result was written out."""
        self.form = None
        self._decode()
        flow = self.flows.get(self.state.target)
        if flow and form.n_parts == len(flow.parts):
            self._add(form.shown())

    def _end_style(self) -> None:
        """A style of the sheet is a heading by its level, or by its name."""
        match = rtf.HEADING.match(self._text_of("styles"))
        if match and not self.styles.get(self.state.style):
            self.styles[self.state.style] = int(match[1])

    def _end_font(self) -> None:
        """A font whose letters are signs, such as Wingdings, is known by its name."""
        name = self._text_of("fonts").partition(";")[0].strip()
        if self.state.font is not None and is_symbol_font(name):
            self.fonts[self.state.font] = _SYMBOLS + name

    def _enter(self, word: str) -> None:
        """A control word that opens a destination."""
        target, is_star = self.state.target, self.is_star
        self.is_star = False
        if target == "none":
            return
        found = rtf.destination(word, is_star=is_star)
        if not found or found not in _INSIDE.get(target, (found,)):
            return
        if word == "annotation":
            self.builder.note("comments are left out")
        if found == "form":
            self.form = FormField()
        self._decode()
        self.state = replace(self.state, target=found, level=0, is_in_table=False)

    # ---- text

    def _raw(self, token: Token) -> None:
        data = token.raw
        if self.n_to_skip:
            n_skipped = min(self.n_to_skip, len(data))
            self.n_to_skip -= n_skipped
            data = data[n_skipped:]
        if data and self._is_seen():
            codec = self._codec()
            if codec != self.codec:
                self._decode()
                self.codec = codec
            self.bytes += data

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self.is_star = True
        elif self.n_to_skip:
            self.n_to_skip -= 1
        elif symbol in b"\\{}":
            self._raw(rtf.Token(raw=symbol))
        elif symbol in b"\r\n":
            self._end_paragraph()
        elif symbol in rtf.SYMBOLS:
            self._add(rtf.SYMBOLS[symbol])

    def _add(self, text: str) -> None:
        if self._is_seen():
            self._decode()
            self.flows[self.state.target].parts.append(text)

    def _is_seen(self) -> bool:
        state = self.state
        if state.is_hidden and state.target in _PARAGRAPHS:
            self.builder.note("hidden text is left out")
            return False
        return state.target in self.flows and not state.is_deleted

    def _codec(self) -> str:
        font = self.default_font if self.state.font is None else self.state.font
        return self.fonts.get(-1 if font is None else font, self.page)

    def _decode(self) -> None:
        """Turn the bytes until here into text."""
        if not self.bytes:
            return
        data, self.bytes = bytes(self.bytes), bytearray()
        codec = self.codec
        if codec.startswith(_SYMBOLS):
            text = read_in(codec.removeprefix(_SYMBOLS), data.decode("latin-1"))
        elif codec == "ansi":
            text = rtf.decode_western(data, self.page)
        else:
            text = data.decode(codec, "replace")
        self.n_lost += text.count("\ufffd")
        # Bytes are decoded before a target changes, so they belong to this one.
        if self.state.target in self.flows:
            self.flows[self.state.target].parts.append(text)

    def _text_of(self, target: str) -> str:
        self._decode()
        flow = self.flows[target]
        text = "".join(flow.parts)
        flow.parts.clear()
        # \u gives UTF-16: pairs of surrogates are put together, lone ones become U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    # ---- control words

    def _word(self, word: str, number: int | None) -> None:
        if word not in rtf.CHARACTERS:
            self.n_to_skip = 0
        if word == "u" and number is not None:
            font = self._codec()
            name = font.removeprefix(_SYMBOLS) if font.startswith(_SYMBOLS) else ""
            self._add(read_in(name, chr(number % 65536)))
            self.n_to_skip = self.state.n_substitutes
        elif self.n_to_skip and word in rtf.CHARACTERS:
            self.n_to_skip -= 1
        elif self.is_star or rtf.destination(word, is_star=False):
            self._enter(word)
        elif word in rtf.CHARACTERS:
            self._add(rtf.CHARACTERS[word])
        elif (handle := _WORDS.get(word)) is not None:
            handle(self, number)
        elif word in self.pages:
            self.page = self.pages[word]

    def _set_page(self, number: int | None) -> None:
        self.page = rtf.code_page(number) or self.page

    def _set_font(self, number: int | None) -> None:
        if self.state.target == "fonts":
            self._end_font()
        self.state = replace(self.state, font=number)

    def _set_charset(self, number: int | None) -> None:
        if self.state.target == "fonts" and self.state.font is not None:
            codec = "ansi" if number in {0, 2} else rtf.CHARSETS.get(number or 0)
            if codec:
                self.fonts[self.state.font] = codec

    def _set_font_page(self, number: int | None) -> None:
        codec = rtf.code_page(number)
        if self.state.target == "fonts" and self.state.font is not None and codec:
            self.fonts[self.state.font] = codec

    def _set_default_font(self, number: int | None) -> None:
        self.default_font = number

    def _set_substitutes(self, number: int | None) -> None:
        self.state = replace(self.state, n_substitutes=min(max(number or 0, 0), 100))

    def _set_hidden(self, number: int | None) -> None:
        self.state = replace(self.state, is_hidden=number != 0)

    def _set_deleted(self, number: int | None) -> None:
        self.state = replace(self.state, is_deleted=number != 0)

    def _plain(self, _: int | None) -> None:
        self.state = replace(self.state, font=None, is_hidden=False, is_deleted=False)

    def _set_form(self, name: str, number: int | None) -> None:
        if self.form and self.state.target == "form":
            setattr(self.form, name, max(number or 0, 0))

    # ---- paragraphs and tables

    def _set_level(self, number: int | None) -> None:
        is_heading = 0 <= (number or 0) <= 8
        level = (number or 0) + 1 if is_heading else 0
        if self.state.target == "styles":
            self.styles[self.state.style] = level
        self.state = replace(self.state, level=level)

    def _set_style(self, number: int | None) -> None:
        style = number or 0
        self.state = replace(self.state, style=style, level=self.styles.get(style, 0))

    def _begin_paragraph(self, _: int | None) -> None:
        self.state = replace(self.state, level=0, style=0, is_in_table=False)

    def _set_in_table(self, _: int | None) -> None:
        self.state = replace(self.state, is_in_table=True)

    def _end_paragraph(self, _: int | None = None) -> None:
        target = self.state.target
        if target not in _PARAGRAPHS:
            return
        text, flow = self._text_of(target), self.flows[target]
        if target == "body" and self.state.is_in_table:
            flow.cell.append(text)
            return
        if target == "body":
            self._end_table()
        flow.blocks += [(line, self.state.level) for line in text.split(rtf.BREAK) if line.strip()]
        if target == "body":
            flow.blocks += self._take_boxes()

    def _take_boxes(self) -> list[tuple[str, int]]:
        boxes = self.flows["box"].blocks
        taken = [(box[0], 0) for box in boxes if isinstance(box, tuple)]
        boxes.clear()
        return taken

    def _end_cell(self, _: int | None = None) -> None:
        if self.state.target == "body":
            flow = self.flows["body"]
            flow.cell += [self._text_of("body"), *(text for text, _ in self._take_boxes())]
            self.row.cells.append(rtf.BREAK.join(part for part in flow.cell if part.strip()))
            flow.cell.clear()
        else:  # a table in a head, a note or a box: its cells are paragraphs
            self._end_paragraph()

    def _end_nested_cell(self, _: int | None = None) -> None:
        if self.state.target == "body":
            self.flows["body"].cell.append(self._text_of("body"))
        else:
            self._end_paragraph()

    def _begin_row(self, _: int | None) -> None:
        self.definition = Row()

    def _set_left(self, number: int | None) -> None:
        self.definition.left = number or 0

    def _add_edge(self, number: int | None) -> None:
        self.definition.edges.append(number or 0)

    def _end_row(self, _: int | None = None) -> None:
        if self.state.target != "body" or not self.row.cells:
            return
        edges = self.definition.edges
        row = Row(list(edges), self.definition.left, self.row.cells)
        self.row = Row()
        blocks = self.flows["body"].blocks
        if blocks and isinstance(blocks[-1], list):
            blocks[-1].append(row)
        else:
            blocks.append([row])

    def _end_table(self) -> None:
        """What a row without an end holds is kept."""
        flow = self.flows["body"]
        if self.row.cells:
            self.row.cells += [rtf.BREAK.join(flow.cell)] if flow.cell else []
            self._end_row()
        else:
            lines = (line for text in flow.cell for line in text.split(rtf.BREAK))
            flow.blocks += [(line, 0) for line in lines if line.strip()]
        flow.cell.clear()

    def _write(self, blocks: list[tuple[str, int] | list[Row]]) -> None:
        for block in blocks:
            if isinstance(block, list):
                self.builder.add_table(placed(block))
            else:
                self.builder.add(block[0], level=block[1])


_WORDS: dict[str, Callable[[_Reader, int | None], None]] = {
    "ansicpg": _Reader._set_page,
    "deff": _Reader._set_default_font,
    "f": _Reader._set_font,
    "fcharset": _Reader._set_charset,
    "cpg": _Reader._set_font_page,
    "uc": _Reader._set_substitutes,
    "v": _Reader._set_hidden,
    "deleted": _Reader._set_deleted,
    "plain": _Reader._plain,
    "pard": _Reader._begin_paragraph,
    "intbl": _Reader._set_in_table,
    "s": _Reader._set_style,
    "outlinelevel": _Reader._set_level,
    "par": _Reader._end_paragraph,
    "page": _Reader._end_paragraph,
    "sect": _Reader._end_paragraph,
    "column": _Reader._end_paragraph,
    "cell": _Reader._end_cell,
    "nestcell": _Reader._end_nested_cell,
    "row": _Reader._end_row,
    "trowd": _Reader._begin_row,
    "trleft": _Reader._set_left,
    "cellx": _Reader._add_edge,
    "fftype": lambda reader, number: reader._set_form("kind", number),
    "ffres": lambda reader, number: reader._set_form("result", number),
    "ffdefres": lambda reader, number: reader._set_form("default", number),
}
