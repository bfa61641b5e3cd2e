"""What a name promises: a .pdf that holds a login page is no document, whoever asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_checkpoints import save_encoder
from zip_writing import paragraph, write_docx

from featpipe import Cache, Pipeline
from featpipe.build import plan
from featpipe.cache.places import Preparation, make_preparation
from featpipe.documents import load_document
from featpipe.documents.load import ADDED, BUILT_IN
from featpipe.errors import EmptyDocument, UnreadableDocument

LOGIN = b"<!doctype html><html><body><h1>Sign in</h1></body></html>"
TEXT = "今天，合同已经签订。".encode()
MHTML = (
    b"MIME-Version: 1.0\r\nSubject: x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    b"<html><body>saved page</body></html>"
)
RTF = rb"{\rtf1\ansi rich text}"
DOCX = write_docx(paragraph("word text"))


@pytest.mark.parametrize(
    "name", ["a.pdf", "b.PDF", "a.docx", "a.xlsx", "a.pptx", "a.odt", "a.epub", "a.png", "a.jpeg",
             "a.zip", "a.rtf"],
)  # fmt: skip
@pytest.mark.parametrize("data", [LOGIN, TEXT, MHTML, bytes(range(1, 30)) * 9], ids=str)
def test_text_under_the_name_of_a_binary_format_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(UnreadableDocument, match=f"{name}: named .{name[2:].lower()}, and") as why:
        load_document(data, source=name)
    assert "rename it" in str(why.value.hint)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.doc", LOGIN, "Sign in"),
        ("a.xls", LOGIN, "Sign in"),
        ("a.doc", MHTML, "saved page"),
        ("a.doc", RTF, "rich text"),
        ("a.doc", DOCX, "word text"),
        ("a.docx", RTF, "rich text"),
        ("a.pdf", DOCX, "word text"),
        ("a.txt", RTF, "rich text"),
        ("a.txt", LOGIN, "Sign in"),
        ("a", TEXT, TEXT.decode()),
        ("a.dat", TEXT, TEXT.decode()),
        ("第1.5条", TEXT, TEXT.decode()),
    ],
)  # fmt: skip
def test_known_disguises_are_read_as_what_they_are(name: str, data: bytes, text: str) -> None:
    assert text in load_document(data, source=name).text


def test_plain_text_named_doc_is_refused_and_an_empty_file_is_empty() -> None:
    with pytest.raises(UnreadableDocument, match=r"named \.doc, and its bytes are text/plain"):
        load_document(TEXT, source="a.doc")
    with pytest.raises(EmptyDocument):
        load_document(b"", source="a.pdf")


def test_a_build_quarantines_it_also_where_its_bytes_are_known(tmp_path: Path) -> None:
    model = save_encoder(tmp_path / "tiny")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_bytes(TEXT)
    with Pipeline(tmp_path / "c.h5", model, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(docs).is_complete
        (docs / "a.pdf").write_bytes(TEXT)
        report = pipeline.build(docs)
    (lost,) = report.quarantined
    assert (lost.source, lost.error) == ("docs/a.pdf", "UnreadableDocument")
    assert lost.reason.startswith("named .pdf, and its bytes are text/plain")


def test_a_format_that_is_added_changes_no_key_of_other_documents() -> None:
    """Documents of old caches are found again: their keys hold the loaders of then."""
    known = make_preparation()
    for data in (TEXT, LOGIN, MHTML, DOCX, b"%PDF-1.7", b"\x89PNG\r\n\x1a\n"):
        assert known.of(data) == known.fingerprint
    assert known.of(RTF) == f"{known.fingerprint}+rtf/3"
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le")
    assert known.of(ole) == f"{known.fingerprint}+doc/5"
    assert [loader.identity for loader in BUILT_IN] == [
        "plain/5", "text/3", "markdown/7", "html/7", "pdf/6", "docx/6", "pptx/4", "xlsx/5",
        "odt/5", "epub/6", "ocr/3", "mail/6",
    ]  # fmt: skip
    assert {loader.name for loader in ADDED} == {"rtf", "doc"}


def test_documents_that_other_loaders_read_are_read_anew_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, docs, cache = save_encoder(tmp_path / "tiny"), tmp_path / "docs", tmp_path / "c.h5"
    docs.mkdir()
    for name, data in (("a.txt", TEXT), ("b.html", LOGIN), ("c.docx", DOCX)):
        (docs / name).write_bytes(data)
    with monkeypatch.context() as then:
        then.setattr(plan, "make_preparation", lambda *, use_ocr: Preparation(f"{use_ocr}"))
        with Pipeline(cache, model, "none", devices=["cpu"]) as pipeline:
            assert pipeline.build(docs).n_unchanged == 0
            assert pipeline.build(docs).n_unchanged == 3
    with Pipeline(cache, model, "none", devices=["cpu"]) as pipeline:
        report, again = pipeline.build(docs), pipeline.build(docs)
    assert (report.n_unchanged, report.n_loaded, report.n_encoded) == (0, 3, 0)
    assert again.n_unchanged == 3
    with Cache.open(cache) as opened:
        found = [one.id for one in opened.documents()]
    assert found == ["docs/a.txt", "docs/b.html", "docs/c.docx"]
