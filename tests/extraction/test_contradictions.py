"""Contradictions between values: each rule, and what it must be silent about."""

from __future__ import annotations

import pytest

from featpipe.extraction.contradictions import Contradiction, find_contradictions
from featpipe.extraction.results import ExtractedValue, FieldResult


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
        ({}, []),
    ],
)  # fmt: skip
def test_values_that_cannot_all_be_right_are_found(
    fields: dict[str, FieldResult], found: list[Contradiction]
) -> None:
    assert find_contradictions(fields) == found
