"""The lines of an open PDF page, through PDFium.

PDFium is called through its C functions, few times and without an object per character: once for a
page's text, and for two boxes per line (its first and last character), which it writes side by side
into one array.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.documents.formats.pdf_layout import PageLines, upright
from featpipe.documents.formats.pdf_rules import RuleReader, declared
from featpipe.documents.formats.pdf_typed import insert_typed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from featpipe.documents.formats.pdf_typed import Typed

#: Characters and lines of an ordinary page, for which memory is kept from page to page.
_CHARACTERS, _LINES = 1 << 14, 256
#: Characters of a page that are asked whether their font says what they mean, and the share of
#: them that may not know.
_ASKED, _MAX_UNMAPPED_SHARE = 48, 0.2
_HIDDEN_BREAK = re.compile("[^\ufffe]*\ufffe|[^\ufffe]+")


class OpenFile(Protocol):
    """An open file of ``pypdfium2``; what ``pypdfium2.raw`` gives is opaque."""

    raw: object


class DamagedPage(Exception):
    """PDFium cannot open this page."""


@contextmanager
def open_page(file: OpenFile, number: int) -> Iterator[object]:
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
        self._rules = RuleReader()
        # The same function without declared arguments: no conversions, a third of the time.
        self._ask_box, self._ask_unmapped = (
            declared(function, ctypes.c_int)
            for function in (pdfium.FPDFText_GetLooseCharBox, pdfium.FPDFText_HasUnicodeMapError)
        )

    def read(self, page: object, typed: Sequence[Typed] = ()) -> PageLines:
        """The lines of an open page, upright, with those typed into it in their places.

        Raises:
            DamagedPage: its text cannot be read.
        """
        pdfium = self._pdfium
        textpage = pdfium.FPDFText_LoadPage(page)
        if not textpage:
            raise DamagedPage
        try:
            found, boxes = self._lines(textpage, typed)
            texts, places = self._on_page(page, found, boxes)
            n_outside = len(found) - len(texts)
            is_unmapped = self._is_unmapped(textpage)
        finally:
            pdfium.FPDFText_ClosePage(textpage)
        rules = self._rules.read(page) if texts else None
        width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
        if pdfium.FPDFPage_GetRotation(page) % 2:
            width, height = height, width
        if typed:
            texts += [line.text for line in typed]
            added = np.array([line[1:] for line in typed], np.float64)
            places = np.concatenate((places, np.stack((added, added))), axis=1)
        lines = upright(texts, places, width, height, n_typed=len(typed), rules=rules)
        if typed:
            insert_typed(lines.lines, len(typed))
        lines.is_unmapped = is_unmapped
        lines.n_outside = n_outside
        return lines

    def _on_page(
        self, page: object, texts: list[str], places: NDArray[np.float64]
    ) -> tuple[list[str], NDArray[np.float64]]:
        """The lines that are not beyond the edges of the page, whole; unknown places are on it."""
        edges = self._pdfium.FS_RECTF()
        if not texts or not self._pdfium.FPDF_GetPageBoundingBox(page, edges):
            return texts, places
        low = np.minimum(places[0], places[1])
        high = np.maximum(places[0], places[1])
        is_beyond = (low[:, 0] > edges.right) | (high[:, 2] < edges.left)
        is_beyond |= (low[:, 3] > edges.top) | (high[:, 1] < edges.bottom)
        is_beyond &= places.any(axis=(0, 2))
        if not is_beyond.any():
            return texts, places
        kept = np.flatnonzero(~is_beyond)
        return [texts[at] for at in kept], places[:, kept]

    def _is_unmapped(self, textpage: object) -> bool:
        """Whether fonts do not say what their letters mean, by letters from all over the page."""
        n = self._pdfium.FPDFText_CountChars(textpage)
        asked = range(0, n, max(1, n // _ASKED))
        n_unmapped = sum(self._ask_unmapped(textpage, at) == 1 for at in asked)
        return n_unmapped > _MAX_UNMAPPED_SHARE * len(asked)

    def _lines(
        self, textpage: object, typed: Sequence[Typed]
    ) -> tuple[list[str], NDArray[np.float64]]:
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
        elif typed and len(text) == n_units:
            cuts = self._cuts(textpage, typed, n)
            texts, first, last = cut_lines(text, is_plain=True, cuts=cuts)
        return texts, self._places(textpage, first, last)

    def _cuts(self, textpage: object, typed: Sequence[Typed], n: int) -> set[int]:
        """The characters before which something was typed in the middle of a line."""
        places = self._places(textpage, *[list(range(n))] * 2)[0]
        left, top, right, bottom = places.T
        middle = (top + bottom) / 2
        cuts = set()
        for line in typed:
            level = (line.bottom < middle) & (middle < line.top) & (right > left)
            behind = np.flatnonzero(level & (left >= line.left - 1))
            if len(behind) and np.any(level & (left < line.left - 1)):
                cuts.add(int(behind[np.argmin(left[behind])]))
        return cuts

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


def cut_lines(
    text: str, *, is_plain: bool, cuts: Collection[int] = ()
) -> tuple[list[str], list[int], list[int]]:
    r"""Every line as it stands on the page, and the indices of its first and last units.

    Lines of the text end in ``\r\n``. After a hyphen at a line's end PDFium hides the break behind
    U+FFFE instead, which stays at the end of the line.

    Args:
        text: of one page.
        is_plain: no character takes two units of UTF-16.
        cuts: characters before which a line ends, too, where all are plain.
    """
    if cuts:
        return _cut(text, sorted(cuts))
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


def _cut(text: str, cuts: list[int]) -> tuple[list[str], list[int], list[int]]:
    """:func:`cut_lines` piece by piece."""
    texts: list[str] = []
    first: list[int] = []
    last: list[int] = []
    for start, end in pairwise([0, *cuts, len(text)]):
        found, begins, ends = cut_lines(text[start:end], is_plain=True)
        texts += found
        first += [start + at for at in begins]
        last += [start + at for at in ends]
    return texts, first, last


def _n_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
