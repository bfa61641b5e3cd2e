"""HTML: what a browser would show, in order, and traceable to the source."""

from __future__ import annotations

from contextlib import suppress

import pytest

from featpipe.documents import Document, load_document
from featpipe.errors import EmptyDocument


def loaded(source: str, *, encoding: str = "utf-8") -> Document:
    return load_document(source.encode(encoding), source="page.html", keep_origin=True)


def test_an_announcement_page_keeps_headings_that_stand_in_attributes_only() -> None:
    page = loaded(
        '<html><head></head><body><div title="关于中标的公告" type="pdf">\n'
        ' <div id="S_1" title="一、项目概况" type="paragraph">\n'
        '  <div type="content">\n   证券代码：\n     600006\n     证券简称：东风\n'
        "     汽车\n  </div>\n"
        '  <div type="content">\n   <br>\n  </div>\n </div></div></body></html>'
    )
    assert page.text == "关于中标的公告\n一、项目概况\n证券代码： 600006 证券简称：东风汽车"
    assert [(page.text[h.start : h.end], h.level) for h in page.headings] == [
        ("关于中标的公告", 1),
        ("一、项目概况", 2),
    ]


def test_a_tooltip_is_no_heading() -> None:
    assert loaded('<div title="点击放大">正文</div>').text == "正文"


def test_a_table_row_is_a_line_and_its_cells_are_kept_with_their_places() -> None:
    page = loaded(
        "<p>前文</p><table><tr><th>项目</th><th>金额</th></tr>"
        "<tr><td rowspan=2>甲标段</td><td>1,000<br>万元</td></tr><tr><td>2,000万元</td></tr>"
        "</table><p>后文</p>"
    )
    assert page.text == "前文\n项目\t金额\n甲标段\t1,000 万元\n2,000万元\n后文"
    (table,) = page.tables
    assert page.text[table.start : table.end] == "项目\t金额\n甲标段\t1,000 万元\n2,000万元"
    assert [(c.row, c.column, page.text[c.start : c.end], c.row_span) for c in table.cells] == [
        (0, 0, "项目", 1),
        (0, 1, "金额", 1),
        (1, 0, "甲标段", 2),
        (1, 1, "1,000 万元", 1),
        (2, 1, "2,000万元", 1),
    ]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>一&amp;二 &lt;三&gt; &#x56db;&#20116; &nbsp; &copy 六</p>", "一&二 <三> 四五 © 六"),
        ("<p>one<b>two</b> three\nfour</p>", "onetwo three four"),
        ("<script>var a = '<p>no</p>';</script><p>yes</p><style>p{}</style>", "yes"),
        ("<!-- <p>no</p> --><p>yes</p><!-- never closed <p>no</p>", "yes"),
        ("<p>甲<!-- 注 -->乙</p>", "甲乙"),
        ('<!DOCTYPE html [<!ENTITY a "b">\n<!ENTITY c "d"> ] ><p>正文</p>', "正文"),
        ("<!DOCTYPE html><p>a[1]></p>", "a[1]>"),
        ("<!DOCTYPE html [<!ENTITY a 'b'><p>正文</p>", "正文"),
        ("<pre>一  行\n二行\n\n三行</pre>", "一 行\n二行\n三行"),
        ('<a title="a > b">链接</a>后', "链接后"),
        ('<a title="a"b">链接</a><p class="c">后</p>', "链接\n后"),
        ("1 < 2 且 3 > 2", "1 < 2 且 3 > 2"),
        ("<p>未闭合<p>下一段<div>块", "未闭合\n下一段\n块"),
        ("<ul><li>甲<li>乙</ul>", "甲\n乙"),
        ("金额：<input type=text value='1&amp;00'>元<input type=hidden value=x>", "金额：1&00元"),
        ("<input type=checkbox checked>是<INPUT TYPE='radio'>否", "☒是☐否"),
        ("<textarea>甲方\n乙方</textarea>", "甲方\n乙方"),
        ("<select><option>甲<option selected>乙<option>丙</select>丁", "乙\n丁"),
        ("<p>一<select id=a><option>甲</option><option>乙</option><p>二", "一\n甲\n二"),
        ("<select multiple><option>甲<option>乙</select>", "甲\n乙"),
        ("<ruby>東<rp>(</rp><rt>ひがし</rt><rp>)</rp>京<rt>きょう</ruby>都", "東京都"),
        ("<svg><text>图</text></svg>正文<svg/>后", "正文后"),
        ("<TABLE><TR><TD>单列甲<TR><TD>单列乙</TABLE>", "单列甲\n单列乙"),
        ("<![CDATA[原文]]>后", "原文后"),
        ("<p>正文</p><div attr='never closed", "正文"),
    ],
)
def test_text_is_what_a_browser_shows(source: str, text: str) -> None:
    assert loaded(source).text == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "<ol><li>甲<li>乙<ol type=a><li>丙<li>丁</ol><li>戊</ol>后",
            "1. 甲\n2. 乙\na. 丙\nb. 丁\n3. 戊\n后",
        ),
        (
            "<OL START='3'><LI>\n <p>甲</p>\n<p>又</p><LI value=7>乙<LI>丙</OL>",
            "3. 甲\n又\n7. 乙\n8. 丙",
        ),
        ("<ol style='list-style-type: cjk-ideographic' start=10><li>甲</ol>", "十、甲"),
        ("<ol type=I start=4><li>甲<li type=i>乙</ol>", "IV. 甲\nv. 乙"),
        ("<ol type=A start=26><li>甲<li>乙</ol>", "Z. 甲\nAA. 乙"),
        ("<ol reversed start=2><li>甲<li>乙</ol>", "2. 甲\n1. 乙"),
        ("<ol reversed><li>甲<li>乙</ol>", "甲\n乙"),
        ("<ol><li><ol type=i><li>甲<li>乙</ol><li><li>丙</ol>", "1. i. 甲\nii. 乙\n3. 丙"),
        ("<ol><li><ol>\n甲</li><p>乙</ol></ol>", "1. 甲\n乙"),
        ("<ol><li>甲<ul><li>子</ul><li>乙</ol><ul><li>丙</ul>", "1. 甲\n子\n2. 乙\n丙"),
        ("<ol style='list-style: none'><li>甲</ol>", "甲"),
        ("<ol class='site breadcrumb'><li>甲</ol>", "甲"),
        ("<style>ul, ol { margin: 0; list-style: none }</style><ol><li>甲</ol>", "甲"),
        ("<style>ul { list-style: none }</style><ol><li>甲</ol>", "1. 甲"),
        ("<table><tr><td>一<td><ol><li>甲<li>乙</ol></table>", "一\t1. 甲 2. 乙"),
    ],
)
def test_items_of_ordered_lists_have_their_numbers(source: str, text: str) -> None:
    page = loaded(source)
    assert page.text == text
    assert page.origin
    at = page.text.index("甲")
    assert source[slice(*page.origin.to_source(at, at + 1))] == "甲"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('可见的<span style="color: red; DISPLAY : none">不见</span>正文', "可见的正文"),
        ("<div hidden><div>不见</div></div>可见的正文", "可见的正文"),
        ("<p hidden>不见<p>可见的正文", "可见的正文"),
        ("<ul><li hidden>不见<ul><li>不见</ul><li>可见的正文", "可见的正文"),
        ("<table><tr hidden><td>不<td>见<tr><td>可见<td>的正文</table>", "可见\t的正文"),
        ("<table><tr><td><b style='display:none'>不见</td><td>可见<td>正文</table>", "可见\t正文"),
        ("<br hidden><input hidden value=1>可见<img style='display:none'>的正文", "可见的正文"),
        ("<div style='overflow: hidden'>可见</div><div data-hidden=1>正文</div>", "可见\n正文"),
        ("<body style='display: none'><p>由程序显示</body>", "由程序显示"),
        (
            "<style>/*a*/p,.x{DISPLAY: none !important}</style><p class='b x'>不见</p>可见的正文",
            "可见的正文",
        ),
        (
            "<style><!-- #gone { display:none } --></style><i id=gone>不见</i>可见的正文",
            "可见的正文",
        ),
        ("<style>td.off{display:none}</style><p class=off>可见</p>正文", "可见\n正文"),
        (
            "<style>.tab{display:none}.tab.open{display:block}</style><p class=tab>可见</p>正文",
            "可见\n正文",
        ),
        ("<style>@media print{.off{display:none}}</style><p class=off>可见</p>正文", "可见\n正文"),
        ("<style media=print>.off{display:none}</style><p class=off>可见</p>正文", "可见\n正文"),
        ("<style>.a .off{display:none}</style><p class=off>可见</p>正文", "可见\n正文"),
        ("<!--<style>.off{display:none}</style>--><p class=off>可见</p>正文", "可见\n正文"),
    ],
)
def test_what_is_not_displayed_is_left_out(source: str, text: str) -> None:
    page = loaded(source)
    assert page.text == text
    assert page.notes == (("hidden text is left out",) if "不" in source else ())


def test_a_page_that_its_program_shows_is_read_and_says_so() -> None:
    page = loaded("<a>首页</a><div id=content style='display:none'>关于中标结果的公告</div>")
    assert page.text == "首页\n关于中标结果的公告"
    assert page.notes == ("more text is hidden than shown: all of it is read",)


def test_layout_tables_give_prose_and_the_table_in_them_gives_rows() -> None:
    page = loaded(
        "<table><tr><td>菜单</td><td><p>正文</p>"
        "<table><tr><td>甲方</td><td>某公司</td></tr></table></td></tr></table>"
    )
    assert page.text == "菜单\n正文\n甲方\t某公司"
    assert len(page.tables) == 1


def test_the_title_is_metadata_and_not_text() -> None:
    page = loaded("<html><head><title>标题 &amp; 副题</title></head><body>正文</body></html>")
    assert (page.title, page.text) == ("标题 & 副题", "正文")


@pytest.mark.parametrize("declared", ["gb2312", "GBK", "gb18030"])
def test_the_declared_encoding_is_read_as_what_it_means(declared: str) -> None:
    page = loaded(f'<meta charset="{declared}"><p>合同金额：镕某㎡</p>', encoding="gb18030")
    assert page.text == "合同金额：镕某㎡"
    assert page.encoding == "gb18030"
    assert not page.notes


def test_a_page_without_text_is_empty() -> None:
    with pytest.raises(EmptyDocument, match=r"page\.html: no text in it"):
        loaded("<html><body><div> <br> </div><script>1</script></body></html>")


def test_every_character_comes_from_its_place_in_the_source() -> None:
    source = (
        "<p>甲方：&quot;某\n  公司&quot;</p><table><tr><td>金额</td><td>１２万</td></tr></table>"
    )
    page = loaded(source)
    assert page.text == '甲方："某公司"\n金额\t12万'
    assert page.origin
    for i, character in enumerate(page.text):
        start, end = page.origin.to_source(i, i + 1)
        if character not in '\n\t"12':
            assert source[start:end] == character
    start = page.text.index("12万")
    assert source[slice(*page.origin.to_source(start, start + 3))] == "１２万"
    start = page.text.index("某公司")
    assert source[slice(*page.origin.to_source(start, start + 3))] == "某\n  公司"


@pytest.mark.parametrize(
    "unit",
    [
        "<a '>",
        '<a ">" ',
        "<!--",
        "<script>",
        "<table><tr><td>",
        "</",
        "<![CDATA[",
        "&",
        "<p ",
        "<p hidden>",
        "<div hidden>x",
        "<ol><li>",
        "<ol>",
        "ol,",
        "ol{list-style:",
        "display:",
        "<style ",
        "<style>a{display:none}",
        ".a{display:none",
    ],
)
def test_hostile_repetition_is_read_in_linear_work(unit: str) -> None:
    # A quadratic tokenizer would take hours on this; the suite's own time limit is the assertion.
    source = unit * (2_000_000 // len(unit)) + "'"
    with suppress(EmptyDocument):
        loaded(source)


def test_wide_cells_that_go_on_below_are_passed_over_as_a_whole() -> None:
    # Column by column this took a minute; the suite's own time limit is the assertion.
    row = "<tr>" + "<td rowspan=1000 colspan=100>x" * 20
    cells = loaded(f"<table>{row * 1000}</table>").tables[0].cells
    assert [(cell.row, cell.column) for cell in cells[-20:]] == [
        (999, 100 * number) for number in range(20 * 999, 20 * 1000)
    ]
