"""PDF by its text layer: pages, lines, paragraphs. Needs the ``docs`` extra (pypdfium2).

Guarantees: pages are numbered in the order of the file, and every character has its page; pages
without a text layer are named in the notes; text beyond the edges of its page, which nobody sees,
is left out with a note; a locked or damaged file raises a reason; only one thread of a process is
inside PDFium at a time (it is not thread-safe).
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.clean import clean, clean_traced
from featpipe.documents.formats.pdf_layout import (
    Block,
    PageLines,
    find_running,
    has_prose,
    join_words,
    to_blocks,
)
from featpipe.documents.formats.pdf_lines import (
    DamagedPage,
    LineReader,
    OpenFile,
    line_reader,
    open_page,
)
from featpipe.documents.formats.pdf_shown import may_show_text, n_dropped, shows_picture
from featpipe.documents.formats.pdf_typed import read_typed
from featpipe.documents.limits import OCR_HINT
from featpipe.errors import DocumentTooLarge, UnreadableDocument, UnsupportedDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from numpy.typing import NDArray

    from featpipe.documents.limits import LoadLimits

_PDFIUM = Lock()
_PASSWORD_ERROR = 4
_XFA_FORM = 2
_MAX_UNKNOWN_SHARE = 0.2
_FONT_HINT = "install one for its language (Chinese, Debian: fonts-wqy-microhei)"
_OCR_DPI = 200
_OCR_PIXELS = 4000


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
    pages.note_doubtful()
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
        with suppress(_import_pypdfium2().PdfiumError):  # a damaged form: the pages are read
            file.init_forms()
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
        self.n_pages = len(file)
        if file.get_formtype() == _XFA_FORM:
            builder.note("an XFA form: only the page that stands for it is read; print it to a PDF")
        self.form = file.formenv and file.formenv.raw
        self.builder = builder
        self.limits = builder.limits
        self.confidences: dict[int, float] = {}
        self.has_scans = False
        self.n_dropped = 0
        self.pictured: list[int] = []
        self.unmapped: list[int] = []

    def __iter__(self) -> Iterator[PageLines]:
        n_characters = 0
        reader = line_reader()
        for number in range(1, self.n_pages + 1):
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
                self.n_dropped += n_dropped(page)
                typed = read_typed(page, self.form, self.builder)
                is_picture = not has_prose(lines) and bool(lines.lines) and shows_picture(page)
                if typed:
                    lines = reader.read(page, typed)
        except DamagedPage:
            self.builder.note(f"page {number} is damaged and left out")
            return PageLines(number, 0.0, [])
        if lines.n_outside:
            self.builder.note("text beyond the edges of its page is left out")
        if not (is_scan or is_picture or lines.is_unmapped):
            return lines
        self.has_scans |= is_scan
        if self._is_ocr_due():
            return self._read_picture(number)
        if not is_scan or typed:
            (self.unmapped if lines.is_unmapped else self.pictured).append(number)
        return lines

    def note_doubtful(self) -> None:
        """Note the pages whose text layer does not say what they show."""
        if self.n_dropped:
            self.builder.note(
                f"characters set on their own in a font that is neither in the file nor on this "
                f"machine are left out, up to {self.n_dropped:,}; {_FONT_HINT}"
            )
        for numbers, what in (
            (self.unmapped, "in fonts that do not say what their letters mean, read as they stand"),
            (self.pictured, "with a picture and hardly any text beside it"),
        ):
            if numbers:
                doubt = f"{len(numbers)} of {self.n_pages} pages {what}: {_listed(numbers)}"
                self.builder.note(doubt if self.limits.use_ocr else f"{doubt}; {OCR_HINT}")

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
        doubt = f"{len(blank)} of {len(pages)} pages without a text layer: {_listed(blank)}"
        builder.hint = None if builder.limits.use_ocr else OCR_HINT
        builder.note(f"{doubt}; {builder.hint}" if has_scans and builder.hint and text else doubt)
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    n_unknown = int(np.count_nonzero((units >= 0xE000) & (units <= 0xF8FF) | (units == 0xFFFD)))
    if n_unknown > _MAX_UNKNOWN_SHARE * max(1, len(text)):
        builder.note(
            f"{n_unknown} of {len(text)} characters have no known meaning: fonts without one"
        )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" ..." if len(numbers) > 10 else "")


def _note_ocr(builder: DocumentBuilder, confidences: list[float]) -> None:
    if confidences:
        from featpipe.documents.formats.ocr import describe

        builder.note(describe(len(confidences), confidences))


class _File(Protocol):
    """An open ``pypdfium2.PdfDocument``. Pages and text pages of ``pypdfium2.raw`` are opaque."""

    raw: object
    formenv: OpenFile | None

    def init_forms(self) -> None: ...
    def get_formtype(self) -> int: ...
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
