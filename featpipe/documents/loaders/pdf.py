"""PDF by its text layer: pages, lines, paragraphs. Needs the ``docs`` extra (pypdfium2).

Guarantees: pages are numbered as they stand in the file, and every character knows its page; what
has no text layer is named in the notes; a locked or damaged file is a reason, not a crash; only one
thread of a process is inside PDFium at a time (it is not thread-safe).
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.documents.cleaning import clean, clean_traced
from featpipe.documents.draft import Draft
from featpipe.documents.loaders.pdf_layout import (
    Block,
    Box,
    PageLines,
    find_running,
    join_words,
    to_blocks,
    upright,
)
from featpipe.errors import (
    DocumentTooLarge,
    UnreadableDocument,
    UnsupportedDocument,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.documents.limits import LoadLimits

_PDFIUM = Lock()
_PASSWORD_ERROR = 4
_MAX_UNKNOWN_SHARE = 0.2
_OCR_DPI = 200
_OCR_PIXELS = 4000


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:  # noqa: ARG001
    """Read a PDF file (a PDF has no source text, so nothing can be traced).

    Raises:
        UnsupportedDocument: the ``docs`` extra is missing.
        UnreadableDocument: locked by a password, or damaged.
        DocumentTooLarge: more pages or text than the limits allow.
    """
    draft = Draft(limits)
    with _PDFIUM, _opened(data) as file:
        n_pages = len(file)
        if n_pages > limits.max_pages:
            raise DocumentTooLarge(f"{n_pages:,} pages are more than {limits.max_pages:,}")
        draft.title = clean(file.get_metadata_value("Title"))
        pages = _Pages(file, draft)
        lines = list(pages)
    left_out, running = find_running(lines)
    if running:
        shown = "; ".join(running[:4])
        draft.note(f"running heads kept once: {shown}")
    blocks = to_blocks(lines, left_out)
    join_words(blocks)
    _write(draft, blocks, [page.number for page in lines], pages.confidences)
    _say_doubts(draft, lines)
    if pages.confidences:
        from featpipe.documents.loaders.ocr import describe

        draft.note(describe(len(pages.confidences), list(pages.confidences.values())))
    return draft


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    try:
        import pypdfium2
    except ImportError as error:
        raise UnsupportedDocument(
            "reading PDF needs the extra 'docs'", hint='pip install "featpipe[docs]"'
        ) from error
    try:
        file = pypdfium2.PdfDocument(data)
        n_pages = len(file)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_ERROR or "password" in str(error).lower():
            raise UnreadableDocument(
                "a PDF locked by a password", hint="save it without a password"
            ) from error
        raise UnreadableDocument(f"a damaged PDF ({error})") from error
    try:
        if not n_pages:
            raise UnreadableDocument("a PDF without pages")
        yield file
    finally:
        file.close()


class _Pages:
    """The lines of every page, by text layer or, where there is none and it is allowed, by OCR."""

    def __init__(self, file: Any, draft: Draft) -> None:  # noqa: ANN401 - untyped library
        self.file = file
        self.draft = draft
        self.limits = draft.limits
        self.confidences: dict[int, float] = {}

    def __iter__(self) -> Iterator[PageLines]:
        import pypdfium2

        n_characters = 0
        for number in range(1, len(self.file) + 1):
            try:
                page = self.file[number - 1]
                try:
                    lines = self._read(page, number)
                finally:
                    page.close()
            except pypdfium2.PdfiumError:
                self.draft.note(f"page {number} is damaged and left out")
                lines = PageLines(number, 0.0, [])
            n_characters += sum(len(line.text) for line in lines.lines)
            if n_characters > self.limits.max_characters:
                limit = self.limits.max_characters
                raise DocumentTooLarge(f"the text is longer than {limit:,} characters")
            yield PageLines(number, lines.height, lines.lines)

    def _read(self, page: Any, number: int) -> PageLines:  # noqa: ANN401 - untyped library
        import pypdfium2.raw as pdfium

        lines = _read_lines(page)
        if lines.lines or not self.limits.use_ocr or not pdfium.FPDFPage_CountObjects(page.raw):
            return lines
        if not self._can_ocr():
            return lines
        if len(self.confidences) >= self.limits.max_ocr_pages:
            self.draft.note(f"no OCR after {self.limits.max_ocr_pages} pages")
            return lines
        from featpipe.documents.loaders.ocr import read_picture

        longest = max(*page.get_size(), 1.0)
        scale = min(_OCR_DPI / 72, _OCR_PIXELS / longest)
        bitmap = page.render(scale=scale, rev_byteorder=False)
        try:
            read = read_picture(bitmap.to_numpy()[:, :, :3], number)
        finally:
            bitmap.close()
        self.confidences[number] = read.confidence
        return read.page

    def _can_ocr(self) -> bool:
        """Whether the engine is there; where it is not, the pages with text are still read."""
        from featpipe.documents.loaders.ocr import load_engine

        try:
            load_engine()
        except UnsupportedDocument as error:
            self.draft.note(error.message)
            return False
        return True


def _read_lines(page: Any) -> PageLines:  # noqa: ANN401 - untyped library
    import pypdfium2.raw as pdfium

    textpage = page.get_textpage()
    try:
        n = pdfium.FPDFText_CountChars(textpage.raw)
        buffer = ctypes.create_string_buffer(2 * (n + 1))
        units = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort))
        n_units = max(0, pdfium.FPDFText_GetText(textpage.raw, 0, n, units) - 1)
        text = buffer.raw[: 2 * n_units].decode("utf-16-le", errors="replace")
        width, height = page.get_size()
        if pdfium.FPDFPage_GetRotation(page.raw) % 2:
            width, height = height, width
        is_plain = len(text) == n_units
        places = _Places(textpage.raw).lines(text, is_direct=n_units == n, is_plain=is_plain)
    finally:
        textpage.close()
    return upright(places, width, height)


class _Places:
    """Where the characters of one page stand, in the page's own coordinates."""

    def __init__(self, textpage: Any) -> None:  # noqa: ANN401 - untyped library
        import pypdfium2.raw as pdfium

        self.textpage = textpage
        self.rectangle = pdfium.FS_RECTF()
        self.reference = ctypes.byref(self.rectangle)
        self.box_of = pdfium.FPDFText_GetLooseCharBox
        self.index_of = pdfium.FPDFText_GetCharIndexFromTextIndex

    def lines(self, text: str, *, is_direct: bool, is_plain: bool) -> list[tuple[str, Box, Box]]:
        r"""Every line with the boxes of its first and last characters.

        Args:
            text: the page's text; its lines end in ``\r\n``.
            is_direct: indices of text and of characters are the same.
            is_plain: no character takes two units of UTF-16.
        """
        found: list[tuple[str, Box, Box]] = []
        at = 0
        place = self._box
        for raw, n_between in _visual_lines(text):
            shown = raw.strip()
            if shown:
                first = at if shown[0] == raw[0] else at + len(raw) - len(raw.lstrip())
                n_units = len(shown) if is_plain else len(shown.encode("utf-16-le")) // 2
                last = first + n_units - 1
                if not is_direct:
                    first, last = self._index(first), self._index(last)
                begin = place(first)
                found.append((shown, begin, place(last) if last > first else begin))
            at += n_between + (len(raw) if is_plain else len(raw.encode("utf-16-le")) // 2)
        return found

    def _index(self, text_index: int) -> int:
        return int(self.index_of(self.textpage, text_index))

    def _box(self, index: int) -> Box:
        if index < 0 or not self.box_of(self.textpage, index, self.reference):
            return 0.0, 0.0, 0.0, 0.0
        box = self.rectangle
        return box.left, box.bottom, box.right, box.top


def _visual_lines(text: str) -> list[tuple[str, int]]:
    """Lines as they stand on the page, and how many characters part each from the next.

    After a hyphen at its end the library hides the break of a line behind U+FFFE.
    """
    if "\ufffe" not in text:
        return [(line, 2) for line in text.split("\r\n")]
    found = []
    for line in text.split("\r\n"):
        *parted, rest = line.split("\ufffe")
        found += [(piece + "\ufffe", 0) for piece in parted]
        found.append((rest, 2))
    return found


def _write(
    draft: Draft, blocks: list[Block], numbers: list[int], confidences: dict[int, float]
) -> None:
    """Paragraphs into the draft, and the pages' spans."""
    starts: dict[int, int] = {}
    for block in blocks:
        begin = draft.length + bool(draft.length)
        if not draft.add(block.text):
            continue
        starts.setdefault(block.page, begin)
        for position, number in _cleaned_breaks(block):
            starts.setdefault(number, min(begin + position, draft.length))
    end = draft.length
    for number in reversed(numbers):
        start = starts.get(number, end)
        draft.add_page(number, start, end, confidences.get(number))
        end = start
    draft.pages.reverse()


def _cleaned_breaks(block: Block) -> list[tuple[int, int]]:
    """Where further pages begin in the cleaned paragraph: (position, page number)."""
    if len(block.breaks) < 3:  # the text before a break, cleaned alone, shows how long it became
        return [(len(clean(block.text[:at])), number) for at, number in block.breaks]
    characters = np.arange(len(block.text))
    _, raw, _ = clean_traced(block.text, characters, characters + 1)
    return [(int(np.searchsorted(raw, at)), number) for at, number in block.breaks]


def _say_doubts(draft: Draft, pages: list[PageLines]) -> None:
    blank = [page.number for page in pages if not page.lines]
    if blank:
        shown = ", ".join(map(str, blank[:10])) + (" ..." if len(blank) > 10 else "")
        if not draft.limits.use_ocr:
            draft.hint = "switch OCR on to read scanned pages"
        draft.note(f"{len(blank)} of {len(pages)} pages without a text layer: {shown}")
    text = draft.text()
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    n_unknown = int(np.count_nonzero((units >= 0xE000) & (units <= 0xF8FF) | (units == 0xFFFD)))
    if n_unknown > _MAX_UNKNOWN_SHARE * max(1, len(text)):
        draft.note(
            f"{n_unknown} of {len(text)} characters have no known meaning: fonts without one"
        )
