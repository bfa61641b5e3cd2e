"""PDF by its text layer: pages, lines, paragraphs. Needs the ``docs`` extra (pypdfium2).

Guarantees: pages are numbered in the order of the file, and every character has its page; pages
without a text layer are named in the notes; a locked or damaged file raises a reason; only one
thread of a process is inside PDFium at a time (it is not thread-safe).

PDFium is called through its C functions, few times and without an object per character: once for a
page's text, and for two boxes per line (its first and last character), which it writes side by side
into one array.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import repeat
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.clean import clean, clean_traced
from featpipe.documents.formats.pdf_layout import (
    Block,
    PageLines,
    find_running,
    join_words,
    to_blocks,
    upright,
)
from featpipe.documents.limits import OCR_HINT
from featpipe.errors import DocumentTooLarge, UnreadableDocument, UnsupportedDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from numpy.typing import NDArray

    from featpipe.documents.limits import LoadLimits

_PDFIUM = Lock()
_PASSWORD_ERROR = 4
_MAX_UNKNOWN_SHARE = 0.2
_OCR_DPI = 200
_OCR_PIXELS = 4000
#: Characters and lines of an ordinary page, for which memory is kept from page to page.
_CHARACTERS, _LINES = 1 << 14, 256
#: More objects than this may be letters of single strokes; paths of more segments than a closed
#: frame has may be letters.
_FEW_LINES, _FRAME_SEGMENTS = 50, 6
_HIDDEN_BREAK = re.compile("[^\ufffe]*\ufffe|[^\ufffe]+")


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a PDF file (a PDF has no source text, so nothing can be traced).

    Raises:
        UnsupportedDocument: the ``docs`` extra is missing.
        UnreadableDocument: locked by a password, or damaged.
        DocumentTooLarge: more pages or text than the limits allow.
    """
    builder = DocumentBuilder(limits)
    with _PDFIUM, _opened(data, limits) as file:
        builder.title = clean(file.get_metadata_value("Title"))
        pages = _Pages(file, builder)
        lines = list(pages)
    left_out, running = find_running(lines)
    if running:
        builder.note(f"running heads kept once: {'; '.join(running[:4])}")
    blocks = to_blocks(lines, left_out)
    join_words(blocks)
    _write(builder, blocks, [page.number for page in lines], pages.confidences)
    _note_doubts(builder, lines, has_scans=pages.has_scans)
    _note_ocr(builder, list(pages.confidences.values()))
    return builder


@contextmanager
def _opened(data: bytes, limits: LoadLimits) -> Iterator[_File]:
    file = _parsed(data)
    try:
        n_pages = len(file)
        if not n_pages:
            raise UnreadableDocument("a PDF without pages")
        if n_pages > limits.max_pages:
            raise DocumentTooLarge(f"{n_pages:,} pages are more than {limits.max_pages:,}")
        yield file
    finally:
        file.close()


def _parsed(data: bytes) -> _File:
    pypdfium2 = _import_pypdfium2()
    try:
        file: _File = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_ERROR or "password" in str(error).lower():
            raise UnreadableDocument(
                "a PDF locked by a password", hint="save it without a password"
            ) from error
        raise UnreadableDocument(f"a damaged PDF ({error})") from error
    return file


def _import_pypdfium2() -> ModuleType:
    try:
        import pypdfium2
    except ImportError as error:
        raise UnsupportedDocument(
            "reading PDF needs the extra 'docs'", hint='pip install "featpipe[docs]"'
        ) from error
    library: ModuleType = pypdfium2
    return library


class _Pages:
    """The lines of every page: by its text layer, or by OCR without one and where allowed."""

    def __init__(self, file: _File, builder: DocumentBuilder) -> None:
        self.file = file
        self.builder = builder
        self.limits = builder.limits
        self.confidences: dict[int, float] = {}
        self.has_scans = False

    def __iter__(self) -> Iterator[PageLines]:
        n_characters = 0
        reader = line_reader()
        for number in range(1, len(self.file) + 1):
            lines = self._read(reader, number)
            lines.number = number
            n_characters += sum(len(line.text) for line in lines.lines)
            if n_characters > self.limits.max_characters:
                limit = self.limits.max_characters
                raise DocumentTooLarge(f"the text is longer than {limit:,} characters")
            yield lines

    def _read(self, reader: LineReader, number: int) -> PageLines:
        try:
            with open_page(self.file, number) as page:
                lines = reader.read(page)
                is_scan = not lines.lines and may_show_text(page)
        except DamagedPage:
            self.builder.note(f"page {number} is damaged and left out")
            return PageLines(number, 0.0, [])
        if not is_scan:
            return lines
        self.has_scans = True
        return self._read_picture(number) if self._is_ocr_due() else lines

    def _is_ocr_due(self) -> bool:
        if not self.limits.use_ocr or not self._can_ocr():
            return False
        if len(self.confidences) >= self.limits.max_ocr_pages:
            self.builder.note(f"no OCR after {self.limits.max_ocr_pages} pages")
            return False
        return True

    def _read_picture(self, number: int) -> PageLines:
        from featpipe.documents.formats.ocr import read_picture

        with closing(self.file[number - 1]) as page:
            scale = min(_OCR_DPI / 72, _OCR_PIXELS / max(*page.get_size(), 1.0))
            with closing(page.render(scale=scale, rev_byteorder=False)) as bitmap:
                read = read_picture(bitmap.to_numpy()[:, :, :3], number)
        self.confidences[number] = read.confidence
        return read.page

    def _can_ocr(self) -> bool:
        """Whether the engine is installed; without it the pages with text are still read."""
        from featpipe.documents.formats.ocr import load_engine

        try:
            load_engine()
        except UnsupportedDocument as error:
            self.builder.note(error.message)
            return False
        return True


def _write(
    builder: DocumentBuilder, blocks: list[Block], numbers: list[int], confidences: dict[int, float]
) -> None:
    """Paragraphs into the builder, and the pages' spans."""
    starts: dict[int, int] = {}
    for block in blocks:
        begin = builder.length + bool(builder.length)
        if not builder.add(block.text):
            continue
        starts.setdefault(block.page, begin)
        for position, number in _cleaned_breaks(block) if block.breaks else ():
            starts.setdefault(number, min(begin + position, builder.length))
    end = builder.length
    for number in reversed(numbers):
        start = starts.get(number, end)
        builder.add_page(number, start, end, confidences.get(number))
        end = start
    builder.pages.reverse()


def _cleaned_breaks(block: Block) -> list[tuple[int, int]]:
    """Where further pages begin in the cleaned paragraph: (position, page number)."""
    if len(block.breaks) < 3:  # the text before a break, cleaned alone, shows how long it became
        return [(len(clean(block.text[:at])), number) for at, number in block.breaks]
    characters = np.arange(len(block.text))
    _, raw, _ = clean_traced(block.text, characters, characters + 1)
    return [(int(np.searchsorted(raw, at)), number) for at, number in block.breaks]


def _note_doubts(builder: DocumentBuilder, pages: list[PageLines], *, has_scans: bool) -> None:
    text = builder.text()
    blank = [page.number for page in pages if not page.lines]
    if blank:
        shown = ", ".join(map(str, blank[:10])) + (" ..." if len(blank) > 10 else "")
        doubt = f"{len(blank)} of {len(pages)} pages without a text layer: {shown}"
        builder.hint = None if builder.limits.use_ocr else OCR_HINT
        builder.note(f"{doubt}; {builder.hint}" if has_scans and builder.hint and text else doubt)
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    n_unknown = int(np.count_nonzero((units >= 0xE000) & (units <= 0xF8FF) | (units == 0xFFFD)))
    if n_unknown > _MAX_UNKNOWN_SHARE * max(1, len(text)):
        builder.note(
            f"{n_unknown} of {len(text)} characters have no known meaning: fonts without one"
        )


def _note_ocr(builder: DocumentBuilder, confidences: list[float]) -> None:
    if confidences:
        from featpipe.documents.formats.ocr import describe

        builder.note(describe(len(confidences), confidences))


class _File(Protocol):
    """An open ``pypdfium2.PdfDocument``. Pages and text pages of ``pypdfium2.raw`` are opaque."""

    raw: object

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> _RenderedPage: ...
    def close(self) -> None: ...
    def get_metadata_value(self, key: str) -> str: ...


class _RenderedPage(Protocol):
    """A ``pypdfium2.PdfPage``; sizes in points."""

    def get_size(self) -> tuple[float, float]: ...
    def render(self, *, scale: float, rev_byteorder: bool) -> _Bitmap: ...
    def close(self) -> None: ...


class _Bitmap(Protocol):
    """A ``pypdfium2.PdfBitmap``; pixels (height, width, channels), BGR first."""

    def to_numpy(self) -> NDArray[np.uint8]: ...
    def close(self) -> None: ...


class DamagedPage(Exception):
    """PDFium cannot open this page."""


@contextmanager
def open_page(file: _File, number: int) -> Iterator[object]:
    """Page ``number`` (from 1) of an open file.

    Raises:
        DamagedPage: it cannot be opened.
    """
    import pypdfium2.raw as pdfium

    page = pdfium.FPDF_LoadPage(file.raw, number - 1)
    if not page:
        raise DamagedPage
    try:
        yield page
    finally:
        pdfium.FPDF_ClosePage(page)


def may_show_text(page: object) -> bool:
    """Whether an open page without a text layer may show text: a picture, or outlines of letters.

    A few lines and frames, or an empty page, do not.
    """
    import pypdfium2.raw as pdfium

    n_objects = pdfium.FPDFPage_CountObjects(page)
    if n_objects > _FEW_LINES:
        return True
    for number in range(n_objects):
        thing = pdfium.FPDFPage_GetObject(page, number)
        if pdfium.FPDFPageObj_GetType(thing) != pdfium.FPDF_PAGEOBJ_PATH:
            return True
        if pdfium.FPDFPath_CountSegments(thing) > _FRAME_SEGMENTS:
            return True
    return False


@lru_cache(maxsize=1)
def line_reader() -> LineReader:
    """The one reader of this process; used only under the lock of PDFium."""
    return LineReader()


class LineReader:
    """Reads page after page into the same memory."""

    def __init__(self) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium: ModuleType = pdfium
        self._units = (ctypes.c_ushort * _CHARACTERS)()
        self._boxes = _Boxes(pdfium, _LINES)
        # The same function without declared arguments: no conversions, a third of the time.
        address = ctypes.cast(pdfium.FPDFText_GetLooseCharBox, ctypes.c_void_p).value
        self._ask_box = ctypes.CFUNCTYPE(ctypes.c_int)(address or 0)

    def read(self, page: object) -> PageLines:
        """The lines of an open page, upright.

        Raises:
            DamagedPage: its text cannot be read.
        """
        pdfium = self._pdfium
        textpage = pdfium.FPDFText_LoadPage(page)
        if not textpage:
            raise DamagedPage
        try:
            texts, places = self._lines(textpage)
        finally:
            pdfium.FPDFText_ClosePage(textpage)
        width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
        if pdfium.FPDFPage_GetRotation(page) % 2:
            width, height = height, width
        return upright(texts, places, width, height)

    def _lines(self, textpage: object) -> tuple[list[str], NDArray[np.float64]]:
        """Texts, and the boxes (2, n, 4) of their first and last characters."""
        n = self._pdfium.FPDFText_CountChars(textpage)
        units = self._units if n < _CHARACTERS else (ctypes.c_ushort * (n + 1))()
        n_units = max(0, self._pdfium.FPDFText_GetText(textpage, 0, n, units) - 1)
        text = ctypes.string_at(units, 2 * n_units).decode("utf-16-le", errors="replace")
        texts, first, last = cut_lines(text, is_plain=len(text) == n_units)
        if n_units != n:  # indices of text and of characters differ
            index_of = self._pdfium.FPDFText_GetCharIndexFromTextIndex
            first = [index_of(textpage, at) for at in first]
            last = [max(a, index_of(textpage, at)) for a, at in zip(first, last, strict=True)]
        return texts, self._places(textpage, first, last)

    def _places(self, textpage: object, *ends: list[int]) -> NDArray[np.float64]:
        """Boxes (2, n, 4) of the characters at two lists of n indices; zeros where unknown."""
        n = len(ends[0])
        boxes = self._boxes if n <= _LINES else _Boxes(self._pdfium, n)
        for indices, cells, memory in zip(ends, boxes.cells, boxes.memory, strict=True):
            known = list(map(self._ask_box, repeat(textpage), indices, cells))
            if not all(known):
                memory[np.flatnonzero(np.array(known) == 0)] = 0.0
        return boxes.memory[:, :n].astype(np.float64)


class _Boxes:
    """Two boxes per line, as PDFium's structures and as an array (2, n, 4) over them."""

    def __init__(self, pdfium: ModuleType, n_lines: int) -> None:
        structures = (pdfium.FS_RECTF * n_lines * 2)()
        self.memory = np.frombuffer(structures, np.float32).reshape(2, n_lines, 4)
        self.cells = [[ctypes.byref(box) for box in boxes] for boxes in structures]


def cut_lines(text: str, *, is_plain: bool) -> tuple[list[str], list[int], list[int]]:
    r"""Every line as it stands on the page, and the indices of its first and last units.

    Lines of the text end in ``\r\n``. After a hyphen at a line's end PDFium hides the break behind
    U+FFFE instead, which stays at the end of the line.

    Args:
        text: of one page.
        is_plain: no character takes two units of UTF-16.
    """
    texts: list[str] = []
    first: list[int] = []
    last: list[int] = []
    length = len if is_plain else _n_units
    at = 0
    for line in text.split("\r\n"):
        for raw in _HIDDEN_BREAK.findall(line) if "\ufffe" in line else (line,):
            shown = raw.strip()
            if shown:
                begin = at if shown[0] == raw[0] else at + len(raw) - len(raw.lstrip())
                texts.append(shown)
                first.append(begin)
                last.append(begin + length(shown) - 1)
            at += length(raw)
        at += 2
    return texts, first, last


def _n_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
