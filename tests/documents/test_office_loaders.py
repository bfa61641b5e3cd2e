"""PowerPoint, Excel, OpenDocument, EPUB and mail; files are written by the libraries others use."""

from __future__ import annotations

import datetime as dt
import io
import zipfile

import pytest
from zip_writing import relations, write_zip

from featpipe.documents import Document, load_document
from featpipe.documents.formats.xlsx_formats import plain


def loaded(data: bytes, source: str = "file") -> Document:
    return load_document(data, source=source)


def test_slides_are_pages_with_titles_groups_tables_and_notes() -> None:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "项目概况"
    slide.placeholders[1].text = "总投资１２亿元\n建设期三年"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "组内文字"
    table = slide.shapes.add_table(2, 2, 0, 0, 9, 9).table
    for i, text in enumerate("甲乙丙丁"):
        table.cell(i // 2, i % 2).text = text
    slide.notes_slide.notes_text_frame.text = "备注"
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "第二页"
    buffer = io.BytesIO()
    show.save(buffer)
    document = loaded(buffer.getvalue())
    first = "项目概况\n总投资12亿元\n建设期三年\n组内文字\n甲\t乙\n丙\t丁\n备注"
    assert document.text == first + "\n第二页"
    assert [document.text[p.start : p.end].strip("\n") for p in document.pages] == [first, "第二页"]
    assert [document.text[h.start : h.end] for h in document.headings] == ["项目概况", "第二页"]


def test_paragraphs_of_a_slide_have_the_numbers_they_ask_for() -> None:
    pptx = pytest.importorskip("pptx")
    show, buffer = pptx.Presentation(), io.BytesIO()
    frame = show.slides.add_slide(show.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9).text_frame
    kinds = [
        ("arabicPeriod", 0, None), ("alphaLcParenR", 1, None), ("alphaLcParenR", 1, None),
        ("arabicPeriod", 0, None), ("", 0, None), ("arabicPeriod", 0, None),
        ("ea1JpnChsDbPeriod", 0, "11"), ("circleNumDbPlain", 0, None), ("arabicParenBoth", 0, None),
    ]  # fmt: skip
    frame.text = "\n".join("甲乙丙丁戊己庚辛壬")
    for paragraph, (kind, level, start) in zip(frame.paragraphs, kinds, strict=True):
        paragraph.level = level
        if kind:
            properties = paragraph._p.get_or_add_pPr()
            bullet = properties.makeelement(f"{{{properties.nsmap['a']}}}buAutoNum", {"type": kind})
            if start:
                bullet.set("startAt", start)
            properties.append(bullet)
    show.save(buffer)
    assert loaded(buffer.getvalue()).text.split("\n") == [
        "1. 甲", "a) 乙", "b) 丙", "2. 丁", "戊", "1. 己", "十一. 庚", "① 辛", "(1) 壬",
    ]  # fmt: skip


def test_numbers_of_a_slide_are_inherited_from_its_layout_and_master() -> None:
    pptx = pytest.importorskip("pptx")
    show, buffer = pptx.Presentation(), io.BytesIO()
    layout = show.slide_layouts[1]
    body = next(one for one in layout.placeholders if one.placeholder_format.idx == 1)
    style = body._element.txBody.find("{*}lstStyle")
    space = style.tag.partition("}")[0] + "}"
    level = style.makeelement(f"{space}lvl1pPr", {})
    level.append(level.makeelement(f"{space}buAutoNum", {"type": "arabicPeriod"}))
    style.append(level)
    slide = show.slides.add_slide(layout)
    slide.shapes.title.text = "概况"
    frame = slide.placeholders[1].text_frame
    frame.text = "甲\n乙\n丙\n丁"
    frame.paragraphs[1].level = 1
    properties = frame.paragraphs[2]._p.get_or_add_pPr()
    properties.append(properties.makeelement(f"{space}buNone", {}))
    slide.notes_slide.notes_text_frame.text = "备注"
    other = show.slides.add_slide(show.slide_layouts[3])
    other.placeholders[1].text_frame.text = "无编号"
    show.save(buffer)
    text = loaded(buffer.getvalue()).text
    assert text.split("\n") == ["概况", "1. 甲", "乙", "丙", "1. 丁", "备注", "无编号"]


def test_sheets_show_what_excel_shows() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "合同清单"
    sheet.append(["名称", "金额", "日期", "比例", "时间", "签署"])
    sheet.append(["甲", 1234567.5, dt.date(2017, 5, 3), 0.0523, dt.time(9, 30), True])
    sheet["D2"].number_format = "0.00%"
    sheet.append([None, 0.1 + 0.2, dt.datetime(2017, 5, 3, 18, 0), 1e-7, 10**15, None])
    sheet.merge_cells("A4:B5")
    sheet["A4"] = "合并"
    book.create_sheet("空表")
    hidden = book.create_sheet("隐藏")
    hidden.sheet_state = "hidden"
    hidden["B2"] = "内容"
    buffer = io.BytesIO()
    book.save(buffer)
    document = loaded(buffer.getvalue())
    assert document.text.split("\n") == [
        "合同清单",
        "名称\t金额\t日期\t比例\t时间\t签署",
        "甲\t1234567.5\t2017-05-03\t5.23%\t09:30:00\tTRUE",
        "0.3\t2017-05-03 18:00:00\t0.0000001\t1000000000000000",
        "合并",
        "隐藏",
        "内容",
    ]
    assert [page.number for page in document.pages] == [1, 2, 3]
    merged = document.tables[0].cells[-1]
    assert (merged.row, merged.column, merged.row_span, merged.column_span) == (3, 0, 2, 2)
    assert document.notes == ("hidden sheets are read like the others",)


def test_a_sheet_gives_its_text_boxes_and_says_what_it_leaves_out() -> None:
    def paragraph(text: str) -> str:
        return f"<txBody><p><r><t>{text}</t></r></p></txBody>"

    drawing = (
        f"<d><sp>{paragraph('甲方：某公司')}{paragraph('乙方：另一公司')}</sp><AlternateContent><Choice/>"
        f"<Fallback>{paragraph('not shown')}</Fallback></AlternateContent></d>"
    )
    root = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    sheet = (
        "<worksheet><sheetData/><headerFooter><oddHeader>{}</oddHeader></headerFooter></worksheet>"
    )
    members = {
        "_rels/.rels": relations(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": f'<w {root}><sheets><sheet name="表" r:id="r0"/></sheets></w>',
        "xl/_rels/workbook.xml.rels": relations(worksheet="s.xml", chartsheet="c.xml"),
        "xl/s.xml": sheet.format('&amp;C&amp;"宋体"报价单&amp;R第 &amp;P 页'),
        "xl/_rels/s.xml.rels": relations(drawing="d.xml", comments="n.xml"),
        "xl/d.xml": drawing,
        "xl/_rels/d.xml.rels": relations(chart="h.xml"),
    }
    document = loaded(write_zip(members))
    assert document.text == "表\n甲方：某公司\n乙方：另一公司"
    assert set(document.notes) == {
        "heads and feet of printed pages are left out",
        "charts are left out",
        "comments are left out",
        "sheets that are a chart are left out",
    }
    members["xl/s.xml"] = sheet.format("&amp;C第&amp;P页，共&amp;N页")
    assert "heads and feet of printed pages are left out" not in loaded(write_zip(members)).notes


def test_a_slide_says_that_its_comments_and_charts_are_left_out() -> None:
    pptx = pytest.importorskip("pptx")
    show, buffer = pptx.Presentation(), io.BytesIO()
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "标题"
    show.save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    slide = "ppt/slides/_rels/slide1.xml.rels"
    more = relations(comments="c.xml", chart="h.xml").partition("><")[2]
    members[slide] = members[slide].replace(b"</Relationships>", f"<{more}".encode())
    document = loaded(write_zip(members))
    assert (document.text, document.notes) == (
        "标题", ("comments are left out", "charts are left out"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("days", "number_format", "text"),
    [
        (1.5, "[h]:mm:ss", "36:00:00"),
        (0.25, "[hh]:mm", "06:00:00"),
        (2.0, "[h]:mm:ss", "48:00:00"),
        (0.25, "h:mm", "06:00:00"),
        (43000.5, "yyyy-mm-dd hh:mm", "2017-09-22 12:00:00"),
    ],
)
def test_durations_of_more_than_a_day_are_no_dates(
    days: float, number_format: str, text: str
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active["A1"] = days
    book.active["A1"].number_format = number_format
    buffer = io.BytesIO()
    book.save(buffer)
    assert loaded(buffer.getvalue()).text.split("\n")[1] == text


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (12, '0"万元"', "12万元"),
        (12.5, '#,##0.00_ "万元";[Red]-#,##0.00"万元"', "12.5万元"),
        (-3, '0"吨"', "-3吨"),
        (88.8, '_ ¥* #,##0.00_ ;_ ¥* -#,##0.00_ ;_ ¥* "-"??_ ;_ @_ ', "¥88.8"),
        (0, '_ ¥* #,##0.00_ ;_ ¥* -#,##0.00_ ;_ ¥* "-"??_ ;_ @_ ', "0"),
        (5, "[$EUR-407] #,##0.00", "EUR5"),
        (5, "#,##0.00\\ [$€-407]", "5€"),
        (7, "00000", "00007"),
        (1234, "000000", "001234"),
        (1250000, '0.00,,"百万"', "1.25百万"),
        (1234567, "#,##0,", "1234.567"),
        (3, 'General"元"', "3元"),
        (3, '"第"0"期"', "第3期"),
        (3, "General!天", "3天"),
        (123456, '0!.0,"万"', "123456"),
        (0.5, "# ?/?", "0.5"),
        (1.5e10, "0.00E+00", "15000000000"),
        (20000, '[>=10000]0.0,"千";0', "20000"),
        (-1234.5, "#,##0.00_);(#,##0.00)", "-1234.5"),
        (1234.5, "#,##0.00", "1234.5"),
        (5, 'G/通用格式"元"', "5元"),
        (45356, "[$-804]aaaa;@", "2024-03-05"),
        (2, '[=1]"男";[=2]"女";0', "女"),
        (3, '[=1]"男";[=2]"女";0', "3"),
        (0, '"是";"否";"无"', "无"),
        (-1, '0"万元";"亏损";"持平"', "亏损"),
        (7, '0"万元";"亏损";"持平"', "7万元"),
        (7, '"合格"', "合格"),
        (7, ";;;", "7"),
        (0, '0.00;-0.00;"-"', "0"),
    ],
)
def test_numbers_have_the_units_zeros_and_currencies_of_their_formats(
    value: float, number_format: str, text: str
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    book.active["A1"] = value
    book.active["A1"].number_format = number_format
    book.save(buffer)
    assert loaded(buffer.getvalue()).text.split("\n")[1] == text


def test_formulas_without_a_stored_result_are_counted() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["合计", "=1+1", "=A1"])
    book.save(buffer)
    document = loaded(buffer.getvalue())
    assert document.text == "Sheet\n合计"
    (note,) = document.notes
    assert note.startswith("formulas without a stored result are left out: 2; open")
    book.save(buffer := io.BytesIO())
    with zipfile.ZipFile(buffer) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    for empty in (b"<v />", b"<v/>", b"<v></v>"):
        members[sheet] = members[sheet].replace(empty, b"<v>2</v>")
    known = loaded(write_zip(members))
    assert (known.text, known.notes) == ("Sheet\n合计\t2\t2", ())


def test_hidden_rows_and_columns_are_read_and_noted() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    for kind in ("row", "column", "none"):
        book, buffer = openpyxl.Workbook(), io.BytesIO()
        sheet = book.active
        sheet.append(["甲", "乙"])
        sheet.row_dimensions[1].hidden = kind == "row"
        sheet.column_dimensions["B"].hidden = kind == "column"
        book.save(buffer)
        document = loaded(buffer.getvalue())
        assert document.text == "Sheet\n甲\t乙"
        notes = ("hidden rows and columns are read like the others",)
        assert document.notes == (() if kind == "none" else notes)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (-0.5, "-0.5"), (0.1 + 0.2, "0.3"), (1e-7, "0.0000001"), (1e20, "1" + "0" * 20)],
)
def test_numbers_are_written_without_exponent_or_noise(value: float, text: str) -> None:
    assert plain(value) == text


def test_an_opendocument_text_gives_headings_lists_and_tables() -> None:
    spaces = " ".join(
        f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"'
        for n in ("office", "text", "table")
    )
    content = (
        f"<office:document-content {spaces}><office:body><office:text>"
        '<text:h text:outline-level="2">标题</text:h><text:p>一<text:s/>二<text:span>三</text:span>'
        "<text:line-break/>四</text:p><text:list><text:list-item><text:p>项</text:p></text:list-item>"
        "</text:list><table:table><table:table-row><table:table-cell><text:p>甲</text:p>"
        "</table:table-cell><table:table-cell><text:p>乙</text:p></table:table-cell>"
        "</table:table-row></table:table></office:text></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    document = loaded(write_zip({"mimetype": kind, "content.xml": content}))
    assert document.text == "标题\n一 二三\n四\n项\n甲\t乙"
    assert document.media_type == kind
    assert document.headings[0].level == 2


def opendocument(body: str, own: str = "", styles: str = "") -> Document:
    """A text by its body, the styles of its own part, and those of the part for styles."""
    names = ("office", "text", "table", "draw", "style")
    spaces = " ".join(f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in names)
    spaces += ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    content = f"<office:document-content {spaces}><office:automatic-styles>{own}"
    content += f"</office:automatic-styles><office:body><office:text>{body}</office:text>"
    content += "</office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.text"
    members = {"mimetype": kind, "content.xml": content}
    if styles:
        members["styles.xml"] = (
            f"<office:document-styles {spaces}>{styles}</office:document-styles>"
        )
    return loaded(write_zip(members))


def odt_level(level: int, number: str, suffix: str, more: str = "", *, kind: str = "list") -> str:
    attributes = f'text:level="{level}" style:num-format="{number}" style:num-suffix="{suffix}"'
    name = "list-level-style-number" if kind == "list" else "outline-level-style"
    return f"<text:{name} {attributes} {more}/>"


def odt_list(*items: str, more: str = 'text:style-name="L1"') -> str:
    inner = "".join(f"<text:list-item>{item}</text:list-item>" for item in items)
    return f"<text:list {more}>{inner}</text:list>"


def test_items_and_headings_of_an_opendocument_text_have_their_numbers() -> None:
    own = (
        '<text:list-style style:name="L1">' + odt_level(1, "1", ".")
        + odt_level(2, "一, 二, 三, ...", "）", 'style:num-prefix="（"') + "</text:list-style>"
        '<text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/>'
        + odt_level(2, "1", "", 'text:display-levels="2"') + "</text:list-style>"
        '<text:list-style style:name="L3">'
        + odt_level(1, "一, 二, 三, ...", "条", 'style:num-prefix="第"')
        + odt_level(2, "1", "", 'text:display-levels="2"') + "</text:list-style>"
        '<style:style style:name="P9" style:family="paragraph" style:list-style-name=""/>'
    )  # fmt: skip
    outline = odt_level(1, "一, 二, 三, ...", "、", kind="outline")
    outline += odt_level(2, "1", "", 'text:display-levels="2"', kind="outline")
    outline += odt_level(3, "", "", kind="outline")
    styles = f"<office:styles><text:outline-style>{outline}</text:outline-style></office:styles>"

    def p(text: str) -> str:
        return f"<text:p>{text}</text:p>"

    def h(text: str, level: int, more: str = "") -> str:
        return f'<text:h text:outline-level="{level}" {more}>{text}</text:h>'

    style = 'text:style-name="L1"'
    inner, inner_list = odt_list(p("子"), p("丑"), more=""), odt_list(p("子"), p("丑"))
    body = (
        h("总则", 1) + h("范围", 2) + h("细则", 3) + h("无号", 1, 'text:style-name="P9"')
        + h("附则", 1)
        + odt_list(p("甲") + p("又"), p("乙") + inner, p("丙"), more=f'{style} xml:id="a"')
        + odt_list(p("新")).replace("-item>", '-item text:start-value="5">', 1)
        + odt_list(p("续"), more=f'{style} text:continue-numbering="true"')
        + odt_list(inner, p("丁"), more=f'{style} text:continue-list="a"')
        + odt_list(p("点"), more='text:style-name="L2"')
        + odt_list(p("租期") + inner, more='text:style-name="L3"')
        + odt_table(odt_cell("表") + odt_cell("").replace("<text:p></text:p>", inner_list))
    )  # fmt: skip
    document = opendocument(body, own, styles)
    assert document.text.split("\n") == [
        "一、总则", "一.1 范围", "细则", "无号", "二、附则",
        "1. 甲", "又", "2. 乙", "（一）子", "（二）丑", "3. 丙", "5. 新", "6. 续",
        "（一）子", "（二）丑", "4. 丁", "点", "第一条 租期", "一.1 子", "一.2 丑",
        "表\t1. 子 2. 丑",
    ]  # fmt: skip


def test_comments_and_hidden_text_of_an_opendocument_text_are_noted_and_heads_are_read() -> None:
    own = (
        '<style:style style:name="T1" style:family="text">'
        '<style:text-properties text:display="none"/></style:style>'
    )
    head = (
        "<office:master-styles><style:master-page><style:header><text:p>合同编号：A-1</text:p>"
        "</style:header><style:header-left><text:p>合同编号：A-1</text:p></style:header-left>"
        "<style:footer><text:p>第<text:page-number>1</text:page-number>页</text:p></style:footer>"
        '<style:footer-left style:display="false"><text:p>不见</text:p></style:footer-left>'
        "</style:master-page></office:master-styles>"
    )
    comment = "<office:annotation><text:p>批注</text:p></office:annotation>"
    hidden = '<text:span text:style-name="T1">不见</text:span>'
    section = '<text:section text:display="none"><text:p>不见</text:p></text:section>'
    body = f"<text:p>甲{comment}方{hidden}</text:p>{section}"
    document = opendocument(body, own, head)
    assert document.text == "甲方\n合同编号：A-1"
    assert document.notes == ("comments are left out", "hidden text is left out")
    assert not opendocument("<text:p>甲方</text:p>", own).notes


def odt_table(*rows: str) -> str:
    inner = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    return f"<table:table>{inner}</table:table>"


def odt_cell(content: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}><text:p>{content}</text:p></table:table-cell>"


def test_a_table_in_a_cell_of_an_opendocument_text_is_read_once() -> None:
    inner = odt_table(odt_cell("内一") + odt_cell("内二"))
    outer = odt_cell("外") + f"<table:table-cell>{inner}</table:table-cell>"
    assert opendocument(odt_table(outer)).text == "外\n内一\t内二"


def test_comments_in_cells_of_an_opendocument_text_are_left_out_and_notes_are_not() -> None:
    comment = "甲<office:annotation><text:p>批注</text:p></office:annotation>"
    note = "乙<text:note><text:note-body><text:p>脚注</text:p></text:note-body></text:note>"
    box = "丙<draw:frame><draw:text-box><text:p>框</text:p></draw:text-box></draw:frame>"
    row = odt_cell(comment) + odt_cell(note) + odt_cell(box)
    assert opendocument(odt_table(row)).text == "甲\t乙 脚注\t丙框"


def test_what_an_opendocument_text_does_not_show_in_its_lines_is_not_read_there() -> None:
    ruby = "<text:ruby-base>汉</text:ruby-base><text:ruby-text>hàn</text:ruby-text>"
    assert opendocument(f"<text:p><text:ruby>{ruby}</text:ruby>字</text:p>").text == "汉字"
    picture = "<draw:image/><svg:title>题</svg:title><svg:desc>图的描述</svg:desc>"
    assert opendocument(f"<text:p>甲<draw:frame>{picture}</draw:frame>乙</text:p>").text == "甲乙"
    shape = "<draw:custom-shape><text:p>框一</text:p><text:p>框二</text:p></draw:custom-shape>"
    assert opendocument(f"<text:p>甲{shape}乙</text:p>").text == "甲乙\n框一\n框二"
    field = "<text:title>采购合同</text:title><text:script>alert(1)</text:script>"
    assert opendocument(f"<text:p>《{field}》</text:p>").text == "《采购合同》"


def test_cells_of_an_opendocument_text_keep_their_columns() -> None:
    wide = 'table:number-columns-spanned="2" table:number-rows-spanned="2"'
    covered = '<table:covered-table-cell table:number-columns-repeated="2"/>'
    document = opendocument(
        odt_table(
            odt_cell("甲", wide) + "<table:covered-table-cell/>" + odt_cell("丙"),
            covered + odt_cell("丁"),
            odt_cell("", 'table:number-columns-repeated="2"') + odt_cell("戊"),
        )
    )
    (table,) = document.tables
    found = [(c.row, c.column, c.row_span, c.column_span) for c in table.cells if c.end > c.start]
    assert found == [(0, 0, 2, 2), (0, 2, 1, 1), (1, 2, 1, 1), (2, 2, 1, 1)]


def book(**chapters: str | bytes) -> bytes:
    """A book whose spine lists the chapters one, two and three."""
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata><title>书名</title></metadata>'
        '<manifest><item id="b" href="text/two.xhtml"/><item id="c" href="text/three.xhtml#top"/>'
        '<item id="a" href="text/one.xhtml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine></package>'
    )
    return write_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<c><rootfile full-path="OPS/book.opf"/></c>',
            "OPS/book.opf": package,
            **{f"OPS/text/{name}.xhtml": chapter for name, chapter in chapters.items()},
        }
    )


def page(text: str) -> str:
    return f"<html><body><p>{text}</p></body></html>"


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    document = loaded(book(two=page("第二章"), one=page("第一章"), three=page("第三章")))
    assert (document.title, document.text) == ("书名", "第一章\n第二章\n第三章")
    assert not document.notes


def test_what_a_book_lacks_is_said_and_a_chapter_is_read_as_it_declares() -> None:
    declared = b'<?xml version="1.0" encoding="euc-kr"?>' + page("계약서").encode("euc-kr")
    document = loaded(book(one=declared, three=page("三")))
    assert document.text == "계약서\n三"
    assert document.notes == ("the chapter 'OPS/text/two.xhtml' is missing",)
    false = declared.replace(b"euc-kr", b"utf-8") + page("계약서").encode("euc-kr")
    notes = loaded(book(one=false, two=page(""), three=page("三"))).notes
    assert notes[0].startswith("OPS/text/one.xhtml: declared as utf-8, which does not fit")


MAIL = """From: =?utf-8?b?5byg5LiJ?= <zhang@example.com>\r
To: li@example.com\r
Subject: =?gb2312?b?us/NrA==?=\r
Date: Wed, 03 May 2017 09:30:00 +0800\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=B\r
\r
--B\r
Content-Type: multipart/alternative; boundary=A\r
\r
--A\r
Content-Type: text/plain; charset=gbk\r
Content-Transfer-Encoding: base64\r
\r
{plain}\r
--A\r
Content-Type: text/html; charset=utf-8\r
\r
<p>HTML</p>\r
--A--\r
--B\r
Content-Type: application/pdf; name=a.pdf\r
Content-Disposition: attachment; filename=a.pdf\r
\r
JVBERi0=\r
--B--\r
"""


def test_mail_gives_its_fields_its_plain_body_and_the_names_of_attachments() -> None:
    import base64

    body = base64.b64encode("请查收合同。\r\n\r\n此致".encode("gbk")).decode()
    document = loaded(MAIL.format(plain=body).encode(), "letter")
    assert document.text.split("\n") == [
        "Subject: 合同",
        "From: 张三 <zhang@example.com>",
        "To: li@example.com",
        "Date: Wed, 03 May 2017 09:30:00 +0800",
        "请查收合同。",
        "此致",
    ]
    assert document.title == "合同"
    assert document.notes == ("attachment left out: a.pdf",)
    assert document.media_type == "message/rfc822"


def test_mail_with_html_only_and_a_false_charset_is_read() -> None:
    data = "From: a@b.c\nTo: d@e.f\nContent-Type: text/html; charset=x-none\n\n<p>正文</p>".encode()
    assert loaded(data).text.endswith("正文")


def test_a_mail_inside_a_mail_keeps_its_own_fields() -> None:
    inner = "Subject: 报价\r\nFrom: 王五 <w@e.f>\r\nDate: Tue, 02 May 2017 08:00:00\r\n\r\n价款"
    data = (
        "From: a@b.c\r\nSubject: Fwd\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
        "--x\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n见下\r\n"
        "--x\r\nContent-Type: message/delivery-status\r\n\r\nStatus: 5.1.1\r\n"
        f"--x\r\nContent-Type: message/rfc822\r\n\r\n{inner}\r\n--x--\r\n"
    )
    document = loaded(data.encode(), "letter.eml")
    assert document.title == "Fwd"
    assert document.text.split("\n")[2:] == [
        "见下",
        "Subject: 报价",
        "From: 王五 <w@e.f>",
        "Date: Tue, 02 May 2017 08:00:00",
        "价款",
    ]
    assert document.notes == ("part left out: message/delivery-status",)


def test_the_lines_of_a_flowed_mail_are_put_together() -> None:
    def read(body: str, more: str = "") -> str:
        kind = f"Content-Type: text/plain; charset=utf-8; format=flowed{more}"
        return loaded(f"Subject: s\nFrom: a@b.cn\n{kind}\n\n{body}".encode()).text.split("\n", 2)[2]

    body = "The price is \n100 EUR.\nNext\n> quoted \n> text\n>> deeper \n> end\n-- \nZhang"
    shown = "The price is 100 EUR.\nNext\n> quoted text\n>> deeper\n> end\n--\nZhang"
    assert read(body) == shown
    assert read("合同金额为一百 \n万元。", "; delsp=yes") == "合同金额为一百万元。"
    assert read(" From here \n on") == "From here on"
    plain = loaded(b"Subject: s\nFrom: a@b.cn\n\none \ntwo").text
    assert plain.endswith("one\ntwo")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_mails_of_a_mailbox_are_read(end: str) -> None:
    mails = [
        "From a@b.cn Thu Nov 26 10:00:00 2026", "Subject: =?utf-8?B?55Sy?=", "From: a@b.cn", "",
        "From 北京", ">From Shanghai", "",
        "From c@d.cn Thu Nov 26 11:00:00 2026", "Subject: two", "From: c@d.cn",
        "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64", "",
        "5LmZ5pa5", "",
    ]  # fmt: skip
    document = loaded(end.join(mails).encode(), "archive.mbox")
    assert document.text == (
        "Subject: 甲\nFrom: a@b.cn\nFrom 北京\nFrom Shanghai\nSubject: two\nFrom: c@d.cn\n乙方"
    )
    assert document.title == "甲"
    assert "a mailbox: its 2 mails are read as one document" in document.notes


def test_mail_in_an_encoding_of_seven_bits_is_read() -> None:
    subject = "=?ISO-2022-JP?B?GyRCN0BMcxsoQg==?="
    kind = "Content-Type: text/plain; charset=iso-2022-jp"
    head = f"From: a@b.c\nSubject: {subject}\n{kind}\n\n"
    data = head.encode() + "本契約。".encode("iso-2022-jp")
    assert loaded(data).text == "Subject: 契約\nFrom: a@b.c\n本契約。"


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@pytest.mark.parametrize("name", ["letter.eml", "memo.txt"])
def test_fields_of_mail_that_are_not_encoded_are_decoded_by_their_bytes(
    encoding: str, name: str
) -> None:
    data = "From: 张三 <a@b.c>\nTo: 李四\nSubject: 关于采购合同\n 的通知\n\n正文内容在此。\n"
    document = loaded(data.encode(encoding), name)
    assert document.title == "关于采购合同 的通知"
    assert document.text == (
        "Subject: 关于采购合同 的通知\nFrom: 张三 <a@b.c>\nTo: 李四\n正文内容在此。"
    )


def _multipart(kind: str, *parts: str) -> bytes:
    head = f"From: a@b.c\nSubject: s\nContent-Type: multipart/{kind}; boundary=x\n\n"
    return (head + "".join(f"--x\n{part}\n" for part in parts) + "--x--\n").encode("gbk")


def test_a_plain_form_of_blanks_does_not_hide_the_other_form() -> None:
    plain = "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nDQogDQo="
    page = "Content-Type: text/html; charset=gbk\n\n<p>合同正文</p>"
    assert loaded(_multipart("alternative", plain, page)).text.endswith("合同正文")


def test_a_saved_page_is_read_without_its_style_sheets_and_programs() -> None:
    page = "Content-Type: text/html; charset=gbk\n\n<p>合同正文</p>"
    parts = [f"Content-Type: text/{kind}\n\n.a {{}}" for kind in ("css", "javascript", "xml")]
    document = loaded(_multipart("related", page, *parts), "a.mht")
    assert document.text == "Subject: s\nFrom: a@b.c\n合同正文"
    assert document.notes[0] == "part left out: text/css"


@pytest.mark.parametrize("name", ['"=?gbk?B?us/NrC5wZGY=?="', '"合同.pdf"', "合同.pdf"])
def test_the_names_of_attachments_can_be_read(name: str) -> None:
    body = "Content-Type: text/plain; charset=gbk\n\n见附件"
    attached = f"Content-Disposition: attachment; filename={name}\n\nx"
    assert "attachment left out: 合同.pdf" in loaded(_multipart("mixed", body, attached)).notes
