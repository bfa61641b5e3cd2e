"""Detects media types by content; the suffix only decides between types of text.

A name of a text format promises little. A name of a binary format promises a signature: a ``.pdf``
that holds a login page is no document (`broken_promise`). Known disguises are read as what they
are: one binary format under the name of another (a ``.doc`` that is RTF or .docx, a ``.jpg`` that
is PNG), and pages saved as ``.doc``, ``.xls`` or ``.ppt`` (HTML, MHTML), as web servers and Word
itself write them.
"""

from __future__ import annotations

import io
import lzma
import re
import struct
import zipfile
import zlib
from pathlib import PurePosixPath

from featpipe.documents.decode import wide_encoding

#: A text that was given as one: in UTF-8, and never searched for tags.
GIVEN = "text/plain; charset=utf-8"
HTML, PLAIN, MARKDOWN, MAIL = "text/html", "text/plain", "text/markdown", "message/rfc822"
PDF, RTF, ZIP = "application/pdf", "application/rtf", "application/zip"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = _OFFICE + "wordprocessingml.document"
PPTX = _OFFICE + "presentationml.presentation"
XLSX = _OFFICE + "spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
ODS, ODP = (
    f"application/vnd.oasis.opendocument.{kind}" for kind in ("spreadsheet", "presentation")
)
XLSB = "application/vnd.ms-excel.sheet.binary"
EPUB = "application/epub+zip"
OFD = "application/ofd"
DOC, XLS, PPT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
PACKED = {
    "application/gzip": "gzip", "application/x-bzip2": "bzip2", "application/x-xz": "xz",
    "application/zstd": "zstd", "application/x-7z-compressed": "7z", "application/vnd.rar": "RAR",
}  # fmt: skip
"""Archives and packed files that are recognised and not read, with their names."""
OFFICE_XML = "application/x-office-xml"
MSG, OLE = "application/vnd.ms-outlook", "application/x-ole-storage"
PICTURES = tuple(f"image/{found}" for found in ("png", "jpeg", "gif", "tiff", "bmp", "webp"))
ENCRYPTED_OFFICE = "application/x-encrypted-office"
UNKNOWN = "application/octet-stream"

#: What `zipfile` raises for an archive that is damaged, locked, or lacks a member.
DAMAGED_ZIP = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError, LookupError,
    ValueError, NotImplementedError, RuntimeError, OverflowError,
)  # fmt: skip

_HEAD = 4096
_CONTROLS = bytes([*range(9), *range(14, 27)])
_MAGIC = (
    (b"{\\rtf", RTF),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/x-executable"),
    (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"%!PS", "application/postscript"),
)
ADDED_MAGIC = (b"{\\rtf", b"\xd0\xcf\x11\xe0")
"""How files begin whose loaders are among ``load.ADDED``."""
_TEXTS = frozenset({HTML, PLAIN, MARKDOWN, MAIL, UNKNOWN})
#: Suffixes of binary formats.
_PROMISING = frozenset(
    """
    .pdf .docx .docm .dotx .xlsx .xlsm .xlsb .xltx .pptx .pptm .ppsx .odt .ods .odp .epub .rtf
    .doc .dot .wps .xls .xlt .et .ppt .pps .dps .msg .png .jpg .jpeg .gif .tif .tiff .bmp .webp
    .zip .gz .7z .rar .xz .bz2 .zst
    """.split()  # noqa: SIM905  # a list of forty strings in quotes is harder to read
)
#: Of them, those under which pages are saved.
_DISGUISES = frozenset({".doc", ".dot", ".wps", ".xls", ".xlt", ".et", ".ppt", ".pps", ".dps"})
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = (
    ("EncryptedPackage", ENCRYPTED_OFFICE),
    ("WordDocument", DOC),
    ("Workbook", XLS),
    ("Book", XLS),
    ("PowerPoint Document", PPT),
    ("__properties_version1.0", MSG),
)
_TAGS = (
    rb"html|head|body|meta|title|div|table|p|br|span|script|style|h[1-6]|font|center|ul|ol|a|img"
)
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|(?:" + _TAGS + rb")[\s/>])",
    re.IGNORECASE | re.DOTALL,
)
#: An Office file that is one XML file: of 2003, a flat package, or flat OpenDocument.
_OFFICE_XML = re.compile(
    rb"""\s*<\?xml[^>]*>.*?(?:<\?mso-application\s+progid=|<w:wordDocument[\s>]|<pkg:package[\s>]"""
    rb"""|<Workbook\s[^>]*urn:schemas-microsoft-com:office:spreadsheet|<office:document[\s>])""",
    re.DOTALL,
)
_MAIL_FIELD = re.compile(
    rb"^(?:From|To|Cc|Subject|Date|Received|MIME-Version|Message-ID|Return-Path|Delivered-To"
    rb"|Content-Type|Reply-To|Sender|X-[\w-]+):",
    re.IGNORECASE | re.MULTILINE,
)
_MAIL_START = re.compile(rb"(?:From \S+ [^\n]*\n)?[A-Za-z][A-Za-z0-9-]*:[ \t]?[^\n]*\n")
#: A whole page; Markdown may begin with any other tag.
_PAGE_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|(?:html|head|body)[\s/>])",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_SUFFIXES = {".md", ".markdown", ".mdown", ".mkd"}


def media_type_of(data: bytes, source: str = "") -> str:
    """The media type of a file, by content.

    Args:
        data: the whole file (the directory of a zip is at its end).
        source: its name; the suffix decides only between types of text.
    """
    head = data[:_HEAD]
    if b"%PDF-" in head[:1032]:
        return PDF
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(data)
    if head.startswith(_OLE_MAGIC):
        return _ole_type(data)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    for magic, found in _MAGIC:
        if head.startswith(magic) and not (len(magic) == 2 and _is_printable(head)):
            return found
    return _text_type(head, suffix_of(source))


def suffix_of(source: str) -> str:
    """Of a name, in lower case."""
    return PurePosixPath(source).suffix.lower()


def broken_promise(data: bytes, source: str) -> str | None:
    """The type of bytes that are text, or of no kind, under a name of a binary format; else None.

    Reads the head only.
    """
    suffix = suffix_of(source)
    if suffix not in _PROMISING:
        return None
    found = media_type_of(data[:_HEAD], source)
    if found not in _TEXTS or (suffix in _DISGUISES and found in {HTML, MAIL}):
        return None
    return found


def may_need_ocr(data: bytes) -> bool:
    """Whether some bytes may hold pages that only OCR can read."""
    return media_type_of(data[:_HEAD]) in {PDF, *PICTURES}


def _text_type(head: bytes, suffix: str) -> str:
    readable = _without_zeros(head)
    if readable is None:
        return UNKNOWN
    if _OFFICE_XML.match(readable):
        return OFFICE_XML
    is_markdown = suffix in _MARKDOWN_SUFFIXES
    if (_PAGE_START if is_markdown else _HTML_START).match(readable):
        return HTML
    first = readable.lstrip(b"\r\n")
    header = first.split(b"\r\n\r\n", 1)[0].split(b"\n\n", 1)[0]
    if _MAIL_START.match(first) and len(_MAIL_FIELD.findall(header)) >= 2:
        return MAIL
    if suffix in {".html", ".htm", ".xhtml"}:
        return HTML
    return MARKDOWN if is_markdown else PLAIN


def _without_zeros(head: bytes) -> bytes | None:
    """The head with the zero bytes of UTF-16 and UTF-32 left out; None for binary data."""
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"\xff\xfe", b"\xfe\xff"):
        if head.startswith(mark):
            return head[len(mark) :].replace(b"\0", b"")
    readable = head.replace(b"\0", b"")
    n_controls = len(readable) - len(readable.translate(None, _CONTROLS))
    if n_controls * 20 > len(readable) or not readable:
        wide = wide_encoding(head)  # half of a wide character may be a control character alone
        return head.decode(wide, "replace").encode() if wide else None
    return readable


def _is_printable(head: bytes) -> bool:
    """Whether a head is text, which may begin with a two-letter signature such as BM or MZ."""
    return len(head.translate(None, _CONTROLS)) == len(head)


def _zip_type(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            declared = _declared_type(archive)
    except DAMAGED_ZIP:
        return _torn_zip_type(data)
    for member, found in (
        ("word/document.xml", DOCX),
        ("ppt/presentation.xml", PPTX),
        ("xl/workbook.xml", XLSX),
        ("xl/workbook.bin", XLSB),
        ("OFD.xml", OFD),
    ):
        if member in names:
            return found
    return declared or _main_part_type(names) or ZIP


def _main_part_type(names: set[str]) -> str | None:
    """By the folder, for Office files whose main part has an unusual name."""
    if "[Content_Types].xml" not in names:
        return None
    folders = {name.split("/", 1)[0] for name in names}
    for folder, found in (("word", DOCX), ("ppt", PPTX), ("xl", XLSX)):
        if folder in folders:
            return found
    return None


def _declared_type(archive: zipfile.ZipFile) -> str | None:
    """By the small member ``mimetype`` of OpenDocument and EPUB."""
    try:
        info = archive.getinfo("mimetype")
    except KeyError:
        return None
    if info.file_size > 200:
        return None
    match = re.match(rb"[\w.+/-]+", archive.read(info))
    return match[0].decode("ascii") if match else None


def _torn_zip_type(data: bytes) -> str:
    """The type of a zip without a directory, by the names of its first members."""
    head = data[:_HEAD]
    for name, found in ((b"word/", DOCX), (b"ppt/", PPTX), (b"xl/", XLSX)):
        if name in head:
            return found
    return ODT if ODT.encode() in head else EPUB if EPUB.encode() in head else ZIP


def _ole_type(data: bytes) -> str:
    for name, found in _OLE_STREAMS:
        if name.encode("utf-16-le") in data:
            return found
    return OLE
