"""Tables that a conversion made lines of: their amounts have the unit that stands above them."""

from __future__ import annotations

import pytest

from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.tables.flat_tables import amounts_of_lines
from featpipe.extraction.values.text import fold_width

STATED = """近日，公司中标以下项目，合计 8,100.5 万元：
单位：人民币万元
中标主体项目名称中标金额工期（日历天）
公司青岚公路（一期）新建工程1标 4,168.8518 450
子公司青岚河整治工程 1,639.8167 180
子公司明湖公园
改造工程 2,291.8315 90
小计 8,100.5000
特此公告。
签约金额 3,000.00
"""
HEADED = """中标单位客户名称产品类别合同总价（万元）
东岭电缆云江电网公司控制电缆 9,192.58
海塘电网公司控制电缆 485
交货期为 2024.05 30%
2、其他情况
签约单位产品类别合同总价（美元）
东岭电缆控制电缆 12,500.50
"""


def found_in(text: str) -> list[tuple[str, str, str, str, bool]]:
    folded = fold_width(text)
    return [
        (text[one.start : one.end], one.value.key, one.value.unit, one.label, one.is_sum)
        for one in amounts_of_lines(folded)
    ]


def test_a_unit_is_said_once_for_all_lines() -> None:
    assert found_in(STATED) == [
        ("4,168.8518", "41688518", "CNY", "中标金额", False),
        ("1,639.8167", "16398167", "CNY", "中标金额", False),
        ("2,291.8315", "22918315", "CNY", "中标金额", False),
        ("8,100.5000", "81005000", "CNY", "中标金额", True),
    ]


def test_a_unit_stands_behind_a_header() -> None:
    assert found_in(HEADED) == [
        ("9,192.58", "91925800", "CNY", "合同总价", False),
        ("485", "4850000", "CNY", "合同总价", False),
        ("12,500.50", "12500.5", "USD", "合同总价", False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "序号\t名称\t金额（元）\n1\t电缆\t162.50\n",
        "本项目的合同金额（万元）为 500 左右。\n见附件 1,234.50\n",
        "注册资本（万元）\n" + "某公司简介\n" * 4 + "编号 1,234.50\n",
        "单位：套\n电缆 1,234.50\n",
        "",
    ],
)
def test_other_lines_have_none(text: str) -> None:
    assert found_in(text) == []


def test_each_is_a_cell_below_its_header_with_its_value() -> None:
    features = PageFeatures(page_of_text(STATED))
    heads = {STATED[one.start : one.end]: one.label for one in features.page.headers}
    assert heads["1,639.8167"] == "中标金额"
    starts = [one.start for one in features.find("money")]
    assert starts == sorted(starts)
    at = STATED.index("1,639.8167")
    assert features.value_at("money", at, at + 10).key == "16398167"
    at = STATED.index("8,100.5000")
    sums = features.tokens.start[features.is_sum]
    assert set(sums.tolist()) <= set(range(at, at + 10))
    assert at in sums


@pytest.mark.parametrize("name", ["合同总价", "中标金额"])
def test_all_rows_are_values_of_a_field_that_is_known_by_its_name(name: str) -> None:
    text = HEADED[: HEADED.index("2、")].replace("合同总价", name)
    model = fit_field([], "money", (name,))
    scored = model.score(PageFeatures(page_of_text(text)))
    found = {scored.groups[number].value.key for number in model.choose(scored)}
    assert found == {"91925800", "4850000"}
