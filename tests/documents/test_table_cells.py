r"""Cells of tables, in every format that has them: their lines stay apart, wraps in them do not."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from zip_writing import write_docx, write_zip

from featpipe.documents import load_document

#: What a cell holds, with its line breaks as they are shown.
CELLS = ("联系人", "张三\n李四", "备\n注", "第一项\n\n第二项")
SHOWN = "联系人\t张三 李四\t备注\t第一项 第二项"


def in_docx() -> bytes:
    def lines(text: str) -> str:
        return "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in text.split("\n"))

    first, *others = (f"<w:tc>{lines(text)}</w:tc>" for text in CELLS)
    others[0] = "<w:tc><w:p><w:r><w:t>张三</w:t><w:br/><w:t>李四</w:t></w:r></w:p></w:tc>"
    return write_docx(f"<w:tbl><w:tr>{first}{''.join(others)}</w:tr></w:tbl>")


def in_html() -> bytes:
    lines = [text.replace("\n", "\n <br>\n ") for text in CELLS[2:]]
    cells = ["联系\n  人", "<p>张三</p>\n<p>李四</p>", *lines]
    return f"<table><tr><td>{'<td>'.join(cells)}</table>".encode()


def in_markdown() -> bytes:
    first, *others = (text.replace("\n", "<br/>") for text in CELLS)
    return f"| {first} | {' | '.join(others)} |\n|---|---|---|---|\n".encode()


def in_odt() -> bytes:
    def cell(text: str) -> str:
        return f"<table-cell><p>{text.replace(chr(10), '<line-break/>')}</p></table-cell>"

    cells = "".join(map(cell, CELLS)).replace("张三<line-break/>", "张三</p><p>")
    kind = "application/vnd.oasis.opendocument.text"
    content = f"<office><table><table-row>{cells}</table-row></table></office>"
    return write_zip({"mimetype": kind, "content.xml": content})


def in_pptx() -> bytes:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    table = slide.shapes.add_table(1, len(CELLS), 0, 0, 9, 9).table
    for column, text in enumerate(CELLS):
        table.cell(0, column).text = text.replace("张三\n", "张三\v")
    buffer = io.BytesIO()
    show.save(buffer)
    return buffer.getvalue()


def in_rtf() -> bytes:
    def escaped(text: str) -> str:
        return "".join(f"\\u{ord(c)} ?" if c != "\n" else "\\par\n" for c in text)

    cells = "".join(f"{escaped(text)}\\cell\n" for text in CELLS).replace("\\par", "\\line", 1)
    edges = "".join(f"\\cellx{1000 * (n + 1)}" for n in range(len(CELLS)))
    return f"{{\\rtf1\\ansi\\trowd{edges}\\pard\\intbl {cells}\\row\\pard\\par}}".encode()


def in_xlsx() -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    book.active.append(CELLS)
    book.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "write",
    [in_docx, in_html, in_markdown, in_odt, in_pptx, in_rtf, in_xlsx],
    ids=lambda w: w.__name__,
)
def test_lines_of_a_cell_are_parted_by_a_blank(write: Callable[[], bytes]) -> None:
    document = load_document(write(), source="a.md" if write is in_markdown else "a")
    assert document.text.split("\n")[-1] == SHOWN


def test_lines_of_a_cell_are_traced_to_their_places() -> None:
    for source, name in (
        ("<table><tr><td>甲<td> 张三 <br>\n 李四</table>", "a.html"),
        ("| 甲 | 张三<br>李四 |\n|---|---|\n", "a.md"),
    ):
        page = load_document(source.encode(), source=name, keep_origin=True)
        assert page.text == "甲\t张三 李四"
        assert page.origin
        for character in "张李四":
            at = page.text.index(character)
            start, end = page.origin.to_source(at, at + 1)
            assert source[start:end] == character


def test_a_line_break_in_markdown_ends_a_paragraph() -> None:
    source = "# 合同<br>附件\n\n甲方：某公司<br>乙方：`<br>`\n丙方<BR />\n"
    document = load_document(source.encode(), source="a.md", keep_origin=True)
    assert document.text == "合同\n附件\n甲方：某公司\n乙方：<br> 丙方"
    assert document.origin
    at = document.text.index("乙方")
    assert source[slice(*document.origin.to_source(at, at + 2))] == "乙方"
