"""Units apart from their numbers. Oracle: what the documents say, written beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, SampleSpec, Template
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.scoring.stated_units import value_with_unit
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.extraction.values.values import FieldType

YEARS = "项目\t本期\t上期\n收入\t100\t90\n成本\t{}\t70\n"


def meaning(text: str, number: str, kind: FieldType) -> tuple[str, str]:
    """Key and unit of the last place of a number."""
    start = text.rindex(number)
    end = start + len(number)
    value = value_with_unit(page_of_text(text), read_value(number, kind), start, end)
    return value.key, value.unit


@pytest.mark.parametrize(
    ("text", "number", "kind", "means"),
    [
        ("合同金额（万元）：100", "100", "money", ("1000000", "CNY")),
        ("合同金额 (人民币万元，含税) : 100.5", "100.5", "money", ("1005000", "CNY")),
        ("合同金额（元）：__1,500.00__", "1,500.00", "money", ("1500", "CNY")),
        ("金额（万元）：100-200", "100-200", "money", ("1000000..2000000", "CNY")),
        ("单价（元/公斤）：7.2", "7.2", "money", ("7.2", "CNY")),
        ("税率（%）：13", "13", "percent", ("0.13", "")),
        ("工期（天）：120", "120", "period", ("120 days", "")),
        ("面积（㎡）：76.4", "76.4", "number", ("76.4", "㎡")),
        ("Amount (RMB million): 3.5", "3.5", "money", ("3500000", "CNY")),
        ("合同金额（人民币：万元）：3", "3", "money", ("30000", "CNY")),
        ("合同金额（人民币）：3", "3", "money", ("3", "CNY")),
        ("合同金额（元）：3万", "3万", "money", ("30000", "CNY")),
        ("单位：人民币 万元\n" + YEARS.format(80), "80", "money", ("800000", "CNY")),
        ("单位：万元\n项目\t本期（人民币）\t注\n收入\t80\t1\n", "80", "money", ("800000", "CNY")),
        ("单位：万元\n项目\t本期（元）\t注\n收入\t80\t1\n", "80", "money", ("80", "CNY")),
        ("产量（万）：3", "3", "number", ("30000", "")),
        (
            "股东\t持股（万股）\t备注\n张三\t100\t无\n李四\t80\t无\n",
            "80",
            "number",
            ("800000", "股"),
        ),
        ("项目\t金额/万元\t备注\n甲\t100\t无\n乙\t80\t无\n", "80", "money", ("800000", "CNY")),
        ("单位：万元\n" + YEARS.format(80), "80", "money", ("800000", "CNY")),
        ("（单位：人民币亿元）\n\n" + YEARS.format(8), "8", "money", ("800000000", "CNY")),
        ("Amount (US$’000)：1,200", "1,200", "money", ("1200000", "USD")),
        ("金额（人民币10,000元）：35", "35", "money", ("350000", "CNY")),
        ("Revenue (in thousands of RMB): 12", "12", "money", ("12000", "CNY")),
        ("Revenue (HK$ millions): 12", "12", "money", ("12000000", "HKD")),
        ("Unit: RMB 10,000\n" + YEARS.format(80), "80", "money", ("800000", "CNY")),
        ("(RMB in millions)\n" + YEARS.format(80), "80", "money", ("80000000", "CNY")),
        (
            "(All amounts in HK$'000 unless otherwise stated)\n" + YEARS.format(80),
            "80",
            "money",
            ("80000", "HKD"),
        ),
        (
            "Item\tRMB’000\tNote\nRevenue\t100\t1\nCost\t80\t2\n",
            "80",
            "money",
            ("80000", "CNY"),
        ),
        (
            "单位：万元\n项目\t2023年1-6月\t2022年12月31日\n收入\t100\t90\n成本\t80\t70\n",
            "80",
            "money",
            ("800000", "CNY"),
        ),
    ],
)
def test_a_number_has_the_unit_that_is_stated(
    text: str, number: str, kind: FieldType, means: tuple[str, str]
) -> None:
    assert meaning(text, number, kind) == means


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [
        ("合同金额：100", "100", "money"),
        ("合同金额（小写）：100", "100", "money"),
        ("合同金额（万元）：见附件\n押金：100", "100", "money"),
        ("单位：万元\n" + YEARS.format(80), "80", "number"),  # no count
        (
            "单位：万元，以下为说明。\n第一段。\n" + YEARS.format(80),
            "80",
            "money",
        ),  # not right above
        ("税率（万元）：13", "13", "percent"),
        ("合同金额（2）：100", "100", "money"),  # a note
        ("Amount (in RMB 100,000,000): 35", "35", "money"),
        ("Fee (yuan per 1,000 shares): 3", "3", "money"),
        ("Deposit (at least RMB 10,000): 20", "20", "money"),
        ("期限（2023年）：5", "5", "period"),
    ],
)
def test_other_brackets_state_no_unit(text: str, number: str, kind: FieldType) -> None:
    read = read_value(number, kind)
    assert meaning(text, number, kind) == (read.key, read.unit)


@pytest.mark.parametrize("number", ["100元", "3万美元", "￥100"])
def test_a_unit_of_its_own_goes_first(number: str) -> None:
    read = read_value(number, "money")
    assert meaning(f"合同金额（万元）：{number}", number, "money") == (read.key, read.unit)


def test_a_result_has_the_meaning_with_samples_and_without(cache: Path) -> None:
    text = "采购合同\n合同金额（万元）：{}\n质保期：一年\n"
    samples = tuple(
        SampleSpec(text=text.format(number), fields={"合同金额": (number,)})
        for number in ("120", "305.5", "87")
    )
    for given in (samples, ()):
        template = Template(
            name="采购", fields=(FieldSpec(name="合同金额", type="money"),), samples=given
        )
        with Extractor([template], cache=cache, models={}) as extractor:
            (value,) = extractor.extract(text.format("64.2")).fields["合同金额"].values
        assert (value.text, value.value, value.unit) == ("64.2", "642000", "CNY")


def test_a_sample_may_state_the_whole_amount() -> None:
    features = PageFeatures(page_of_text("采购合同\n合同金额（万元）：64.2\n"))
    ((start, end),) = locate_value(features, "642,000元", "money")
    assert features.page.text[start:end] == "64.2"


@pytest.mark.parametrize(
    ("row", "means"),
    [
        ("净利润", ("800000", "CNY")),
        ("效率提升费用", ("800000", "CNY")),
        ("研发费用（元）", ("80", "CNY")),
        ("基本每股收益", ("80", "")),
        ("毛利率(%)", ("80", "")),
        ("员工人数", ("80", "")),
        ("Earnings per share", ("80", "")),
    ],
)
def test_rows_of_another_unit_have_not_that_of_their_table(
    row: str, means: tuple[str, str]
) -> None:
    text = f"单位：万元\n项目\t2023年\t2022年\n营业收入\t100\t90\n{row}\t80\t70\n"
    assert meaning(text, "80", "money") == means
