"""Tables of plain text. Oracle: the rows as they are written beside the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.tables.table_headers import table_headers
from featpipe.extraction.tables.text_tables import rows_of_sums, text_tables

if TYPE_CHECKING:
    from pathlib import Path

GOODS = (
    "序号  货物名称    数量      金额（元）\n"
    "1     控制电缆    5 米          162.50\n"
    "2     铠装电缆    260 米    101,920.00\n"
)


def rows_of(text: str, others: tuple[tuple[int, int], ...] = ()) -> list[list[list[str]]]:
    """The words of each row of each table."""
    tables = []
    for _, _, cells in text_tables(text, others):
        rows: dict[int, list[str]] = {}
        for row, column, start, end, *spanned in cells:
            assert spanned == [1, 1]
            assert column == len(rows.setdefault(row, []))
            rows[row].append(text[start:end])
        tables.append([rows[number] for number in sorted(rows)])
    return tables


@pytest.mark.parametrize("gap", ["\t", "   ", "　　", " \t "])
def test_lines_of_as_many_cells_are_rows(gap: str) -> None:
    rows = [
        ["期间", "单价（元/㎡）", "租金"],
        ["2024年", "128", "53,196.80"],
        ["次年", "134", "5元"],
    ]
    text = "租金如下：\n" + "\n".join("  " + gap.join(row) + " " for row in rows) + "\n特此通知。"
    assert rows_of(text) == [rows]


def test_a_table_has_the_place_of_its_rows() -> None:
    text = f"明细\n{GOODS}合计  102,082.50\n"
    ((start, end, _),) = text_tables(text)
    assert text[start:end] == GOODS.rstrip("\n")


def test_known_labels_head_rows_without_digits() -> None:
    rows = [["标段", "发包人（盖章）", "承包人"], ["东段", "宏达公司", "泰恒公司"]]
    assert rows_of("\n".join(map("\t".join, rows))) == [rows]


@pytest.mark.parametrize(
    "text",
    [
        "标段\t发包人\t承包人\n联系人\t王五\t李四\n",  # labels below labels
        "王五   李四   赵六\n张三   钱七   孙八\n",  # who signs
        "房  屋  租  赁\n合  同  书  式\n",  # titles with gaps
        "甲方：A   乙方：B   丙方：C\n电话：1   电话：2   电话：3\n",  # labels of their own
        "2022年\t5\t6\n2023年\t7\t8\n",  # no headers
        "张三\t2019\t销售\n李四\t2018\t技术\n",  # years are values there
        "名称\t数量\t金额\n",  # no rows
        "",
    ],
)
def test_other_lines_are_no_table(text: str) -> None:
    assert rows_of(text) == []


@pytest.mark.parametrize(
    "heads", ["2023年\t2022年", "2023年1-6月\t2022年", "2023\t2022", "RMB'000\tNote"]
)
def test_years_and_thousands_head_columns(heads: str) -> None:
    text = f"项目\t{heads}\n收入\t100\t90\n成本\t—\t70\n"
    [rows] = rows_of(text)
    assert rows[0] == ["项目", *heads.split("\t")]


def test_rows_of_sums_begin_with_what_sums_are_called() -> None:
    sums = ["合 计（元）\t\t300", "小计：   20   30", "Grand Total\t5"]
    others = ["合计", "合计金额\t300", "王总计\t5", "1\t总计"]
    text = "\n".join([*sums, *others])
    assert [text[start:end] for start, end in rows_of_sums(text)] == sums


def test_rows_of_another_number_of_cells_end_a_table() -> None:
    text = f"{GOODS}3     电线    5 米\n{GOODS}"
    tables = rows_of(text)
    assert [len(table) for table in tables] == [3, 3]


def test_no_table_is_found_twice() -> None:
    assert rows_of(GOODS, ((0, len(GOODS)),)) == []
    text = f"{GOODS}\n第二批\n{GOODS}"
    assert len(rows_of(text, ((0, len(GOODS)),))) == 1


def test_cells_know_their_headers() -> None:
    found = {GOODS[cell.start : cell.end]: cell.label for cell in page_of_text(GOODS).headers}
    assert found["铠装电缆"] == "货物名称"
    assert found["101,920.00"] == "金额（元）"
    assert "序号" not in found


def test_a_column_gives_the_values_of_a_field_without_samples(cache: Path) -> None:
    template = Template(name="goods", fields=(FieldSpec(name="货物名称"),))
    with Extractor([template], cache=cache, models={}) as extractor:
        result = extractor.extract(f"采购合同\n{GOODS}以上价格含税。")
    assert {value.text for value in result.fields["货物名称"].values} == {"控制电缆", "铠装电缆"}


def test_dashes_and_rows_of_sums_are_no_values_of_a_column(cache: Path) -> None:
    text = (
        "减持情况\n减持方式\t减持股数\t减持均价\n集中竞价\t1,200\t23.61\n大宗交易\t3,600\t—\n"
        "合计\t4,800\t-\n"
    )
    template = Template(
        name="减持", fields=(FieldSpec(name="减持方式"), FieldSpec(name="减持均价", type="number"))
    )
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(text).fields
    assert {value.text for value in fields["减持方式"].values} == {"集中竞价", "大宗交易"}
    assert [value.text for value in fields["减持均价"].values] == ["23.61"]


@pytest.mark.parametrize("kind", ["number", "text"])
def test_a_header_with_another_word_in_brackets_has_the_name(cache: Path, kind: str) -> None:
    text = "验收记录\n序号\t到货（入库）件数（件）\t批次\n1\t310\t甲\n2\t57\t乙\n"
    template = Template(name="验收", fields=(FieldSpec(name="到货件数", type=kind),))
    with Extractor([template], cache=cache, models={}) as extractor:
        values = extractor.extract(text).fields["到货件数"].values
    assert {value.text for value in values} == {"310", "57"}


@pytest.mark.parametrize("kind", ["number", "text", None])
def test_the_last_header_is_no_label_of_the_next_row(cache: Path, kind: str | None) -> None:
    text = "采购合同\n序号\t设备名称\t数量\n1\t离心泵\t3\n2\t流量计\t5\n"
    template = Template(name="采购", fields=(FieldSpec(name="数量", type=kind),))
    with Extractor([template], cache=cache, models={}) as extractor:
        values = extractor.extract(text).fields["数量"].values
    assert {value.text for value in values} == {"3", "5"}


def test_a_field_of_one_value_gives_one_cell(cache: Path) -> None:
    template = Template(name="goods", fields=(FieldSpec(name="货物名称", cardinality="one"),))
    with Extractor([template], cache=cache, models={}) as extractor:
        values = extractor.extract(GOODS).fields["货物名称"].values
    assert len(values) == 1


def test_no_candidate_goes_on_from_one_cell_to_the_next() -> None:
    features = PageFeatures(page_of_text(GOODS))
    found = fit_field([], "text", ("货物名称",)).boundaries.propose(features)
    start, end = features.tokens.start[found.first], features.tokens.end[found.last - 1]
    texts = {GOODS[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)}
    assert "控制电缆" in texts
    assert not [text for text in texts if "电缆" in text and "米" in text]


STROKES = """采购清单
| 品名 | 规格 | 单价（含税，元） |
|:---|---|---:|
| 液压泵 | HP-20 | 3,200.00 |
| 密封圈 |  | 4.50 |

| 项目 | 内容 |
| --- | --- |
| 交货地点 | 二号仓库 |
| 单独一行 |
"""


def test_rows_between_strokes_make_a_table_below_a_line_of_dashes(cache: Path) -> None:
    headers = [(STROKES[h.start : h.end], h.label) for h in table_headers(STROKES, ())]
    assert headers == [
        ("液压泵", "品名"), ("HP-20", "规格"), ("3,200.00", "单价（含税，元）"),
        ("密封圈", "品名"), ("4.50", "单价（含税，元）"),
        ("内容", "项目"), ("二号仓库", "交货地点"),
    ]  # fmt: skip
    template = Template(name="one", fields=(FieldSpec(name="单价"), FieldSpec(name="交货地点")))
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(STROKES).fields
    found = {name: sorted(value.text for value in own.values) for name, own in fields.items()}
    assert found == {"单价": ["3,200.00", "4.50"], "交货地点": ["二号仓库"]}


@pytest.mark.parametrize(
    "text", ["|", "||", "|\\|", "a \\| b\n---\nc \\| d\n", "|---|\n|---|\n", "| a |\n|---|\n"]
)
def test_strokes_alone_are_no_table(text: str) -> None:
    assert list(text_tables(text)) == []
    assert list(rows_of_sums(text)) == []


def test_a_row_of_sums_between_strokes_is_one() -> None:
    text = "| 合计 |  | 39,300.00 |\n| 电缆 | 5 | 1.00 |"
    assert [text[start:end] for start, end in rows_of_sums(text)] == ["合计 |  | 39,300.00"]


def labels_of(text: str) -> list[tuple[str, str]]:
    return [(text[h.start : h.end], h.label) for h in table_headers(text, ())]


def test_a_row_of_fewer_cells_has_those_above_merged_with_its_first() -> None:
    text = (
        "股东名称\t冻结股数\t比例\t冻结日期\n"
        "李明\t1,000股\t5.1%\t2023-05-06\n"
        "2,000股\t6.2%\t2023-05-08\n"
        "合计\t3,000股\t11.3%\n"
    )
    assert labels_of(text)[4:] == [
        ("2,000股", "冻结股数"), ("6.2%", "比例"), ("2023-05-08", "冻结日期"),
    ]  # fmt: skip


@pytest.mark.parametrize("row", ["2,000股\t2023-05-08", "5.1%\t1,000股\t2023-05-06", "备注\t无"])
def test_a_row_of_fewer_cells_of_other_kinds_ends_the_table(row: str) -> None:
    text = f"股东名称\t冻结股数\t比例\t冻结日期\n李明\t1,000股\t5.1%\t2023-05-06\n{row}\n"
    assert len(labels_of(text)) == 4


def test_labels_at_the_left_say_what_each_column_has() -> None:
    text = (
        "股东名称\t李明\t王芳\n冻结股数\t1千股\t2千股\n冻结机关\t青州市中级人民法院\t青州市公安局\n"
    )
    rows = [line.split("\t") for line in text.splitlines()]
    assert labels_of(text) == [(cell, row[0]) for row in rows for cell in row[1:]]


def test_years_above_labels_are_headers() -> None:
    text = "项目\t2023年\t2022年\n营业收入\t1,000\t900\n净利润\t100\t90\n"
    assert [label for _, label in labels_of(text)] == ["项目", "2023年", "2022年"] * 2


def test_single_blanks_part_cells_below_known_labels() -> None:
    text = (
        "股东名称 持股总数 持股比例 质权人\n"
        "李明 52,170.96 万股 25.75% 青州银行股份有限公司\n"
        "1,200 万股 0.59% 东岭证券有限公司\n"
        "王芳 300 股 0.01% 青州银行股份有限公司\n"
        "以上为全部质押。\n"
    )
    heads = ["股东名称", "持股总数", "持股比例", "质权人"]
    assert labels_of(text) == [
        *zip(("李明", "52,170.96 万股", "25.75%", "青州银行股份有限公司"), heads, strict=True),
        *zip(("1,200 万股", "0.59%", "东岭证券有限公司"), heads[1:], strict=True),
        *zip(("王芳", "300 股", "0.01%", "青州银行股份有限公司"), heads, strict=True),
    ]


@pytest.mark.parametrize(
    "text", ["股东 持有 公司 股份\n李明 持有 公司 股份\n", "Year Rent Term Date\n1 200 3 May\n"]
)
def test_words_between_blanks_alone_are_no_table(text: str) -> None:
    assert labels_of(text) == []
