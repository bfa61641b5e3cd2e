"""What a PDF page shows that its text layer does not hold."""

from __future__ import annotations

import ctypes
from collections import Counter

#: More objects than this may be letters of single strokes; paths of more segments than a closed
#: frame has may be letters.
_FEW_LINES, _FRAME_SEGMENTS = 50, 6
#: Share of a page that the pictures of a scan cover.
_SCANNED_SHARE = 0.5
_MOST_PICTURES = 500
#: Pieces of text that are asked whether their font is in the file.
_ASKED = 32
#: Pieces that are looked at, and characters of one.
_PIECES, _PIECE = 20, 256


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


def shows_picture(page: object) -> bool:
    """Whether pictures cover most of an open page, as those of a scan do."""
    import pypdfium2.raw as pdfium

    needed = _SCANNED_SHARE * pdfium.FPDF_GetPageWidthF(page) * pdfium.FPDF_GetPageHeightF(page)
    covered = 0.0
    for number in range(min(pdfium.FPDFPage_CountObjects(page), _MOST_PICTURES)):
        thing = pdfium.FPDFPage_GetObject(page, number)
        if _is_picture(thing):
            left, bottom, right, top = (ctypes.c_float() for _ in range(4))
            pdfium.FPDFPageObj_GetBounds(thing, left, bottom, right, top)
            covered += max(0.0, right.value - left.value) * max(0.0, top.value - bottom.value)
    return bool(covered >= needed > 0)


def _is_picture(thing: object) -> bool:
    """Whether an object of a page is a picture, or holds one and no more than a few others."""
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFPageObj_GetType(thing)
    if kind != pdfium.FPDF_PAGEOBJ_FORM:
        return bool(kind == pdfium.FPDF_PAGEOBJ_IMAGE)
    n_inner = min(pdfium.FPDFFormObj_CountObjects(thing), _FEW_LINES)
    inner = (pdfium.FPDFFormObj_GetObject(thing, number) for number in range(n_inner))
    return any(pdfium.FPDFPageObj_GetType(one) == pdfium.FPDF_PAGEOBJ_IMAGE for one in inner)


def n_dropped(page: object) -> int:
    """Pieces of text of an open page that PDFium leaves out, as they have no width; 0 is usual.

    That is one character set on its own in a font that is neither in the file nor on this machine.
    Longer pieces in it, which show that there is such a font, have a width and no height. Blanks
    set on their own in such a font are counted, too; in other fonts they are none of these.
    """
    import pypdfium2.raw as pdfium

    n_objects = pdfium.FPDFPage_CountObjects(page)
    asked = range(0, n_objects, max(1, n_objects // _ASKED))
    if not any(_is_in_absent_font(pdfium.FPDFPage_GetObject(page, number)) for number in asked):
        return 0
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    n_narrow: Counter[int] = Counter()
    flat: dict[int, list[object]] = {}
    for number in range(n_objects):
        thing = pdfium.FPDFPage_GetObject(page, number)
        if _is_in_absent_font(thing):
            font = ctypes.cast(pdfium.FPDFTextObj_GetFont(thing), ctypes.c_void_p).value or 0
            pdfium.FPDFPageObj_GetBounds(thing, left, bottom, right, top)
            if right.value == left.value:
                n_narrow[font] += 1
            elif top.value == bottom.value:
                flat.setdefault(font, []).append(thing)
    return sum(n for font, n in n_narrow.items() if _hold_text(page, flat.get(font, [])[:_PIECES]))


def _hold_text(page: object, things: list[object]) -> bool:
    """Whether one of some pieces of text is more than blanks."""
    import pypdfium2.raw as pdfium

    units = (ctypes.c_ushort * _PIECE)()
    textpage = pdfium.FPDFText_LoadPage(page) if things else None
    if not textpage:
        return False
    texts = ""
    for thing in things:
        n_bytes = pdfium.FPDFTextObj_GetText(thing, textpage, units, 2 * _PIECE)
        texts += ctypes.string_at(units, max(0, min(n_bytes, 2 * _PIECE) - 2)).decode(
            "utf-16-le", "replace"
        )
    pdfium.FPDFText_ClosePage(textpage)
    return bool(texts.strip())


def _is_in_absent_font(thing: object) -> bool:
    """Whether an object is a text in a font that the file does not hold."""
    import pypdfium2.raw as pdfium

    if pdfium.FPDFPageObj_GetType(thing) != pdfium.FPDF_PAGEOBJ_TEXT:
        return False
    return bool(pdfium.FPDFFont_GetIsEmbedded(pdfium.FPDFTextObj_GetFont(thing)) == 0)
