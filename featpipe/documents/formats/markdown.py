"""Markdown: headings, lists, tables and prose as paragraphs, without the marks.

Wrapped lines of a paragraph are joined, ``<br>`` ends one; the text of links and pictures stays,
their targets go; code keeps its lines, and so do fields at the top. Tables in HTML are read as in a
page, boxes of tasks as ☒ and ☐. Every character can be traced to the source.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from featpipe.documents.builder import CELL_BREAK, DocumentBuilder, RawCell
from featpipe.documents.decode import decode
from featpipe.documents.formats.html import read_html_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from featpipe.documents.limits import LoadLimits

# Every pattern reads a line a bounded number of times: it has no two adjacent repeats of one set of
# characters, and no start from which the same far end is searched for again.
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n|\Z)")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+((?:.*[^ \t#])?)[ \t#]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r" {0,3}(?:>[ \t]?)+")
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+")
#: A box of a list of tasks.
_BOX = re.compile(r"[ \t]*\[([ xX])\](?=[ \t])")
#: What stands between lines of hyphens at the very top: fields, such as the title.
_FRONT = re.compile(r"---[ \t]*\r?\n((?:[A-Za-z#\s-][^\n]{0,999}+\n){1,99}?)---[ \t]*\r?(?:\n|\Z)")
_FRONT_TITLE = re.compile(r"title:[ \t]*[\"']?([^\"'\n]+)", re.IGNORECASE)
_TABLE_TAG = re.compile(r"<(/?)table(?=[\s>])[^>]*>", re.IGNORECASE)
_NUMBER = re.compile(r"[ \t]*\d{1,9}[.)][ \t]")
_DELIMITER_ROW = re.compile(
    r"[ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$"
)
_CELL = re.compile(r"(?:[^|\\]++|\\.?)++|(?<=\|)(?<!\\\|)(?=\|)")
_INLINE = re.compile(
    r"(?<!`)(?P<code>`++)(?P<verbatim>[^`\n]+)(?P=code)"
    r"|!?\[(?P<shown>[^\[\]]*)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^\"']*[\"'])?\)|\[[^\]]*\])"
    r"|(?P<stars>\*\*\*?)(?=\S)(?P<loud>[^*\n]+?)(?P=stars)"
    r"|(?P<strong>__|~~)(?=\S)(?P<strongly>[^*_~\n]+?)(?P=strong)"
    r"|(?<![\w*])\*(?=\S)(?P<soft>[^*\n]+?)\*(?!\w)"
    r"|<(?P<address>https?://[^\s<>]+)>|</?[a-zA-Z][^<>]*>|<!--"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);"
)
_LINE_BREAK = re.compile(r"<br[\s/>]", re.IGNORECASE)
_SHOWN = ("verbatim", "shown", "loud", "strongly", "soft", "address", "escaped")

#: Text that is shown, and where it starts and ends in the source.
_Piece = tuple[str, int, int]


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a Markdown file, as a :class:`~featpipe.documents.load.LoadFunction`."""
    decoded = decode(data)
    builder = DocumentBuilder.for_text(decoded, limits, is_traced=is_traced)
    _Reader(decoded.text, builder).read()
    return builder


class _Reader:
    """One pass over the lines; ``waiting`` are those of the paragraph under construction."""

    def __init__(self, source: str, builder: DocumentBuilder) -> None:
        self.source = source
        self.builder = builder
        self.waiting: list[tuple[int, int]] = []
        self.fence = ""
        self.is_quoted = False
        self.unclosed = len(source)

    def read(self) -> None:
        done = self._front()
        for match in _LINE.finditer(self.source, done):
            start, end = match.span()
            end -= len(match[0]) - len(match[0].rstrip("\r\n"))
            if end > done or start >= done:
                done = self._line_with_tables(max(start, done), end)
        self._end_paragraph()

    def _front(self) -> int:
        """Add the fields at the top of a file, each a paragraph; where they end."""
        front = _FRONT.match(self.source)
        if not front:
            return 0
        for match in _LINE.finditer(self.source, *front.span(1)):
            self.builder.add(match[0], ((len(match[0]), *match.span()),))
        title = _FRONT_TITLE.search(front[1])
        self.builder.title = title[1].strip() if title else ""
        return front.end()

    def _line_with_tables(self, start: int, end: int) -> int:
        """Read a line with the HTML tables that begin in it; where they or the line end."""
        begin = start
        while not self.fence and (span := self._html_table(start, end)):
            before, after = span
            if self.source[start:before].strip():
                self._line(start, before)
            self._end_paragraph()
            read_html_within(self.source, before, after, self.builder)
            start = after
            end = self._end_of_line(after) if after > end else end
        if start == begin or self.source[start:end].strip():
            self._line(start, end)
        return end

    def _html_table(self, start: int, end: int) -> tuple[int, int] | None:
        """The first HTML table that begins in a stretch and is closed somewhere."""
        opened = _TABLE_TAG.search(self.source, start, end)
        if not opened or opened[1] or opened.start() >= self.unclosed:
            return None
        depth = 0
        for tag in _TABLE_TAG.finditer(self.source, opened.start()):
            depth += -1 if tag[1] else 1
            if not depth:
                return opened.start(), tag.end()
        self.unclosed = opened.start()  # nor is any that begins later
        return None

    def _end_of_line(self, at: int) -> int:
        match = _LINE.match(self.source, at)
        return at + len(match[0].rstrip("\r\n")) if match else at

    def _line(self, start: int, end: int) -> None:
        line = self.source[start:end]
        fence = _FENCE.match(line)
        if self.fence or fence:
            self._code_line(line, start, end, fence)
        elif not line.strip() or (_RULE.match(line) and not self._is_underlined(line)):
            self._end_paragraph()
        elif heading := _HEADING.match(line):
            self._end_paragraph()
            self._add([(start + heading.start(2), start + heading.end(2))], level=len(heading[1]))
        elif self._is_underlined(line):
            spans, self.waiting = self.waiting, []
            self._add(spans, level=1 if "=" in line else 2)
        else:
            self._prose_line(line, start, end)

    def _is_underlined(self, line: str) -> bool:
        return bool(self.waiting and _UNDERLINE.match(line))

    def _code_line(self, line: str, start: int, end: int, fence: re.Match[str] | None) -> None:
        self._end_paragraph()
        if fence and (not self.fence or (line.strip() == fence[1] and fence[1] >= self.fence)):
            self.fence = "" if self.fence else fence[1]
        elif line.strip():
            self.builder.add(line, ((end - start, start, end),))

    def _prose_line(self, line: str, start: int, end: int) -> None:
        quote = _QUOTE.match(line)
        at = quote.end() if quote else 0
        bullet = _BULLET.match(line, at)
        if bullet or (quote and not self.is_quoted) or _NUMBER.match(line, at):
            self._end_paragraph()
        self.is_quoted = bool(quote)
        self.waiting.append((start + (bullet.end() if bullet else at), end))
        if line.endswith("\\"):
            self.waiting[-1] = (self.waiting[-1][0], end - 1)
        if line.endswith(("  ", "\\")):
            self._end_paragraph()

    def _end_paragraph(self) -> None:
        spans, self.waiting = self.waiting, []
        if len(spans) > 1 and _DELIMITER_ROW.match(self.source[slice(*spans[1])]):
            self._table([spans[0], *spans[2:]])
        elif spans:
            self._add(spans)

    def _table(self, rows: list[tuple[int, int]]) -> None:
        cells: list[RawCell] = []
        for row, (start, end) in enumerate(rows):
            line = self.source[start:end]
            trimmed = line.strip().removeprefix("|")
            at = start + line.index(trimmed) if trimmed else start
            for column, match in enumerate(_CELL.finditer(self.source, at, end)):
                text, pieces = _joined(self._pieces(match.start(), match.end()))
                cells.append(RawCell(row, column, text, pieces))
        self.builder.add_table(cells)

    def _add(self, spans: list[tuple[int, int]], *, level: int = 0) -> None:
        """A paragraph, or several where line breaks (br) divide it."""
        paragraphs: list[list[_Piece]] = [[]]
        for number, (start, end) in enumerate(spans):
            if number:
                paragraphs[-1].append(("\n", start, start))
            box = None if number else _BOX.match(self.source, start, end)
            if box:
                paragraphs[-1].append(("☐" if box[1] == " " else "☒", *box.span()))
            for piece in self._pieces(box.end() if box else start, end):
                if piece[0] == CELL_BREAK:
                    paragraphs.append([])
                else:
                    paragraphs[-1].append(piece)
        for paragraph in paragraphs:
            text, pieces = _joined(paragraph)
            if self.builder.add(text, pieces, level=level) and level == 1:
                self.builder.title = self.builder.title or " ".join(text.split())

    def _pieces(self, start: int, end: int) -> Iterator[_Piece]:
        """The pieces of a stretch that are shown: text, start and end in the source."""
        done = start
        for match, after in self._marks(start, end):
            yield self.source[done : match.start()], done, match.start()
            done = after
            group = next((g for g in _SHOWN if match[g] is not None), None)
            if group in {"shown", "loud", "strongly", "soft"}:
                yield from self._pieces(*match.span(group))
            elif group:
                yield match[group], *match.span(group)
            elif match[0].startswith("&"):
                yield unescape(match[0]), *match.span()
            elif _LINE_BREAK.match(match[0]):
                yield CELL_BREAK, *match.span()
        yield self.source[done:end], done, end

    def _marks(self, start: int, end: int) -> Iterator[tuple[re.Match[str], int]]:
        """The marks of a stretch, each with its end; of a comment, where it is closed."""
        at = start
        is_never_closed = False
        while match := _INLINE.search(self.source, at, end):
            at = match.end()
            if match[0] == "<!--":
                # Where one is never closed none after it is: the rest is not searched again.
                close = -1 if is_never_closed else self.source.find("-->", at, end)
                is_never_closed = close < 0
                if is_never_closed:
                    continue
                at = close + len("-->")
            yield match, at


def _joined(pieces: Iterable[_Piece]) -> tuple[str, list[tuple[int, int, int]]]:
    """The text of some pieces, and where it came from."""
    shown = [piece for piece in pieces if piece[0]]
    text = "".join(text for text, _, _ in shown)
    return text, [(len(text), first, last) for text, first, last in shown]
