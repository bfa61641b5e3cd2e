"""What a PDF page shows that its text layer does not hold."""

from __future__ import annotations

import ctypes

#: More objects than this may be letters of single strokes; paths of more segments than a closed
#: frame has may be letters.
_FEW_LINES, _FRAME_SEGMENTS = 50, 6
#: Share of a page that the pictures of a scan cover.
_SCANNED_SHARE = 0.5
_MOST_PICTURES = 500


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
