"""Contradictions between values: each rule, and what it must be silent about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, SampleSpec, Template
from featpipe.extraction.contradictions import Contradiction, find_contradictions
from featpipe.extraction.results import ExtractedValue, FieldResult

if TYPE_CHECKING:
    from pathlib import Path


def result(*values: str, unit: str = "", remark: str = "", places: int = 0) -> FieldResult:
    more = tuple((9 + n, 10 + n) for n in range(places))
    return FieldResult(
        tuple(
            ExtractedValue(v, v, unit, "", 0, 1, None, 0.9, places=more, remark=remark)
            for v in values
        )
    )


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (
            {"甲方": result("a", remark="the same as 乙方"),
             "乙方": result("a", remark="the same as 甲方")},
            [Contradiction("same", ("甲方", "乙方"))],
        ),
        ({"甲方": result("a", remark="second choice: the likelier b is 乙方"),
          "乙方": result("b")}, []),
        (
            {"租赁开始日期": result("2024-05-01"), "租赁结束日期": result("2023-05-01")},
            [Contradiction("order", ("租赁结束日期", "租赁开始日期"))],
        ),
        ({"生效日期": result("2024-05-31"), "到期日": result("2024-05")}, []),
        ({"开始日期": result("2024-05-31"), "签订日期": result("2024-01-01")}, []),
        ({"起止日期": result("2024-05-31"), "到期日": result("2024-01-01")}, []),
        # Which end belongs to which begin is not known.
        (
            {"质押开始日": result("2024-05-31"), "租赁结束日": result("2024-01-01"),
             "借款到期日": result("2024-01-01")}, [],
        ),
        (
            {"金额": result("10", "20.5"), "合计金额": result("31")},
            [Contradiction("sum", ("合计金额", "金额"), "30.5")],
        ),
        ({"金额": result("10", "20.5"), "合计金额": result("30.50")}, []),
        ({"金额": result("10", "20"), "合计金额": result("60")}, [
            Contradiction("sum", ("合计金额", "金额"), "30")]),
        ({"金额": result("10", "20", places=1), "合计金额": result("60")}, []),
        ({"金额": result("10", "20", unit="USD"), "合计金额": result("60", unit="CNY")}, []),
        ({"数量": result("1", "2"), "单价": result("3", "4"), "合计": result("60")}, []),
        ({"单价": result("1", "2"), "总价": result("60")}, []),
        ({"金额": result("10", "约二十"), "合计金额": result("60")}, []),
        (
            {"含税金额": result("113"), "不含税金额": result("100"), "税额": result("12")},
            [Contradiction("sum", ("含税金额", "不含税金额", "税额"), "112")],
        ),
        (
            {"含税金额": result("113"), "不含税金额": result("100"), "税额": result("13")}, [],
        ),
        (
            {"合同金额（大写）": result("30000"), "合同金额（小写）": result("3000")},
            [Contradiction("spelling", ("合同金额（大写）", "合同金额（小写）"), "3000")],
        ),
        ({"合同金额（大写）": result("30000"), "保证金（小写）": result("3000")}, []),
        (
            {"金額（大寫）": result("30000"), "金額（小寫）": result("3000")},
            [Contradiction("spelling", ("金額（大寫）", "金額（小寫）"), "3000")],
        ),
        ({}, []),
    ],
)  # fmt: skip
def test_values_that_cannot_all_be_right_are_found(
    fields: dict[str, FieldResult], found: list[Contradiction]
) -> None:
    assert find_contradictions(fields) == found


def test_a_day_that_no_calendar_has_is_remarked(cache: Path) -> None:
    form = "采购合同\n签订日期：{}\n甲方向乙方采购电缆。\n"
    days = ("2024年3月5日", "2023年11月12日", "2022年7月30日")
    samples = tuple(SampleSpec(text=form.format(d), fields={"签订日期": (d,)}) for d in days)
    template = Template(
        name="采购合同", fields=(FieldSpec(name="签订日期", type="date"),), samples=samples
    )
    with Extractor([template], cache, models={}, checkpoints="none") as extractor:
        for day, remark in (("2023年2月30日", "no day of the calendar"), ("2023年3月30日", "")):
            (value,) = extractor.extract(form.format(day)).fields["签订日期"].values
            assert (value.text, value.remark) == (day, remark)
