"""A small PDF writer for tests: text at places, Latin and Chinese, without any library."""

from __future__ import annotations

from collections.abc import Sequence

#: A page is a list of (text, left, bottom).
PageText = Sequence[tuple[str, float, float]]


def write_pdf(
    pages: Sequence[PageText],
    *,
    title: str = "",
    size: int = 10,
    drawing: bytes = b"",
    typed: Sequence[bytes] = (),
) -> bytes:
    """A PDF of A4 pages whose text stands where it is told; fonts are not embedded.

    ``drawing``: PDF operators that are put on every page. ``typed``: annotations, of every page,
    those that have a value being fields of a form.
    """
    latin = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    system = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >>"
    descendant = b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light " + system + b" >>"
    chinese = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H"
        b" /DescendantFonts [4 0 R] >>"
    )
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", latin, descendant, chinese]
    objects.append(b"<< /Title " + _utf16(title) + b" >>")
    first = len(objects) + 1
    objects += [b"<< /Type /Annot /F 4 /DA (/F1 9 Tf) %s >>" % one for one in typed]
    references = b" ".join(b"%d 0 R" % number for number in range(first, len(objects) + 1))
    if typed:
        form = b"<< /Fields [%s] /DR << /Font << /F1 3 0 R >> >> >>" % references
        objects[0] = b"<< /Type /Catalog /Pages 2 0 R /AcroForm %s >>" % form
    kids = []
    for page in pages:
        stream = drawing + b"".join(_shown(text, x, y, size) for text, x, y in page)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Annots [%s] /Resources << /Font << /F1 3 0 R /F2 5 0 R >> >> >>"
            % (len(objects), references)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    return _assembled(objects)


def field(kind: str, value: str, left: int, bottom: int, *, more: bytes = b"") -> bytes:
    """A field of a form, 100 points wide; its kind is Tx, Ch or Btn (value /On or /Off)."""
    written = value.encode() if kind == "Btn" else _utf16(value)
    places = (left, bottom, left + 100, bottom + 14 * len(value.splitlines()))
    box = b" /AS %s /AP << /N << /On 3 0 R >> >>" % written if kind == "Btn" else b""
    return b"/Subtype /Widget /FT /%s /T (%d) /V %s /Rect [%d %d %d %d] %s" % (
        kind.encode(), left + bottom * 1000, written, *places, box + more,
    )  # fmt: skip


def _shown(text: str, x: float, y: float, size: int) -> bytes:
    font, string = (b"F1", _latin(text)) if text.isascii() else (b"F2", _utf16(text, mark=b""))
    return b"BT /%s %d Tf %f %f Td %s Tj ET\n" % (font, size, x, y, string)


def _latin(text: str) -> bytes:
    escaped = text.encode("ascii")
    for character in (b"\\", b"(", b")"):
        escaped = escaped.replace(character, b"\\" + character)
    return b"(" + escaped + b")"


def _utf16(text: str, mark: bytes = b"FEFF") -> bytes:
    return b"<" + mark + text.encode("utf-16-be").hex().encode() + b">"


def _assembled(objects: Sequence[bytes]) -> bytes:
    data = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table, len(objects) + 1, len(data))
    )
