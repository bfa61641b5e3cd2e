"""What is found in short documents by names alone. Oracle: what a reader of each would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.scoring.kinds_of_names import kind_of_names
from featpipe.extraction.scoring.synonyms import is_other_kind, synonyms_of

if TYPE_CHECKING:
    from pathlib import Path

WORKS = """建设工程施工合同
发包人：青山县教育局
承包人：湖南建宏建设集团有限公司
签约合同价：12,300,000.00元
首期款：合同签订后10日内支付1,230,000.00元
质量保证金：369,000.00元
工期延误违约金：每延误一天，承包人向发包人支付5,000元。
逾期罚息利率：6.525%
本合同一式四份，自2023年4月8日起生效。
"""
LEASE = """房屋租赁合同
出租人：王建国
承租人：南京蓝海网络科技有限公司
一、本合同期限为12个月，自2023年1月1日至2023年12月31日。
二、月租金为人民币8,500元。
"""


LOAN = """借款合同
借款人：陈大伟
住址：宁海县跃龙街道人民路12号
出借人（债权人）：胡晓明
联系电话：13905746688
担保人：宁海恒泰实业有限公司
一、借款金额为人民币20万元。
"""


def found_in(cache: Path, text: str, names: list[str]) -> dict[str, list[str]]:
    """What is found of fields of such names."""
    template = Template(name="one", fields=tuple(FieldSpec(name=name) for name in names))
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(text).fields
    return {name: sorted(value.text for value in fields[name].values) for name in names}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            WORKS,
            {
                "质量保证金": ["369,000.00元"], "履约保证金": [], "投标保证金": [], "押金": [],
                "保证金": ["369,000.00元"], "工期延误违约金": ["5,000元"], "违约金": ["5,000元"],
                "逾期付款违约金": [], "贷款利率": [], "首期款": ["1,230,000.00元"],
                "生效日期": ["2023年4月8日"],
            },
            id="kinds of sums",
        ),
        pytest.param(
            LEASE,
            {"合同期限": ["12个月"], "起始日期": ["2023年1月1日"], "到期日期": ["2023年12月31日"]},
            id="a period and its days",
        ),
        pytest.param(
            LOAN,
            {
                "甲方": ["陈大伟"], "乙方": ["胡晓明"], "乙方电话": ["13905746688"],
                "甲方住址": ["宁海县跃龙街道人民路12号"], "借款人": ["陈大伟"],
            },
            id="parties by their order",
        ),
        pytest.param(
            LOAN.replace("借款人：", "借款人（乙方）："),
            {"乙方": ["陈大伟"], "乙方住址": ["宁海县跃龙街道人民路12号"]},
            id="parties that are called so",
        ),
    ],
)  # fmt: skip
def test_each_field_has_its_values(cache: Path, text: str, wanted: dict[str, list[str]]) -> None:
    assert found_in(cache, text, list(wanted)) == wanted


@pytest.mark.parametrize(
    ("label", "name", "is_other"),
    [
        ("质量保证金", "履约保证金", True),
        ("质量保证金", "押金", True),
        ("履约保证金", "押金", False),
        ("租赁保证金", "押金", False),
        ("合同履约保证金", "履约保证金", False),
        ("质量保证金", "保证金", False),
        ("合同违约金", "逾期付款违约金", False),
        ("逾期利率", "贷款利率", True),
        ("保证金", "履约保证金", False),
        ("质量保证金(元)", "履约保证金", True),
    ],
)
def test_a_label_may_be_of_another_kind(label: str, name: str, *, is_other: bool) -> None:
    assert is_other_kind(label, [name]) == is_other


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("首期款", "money"), ("执行费", "money"), ("执行标的", "money"), ("律师费", "money"),
        ("缴费", "text"), ("付款", "text"),
    ],
)  # fmt: skip
def test_the_type_that_a_name_tells(name: str, kind: str) -> None:
    assert kind_of_names([name]) == kind


def test_an_office_of_lawyers_is_no_lawyer() -> None:
    assert "委托诉讼代理人" not in synonyms_of(("律师事务所",))
