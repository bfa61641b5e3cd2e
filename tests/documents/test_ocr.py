"""OCR: only when asked for, only where there is no text layer, always said."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from pdf_writing import write_pdf

from featpipe.documents import LoadLimits, load_document
from featpipe.documents.formats import ocr
from featpipe.documents.formats.pdf_layout import PageLines
from featpipe.documents.formats.pdf_margins import Line
from featpipe.errors import DocumentTooLarge, EmptyDocument, UnreadableDocument, UnsupportedDocument

pdfium = pytest.importorskip("pypdfium2")
image_library = pytest.importorskip("PIL.Image")
WITH_OCR = LoadLimits(use_ocr=True)


def picture(text: str, kind: str = "PNG", n: int = 1) -> bytes:
    """A page rendered to a picture, in an image file or as the only content of a PDF."""
    page: Any = pdfium.PdfDocument(write_pdf([[(text, 50, 700)]], size=40))
    image = page[0].render(scale=1).to_pil()
    buffer = io.BytesIO()
    image.save(
        buffer, kind, **({"save_all": True, "append_images": [image] * (n - 1)} if n > 1 else {})
    )
    return buffer.getvalue()


@pytest.fixture
def engine() -> None:
    """The real engine; tests that need it are skipped where the extra is not installed."""
    pytest.importorskip("rapidocr")


@pytest.mark.usefixtures("engine")
def test_a_scanned_page_is_read_with_its_confidence_and_said_to_be() -> None:
    document = load_document(picture("PAYMENT 12345", "PDF"), source="scan.pdf", limits=WITH_OCR)
    assert document.text.replace(" ", "") == "PAYMENT12345"
    (page,) = document.pages
    assert page.confidence is not None
    assert 0.5 < page.confidence <= 1
    assert any("1 pages read by OCR" in note for note in document.notes)


@pytest.mark.usefixtures("engine")
def test_frames_of_a_picture_are_pages() -> None:
    data = picture("INVOICE 777", "TIFF", 2)
    document = load_document(data, source="a.tiff", limits=WITH_OCR)
    assert [page.number for page in document.pages] == [1, 2]
    assert document.text.replace(" ", "").split("\n") == ["INVOICE777", "INVOICE777"]
    with pytest.raises(DocumentTooLarge, match="2 pictures are more than 1"):
        load_document(data, source="a.tiff", limits=LoadLimits(use_ocr=True, max_ocr_pages=1))


def test_pages_with_a_text_layer_are_never_read_by_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "read_picture", lambda *_: pytest.fail("OCR on a page with text"))
    document = load_document(write_pdf([[("text", 50, 700)], []]), source="a.pdf", limits=WITH_OCR)
    assert document.text == "text"


def test_a_scan_with_a_stamp_in_its_text_layer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line("the scanned text", 50, 200, 700, 12)
    read = ocr.ReadPage(PageLines(1, 842.0, [line]), 0.9)
    monkeypatch.setattr(ocr, "load_engine", lambda: None)
    monkeypatch.setattr(ocr, "read_picture", lambda *_: read)
    scan = b"q 595 0 0 842 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q\n"
    data = write_pdf([[("COPY", 250, 400)]], drawing=scan)
    document = load_document(data, source="a.pdf", limits=WITH_OCR)
    assert document.text == "the scanned text"
    assert load_document(data, source="a.pdf").text == "COPY"


LETTER = b"50 700 m 52 705 54 710 60 710 c 66 710 70 705 70 700 c 60 690 l 55 695 l 52 692 l f\n"


@pytest.mark.parametrize(
    ("drawing", "is_read"),
    [
        (b"50 700 m 500 700 l S\n40 40 500 700 re S\n", False),
        (b"50 700 m 500 700 l S\n" * 60, True),
        (LETTER, True),
    ],
    ids=["lines and a frame", "many strokes", "an outline"],
)
def test_a_page_of_a_few_lines_is_no_scan(
    drawing: bytes, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []

    def read(_: object, number: int) -> ocr.ReadPage:
        numbers.append(number)
        return ocr.ReadPage(PageLines(number, 0.0, []), 1.0)

    monkeypatch.setattr(ocr, "load_engine", lambda: None)
    monkeypatch.setattr(ocr, "read_picture", read)
    with pytest.raises(EmptyDocument, match="1 of 1 pages without a text layer"):
        load_document(write_pdf([[]], drawing=drawing), source="a.pdf", limits=WITH_OCR)
    assert numbers == [1] * is_read


def test_without_ocr_a_scan_is_empty_and_the_next_step_is_named() -> None:
    with pytest.raises(EmptyDocument, match="without a text layer") as caught:
        load_document(picture("PAYMENT", "PDF"), source="scan.pdf")
    assert "featpipe[ocr]" in str(caught.value.hint)
    assert "--ocr" in str(caught.value.hint)
    with pytest.raises(UnsupportedDocument, match="a picture is not read without OCR"):
        load_document(picture("PAYMENT"), source="a.png")


def test_without_the_extra_the_reason_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ocr.load_engine.cache_clear()
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(UnsupportedDocument, match="needs the extra 'ocr'"):
        load_document(picture("PAYMENT"), source="a.png", limits=WITH_OCR)
    with pytest.raises(EmptyDocument, match="needs the extra 'ocr'"):
        load_document(picture("PAYMENT", "PDF"), source="a.pdf", limits=WITH_OCR)


@pytest.mark.usefixtures("engine")
def test_a_torn_picture_is_a_reason() -> None:
    with pytest.raises(UnreadableDocument, match="a damaged picture"):
        load_document(picture("PAYMENT")[:300], source="a.png", limits=WITH_OCR)


@pytest.mark.usefixtures("engine")
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    huge = image_library.new("1", (9000, 9000))
    buffer = io.BytesIO()
    huge.save(buffer, "PNG")
    with pytest.raises(DocumentTooLarge, match="9000 x 9000 pixels"):
        load_document(buffer.getvalue(), source="a.png", limits=WITH_OCR)
