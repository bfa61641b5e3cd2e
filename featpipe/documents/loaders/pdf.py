"""PDF by its text layer: pages, lines, paragraphs. Needs the ``docs`` extra (pypdfium2).

Guarantees: pages are numbered as they stand in the file, and every character knows its page; what
has no text layer is named in the notes; a locked or damaged file is a reason, not a crash; only one
thread of a process is inside PDFium at a time (it is not thread-safe).
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.documents.cleaning import clean, clean_traced
from featpipe.documents.draft import Draft
from featpipe.documents.limits import OCR_HINT
from featpipe.documents.loaders.pdf_layout import (
    Block,
    PageLines,
    find_running,
    join_words,
    to_blocks,
)
from featpipe.documents.loaders.pdf_page import DamagedPage, line_reader, may_show_text, open_page
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
    _say_doubts(draft, lines, has_scans=pages.has_scans)
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
        self.has_scans = False

    def __iter__(self) -> Iterator[PageLines]:
        n_characters = 0
        reader = line_reader()
        for number in range(1, len(self.file) + 1):
            try:
                with open_page(self.file, number) as page:
                    lines = reader.read(page)
                    is_blank = not lines.lines and not may_show_text(page)
            except DamagedPage:
                self.draft.note(f"page {number} is damaged and left out")
                lines, is_blank = PageLines(number, 0.0, []), True
            if not lines.lines and not is_blank:
                self.has_scans = True
                lines = self._read_picture(number) if self._is_ocr_due() else lines
            lines.number = number
            n_characters += sum(len(line.text) for line in lines.lines)
            if n_characters > self.limits.max_characters:
                limit = self.limits.max_characters
                raise DocumentTooLarge(f"the text is longer than {limit:,} characters")
            yield lines

    def _is_ocr_due(self) -> bool:
        if not self.limits.use_ocr or not self._can_ocr():
            return False
        if len(self.confidences) >= self.limits.max_ocr_pages:
            self.draft.note(f"no OCR after {self.limits.max_ocr_pages} pages")
            return False
        return True

    def _read_picture(self, number: int) -> PageLines:
        from featpipe.documents.loaders.ocr import read_picture

        page = self.file[number - 1]
        try:
            longest = max(*page.get_size(), 1.0)
            scale = min(_OCR_DPI / 72, _OCR_PIXELS / longest)
            bitmap = page.render(scale=scale, rev_byteorder=False)
            try:
                read = read_picture(bitmap.to_numpy()[:, :, :3], number)
            finally:
                bitmap.close()
        finally:
            page.close()
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
        for position, number in _cleaned_breaks(block) if block.breaks else ():
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


def _say_doubts(draft: Draft, pages: list[PageLines], *, has_scans: bool) -> None:
    text = draft.text()
    blank = [page.number for page in pages if not page.lines]
    if blank:
        shown = ", ".join(map(str, blank[:10])) + (" ..." if len(blank) > 10 else "")
        doubt = f"{len(blank)} of {len(pages)} pages without a text layer: {shown}"
        draft.hint = None if draft.limits.use_ocr else OCR_HINT
        draft.note(f"{doubt}; {draft.hint}" if has_scans and draft.hint and text else doubt)
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    n_unknown = int(np.count_nonzero((units >= 0xE000) & (units <= 0xF8FF) | (units == 0xFFFD)))
    if n_unknown > _MAX_UNKNOWN_SHARE * max(1, len(text)):
        draft.note(
            f"{n_unknown} of {len(text)} characters have no known meaning: fonts without one"
        )
