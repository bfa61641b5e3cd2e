r"""The lines of one page out of PDFium, with their places: few calls, and no object per character.

PDFium is asked for a page's text once, and for two boxes per line (its first and last character),
which it writes side by side into one array. Its own C functions are called, since pages open and
close by the thousand.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import contextmanager
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.documents.loaders.pdf_layout import PageLines, upright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

#: Room that is kept from page to page: for the characters and lines of an ordinary one.
_CHARACTERS, _LINES = 1 << 14, 256
#: More may be letters of single strokes; and a frame is four strokes, closed, where letters are
#: curves of many.
_FEW_LINES, _FRAME_SEGMENTS = 50, 6
_HIDDEN_BREAK = re.compile("[^\ufffe]*\ufffe|[^\ufffe]+")


class DamagedPage(Exception):
    """PDFium cannot open this page."""


@contextmanager
def open_page(file: Any, number: int) -> Iterator[Any]:  # noqa: ANN401 - untyped library
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


def may_show_text(page: Any) -> bool:  # noqa: ANN401 - untyped library
    """Whether an open page without a text layer may show text all the same.

    A picture may, and so may outlines of letters. A few lines and frames, or nothing at all, do
    not.
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
    """The one of this process; only who is alone inside PDFium may use it."""
    return LineReader()


class LineReader:
    """Reads page after page, into the same memory."""

    def __init__(self) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium = pdfium
        self._units = (ctypes.c_ushort * _CHARACTERS)()
        self._boxes = _Boxes(pdfium, _LINES)
        # The same function without declared arguments: no conversions, a third of the time.
        address = ctypes.cast(pdfium.FPDFText_GetLooseCharBox, ctypes.c_void_p).value
        self._ask_box = ctypes.CFUNCTYPE(ctypes.c_int)(address or 0)

    def read(self, page: Any) -> PageLines:  # noqa: ANN401 - untyped library
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

    def _lines(self, textpage: Any) -> tuple[list[str], NDArray[np.float64]]:  # noqa: ANN401
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

    def _places(self, textpage: Any, *ends: list[int]) -> NDArray[np.float64]:  # noqa: ANN401
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

    def __init__(self, pdfium: Any, n_lines: int) -> None:  # noqa: ANN401 - untyped library
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
