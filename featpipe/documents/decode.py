"""Decodes the bytes of a text file, with a note on every doubt.

Order of evidence: byte-order mark; a declared encoding of seven bits (HZ, ISO-2022), if its escapes
are there; UTF-8 that decodes without a fault; zero bytes (UTF-16, UTF-32); whole lines of UTF-8
among lines of another encoding; UTF-8 with a few damaged bytes; the encoding the file declares, if
it decodes; then the one of GB18030, Big5, Shift-JIS, EUC-KR and Windows-1252 that gives text of
ordinary characters. ``notes`` name a guess whose runner-up is close and the number of replaced
bytes. Bytes that are not text raise.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import lru_cache

from featpipe.errors import UnreadableDocument

#: Declared name -> codec (of the WHATWG encoding table, where codecs differ).
_MEANT = {
    "gb2312": "gb18030", "gbk": "gb18030", "gb_2312-80": "gb18030", "x-gbk": "gb18030",
    "cp936": "gb18030", "ms936": "gb18030", "hz-gb-2312": "hz", "big5": "big5hkscs",
    "big5-hkscs": "big5hkscs", "cp950": "big5hkscs", "iso-8859-1": "cp1252", "latin-1": "cp1252",
    "latin1": "cp1252", "ascii": "cp1252", "us-ascii": "cp1252", "windows-1252": "cp1252",
    "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "utf8": "utf-8", "unicode": "utf-16",
}  # fmt: skip
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
#: Encodings whose bytes are all ASCII -> how their other characters begin.
_SEVEN_BITS = {"hz": b"~{", "iso2022_": b"\x1b", "utf-7": b"+"}
_SAMPLE = 65_536
#: Any guess on fewer bytes is doubtful.
_SHORT = 8
#: A guess with a lower score is doubtful, too.
_SURE = 0.75
#: Chinese in UTF-8, as bytes of no other encoding are.
_UTF8_RUN = re.compile(rb"(?:[\xe3-\xe9][\x80-\xbf]{2}){4}")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_MAX_BAD_SHARE = 0.02
#: Characters of several bytes for each fault that show UTF-8; other encodings give hardly any.
_GOOD_PER_BAD = 10
_MAX_CONTROL_SHARE = 0.02
_ASCII_BYTES = bytes(range(128))
_CONTROL_BYTES = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, its encoding, and the doubts about it."""

    text: str
    encoding: str
    notes: tuple[str, ...] = ()


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Decode by the best evidence.

    Raises:
        UnreadableDocument: not text in any encoding known here.
    """
    seven = _seven_bit_text(data, declared)
    return seven or _checked(_by_bytes(data) or _declared_or_guessed(data, declared), data)


def _by_bytes(data: bytes) -> Decoded | None:
    """What the bytes alone show: a mark, zero bytes or UTF-8; None for another encoding."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _lenient(data[len(mark) :], encoding)
    if wide := wide_encoding(data):
        return _lenient(data, wide, f"no byte-order mark: read as {wide} by its zero bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start and error.end == len(data) and error.reason == "unexpected end of data":
            return _lenient(data, "utf-8", "cut off inside its last character")
    else:
        return Decoded(text, "utf-8", _utf8_doubts(data, text))
    mixed = _mixed_lines(data) if _UTF8_RUN.search(data) else None
    return mixed or (_lenient(data, "utf-8") if _is_damaged_utf8(data) else None)


def _mixed_lines(data: bytes) -> Decoded | None:
    """Lines of UTF-8 and of another encoding, as in files put together from several; else None."""
    lines = data.split(b"\n")
    texts = [_utf8_or_none(line) for line in lines]
    others = b"\n".join(line for line, text in zip(lines, texts, strict=True) if text is None)
    n_foreign = sum(not text.isascii() for text in texts if text is not None)
    score, best = _ranking(_sample(others))[0]
    if not n_foreign or score < _SURE or best.startswith("utf-16"):
        return None
    try:
        rest = iter(others.decode(best).split("\n"))
    except UnicodeDecodeError:
        return None
    text = "\n".join(next(rest) if text is None else text for text in texts)
    return Decoded(text, best, (f"lines in utf-8 and lines in {best}: each is read as what it is",))


def _utf8_or_none(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _seven_bit_text(data: bytes, declared: str | None) -> Decoded | None:
    """Text in the declared encoding, where that is all ASCII and has no fault."""
    named = known_encoding(declared) or ""
    begin = next((mark for name, mark in _SEVEN_BITS.items() if named.startswith(name)), None)
    if begin is None or begin not in data or not data.isascii():
        return None
    try:
        return Decoded(data.decode(named), named)
    except UnicodeDecodeError:
        return None


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8 but for a few of them."""
    text = data.decode("utf-8", errors="replace")
    n_bad = text.count("\ufffd")
    n_high_bytes = len(data.translate(None, _ASCII_BYTES))
    n_good = len(text) - (len(data) - n_high_bytes) - n_bad
    return n_good >= _GOOD_PER_BAD * n_bad


def _declared_or_guessed(data: bytes, declared: str | None) -> Decoded:
    named = known_encoding(declared)
    if named and named != "cp1252":  # servers declare "latin-1" by default
        try:
            return Decoded(data.decode(named), named)
        except UnicodeDecodeError:
            pass
    (score, best), (runner_score, runner) = _ranking(_sample(data))[:2]
    notes = [f"no byte-order mark: read as {best}"] if best.startswith("utf-16") else []
    if named and named not in {best, "cp1252"}:
        notes.append(f"declared as {declared}, which does not fit; read as {best}")
    if len(data) < _SHORT or score < _SURE or score - runner_score < 0.15:
        notes.append(f"encoding in doubt: read as {best}, could be {runner}")
    return _lenient(data, best, *notes)


def known_encoding(declared: str | None) -> str | None:
    """The codec meant by a declared name, or None for an unknown one."""
    if not declared:
        return None
    name = declared.strip().strip("\"'").lower()
    name = _MEANT.get(name, name)
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    is_text: bool = getattr(info, "_is_text_encoding", True)
    return info.name if is_text and not info.name.startswith(("utf-16", "utf-32")) else None


def _lenient(data: bytes, encoding: str, *notes: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding), encoding, notes)
    except UnicodeDecodeError:
        text = data.decode(encoding, errors="replace")
    n_bad = text.count("\ufffd")
    is_utf8 = encoding == "utf-8"
    n_few = 4 if is_utf8 else 2  # what one damaged byte can cost
    if n_bad > max(n_few, _MAX_BAD_SHARE * len(text)):
        raise UnreadableDocument(
            f"not readable as text: {n_bad:,} of {len(text):,} characters are no {encoding}",
            hint="the file may be damaged" if is_utf8 else "convert the file to UTF-8",
        )
    return Decoded(text, encoding, (*notes, f"{n_bad} bytes or sequences are no {encoding}"))


def _checked(decoded: Decoded, data: bytes) -> Decoded:
    if decoded.encoding.startswith("utf-16") or decoded.encoding.startswith("utf-32"):
        n_head = len(decoded.text[:_SAMPLE])
        n_controls = len(_CONTROLS.findall(decoded.text, 0, _SAMPLE))
    else:  # in any other encoding the control characters are bytes, which are counted faster
        head = data[:_SAMPLE]
        n_head, n_controls = len(head), len(head) - len(head.translate(None, _CONTROL_BYTES))
    if n_controls > max(2, _MAX_CONTROL_SHARE * n_head):
        raise UnreadableDocument("binary data, not text")
    return decoded


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, by zero bytes and by the characters they give."""
    head = data[: _SAMPLE - _SAMPLE % 4]
    head = head[: len(head) - len(head) % 2]
    if len(head) < 4 or not head.count(0):
        return None
    zeros = [head[i::4].count(0) / max(1, len(head[i::4])) for i in range(4)]
    if min(zeros[2], zeros[3]) > 0.95 and zeros[0] < 0.5:
        return "utf-32-le"
    if min(zeros[0], zeros[1]) > 0.95 and zeros[3] < 0.5:
        return "utf-32-be"
    score, best = max((_wide_score(head, e), e) for e in ("utf-16-le", "utf-16-be"))
    return best if score > 0.7 else None


def _wide_score(sample: bytes, encoding: str) -> float:
    """Share of characters in everyday use; in the wrong byte order it is low.

    In UTF-16 any pair of bytes is a character, so all of them count.
    """
    text = sample.decode(encoding, errors="replace")
    everyday = _everyday()
    n_bad = sum(c == "\ufffd" or "\ue000" <= c <= "\uf8ff" for c in text)
    n_bad += len(_CONTROLS.findall(text))
    return (sum(c in everyday for c in text) - 5 * n_bad) / max(1, len(text))


@lru_cache(maxsize=1)
def _everyday() -> frozenset[str]:
    ranges = ((0x20, 0x7E), (0xA0, 0xFF), (0x370, 0x3FF), (0x400, 0x45F), (0x3041, 0x30FF))
    found = {chr(code) for first, last in ranges for code in range(first, last + 1)}
    found.update("\t\r\n—–…•‘’“”€№℃①②③④⑤⑥⑦⑧⑨⑩")
    for encoding in ("gb18030", "big5hkscs", "cp949"):
        found |= _ordinary(encoding)
    return frozenset(found)


def _utf8_doubts(data: bytes, text: str) -> tuple[str, ...]:
    """A few two-byte characters can be GB18030 that happens to be UTF-8 (the word 联通)."""
    n_high = len(data) - len(text)
    if not 0 < n_high <= 8 or any(ord(c) > 0x7FF for c in text):
        return ()
    score = _score(data, "gb18030")
    if score > 0.9:
        return ("encoding in doubt: read as utf-8, could be gb18030",)
    return ()


def _sample(data: bytes) -> bytes:
    """The head of some bytes; from the first that is not ASCII on, where the head has few others.

    Letters and digits alone say nothing, and two of them may be one character of UTF-16.
    """
    first = _HIGH_BYTE.search(data, _SAMPLE // 2) if data[: _SAMPLE // 2].isascii() else None
    start = first.start() - first.start() % 2 if first else 0
    return data[start : start + _SAMPLE]


def _ranking(sample: bytes) -> list[tuple[float, str]]:
    encodings = ("gb18030", "big5hkscs", "cp932", "cp949", "cp1252")
    scores = [(_score(sample, e), e) for e in encodings]
    if len(sample) % 2 == 0:
        scores += [(_wide_score(sample, e), e) for e in ("utf-16-le", "utf-16-be")]
    return sorted(scores, key=lambda pair: -pair[0])


def _score(sample: bytes, encoding: str) -> float:
    """Share of the characters beyond ASCII that are ordinary in this encoding's languages."""
    text = sample.decode(encoding, errors="replace").rstrip("\ufffd")
    foreign = [c for c in text if c > "\x7f"]
    if not foreign:
        return 0.0
    n_good = len(_LATIN.findall(text)) if encoding == "cp1252" else _weigh(foreign, encoding)
    n_common = sum(c in _VERY_COMMON.get(encoding, "") for c in foreign)
    n_bad = sum(c == "\ufffd" or "\ue000" <= c <= "\uf8ff" for c in foreign)
    return (n_good + 0.5 * n_common - 5 * n_bad) / len(foreign)


def _weigh(characters: list[str], encoding: str) -> float:
    """How many characters are ordinary in an encoding; a traditional one in gb18030 counts 0.9."""
    ordinary = _ordinary(encoding)
    n_good = sum(c in ordinary for c in characters)
    if encoding != "gb18030":
        return n_good
    traditional = _ordinary("big5hkscs")
    return n_good + 0.9 * sum(c not in ordinary and c in traditional for c in characters)


_LATIN = re.compile(
    "(?<=[A-Za-z ])[\xc0-\xff](?=[A-Za-z\xc0-\xff .,;:!?'\"-])|(?<=[A-Za-z\xc0-\xff])[\xc0-\xff]"
    "|[\u2018-\u201d\u2013\u2014\u2026\u20ac\xa0\xa7\xa9\xab\xae\xb0\xbb\xbf\xa1\u2022\u2122]"
)
_VERY_COMMON = {
    "gb18030": "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年",
    "big5hkscs": "的一是在不了有和人這中大為上個國我以要他時來用們生到作地於出就分對成會可主發年",
    "cp932": "のにはをたがでてとしれさいるなかっも日一国人年大",
    "cp949": "이다의는에을가한고를로하지은있",
}
_PUNCTUATION = "，。、；：？！“”‘’（）《》〈〉【】「」『』—…·～％￥　"


@lru_cache(maxsize=8)
def _ordinary(encoding: str) -> frozenset[str]:
    """The everyday characters of a double-byte encoding: level 1 of its standard."""
    levels = {
        "gb18030": [(0xB0, 0xD7, "gb2312")],
        "big5hkscs": [(0xA4, 0xC6, "big5")],
        "cp932": [(0x82, 0x83, "cp932"), (0x88, 0x97, "cp932")],
        "cp949": [(0xB0, 0xC8, "euc_kr")],
    }
    found: set[str] = set(_PUNCTUATION)
    found.update(chr(code) for code in range(0xFF01, 0xFF5F))
    for first, last, codec in levels[encoding]:
        for lead in range(first, last + 1):
            for trail in range(0x40, 0xFF):
                found.update(bytes((lead, trail)).decode(codec, errors="ignore"))
    return frozenset(c for c in found if c > "\x7f")
