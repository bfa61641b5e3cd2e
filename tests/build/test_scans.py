"""Scans in a build: named with the next step without OCR, read again and marked with it."""

from __future__ import annotations

import io
from importlib import metadata
from pathlib import Path

import pytest

from featpipe import Cache, Pipeline, RunReport
from featpipe.cache.places import Preparation, make_preparation
from featpipe.errors import DocumentTooLarge, MissingExtra, UnreadableDocument
from featpipe.report import Quarantined
from featpipe.settings import BuildSettings


def scan(text: str) -> bytes:
    """A PDF of one page that is nothing but a picture."""
    image_library = pytest.importorskip("PIL.Image")
    drawing = pytest.importorskip("PIL.ImageDraw")
    fonts = pytest.importorskip("PIL.ImageFont")
    image = image_library.new("RGB", (700, 200), "white")
    drawing.Draw(image).text((40, 60), text, fill="black", font=fonts.load_default(60))
    buffer = io.BytesIO()
    image.save(buffer, "PDF")
    return buffer.getvalue()


def test_a_scan_is_named_without_ocr_and_read_with_it(tmp_path: Path, encoder_folder: Path) -> None:
    pytest.importorskip("pypdfium2")
    pytest.importorskip("rapidocr")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "scan.pdf").write_bytes(scan("PAYMENT 12345"))
    (folder / "a.txt").write_text("普通文本。", "utf-8")

    def build(*, use_ocr: bool) -> RunReport:
        settings = BuildSettings(levels=("paragraph",), use_ocr=use_ocr)
        with Pipeline(
            tmp_path / "c.h5", encoder_folder, ner="none", devices=["cpu"], settings=settings
        ) as pipeline:
            return pipeline.build(folder)

    (lost,) = build(use_ocr=False).quarantined
    assert (lost.source, lost.error) == ("docs/scan.pdf", "EmptyDocument")
    assert lost.reason.startswith("no text in it (1 of 1 pages without a text layer: 1); ")
    assert "scan.pdf" not in lost.reason
    assert "featpipe[ocr]" in lost.reason
    assert "--ocr" in lost.reason
    report = build(use_ocr=True)
    assert (report.n_loaded, report.n_unchanged, report.quarantined) == (2, 1, ())
    assert any("read by OCR" in note for note in report.notes)
    again = build(use_ocr=True)
    assert (again.n_loaded, again.n_unchanged, again.n_encoded) == (2, 2, 0)
    with Cache.open(tmp_path / "c.h5") as cache:
        (read,) = [d for d in cache.documents() if "PAYMENT" in d.text]
        ((number, _, _, confidence),) = read.meta["pages"]  # type: ignore[misc]
        assert number == 1
        assert 0.5 < confidence <= 1


def test_ocr_is_part_of_the_identity_of_what_it_might_read_only() -> None:
    plain, with_ocr = Preparation("f"), Preparation("f", "engine 1")
    for data in (b"%PDF-1.4", b"\x89PNG\r\n\x1a\n", b"II*\0"):
        assert plain.of(data) != with_ocr.of(data) != Preparation("f", "engine 2").of(data)
    for data in ("第一条".encode(), b"<html>", b"PK\x03\x04", b""):
        assert plain.of(data) == with_ocr.of(data)


def test_ocr_that_is_not_installed_is_named_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("featpipe.cache.places.version", absent)
    assert make_preparation().ocr == ""
    with pytest.raises(MissingExtra, match="rapidocr") as caught:
        make_preparation(use_ocr=True)
    assert "featpipe[ocr]" in str(caught.value.hint)


def test_a_reason_names_its_document_once_and_the_next_step_last() -> None:
    lost = Quarantined.of("a.pdf", UnreadableDocument("a.pdf: locked", hint="unlock it"))
    assert lost == Quarantined("a.pdf", "locked; unlock it", "UnreadableDocument")
    assert Quarantined.of("a.pdf", DocumentTooLarge("too many pages")).reason == "too many pages"
