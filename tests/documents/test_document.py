"""Pages, and what makes two files the same document."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
from pdf_writing import write_pdf
from zip_writing import paragraph, write_docx

from featpipe.documents import Document, Page, load_document


def test_a_copy_under_another_name_is_the_same_content() -> None:
    data = "合同金额为一万元。".encode()
    one, other = load_document(data, source="a.txt"), load_document(data, source="b/c.txt")
    assert one.bytes_hash == other.bytes_hash
    assert one.text_hash == other.text_hash


def test_the_same_text_in_other_formats_has_the_same_text_hash() -> None:
    text = "合同金额为一万元。"
    files = [
        text.encode(), text.encode("gb18030"), f"<html><p>{text}</p></html>".encode(),
        write_docx(paragraph(text)), write_pdf([[(text, 50, 700)]]),
    ]  # fmt: skip
    documents = [load_document(data, source="a") for data in files]
    assert len({document.text_hash for document in documents}) == 1
    assert len({document.bytes_hash for document in documents}) == len(files)
    assert len({document.loader for document in documents}) == 4


def test_a_document_is_frozen_and_travels() -> None:
    document = load_document(b"<table><tr><td>a<td>b</table><h1>c</h1>", source="a.html")
    assert pickle.loads(pickle.dumps(document)) == document  # noqa: S301 - our own value
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.text = ""  # type: ignore[misc] - the mistake under test


def test_the_page_of_a_character_is_found_also_beside_empty_pages() -> None:
    pages = (Page(1, 0, 5), Page(2, 5, 5), Page(3, 5, 9), Page(4, 9, 9))
    document = Document("x" * 9, "s", "m", "l/1", "", "", pages=pages)
    assert [document.page_of(i) for i in (0, 4, 5, 8, 9)] == [1, 1, 3, 3, None]
