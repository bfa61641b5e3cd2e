r"""Words of the Rich Text Format: tokens, code pages and destinations.

Source: Rich Text Format Specification 1.9.1 (Microsoft, 2008).
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

from featpipe.documents.decode import decode
from featpipe.documents.segment import words_in
from featpipe.errors import UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?"  # a control word with its number
    rb"|\\'([0-9a-fA-F]{2})"  # a byte of the code page
    rb"|\\(.)"  # a control symbol
    rb"|([{}])"
    rb"|[\r\n\0]+"  # layout of the file, no text
    rb"|([^\\{}\r\n\0]+)",
    re.DOTALL,
)


class Token(NamedTuple):
    """One token; exactly one of ``word``, ``symbol``, ``brace`` and ``raw`` is not empty."""

    word: str = ""
    number: int | None = None
    symbol: bytes = b""
    brace: bytes = b""
    raw: bytes = b""
    is_hex: bool = False
    """Whether ``raw`` was written as an escape: one byte, one character to skip."""


def tokens(data: bytes) -> Iterator[Token]:
    r"""Every token, in order. The bytes behind ``\binN`` are passed over."""
    at = 0
    while match := _TOKEN.match(data, at):
        at = match.end()
        word, number, escaped, symbol, brace, raw = match.groups()
        if word == b"bin":
            at += max(int(number or 0), 0)
        elif word:
            yield Token(word=word.decode("ascii"), number=int(number) if number else None)
        elif escaped:
            yield Token(raw=bytes((int(escaped, 16),)), is_hex=True)
        elif symbol:
            yield Token(symbol=symbol)
        elif brace:
            yield Token(brace=brace)
        elif raw:
            yield Token(raw=raw)


#: Charset of a font -> its code page; 0 (western) and 1 (the file's own) are decided elsewhere.
CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
#: Control word -> default code page of the file, until ``\ansicpg`` names another.
PAGES = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
#: Those that Python has under another name; from 10000 on, those of a Macintosh.
_CODE_PAGES = {
    936: "gb18030", 51936: "gb18030", 54936: "gb18030", 65001: "utf-8", 1361: "johab",
    10000: "mac_roman", 10001: "cp932", 10002: "cp950", 10003: "cp949", 10008: "gb18030",
}  # fmt: skip
MULTIBYTE = frozenset({"cp932", "cp949", "cp950", "gb18030", "johab", "big5hkscs"})

#: Names of styles of headings, in English and Chinese, with their level.
HEADING = re.compile(r"\s*(?:heading|标题)\s*([1-9])\s*;?\s*$", re.IGNORECASE)
#: A row of characters of two bytes, whose second byte may be a letter; or any other high bytes.
_HIGH = re.compile(
    rb"((?:[\x81-\xfe][\x40-\x7e\x80-\xfe])++(?![\x80-\xff])|[\x80-\xff]+)", re.DOTALL
)
_ESCAPED = re.compile(rb"(?:\\'[0-9a-fA-F]{2})+")
_SAMPLE = 1 << 20
_HIGH_PAIR = re.compile(rb"(?:..)*?[\x80-\xff]{2}", re.DOTALL)

#: A line break inside a paragraph.
BREAK = "\v"
#: Control words that stand for characters.
CHARACTERS = {
    "tab": "\t", "line": BREAK, "softline": BREAK, "lbr": BREAK, "emdash": "—", "endash": "–",
    "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
    "emspace": "\u2003", "enspace": "\u2002", "qmspace": "\u2005",
}  # fmt: skip
SYMBOLS = {b"~": "\u00a0", b"_": "-", b"\t": "\t"}

#: Destinations whose content is no text of the page. Those marked ``\*`` are passed over unless
#: they are named here.
UNSEEN = words_in(
    """
    colortbl filetbl pict objdata objclass xe tc rxe nonesttables nonshppict shprslt
    datafield annotation atnid atnauthor revtbl listtable listoverridetable pn sp upr
    bkmkstart bkmkend ftnsep ftnsepc aftnsep aftnsepc ftncn aftncn fchars lchars
    """
)
#: Holds a drawing; of its content only the text of its box is seen.
DRAWINGS = frozenset({"shpinst", "do", "shpgrp"})
BOXES = frozenset({"shptxt", "dptxbxtext"})
NOTES = frozenset({"footnote"})
HEADS = words_in("header headerl headerr headerf footer footerl footerr footerf")


def code_page(number: int | None) -> str | None:
    """The codec of a Windows code page, None where Python has none."""
    name = _CODE_PAGES.get(number or 0, f"cp{number}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def destination(word: str, *, is_star: bool) -> str:
    """Where the text of a group that begins with this word belongs; empty for no destination."""
    for words, target in (
        (BOXES, "box"),
        (NOTES, "note"),
        (HEADS, "head"),
        (DRAWINGS, "drawing"),
        (UNSEEN, "none"),
    ):
        if word in words:
            return target
    named = {
        "fldinst": "field", "formfield": "form", "ffl": "choice",
        "fonttbl": "fonts", "title": "title", "info": "info", "stylesheet": "styles",
    }  # fmt: skip
    return named.get(word, "none" if is_star else "")


def decode_western(data: bytes, page: str) -> str:
    """Text in a western font. Careless writers leave the font to Chinese: pairs of high bytes.

    GB 2312 and its kin are written in such pairs, and hardly a western word is. The second byte of
    a rarer character, such as 镕, may be a letter: one that stands beside such a pair is read so.
    """
    wide = page if page in MULTIBYTE else "cp1252"
    parts = _HIGH.split(data)
    return "".join(part.decode(wide if _is_wide(part) else "cp1252", "replace") for part in parts)


def _is_wide(part: bytes) -> bool:
    return len(part) % 2 == 0 and bool(_HIGH_PAIR.match(part))


def guessed_page(data: bytes) -> str | None:
    """The code page of a file that names none, by the bytes it escapes; None for a western one."""
    runs = _ESCAPED.findall(data[:_SAMPLE])
    try:
        found = decode(b" ".join(bytes.fromhex(run.replace(b"\\'", b"").decode()) for run in runs))
    except UnreadableDocument:
        return None
    return found.encoding if found.encoding in MULTIBYTE and not found.notes else None
