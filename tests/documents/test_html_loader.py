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
    ["<a '>", '<a ">" ', "<!--", "<script>", "<table><tr><td>", "</", "<![CDATA[", "&", "<p "],
)
def test_hostile_repetition_is_read_in_linear_work(unit: str) -> None:
    # A quadratic tokenizer would take hours on this; the suite's own time limit is the assertion.
    source = unit * (2_000_000 // len(unit)) + "'"
    with suppress(EmptyDocument):
        loaded(source)
