"""Word: what a reader sees on the page, clause numbers included."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zip_writing import W, paragraph, write_docx

from featpipe.documents import Document, load_document
from featpipe.documents.formats.docx_numbering import chinese, written


def loaded(data: bytes) -> Document:
    return load_document(data, source="a.docx")


def numbered(text: str, level: int = 0, number: int = 1) -> str:
    return paragraph(
        text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    )


def level(index: int, style: str, text: str, start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{index}"><w:start w:val="{start}"/><w:numFmt w:val="{style}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(*levels: str, extra: str = "") -> str:
    return (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>'
        f'<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>{extra}</w:numbering>'
    )


def test_clause_numbers_are_counted_and_written_as_on_the_page() -> None:
    rules = numbering(
        level(0, "chineseCountingThousand", "第%1条"),
        level(1, "decimal", "%1.%2"),
        level(2, "chineseCounting", "（%3）"),
        level(3, "bullet", "●"),
    )
    body = [
        numbered("合同标的"),
        numbered("货物", 1),
        numbered("数量", 1),
        numbered("甲", 2),
        numbered("乙", 2),
        numbered("点", 3),
        numbered("价款"),
        numbered("单价", 1),
        paragraph("无编号"),
        numbered("付款"),
    ]
    assert loaded(write_docx("".join(body), numbering=rules)).text.split("\n") == [
        "第一条 合同标的",
        "一.1 货物",
        "一.2 数量",
        "（一）甲",
        "（二）乙",
        "点",
        "第二条 价款",
        "二.1 单价",
        "无编号",
        "第三条 付款",
    ]


def test_a_list_that_starts_anew_starts_anew_and_one_that_does_not_goes_on() -> None:
    again = (
        '<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0">'
        '<w:startOverride w:val="1"/></w:lvlOverride></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="0"/></w:num>'
    )
    rules = numbering(level(0, "decimal", "%1."), extra=again)
    body = [
        numbered(text, number=n) for text, n in (("a", 1), ("b", 1), ("c", 3), ("d", 2), ("e", 2))
    ]
    assert loaded(write_docx("".join(body), numbering=rules)).text == "1. a\n2. b\n3. c\n1. d\n2. e"


def test_a_list_that_names_the_style_of_another_is_numbered_as_that_one() -> None:
    link = (
        '<w:abstractNum w:abstractNumId="7"><w:numStyleLink w:val="Clauses"/></w:abstractNum>'
        '<w:num w:numId="2"><w:abstractNumId w:val="7"/></w:num>'
    )
    own = '<w:styleLink w:val="Clauses"/>' + level(0, "chineseCounting", "第%1条")
    body = numbered("甲", number=2) + numbered("乙", number=1) + numbered("丙", number=2)
    document = loaded(write_docx(body, numbering=numbering(own, extra=link)))
    assert document.text == "第一条 甲\n第二条 乙\n第三条 丙"


def test_articles_count_through_chapters_and_legal_numbers_are_decimal() -> None:
    def with_rule(rule: str, mark: str) -> str:
        return rule.replace("</w:lvl>", f"{mark}</w:lvl>")

    rules = numbering(
        level(0, "chineseCounting", "第%1章"),
        with_rule(level(1, "chineseCounting", "第%2条"), '<w:lvlRestart w:val="0"/>'),
        with_rule(level(2, "decimal", "%2.%3"), "<w:isLgl/>"),
        with_rule(level(3, "decimal", "%4)"), '<w:lvlRestart w:val="1"/>'),
    )
    levels = (0, 1, 2, 3, 1, 3, 0, 1, 2, 3)
    body = [numbered(text, at) for text, at in zip("abcdefghij", levels, strict=True)]
    assert loaded(write_docx("".join(body), numbering=rules)).text.split("\n") == [
        "第一章 a", "第一条 b", "1.1 c", "1) d", "第二条 e", "2) f",
        "第二章 g", "第三条 h", "3.1 i", "1) j",
    ]  # fmt: skip


def test_numbers_and_levels_come_from_styles_and_their_ancestors() -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="A"><w:name w:val="heading 2"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="B"><w:name w:val="条款"/><w:basedOn w:val="A"/></w:style></w:styles>'
    )
    body = paragraph("总则", '<w:pStyle w:val="B"/>') + paragraph("正文")
    rules = numbering(level(0, "chineseCounting", "%1、"))
    document = loaded(write_docx(body, numbering=rules, styles=styles))
    assert document.text == "一、总则\n正文"
    assert [(h.start, h.end, h.level) for h in document.headings] == [(0, 4, 2)]


def test_what_was_deleted_or_hidden_is_no_text_and_what_was_inserted_is() -> None:
    body = (
        "<w:p><w:r><w:t>甲</w:t></w:r><w:del><w:r><w:delText>乙</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>丙</w:t></w:r></w:ins>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>丁</w:t></w:r>"
        "<w:r><w:fldChar/><w:instrText>PAGE</w:instrText></w:r>"
        "<w:hyperlink><w:r><w:t>戊</w:t></w:r></w:hyperlink>"
        "<w:sdt><w:sdtContent><w:r><w:t>己</w:t></w:r></w:sdtContent></w:sdt></w:p>"
    )
    document = loaded(write_docx(body))
    assert document.text == "甲丙戊己"
    assert document.notes == ("hidden text is left out",)


def test_a_text_box_comes_once_after_its_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph('框内文字')}</w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>段落</w:t></w:r><w:r>"
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert loaded(write_docx(body + paragraph("下段"))).text == "段落\n框内文字\n下段"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def test_tables_keep_rows_cells_and_merges() -> None:
    body = (
        "<w:tbl><w:tr>" + cell("项目", '<w:gridSpan w:val="2"/>') + cell("金额") + "</w:tr><w:tr>"
        + cell("甲", '<w:vMerge w:val="restart"/>') + cell("一期") + cell("100") + "</w:tr><w:tr>"
        + cell("", "<w:vMerge/>") + cell("二期") + cell("200") + "</w:tr></w:tbl>"
    )  # fmt: skip
    document = loaded(write_docx(paragraph("前") + body + paragraph("后")))
    assert document.text == "前\n项目\t金额\n甲\t一期\t100\n二期\t200\n后"
    (table,) = document.tables
    shown = {(c.row, c.column): (document.text[c.start : c.end], c.row_span, c.column_span)
             for c in table.cells}  # fmt: skip
    assert shown[0, 0] == ("项目", 1, 2)
    assert shown[0, 2] == ("金额", 1, 1)
    assert shown[1, 0] == ("甲", 2, 1)
    assert shown[2, 1] == ("二期", 1, 1)


def test_a_row_that_begins_further_in_keeps_its_columns() -> None:
    inset = '<w:trPr><w:gridBefore w:val="1"/><w:gridAfter w:val="1"/></w:trPr>'
    body = (
        "<w:tbl><w:tr>" + cell("项目") + cell("金额", '<w:vMerge w:val="restart"/>') + cell("备注")
        + f"</w:tr><w:tr>{inset}" + cell("", "<w:vMerge/>") + f"</w:tr><w:tr>{inset}" + cell("100")
        + "</w:tr></w:tbl>"
    )  # fmt: skip
    document = loaded(write_docx(body))
    (table,) = document.tables
    shown = {document.text[c.start : c.end]: (c.row, c.column, c.row_span) for c in table.cells}
    assert shown == {"项目": (0, 0, 1), "金额": (0, 1, 2), "备注": (0, 2, 1), "100": (2, 1, 1)}


def test_notes_and_heads_follow_the_body_once() -> None:
    numbers = "".join(map(paragraph, ("第 1 页", "第 1 页 共 3 页", "- 1 -", "Page 1 of 3", "1/3")))
    heads = f"<w:hdr {W}>{paragraph('合同编号：2017-001')}{numbers}</w:hdr>"
    notes = (
        f'<w:footnotes {W}><w:footnote w:type="separator">{paragraph("—")}</w:footnote>'
        f"<w:footnote>{paragraph('见附件一。')}</w:footnote></w:footnotes>"
    )
    document = loaded(write_docx(paragraph("正文"), header1=heads, header2=heads, footnotes=notes))
    assert document.text == "正文\n见附件一。\n合同编号：2017-001"


def test_parts_that_hold_text_and_are_not_read_are_noted() -> None:
    part = f"<w:x {W}/>"
    document = loaded(write_docx(paragraph("文"), comments=part, aFChunk=part, diagramData=part))
    assert document.notes == (
        "diagrams are left out", "comments are left out",
        "parts of another format (altChunk) are left out",
    )  # fmt: skip


def test_signs_of_symbol_fonts_are_read_and_those_without_a_character_counted() -> None:
    def sign(font: str, code: str) -> str:
        return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'

    typed = '<w:r><w:rPr><w:rFonts w:ascii="Wingdings 2"/></w:rPr><w:t>R 否</w:t></w:r>'
    lost = sign("Wingdings", "F04A") + sign("Wingdings", "4b") + sign("Bar Codes", "F041")
    body = (
        f"<w:p>{sign('Wingdings', 'F0FE')}<w:r><w:t>是</w:t></w:r>{sign('Wingdings 2', 'F0A3')}"
        f"{sign('宋体', '25A1')}{typed}{sign('Symbol', 'F0B3')}{sign('Symbol', 'F061')}{lost}</w:p>"
    )
    document = loaded(write_docx(body))
    assert document.text == "☑是□□☑ 否≥α"
    assert document.notes == (
        "signs of the font Bar Codes without a known character are left out: 1",
        "signs of the font Wingdings without a known character are left out: 2",
    )


def test_boxes_and_lists_of_forms_are_read_as_they_stand() -> None:
    def field(data: str) -> str:
        return (
            f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}</w:ffData></w:fldChar></w:r>'
            '<w:r><w:instrText>FORM</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
        )

    def box(state: str) -> str:
        return field(f"<w:checkBox>{state}</w:checkBox>")

    on, off = 'w:val="1"', 'w:val="0"'
    entries = '<w:listEntry w:val="甲"/><w:listEntry w:val="乙"/>'
    ticked = '<w:sdtPr><w14:checkbox/></w:sdtPr><w:sdtContent><w:r><w:sym w:font="Wingdings" '
    boxes = ("<w:checked/>", f"<w:default {on}/>", f"<w:default {on}/><w:checked {off}/>", "")
    body = (
        f"<w:p>{''.join(map(box, boxes))}{field(f'<w:ddList><w:result {on}/>{entries}</w:ddList>')}"
        f'<w:sdt xmlns:w14="w14">{ticked}w:char="F0FE"/></w:r></w:sdtContent></w:sdt></w:p>'
    )
    assert loaded(write_docx(body)).text == "☒☒☐☐乙☑"


def test_a_formula_keeps_all_its_parts() -> None:
    def run(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    fraction = f"<m:f><m:num>{run('评标基准价')}</m:num><m:den>{run('投标报价')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{run('x')}</m:e><m:sup>{run('2')}</m:sup></m:sSup>"
    formula = f"<m:oMath>{run('得分=')}{fraction}{run('×30+')}{power}</m:oMath>"
    body = f'<w:p xmlns:m="math"><w:r><w:t>按</w:t></w:r>{formula}</w:p>'
    assert loaded(write_docx(body)).text == "按得分=评标基准价/投标报价×30+x2"


def test_line_breaks_part_and_tabs_do_not() -> None:
    body = "<w:p><w:r><w:t>甲</w:t><w:br/><w:t>乙</w:t><w:tab/><w:t>丙</w:t></w:r></w:p>"
    assert loaded(write_docx(body)).text == "甲\n乙 丙"


def test_another_writer_s_file_is_read_as_that_library_reads_it() -> None:
    docx = pytest.importorskip("docx")
    written_file = docx.Document()
    written_file.add_heading("采购合同", 0)
    for text in ("甲方：某某公司", "  two  blanks ", "", "金额１２万"):
        written_file.add_paragraph(text)
    table = written_file.add_table(2, 2)
    for i, text in enumerate("一二三四"):
        table.cell(i // 2, i % 2).text = text
    buffer = io.BytesIO()
    written_file.save(buffer)
    document = loaded(buffer.getvalue())
    assert document.text == "采购合同\n甲方：某某公司\ntwo blanks\n金额12万\n一\t二\n三\t四"
    assert document.headings[0].level == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "一"), (10, "十"), (12, "十二"), (20, "二十"), (101, "一百零一"), (110, "一百一十"),
     (1001, "一千零一"), (1010, "一千零一十"), (9999, "九千九百九十九"), (10000, "10000")],
)  # fmt: skip
def test_chinese_numbers(number: int, text: str) -> None:
    assert chinese(number) == text


@pytest.mark.parametrize(
    ("style", "texts"),
    [
        ("upperRoman", ["I", "IV", "XLIX"]),
        ("lowerLetter", ["a", "d", "ww"]),
        ("decimalZero", ["01", "04", "49"]),
        ("ideographTraditional", ["甲", "丁", "壬"]),
        ("chineseLegalSimplified", ["壹", "肆", "肆拾玖"]),
        ("decimalEnclosedCircle", ["①", "④", "49"]),
        ("decimalEnclosedParen", ["⑴", "⑷", "(49)"]),
        ("decimalEnclosedFullstop", ["⒈", "⒋", "49."]),
        ("ideographEnclosedCircle", ["㊀", "㊃", "四十九"]),
        ("numberInDash", ["- 1 -", "- 4 -", "- 49 -"]),
        ("unheardOf", ["1", "4", "49"]),
    ],
)
def test_number_styles(style: str, texts: list[str]) -> None:
    assert [written(n, style) for n in (1, 4, 49)] == texts


@given(st.integers(1, 9999))
def test_every_chinese_number_can_be_read_back(number: int) -> None:
    values = {c: i for i, c in enumerate("零一二三四五六七八九")}
    total = digit = 0
    for c in chinese(number):
        if c in values:
            digit = values[c]
        else:
            total += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[c]
            digit = 0
    assert total + digit == number


def control(content: str, properties: str = "<w:showingPlcHdr/>") -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def run_of(text: str, style: str = "") -> str:
    properties = f'<w:rPr><w:rStyle w:val="{style}"/></w:rPr>' if style else ""
    return f"<w:r>{properties}<w:t>{text}</w:t></w:r>"


STYLES = (
    f'<w:styles {W}><w:style w:type="character" w:styleId="a3"><w:name w:val="Placeholder Text"/>'
    "</w:style></w:styles>"
)


def test_the_prompt_of_an_empty_content_control_is_no_text() -> None:
    cell = f"<w:tc><w:p>{run_of('日期选择器', 'a3')}</w:p></w:tc>"
    body = (
        f"<w:p>{run_of('甲方：')}{control(run_of('某公司名称', 'a3'))}</w:p>"
        f"{control(paragraph('单击或点击此处输入文字。'))}"
        f"<w:tbl><w:tr><w:tc>{paragraph('签订日期')}</w:tc>{control(cell)}</w:tr>"
        f"<w:tr><w:tc>{paragraph('地点')}</w:tc><w:tc>{paragraph('北京')}</w:tc></w:tr></w:tbl>"
    )
    document = loaded(write_docx(body, styles=STYLES))
    assert document.text == "甲方：\n签订日期\n地点\t北京"
    assert document.notes == ("prompts of empty content controls are left out",)


@pytest.mark.parametrize("mark", ["", '<w:showingPlcHdr w:val="0"/>'])
def test_a_filled_content_control_is_read_whatever_its_style(mark: str) -> None:
    body = f"<w:p>{control(run_of('某公司', 'a3'), mark)}</w:p>"
    assert loaded(write_docx(body, styles=STYLES)).text == "某公司"


def test_a_value_that_a_program_put_below_the_mark_of_a_prompt_is_read() -> None:
    body = f"<w:p>{control(run_of('某公司'))}</w:p>"
    assert loaded(write_docx(body, styles=STYLES)).text == "某公司"


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def field(code: str, result: str | None = None) -> str:
    """A field with its code, which may hold others, and its result."""
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    parts = [] if result is None else [mark("separate"), run(result)]
    return mark("begin") + code + "".join(parts) + mark("end")


def code(text: str) -> str:
    return f"<w:r><w:instrText>{text}</w:instrText></w:r>"


@pytest.mark.parametrize(
    ("end", "content"),
    [
        ("<w:del/>", "<w:del><w:r><w:delText>删去</w:delText></w:r></w:del>"),
        ("<w:moveFrom/>", f"<w:moveFrom>{run('移走')}</w:moveFrom>"),
        ("<w:vanish/>", run("不见", "<w:vanish/>")),
    ],
)
def test_a_clause_that_is_gone_has_no_number(end: str, content: str) -> None:
    rules = numbering(level(0, "chineseCounting", "第%1条"))
    gone = numbered("x").replace("</w:pPr>", f"<w:rPr>{end}</w:rPr></w:pPr>")
    gone = gone.replace("<w:r><w:t>x</w:t></w:r>", content)
    body = numbered("标的") + gone + numbered("价款")
    assert loaded(write_docx(body, numbering=rules)).text == "第一条 标的\n第二条 价款"


def test_text_that_its_style_hides_is_no_text() -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="z"><w:name w:val="HTML Top of Form"/>'
        '<w:rPr><w:vanish/></w:rPr></w:style><w:style w:styleId="y"><w:basedOn w:val="z"/>'
        "</w:style></w:styles>"
    )
    hidden = run("不见", '<w:rStyle w:val="y"/>')
    shown = run("乙", '<w:rStyle w:val="y"/><w:vanish w:val="0"/>')
    body = paragraph("窗体顶端", '<w:pStyle w:val="z"/>')
    body += f"<w:p>{run('甲')}{hidden}{shown}</w:p>"
    document = loaded(write_docx(body, styles=styles))
    assert document.text == "甲乙"
    assert document.notes == ("hidden text is left out",)


def test_a_field_in_the_code_of_another_is_no_text() -> None:
    inner = field(code("MERGEFIELD x"), "1")
    outer = field(code("IF ") + inner + code(' = "1" "有" "无"'), "有")
    assert loaded(write_docx(f"<w:p>{run('担保：')}{outer}{run('。')}</w:p>")).text == "担保：有。"
    unended = f'<w:p>{run("甲")}<w:r><w:fldChar w:fldCharType="begin"/></w:r>{run("乙")}</w:p>'
    assert loaded(write_docx(unended)).text == "甲乙"


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        (r"eq \o\ac(○,12)", "⑫"),
        (r"eq \o\ac(□,合)", "合"),
        (r"EQ \* jc2 \* hps10 \o\ad(\s\up 9(hàn),汉)", "汉"),
        (r"EQ \o(\s\up 5(甲乙),\s\do 2(丙丁))", "甲乙丙丁"),
        (r"EQ \f(1,\r(2,x))", "1/2x"),
    ],
)
def test_what_a_code_alone_shows_is_read(equation: str, text: str) -> None:
    assert loaded(write_docx(f"<w:p>{field(code(equation))}{run('。')}</w:p>")).text == f"{text}。"


def test_a_long_code_takes_no_time() -> None:
    equation = "EQ " + r"\o(" * 20_000
    body = f"<w:p>{field(code(equation))}{run('。')}</w:p>"
    assert loaded(write_docx(body)).text == "。"


def test_a_cell_that_goes_on_with_no_merge_above_is_read() -> None:
    def cell(text: str, merge: str = "") -> str:
        return f"<w:tc><w:tcPr>{merge}</w:tcPr><w:p>{run(text)}</w:p></w:tc>"

    rows = [cell("甲", "<w:vMerge/>") + cell("1"), cell("", "<w:vMerge/>") + cell("2")]
    body = "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"
    document = loaded(write_docx(body))
    assert document.text == "甲\t1\n2"
    assert document.tables[0].cells[0].row_span == 2


def test_a_style_has_the_level_that_names_it() -> None:
    levels = [level(at, "decimal", f"第%{at + 1}条") for at in range(2)]
    levels[1] = levels[1].replace("<w:lvlText", '<w:pStyle w:val="h2"/><w:lvlText')
    styles = "".join(
        f'<w:style w:styleId="{name}"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
        "</w:style>"
        for name in ("h1", "h2")
    )
    body = "".join(paragraph(name, f'<w:pStyle w:val="{name}"/>') for name in ("h1", "h2", "h2"))
    document = loaded(
        write_docx(body, numbering=numbering(*levels), styles=f"<w:styles {W}>{styles}</w:styles>")
    )
    assert document.text == "第1条 h1\n第1条 h2\n第2条 h2"


def test_a_list_with_a_damaged_start_begins_at_one() -> None:
    rules = numbering(level(0, "decimal", "%1.")).replace('w:start w:val="1"', 'w:start w:val=""')
    assert loaded(write_docx(numbered("甲"), numbering=rules)).text == "1. 甲"
