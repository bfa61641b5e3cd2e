"""Layouts of conversions: strokes without outer ones, forms, cells that have a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pages import features_of
from test_statements import first

from featpipe import Extractor, FieldSpec, SampleSpec, Template
from featpipe.extraction.tables.cell_lines import tables_of_lines
from featpipe.extraction.tables.table_headers import table_headers
from featpipe.extraction.tables.text_tables import text_tables
from featpipe.extraction.values.text import fold_page

if TYPE_CHECKING:
    from pathlib import Path

FORM = (
    "合同编号 | HT-2024-031\n借款人名称 | 临江锦禾纺织有限公司\n"
    "借款金额 | 人民币500万元 | 到期日 | 2025-06-11\n"
)
LINES = (
    "中标结果\n\n标段\n中标人\n中标金额（元）\n项目经理\n"
    "一标段 坝体\n陇江水电工程有限公司\n11,427,305.60\n牛建伟\n"
    "二标段 溢洪道\n定川建设有限公司\n4,865,218.44\n虎振华\n\n联系人：妥小兰\n"
)


def headers(text: str) -> list[tuple[str, str]]:
    return [(one.label, text[one.start : one.end]) for one in table_headers(text, ())]


@pytest.mark.parametrize("stroke", ["|", "│", "┃"])
def test_strokes_part_the_rows_of_a_form_with_and_without_outer_ones(stroke: str) -> None:
    expected = [
        ("合同编号", "HT-2024-031"), ("借款人名称", "临江锦禾纺织有限公司"),
        ("借款金额", "人民币500万元"), ("到期日", "2025-06-11"),
    ]  # fmt: skip
    text = FORM.replace("|", stroke)
    outer = "".join(f"{stroke} {line} {stroke}\n" for line in text.splitlines())
    assert headers(text) == headers(outer) == expected
    assert [first(text, name) for name in ("合同编号", "借款人", "到期日")] == [
        "HT-2024-031", "临江锦禾纺织有限公司", "2025-06-11",
    ]  # fmt: skip


def test_a_table_of_two_columns_and_a_row_of_headers_are_no_form() -> None:
    for text in ("甲厂 | 300\n乙厂 | 200\n", "品名 | 数量 | 单价 | 金额\n"):
        assert list(text_tables(text)) == []
    # Labels in every column: one of headers, with rows below it.
    text = "货物名称\t数量\t单价\t金额\n水泵\t2\t10.00\t20.00\n"
    assert headers(text) == [
        ("货物名称", "水泵"),
        ("数量", "2"),
        ("单价", "10.00"),
        ("金额", "20.00"),
    ]


def test_the_lines_of_a_box_are_no_rows() -> None:
    text = (
        "┌────┬────┐\n│货物名称│金额(元)│\n├────┼────┤\n│内胎│13,500│\n"
        "├────┼────┤\n│外胎│9,800│\n└────┴────┘\n"
    )
    assert headers(text) == [
        ("货物名称", "内胎"), ("金额(元)", "13,500"), ("货物名称", "外胎"), ("金额(元)", "9,800"),
    ]  # fmt: skip
    plus = "+---+---+\n| 货物名称 | 金额 |\n+---+---+\n| 内胎 | 13,500 |\n+---+---+\n"
    assert headers(plus) == [("货物名称", "内胎"), ("金额", "13,500")]


def test_a_form_whose_rows_are_numbered_has_labels_in_its_second_column() -> None:
    text = (
        "Ref | Particular | Entry\n1.1 | Date of signature | 30 April 2024\n"
        "1.2 | Purchaser | Tarawera Rail Limited\n"
        "1.3 | Supplier | Ironbark Sleeper Company Pty Ltd\n1.4 | Contract Period | 30 months\n"
    )
    assert ("Supplier", "Ironbark Sleeper Company Pty Ltd") in headers(text)
    assert first(text, "Purchaser") == "Tarawera Rail Limited"
    table = "序号 | 姓名 | 金额\n1 | 张三 | 300\n2 | 李四 | 200\n"
    assert ("姓名", "张三") in headers(table)


def test_cells_that_have_a_line_each_make_rows() -> None:
    assert headers(LINES) == [
        ("标段", "一标段 坝体"), ("中标人", "陇江水电工程有限公司"),
        ("中标金额（元）", "11,427,305.60"), ("项目经理", "牛建伟"),
        ("标段", "二标段 溢洪道"), ("中标人", "定川建设有限公司"),
        ("中标金额（元）", "4,865,218.44"), ("项目经理", "虎振华"),
    ]  # fmt: skip
    assert first(LINES, "项目经理") in {"牛建伟", "虎振华"}


@pytest.mark.parametrize(
    "text",
    [
        "中标人\n联系人\n电话\n地址\n邮箱\n传真\n",  # labels alone
        "张三\n李四\n王五\n1\n2\n3\n",  # no labels
        "中标人\n中标金额\n项目经理\n甲\n300元\n牛建伟\n乙\n虎振华\n200元\n",  # columns differ
        "中标人\n中标金额\n\n项目经理\n甲公司\n300\n牛建伟\n",  # a blank line between
    ],
)
def test_other_lines_make_no_table(text: str) -> None:
    assert list(tables_of_lines(text)) == []


def test_no_table_of_lines_is_found_where_one_is_known() -> None:
    [(start, end, _)] = tables_of_lines(LINES)
    assert list(tables_of_lines(LINES, [(start, end)])) == []


def test_a_header_is_no_value_of_the_one_before_it(cache: Path) -> None:
    template = Template(name="one", fields=(FieldSpec(name="股东"),))
    with Extractor([template], cache=cache, models={}) as extractor:
        assert not extractor.extract("名册\n股东\n职务\n说明：无\n").fields["股东"].values
        assert extractor.extract("名册\n股东\n张三\n说明：无\n").fields["股东"].values


def test_labels_in_lenticular_brackets_have_their_values_behind_them() -> None:
    text = "【公告编号】PL-2024-21\n【证券代码】 689912\n【开标评标】\n"
    text += "开标时间：2024年1月2日\n依【2021】3号文\n"
    folded = fold_page(text)
    assert len(folded) == len(text)
    assert folded.splitlines()[:3] == [" 公告编号:pl-2024-21", " 证券代码: 689912", "[开标评标]"]
    assert folded.splitlines()[-1] == "依[2021]3号文"
    assert first(text, "公告编号") == "PL-2024-21"
    assert first(text, "证券代码") == "689912"


def test_a_label_has_no_number_before_it() -> None:
    page = features_of("4.1 保证人：天成控股有限公司\n2. 贷款用途：购买设备\n3年租金：5000元\n")
    labels = {*page.tokens.label_text.values()}
    assert {"保证人", "贷款用途"} <= labels
    assert "年租金" not in labels


def test_samples_of_one_layout_find_values_behind_synonyms_in_another(cache: Path) -> None:
    names = ("借款人", "借款用途", "合同编号")
    samples = [
        (
            "江北银行借款合同\n合同编号：江借字第{n}号\n借款人：{a}\n本合同项下借款用于{b}，不得挪用。\n",
            v,
        )
        for v in (
            {"n": "101", "a": "天成机械有限公司", "b": "购买钢材"},
            {"n": "102", "a": "恒润染整有限公司", "b": "支付加工费"},
            {"n": "103", "a": "润田农业有限公司", "b": "收购稻谷"},
        )
    ]
    template = Template(
        name="loan",
        fields=tuple(FieldSpec(name=name) for name in names),
        samples=tuple(
            SampleSpec(
                text=text.format(**v),
                complete=True,
                fields={
                    "借款人": (v["a"],),
                    "借款用途": (v["b"],),
                    "合同编号": (f"江借字第{v['n']}号",),
                },
            )
            for text, v in samples
        ),
    )
    other = (
        "渌川银行贷款合同（要素式）\n合同号 | LCB-2024-01\n"
        "借款单位 | 湘南茶业有限公司\n联系人 | 龚雪梅\n"
        "贷款机构 | 渌川银行益水支行\n贷款用途 | 收购春茶鲜叶\n"
    )
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(other).fields
    found = {name: [value.text for value in own.values] for name, own in fields.items()}
    assert found == {
        "借款人": ["湘南茶业有限公司"], "借款用途": ["收购春茶鲜叶"], "合同编号": ["LCB-2024-01"],
    }  # fmt: skip
