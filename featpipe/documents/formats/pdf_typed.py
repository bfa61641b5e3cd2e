"""What was typed into a PDF page, and is no part of its text layer: fields of forms, free text.

A field shows its value, a box ☒ or ☐, a list its choice, as in a Word file. Hidden ones show
nothing. Comments are no text of the document; that there are some is said.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from featpipe.documents.builder import DocumentBuilder
    from featpipe.documents.formats.pdf_margins import Line

#: Flags of an annotation: hidden, not viewed. Of a field: a password.
_UNSEEN, _PASSWORD = 1 << 1 | 1 << 5, 1 << 13
_MOST_ANNOTATIONS = 10_000
#: A field higher than this has several lines, each of this height, in points.
_HIGH, _LINE_HEIGHT = 30.0, 14.0


class Typed(NamedTuple):
    """A line of text with its box, in points, y upwards."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def read_typed(page: object, form: object, builder: DocumentBuilder) -> list[Typed]:
    """The lines typed into an open page.

    Args:
        page: of ``pypdfium2.raw``.
        form: the environment of the file's forms; None where it has none.
        builder: for notes.
    """
    import pypdfium2.raw as pdfium

    comments = {
        getattr(pdfium, f"FPDF_ANNOT_{name}")
        for name in ("TEXT", "HIGHLIGHT", "UNDERLINE", "SQUIGGLY", "STRIKEOUT", "CARET")
    }
    typed: list[Typed] = []
    n_annotations = min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)
    if not n_annotations:
        return typed
    if form:  # boxes are known to be ticked from here on
        pdfium.FORM_OnAfterLoadPage(page, form)
    for number in range(n_annotations):
        with _annotation(page, number) as annotation:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation) if annotation else None
            if kind in comments and _string(annotation, b"Contents"):
                builder.note("comments are left out")
            elif kind == pdfium.FPDF_ANNOT_FILEATTACHMENT:
                builder.note("files attached to it are left out")
            elif kind not in {pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_WIDGET}:
                continue
            elif not pdfium.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                is_field = kind == pdfium.FPDF_ANNOT_WIDGET
                text = _value(form, annotation) if is_field else _string(annotation, b"Contents")
                typed += _placed(text, annotation)
    if form:
        pdfium.FORM_OnBeforeClosePage(page, form)
    return typed


@contextmanager
def _annotation(page: object, number: int) -> Iterator[object]:
    import pypdfium2.raw as pdfium

    annotation = pdfium.FPDFPage_GetAnnot(page, number)
    try:
        yield annotation
    finally:
        if annotation:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _value(form: object, annotation: object) -> str:
    """What a field of a form shows."""
    import pypdfium2.raw as pdfium

    if form is None:
        return ""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in {pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON}:
        return "☒" if pdfium.FPDFAnnot_IsChecked(form, annotation) else "☐"
    if kind in {pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX}:
        chosen = [
            _text(lambda *to, at=at: pdfium.FPDFAnnot_GetOptionLabel(form, annotation, at, *to))
            for at in range(max(0, pdfium.FPDFAnnot_GetOptionCount(form, annotation)))
            if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, at)
        ]
        if chosen:
            return "\n".join(chosen)
    elif kind != pdfium.FPDF_FORMFIELD_TEXTFIELD:
        return ""
    if pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return ""
    return _text(lambda *to: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, *to))


def _string(annotation: object, key: bytes) -> str:
    import pypdfium2.raw as pdfium

    return _text(lambda *to: pdfium.FPDFAnnot_GetStringValue(annotation, key, *to))


def _text(ask: Callable[..., int]) -> str:
    """What a function of PDFium writes into memory of the size that it asks for."""
    n_bytes = ask(None, 0)
    units = (ctypes.c_ushort * (n_bytes // 2 + 1))()
    ask(units, n_bytes)
    return ctypes.string_at(units, max(0, n_bytes - 2)).decode("utf-16-le", errors="replace")


def _placed(text: str, annotation: object) -> Iterator[Typed]:
    """The lines of a text in the box of its annotation, from its top down."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not pdfium.FPDFAnnot_GetRect(annotation, box):
        return
    left, right = sorted((box.left, box.right))
    bottom, top = sorted((box.bottom, box.top))
    if len(lines) == 1 and top - bottom <= _HIGH:
        yield Typed(lines[0], left, top, right, bottom)
        return
    height = min(_LINE_HEIGHT, (top - bottom) / len(lines))
    for line in lines:
        yield Typed(line, left, top, right, top - height)
        top -= height


def insert_typed(lines: list[Line], n_typed: int) -> None:
    """Put the last lines of a page, which were typed into it, beside the lines at their height."""
    typed = lines[-n_typed:]
    del lines[-n_typed:]
    for line in sorted(typed, key=lambda line: (-line.bottom, line.left)):
        _insert(lines, line)


def _insert(lines: list[Line], typed: Line) -> None:
    """Put a typed line behind the nearest line to its left, or before the first one below it."""
    typed = typed._replace(right=typed.left - 1)
    middle = typed.bottom + typed.size / 2
    level = [k for k, line in enumerate(lines) if _is_level(line, typed)]
    before = [k for k in level if lines[k].left <= typed.left]
    if level:
        nearest = max(before, key=lambda k: lines[k].left) if before else level[0]
        line = lines[nearest]
        typed = typed._replace(bottom=line.bottom, size=line.size)
        lines.insert(nearest + bool(before), typed)
    else:
        below = (k for k, line in enumerate(lines) if line.bottom < middle)
        lines.insert(next(below, len(lines)), typed)


def _is_level(line: Line, typed: Line) -> bool:
    """Whether the middle of a line is at the height of a typed one, or the other way round."""
    middle, typed_middle = line.bottom + line.size / 2, typed.bottom + typed.size / 2
    is_inside = typed.bottom <= middle <= typed.bottom + typed.size
    return is_inside or line.bottom <= typed_middle <= line.bottom + line.size
