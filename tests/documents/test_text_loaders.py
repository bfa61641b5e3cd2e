"""Plain text and Markdown: paragraphs, wrapped lines, pages, and the way back to the source."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featpipe.documents import Document, load_document, segment
from featpipe.errors import EmptyDocument

CLAUSES = (
    """\
This Agreement is made and entered into as of the first day of May by and between the parties
named below, each of which has the power to enter into it and to perform what it promises.

1. The Seller shall deliver the goods to the place of business of the Buyer within thirty days,
and shall bear all risks until the goods have been taken over by a person entitled to do so.

2. The Buyer shall pay the price of 1,000,000.00 dollars in three instalments, the first of
which falls due on the day on which this Agreement is signed by the last of the parties to it.

本公司及董事会全体成员保证公告内容的真实、准确和完整，没有虚假记载、误导性陈述或重大遗漏，
并对其内容的真实性、准确性和完整性承担个别及连带责任，特此公告，敬请广大投资者注意投资风险。
""".replace("，\n", "，")
    .replace("\n\n", "\t")
    .replace("\n", " ")
    .strip()
    .split("\t")
)


def loaded(source: str, name: str = "a.txt") -> Document:
    return load_document(source.encode(), source=name, keep_origin=True)


def test_lines_are_paragraphs() -> None:
    assert loaded("甲方：某公司\r\n\r\n  乙方：另一公司 \n\u2028丙方\r丁方").text.split("\n") == [
        "甲方：某公司",
        "乙方：另一公司",
        "丙方",
        "丁方",
    ]


@pytest.mark.parametrize("width", [60, 72, 80])
def test_a_wrapped_text_is_put_together(width: int) -> None:
    latin = CLAUSES[:3] * 2
    source = "\n\n".join("\n".join(textwrap.wrap(clause, width)) for clause in latin)
    document = loaded(source)
    assert document.text.split("\n") == latin
    assert "are joined" in document.notes[0]


def test_clauses_part_also_without_blank_lines() -> None:
    source = "\n".join("\n".join(textwrap.wrap(clause, 70)) for clause in CLAUSES[:3])
    assert loaded(source).text.split("\n") == CLAUSES[:3]


def test_wrapped_chinese_is_joined_without_blanks() -> None:
    wrapped = [CLAUSES[3][i : i + 30] for i in range(0, len(CLAUSES[3]), 30)]
    source = "\n\n".join(["\n".join(wrapped)] * 4)
    assert loaded(source).text.split("\n") == [CLAUSES[3]] * 4


@pytest.mark.parametrize(
    "lines",
    [
        [f"{i:04d} item number {i} in the list of goods and things {i * 7}.00" for i in range(30)],
        ["床前明月光，", "疑是地上霜。", "举头望明月，", "低头思故乡。"] * 5,
        [clause for clause in CLAUSES for _ in range(3)],
        ["short", "lines", "of", "no", "width"] * 5,
    ],
    ids=["records", "poem", "long paragraphs", "words"],
)
def test_lines_that_were_ended_on_purpose_stay(lines: list[str]) -> None:
    document = loaded("\n".join(lines))
    assert [" ".join(line.split()) for line in lines] == document.text.split("\n")
    assert not document.notes


def cells_of(document: Document) -> list[list[list[str]]]:
    """The cells of each table, row by row."""
    tables = []
    for table in document.tables:
        rows: dict[int, list[str]] = {}
        for cell in table.cells:
            rows.setdefault(cell.row, []).append(document.text[cell.start : cell.end])
        tables.append(list(rows.values()))
    return tables


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (",2023年,2022年\n收入,100,200\n", [["", "2023年", "2022年"], ["收入", "100", "200"]]),
        ("\t2023年\n收入\t1,000\n", [["", "2023年"], ["收入", "1,000"]]),
        (
            '名称,备注,金额\r\n"甲,乙","说""不""\n再说","1,000.00"\r\n\r\n',
            [["名称", "备注", "金额"], ["甲,乙", '说"不" 再说', "1,000.00"]],
        ),
        ("a;b\n1;2\n3;", [["a", "b"], ["1", "2"], ["3", ""]]),
        ("名称,编号,数\n甲,1,100\n", [["名称", "编号", "数"], ["甲", "1", "100"]]),
        (
            "名称,备注,数\n甲,已付。待开票,1\n",
            [["名称", "备注", "数"], ["甲", "已付。待开票", "1"]],
        ),
        ('名称,数\n甲,"1,100"\n乙,5\n', [["名称", "数"], ["甲", "1,100"], ["乙", "5"]]),
    ],
)
def test_separated_values_are_a_table(source: str, rows: list[list[str]]) -> None:
    document = loaded(source, "a.csv")
    assert cells_of(document) == [rows]
    assert document.origin
    at = document.text.index(rows[-1][0])
    assert source[slice(*document.origin.to_source(at, at + 1))] == rows[-1][0][0]


@pytest.mark.parametrize(
    "source",
    [
        "1,000\n2,000\n3,000\n",
        "共1,234,567\n共2,345,678\n",
        "甲方,乙方\n金额1,000\n金额2,000\n",
        "Yes, it is.\nNo, it is not.\nWell, well.\n",
        "他说,好。我说,不。\n他说,好。我说,不。\n他说,好。我说,不。\n",
        "甲方付款,乙方交货,丙方担保。\n逾期付款,应付利息,并赔偿损失。\n",
        "a,b\nc\nd,e\n",
        '"a,b\nc,d\ne,f,g',
    ],
)
def test_commas_of_numbers_and_of_prose_part_no_cells(source: str) -> None:
    document = loaded(source)
    assert not document.tables
    assert document.text == "\n".join(line.strip() for line in source.splitlines())


def test_lines_with_cells_in_columns_are_a_table_between_paragraphs() -> None:
    table = "项目  2023年  2022年\n收入    1,000  2,000\n净利润  500  600"
    document = loaded(f"甲方  某公司\n本期数据如下：\n{table}\n以上。\n1.\t标的\n2.\t价款")
    assert cells_of(document) == [[line.split() for line in table.split("\n")]]
    assert document.text.split("\n") == [
        "甲方 某公司", "本期数据如下：", "项目\t2023年\t2022年", "收入\t1,000\t2,000",
        "净利润\t500\t600", "以上。", "1. 标的", "2. 价款",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        ["甲  方：某公司", "地  址：某地", "电  话：123"],
        ["日期：2024年  5月  1日", "日期：2024年  6月  2日"],
        ["It was so.  The next day", "it went on.  And nothing", "was done.  But then it"],
        ["第一条  合同标的", "第二条  合同价款", "第三条  付款方式"],
        ["　　甲方承担", "　　乙方承担", "　　双方承担"],
        ["\t\t甲方承担", "\t\t乙方承担"],
    ],
)
def test_wide_gaps_in_words_dates_and_prose_part_no_cells(lines: list[str]) -> None:
    document = loaded("\n".join(lines))
    assert not document.tables
    assert document.text.split("\n") == [" ".join(line.split()) for line in lines]


def test_a_justified_text_is_no_table() -> None:
    lines = [line.replace(" ", "  ", 2) for line in textwrap.wrap(CLAUSES[0] * 9, 70)]
    assert not loaded("\n".join(lines)).tables


def test_form_feeds_part_pages() -> None:
    document = loaded("第一页\n内容\f第二页\f\f第四页")
    shown = [(p.number, document.text[p.start : p.end].strip()) for p in document.pages]
    assert shown == [(1, "第一页\n内容"), (2, "第二页"), (3, ""), (4, "第四页")]


MARKDOWN = """# 采购合同

甲方：**某公司**（以下简称`甲方`）
与乙方 [另一公司](http://example.com "x") 签订。

付款方式
--------

1. 预付 *30%*
2. 验收后 70%
- [x] 已完成
> 引用的话

| 项目 | 金额 |
|------|-----:|
| 一期 | 1,000 |
| 二期 \\| 三期 | 2,000 |

```python
x = "**not bold**"
```

***
![图](a.png) 完 &amp; 毕 <br> a_b_c 2*3*4 \\*星\\*
"""


def test_markdown_gives_its_words_without_its_marks() -> None:
    document = loaded(MARKDOWN, "a.md")
    assert document.loader.startswith("markdown/")
    assert document.text.split("\n") == [
        "采购合同",
        "甲方：某公司（以下简称甲方）与乙方 另一公司 签订。",
        "付款方式",
        "1. 预付 30%",
        "2. 验收后 70%",
        "☒ 已完成",
        "引用的话",
        "项目\t金额",
        "一期\t1,000",
        "二期 | 三期\t2,000",
        'x = "**not bold**"',
        "图 完 & 毕",
        "a_b_c 2*3*4 *星*",
    ]
    assert document.title == "采购合同"
    assert [(document.text[h.start : h.end], h.level) for h in document.headings] == [
        ("采购合同", 1),
        ("付款方式", 2),
    ]
    assert len(document.tables) == 1


def test_markdown_may_begin_with_a_tag() -> None:
    source = '<p align="center"><img src="a.png"></p>\n\n# 标题\n\n第一段。\n\n- 甲\n- 乙\n'
    document = loaded(source, "README.md")
    assert document.media_type == "text/markdown"
    assert document.text == "标题\n第一段。\n甲\n乙"
    assert loaded("<!DOCTYPE html><p># 标题", "a.md").media_type == "text/html"
    assert loaded("<p>a<p>b", "a.txt").media_type == "text/html"


@pytest.mark.parametrize("row", ["|一||二|", "|一| |二|", "一||二", "| \\| || 二 |", "\\|||二"])
def test_an_empty_cell_of_markdown_keeps_its_column(row: str) -> None:
    (table,) = loaded(f"|甲|乙|丙|\n|-|-|-|\n{row}\n", "a.md").tables
    places = [(cell.row, cell.column, cell.end - cell.start) for cell in table.cells[3:]]
    assert places[:3] == [(1, 0, 1), (1, 1, 0), (1, 2, 1)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("甲<!-- a <!-- b -->乙", "甲乙"),
        ("甲<!-- a -->乙<!-- b -->丙", "甲乙丙"),
        ("甲 <!-- **乙** 丙", "甲 <!-- 乙 丙"),
        ("<!-- a --> 甲 <!-- 乙 <!-- 丙", "甲 <!-- 乙 <!-- 丙"),
        ("`<!--` 甲 -->", "<!-- 甲 -->"),
    ],
)
def test_comments_of_markdown_end_where_they_are_closed(source: str, text: str) -> None:
    assert loaded(source, "a.md").text == text


TABLE = "<table border=1>\n<tr><td>甲方</td><td>某公司</td></tr>\n<tr><td>乙方<td>另一\n</table>"
ROWS = "甲方\t某公司\n乙方\t另一"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (f"前\n\n{TABLE}\n\n后", f"前\n{ROWS}\n后"),
        (f"前 {TABLE} 后 **粗**\n续", f"前\n{ROWS}\n后 粗续"),
        (f"{TABLE}{TABLE}\n# 题\n", f"{ROWS}\n{ROWS}\n题"),
        ("<table><tr><td>外<td><table><tr><td>内<td>一</table></table>\n后", "外\n内\t一\n后"),
        (f"```\n{TABLE[:15]}\n```\n后", f"{TABLE[:15]}\n后"),
        ("<table><tr><td>甲\n\n后 **粗**", "甲\n后 粗"),
        ("- [ ] 是\n- [x] 否\n\n[X] 同意", "☐ 是\n☒ 否\n☒ 同意"),
        (
            "编号 **HT_2024_001** 与 ***粗斜*** 及 __下_线__",
            "编号 HT_2024_001 与 粗斜 及 __下_线__",
        ),
        ("第一行\\\n第二行", "第一行\n第二行"),
        ("---\ntitle: '合同'\ndate: 2024\n---\n# 甲", "title: '合同'\ndate: 2024\n甲"),
        ("---\n\n正文\n\n---\n", "正文"),
    ],
)
def test_markdown_is_read_as_it_is_shown(source: str, text: str) -> None:
    document = load_document(source.encode(), source="a.md", keep_origin=True)
    assert document.text == text
    assert document.origin
    for character in "甲乙粗内":
        if character in text:
            at = text.index(character)
            assert source[slice(*document.origin.to_source(at, at + 1))] == character
    if source.startswith("---\nt"):
        assert document.title == "合同"


def test_every_character_of_markdown_comes_from_its_place() -> None:
    document = loaded(MARKDOWN, "a.md")
    assert document.origin
    for i, character in enumerate(document.text):
        start, end = document.origin.to_source(i, i + 1)
        if character not in "\n\t &☒":
            assert MARKDOWN[start:end] == character
    start = document.text.index("甲方）与乙方")
    assert MARKDOWN[slice(*document.origin.to_source(start, start + 6))] == "甲方`）\n与乙方"


SOURCES = st.text(
    st.sampled_from("甲乙１Ａa \t\n\r\f\u3000\u200b，。*_`#|[]()<>&;-=\\\"'amp!/pb"), max_size=120
)


@given(SOURCES, st.sampled_from(["a.txt", "a.md", "a.html"]))
def test_the_way_to_the_source_and_back_holds_for_any_text(source: str, name: str) -> None:
    try:
        document = loaded(source, name)
    except EmptyDocument:
        return
    plain = load_document(source.encode(), source=name)
    assert plain.text == document.text
    assert (plain.tables, plain.pages) == (document.tables, document.pages)
    assert document.origin is not None
    assert document.origin.n_characters == len(document.text)
    for start, end in segment(document.text).sentences.tolist():
        first, last = document.origin.to_source(start, end)
        assert 0 <= first < last <= len(source)
        back = document.origin.to_text(first, last)
        assert back[0] <= start
        assert back[1] >= end
    for table in document.tables:
        for cell in table.cells:
            assert table.start <= cell.start <= cell.end <= table.end
            assert not {"\n", "\t"} & set(document.text[cell.start : cell.end])


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_chinese_in_utf_16_without_a_mark_is_text(encoding: str) -> None:
    for text in ("甲方：北京某某公司\r\n合同金额：100万元\r\n", "合同编号：HT-2024\n" * 3):
        document = load_document(text.encode(encoding), source="a.txt")
        assert document.text == "\n".join(text.split())
        assert document.notes == (f"no byte-order mark: read as {encoding} by its zero bytes",)
    page = load_document("<html><p>甲方：某公司\n</html>".encode(encoding), source="a.txt")
    assert (page.media_type, page.text) == ("text/html", "甲方：某公司")


@pytest.mark.parametrize(
    "line",
    [
        "a " + "`" * 200_000,
        "# " + " " * 200_000 + "a",
        "a\n" + " " * 200_000 + "b",
        "a\n-" + " " * 200_000 + "b",
        "<!--" * 100_000,
        "<table><td>a<td>b</table>" * 20_000,
        "<table>\na" * 50_000,
        "a</table><table " * 50_000,
        "---\n" + "a: b\n" * 100_000,
        "***a" * 50_000,
        "a\n" * 100_000,
        "**a " * 50_000,
        "[a](b" * 50_000,
    ],
    ids=[
        "ticks",
        "heading",
        "blanks",
        "delimiter",
        "comments",
        "tables",
        "open tables",
        "closed tables",
        "fields",
        "stars",
        "lines",
        "strong",
        "links",
    ],
)
def test_markdown_is_read_in_time_that_grows_with_its_length(line: str) -> None:
    """Each took minutes where a pattern or a sum looked at the same characters again and again."""
    document = load_document(line.encode(), source="a.md")
    assert "".join(document.text.split())
