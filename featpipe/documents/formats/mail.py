"""Mail (.eml): subject, people and date, then the body; attachments are named, not opened.

A mail inside the mail, such as a forwarded one, is read likewise, as are the mails of a mailbox,
one after the other. Lines of a flowed text are put together. Of a body in several forms the plain
one is read; HTML where there is no other. Parts whose declared encoding is unknown or wrong are
decoded by their bytes, as are fields that are not encoded at all.
"""

from __future__ import annotations

import re
from email import policy
from email.parser import BytesParser
from typing import TYPE_CHECKING

from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.decode import decode
from featpipe.documents.formats.html import read_html
from featpipe.documents.segment import words_in
from featpipe.errors import DocumentTooLarge, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

    from featpipe.documents.limits import LoadLimits

#: The line that begins a mail of a mailbox: From, whom by and when. In mails it is quoted.
_MAILBOX_LINE = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\d\d:\d\d[^\r\n]*\r?\n(?=[A-Za-z][A-Za-z0-9-]*:)"
)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_FIELDS = ("Subject", "From", "To", "Cc", "Date")
#: Kinds of text for programs, as in a page that was saved with all its parts (MHTML).
_FOR_PROGRAMS = words_in(
    """
    text/css text/javascript text/ecmascript text/xml text/calendar text/vcard text/x-vcard
    """
)


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a mail, as a :class:`~featpipe.documents.load.LoadFunction`."""
    builder = DocumentBuilder(limits)
    messages = _messages(data)
    if len(messages) > 1:
        if len(messages) > limits.max_members:
            raise DocumentTooLarge(f"more than {limits.max_members:,} mails in one file")
        builder.note(f"a mailbox: its {len(messages):,} mails are read as one document")
    for raw in messages:
        message = BytesParser(policy=policy.compat32).parsebytes(raw)
        subject = _head(message, builder)
        builder.title = builder.title or subject
        _part(message, builder, 0)
    return builder


def _messages(data: bytes) -> list[bytes]:
    """The mails of a mailbox (mbox), each without the line that begins it; a mail alone."""
    if not data.startswith(b"From "):
        return [data]
    starts = list(_MAILBOX_LINE.finditer(data))
    ends = [start.start() for start in starts[1:]]
    return [
        _QUOTED_FROM.sub(rb"\1", data[start.end() : end])
        for start, end in zip(starts, [*ends, len(data)], strict=True)
    ] or [data]


def _head(message: Message, builder: DocumentBuilder) -> str:
    """Add the fields of a message; its subject."""
    fields = _fields(message, builder)
    for name, value in fields.items():
        if value:
            builder.add(f"{name}: {value}")
    return fields["Subject"]


def _fields(message: Message, builder: DocumentBuilder) -> dict[str, str]:
    """The fields by name; "" for an absent one."""
    found = dict.fromkeys(_FIELDS, "")
    for key, value in reversed(list(message.raw_items())):  # the first of two counts
        name = key.capitalize()
        if name in found:
            found[name] = " ".join(str(value).split())
    bare = [name for name, value in found.items() if not value.isascii()]
    charset = str(message.get_param("charset") or "")
    texts = {name: _decoded_words(value) for name, value in found.items() if name not in bare}
    values = _decoded_bytes([found[name] for name in bare], charset, builder) if bare else []
    return found | texts | dict(zip(bare, values, strict=True))


def _decoded_bytes(values: list[str], charset: str, builder: DocumentBuilder) -> list[str]:
    """Fields with bytes beyond ASCII, which the parser keeps as surrogates.

    They are decoded together, as few bytes do not show their encoding.
    """
    raw = [value.encode("ascii", "surrogateescape") for value in values]
    encoding = "utf-8"
    notes: tuple[str, ...] = ("in no known encoding",)
    try:
        found = decode(b"\n".join(raw), charset)
    except UnreadableDocument:
        pass
    else:
        if not found.encoding.startswith("utf-16"):  # lines of a mail are never in it
            encoding, notes = found.encoding, found.notes
    for note in notes:
        builder.note(f"fields of the mail: {note}")
    return [value.decode(encoding, "replace") for value in raw]


def _decoded_words(raw: str) -> str:
    """A field with its encoded words (RFC 2047) in plain."""
    from email.errors import HeaderParseError
    from email.header import decode_header

    try:
        pieces = decode_header(raw)
    except (HeaderParseError, ValueError):
        return raw
    texts = [
        decode(piece, charset).text if isinstance(piece, bytes) else piece
        for piece, charset in pieces
    ]
    return " ".join("".join(texts).split())


def _part(part: Message, builder: DocumentBuilder, depth: int) -> None:
    if depth > builder.limits.max_depth:
        raise DocumentTooLarge("mail parts nested too deeply")
    payload, kind = part.get_payload(), part.get_content_type()
    if kind == "message/delivery-status":  # fields for a program, in messages without a body
        builder.note(f"part left out: {kind}")
    elif isinstance(payload, list):
        inner = [p for p in payload if not isinstance(p, str)]
        for message in _best(inner) if kind == "multipart/alternative" else inner:
            if kind == "message/rfc822":
                _head(message, builder)
            _part(message, builder, depth + 1)
    else:
        _leaf(part, builder)


def _leaf(part: Message, builder: DocumentBuilder) -> None:
    kind, name = part.get_content_type(), _filename(part, builder)
    if name or part.get_content_disposition() == "attachment":
        builder.note(f"attachment left out: {name or kind}")
    elif kind in {"text/html", "application/xhtml+xml"}:
        read_html(_text(part, builder), builder)
    elif kind.startswith("text/") and kind not in _FOR_PROGRAMS:
        lines = _text(part, builder).splitlines()
        for line in _unwrapped(lines, part) if _is_flowed(part) else lines:
            builder.add(line)
    else:
        builder.note(f"part left out: {kind}")


def _filename(part: Message, builder: DocumentBuilder) -> str:
    """The name of an attachment, however it is encoded; "" for a part without one."""
    for field, value in list(part.raw_items()):
        if field.lower() in {"content-disposition", "content-type"} and not value.isascii():
            part.replace_header(field, _decoded_bytes([value], "", builder)[0])
    return _decoded_words(part.get_filename() or "")


def _is_flowed(part: Message) -> bool:
    return str(part.get_param("format") or "").lower() == "flowed"


def _unwrapped(lines: list[str], part: Message) -> Iterator[str]:
    """The paragraphs of a flowed text (RFC 3676): a line that ends in a blank goes on."""
    keeps_blank = str(part.get_param("delsp") or "").lower() != "yes"
    waiting, quoted = "", ""
    for line in lines:
        text = line.lstrip(">")
        quotes = line[: len(line) - len(text)]
        if waiting and quotes != quoted:
            yield f"{quoted} {waiting}"
            waiting = ""
        quoted, text = quotes, text.removeprefix(" ")
        if text.endswith(" ") and text != "-- ":
            waiting += text if keeps_blank else text[:-1]
        else:
            yield f"{quotes} {waiting}{text}"
            waiting = ""
    if waiting:
        yield f"{quoted} {waiting}"


def _best(parts: list[Message]) -> list[Message]:
    """The plain form if it has text, else the last (richest) one."""
    for part in parts:
        if part.get_content_type() == "text/plain" and _bytes_of(part).strip():
            return [part]
    return parts[-1:]


def _text(part: Message, builder: DocumentBuilder) -> str:
    data = _bytes_of(part)
    decoded = decode(data, str(part.get_param("charset") or "") or None)
    for note in decoded.notes:
        builder.note(note)
    return decoded.text


def _bytes_of(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""
