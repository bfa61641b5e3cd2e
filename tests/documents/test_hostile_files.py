"""Broken, locked, lying and swollen files: each a reason, none a crash."""

from __future__ import annotations

import pickle
import struct
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pdf_writing import write_pdf
from zip_writing import paragraph, write_docx, write_zip

from featpipe.documents import LoadLimits, load_document
from featpipe.errors import (
    DocumentError,
    DocumentTooLarge,
    EmptyDocument,
    UnreadableDocument,
    UnsupportedDocument,
)

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def ole(stream: str) -> bytes:
    return OLE + stream.encode("utf-16-le") + bytes(100)


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (b"", EmptyDocument, "the file is empty"),
        (b" \n\t\r\n", EmptyDocument, "no text in it"),
        (bytes(5000), UnreadableDocument, "5,000 zero bytes"),
        (ole("EncryptedPackage"), UnreadableDocument, "locked by a password"),
        (ole("Workbook"), UnsupportedDocument, "an Excel file of the old binary format"),
        (ole("Nothing"), UnsupportedDocument, "application/x-ole-storage"),
        (
            b"\x89PNG\r\n\x1a\n" + bytes(50),
            UnsupportedDocument,
            "a picture is not read without OCR",
        ),
        (b"\x7fELF" + bytes(range(200)), UnsupportedDocument, "application/x-executable"),
        (bytes(range(256)) * 10, UnsupportedDocument, "binary data of no known kind"),
        (write_zip({"a.txt": "x"}), UnsupportedDocument, "a zip archive"),
        (b"PK\x03\x04" + bytes(100), UnsupportedDocument, "zip"),
        (write_zip({"OFD.xml": "<x/>"}), UnsupportedDocument, "an OFD file"),
        (write_zip({"xl/workbook.bin": b"\0"}), UnsupportedDocument, "format .xlsb"),
        (
            write_zip({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}),
            UnsupportedDocument,
            "an OpenDocument spreadsheet",
        ),
        (
            b'<?xml version="1.0"?>\n<?mso-application progid="Word.Document"?><w:wordDocument/>',
            UnsupportedDocument,
            "an Office file as one XML file",
        ),
        (b"Rar!\x1a\x07\0" + bytes(50), UnsupportedDocument, "a packed file (RAR)"),
        (write_docx(paragraph("x"))[:-200], UnreadableDocument, "a damaged archive"),
        (b"%PDF-1.7\n" + b"garbage" * 50, UnreadableDocument, "a damaged PDF"),
        (write_docx(""), EmptyDocument, "no text in it"),
    ],
    ids=[
        "empty",
        "blank",
        "zeros",
        "locked",
        "xls",
        "ole",
        "picture",
        "program",
        "binary",
        "archive",
        "torn archive",
        "ofd",
        "xlsb",
        "ods",
        "office xml",
        "rar",
        "torn docx",
        "torn pdf",
        "docx without text",
    ],
)
def test_every_unusable_file_has_its_reason(
    data: bytes, kind: type[DocumentError], reason: str
) -> None:
    with pytest.raises(kind) as caught:
        load_document(data, source="档案/a.dat")
    assert type(caught.value) is kind
    assert caught.value.message.startswith("档案/a.dat: ")
    assert reason in caught.value.message
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own error
    assert (type(copy), str(copy)) == (kind, str(caught.value))


def test_a_swollen_part_is_refused_before_it_is_unpacked() -> None:
    body = f"<w:p>{' ' * 40_000_000}</w:p>"
    with pytest.raises(DocumentTooLarge, match="times its size"):
        load_document(write_docx(body), source="a.docx")


def test_a_part_that_lies_about_its_size_is_read_no_further_than_it_says() -> None:
    data = bytearray(write_docx(paragraph("x" * 100_000)))
    with zipfile.ZipFile(__import__("io").BytesIO(bytes(data))) as archive:
        size = archive.getinfo("word/document.xml").file_size
    lie = struct.pack("<I", 100)
    data = bytearray(bytes(data).replace(struct.pack("<I", size), lie))
    with pytest.raises(UnreadableDocument):
        load_document(bytes(data), source="a.docx")


def test_the_sum_of_all_parts_is_bounded() -> None:
    limits = LoadLimits(max_unpacked_bytes=1000)
    with pytest.raises(DocumentTooLarge, match="unpacks to more than 1,000 bytes"):
        load_document(write_docx(paragraph("x" * 2000)), source="a.docx", limits=limits)


def test_too_many_parts_are_refused() -> None:
    members = {f"word/{i}.xml": "" for i in range(50)} | {"word/document.xml": "<a/>"}
    with pytest.raises(DocumentTooLarge, match="more than 20 parts"):
        load_document(write_zip(members), source="a.docx", limits=LoadLimits(max_members=20))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_before_they_are_parsed(encoding: str) -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;">'
        '<!ENTITY d SYSTEM "file:///etc/passwd">]><a>&c;&d;</a>'
    )
    data = write_zip({"word/document.xml": bomb.encode(encoding)})
    with pytest.raises(UnreadableDocument, match="defines XML entities"):
        load_document(data, source="a.docx")


def test_deep_nesting_is_a_reason_and_not_a_crash() -> None:
    deep = "<w:sdt><w:sdtContent>" * 20_000 + "</w:sdtContent></w:sdt>" * 20_000
    with pytest.raises(DocumentTooLarge, match="nested too deeply"):
        load_document(write_docx(deep), source="a.docx", limits=LoadLimits(max_ratio=1000))


@pytest.mark.parametrize("limit", [{"max_bytes": 100}, {"max_characters": 50}])
def test_size_limits_hold_for_every_format(limit: dict[str, int]) -> None:
    text = "正文" * 200
    files = [text.encode(), f"<html><p>{text}</p>".encode(), write_docx(paragraph(text)),
             write_pdf([[(f"{y}{text[:30]}", 50, y) for y in range(700, 600, -15)]])]  # fmt: skip
    for data in files:
        with pytest.raises(DocumentTooLarge):
            load_document(data, source="a", limits=LoadLimits(**limit))


SAMPLES = [
    write_docx(paragraph("甲方") + "<w:tbl><w:tr><w:tc/></w:tr></w:tbl>"),
    write_pdf([[("text", 50, 700)], [("正文", 50, 700)]]),
    "<html><table><tr><td>甲<td>乙</table><p>正文 &amp; 其他".encode(),
    "From: a@b.c\nTo: d@e.f\nSubject: x\n\n正文".encode("gbk"),
    "# 标题\n\n| a | b |\n|---|---|\n| 1 | 2 |\n".encode("utf-16"),
]


@settings(max_examples=150)
@given(st.sampled_from(SAMPLES), st.data())
def test_damage_anywhere_ends_in_text_or_a_reason(sample: bytes, data: st.DataObject) -> None:
    damaged = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    damaged = damaged[:cut] if data.draw(st.booleans()) else damaged
    try:
        document = load_document(bytes(damaged), source="a")
    except DocumentError:
        return
    assert document.text.strip()
    document.text.encode()
