"""What is found in short documents by names alone. Oracle: what a reader of each would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.names.kinds_of_names import kind_of_names
from featpipe.extraction.names.synonyms import is_other_kind, synonyms_of
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.values.text import fold_width

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


JUDGMENT = """江苏省苏州市中级人民法院
民事判决书
（2022）苏05民初318号
原告：苏州银行股份有限公司，住所地苏州市。
被告：苏州腾达纺织有限公司，住所地苏州市。
被告：吴刚，男，汉族，住苏州市吴江区。
被告：李红，女，汉族，住苏州市吴江区。
原告与被告金融借款合同纠纷一案，本院于2022年2月8日立案。
经审理查明：吴刚、李红自愿为上述债务提供连带责任保证。
二〇二二年九月二十日
"""
INVOICE = """增值税专用发票
购买方 名称：常州东方轴承有限公司
纳税人识别号：91320400MA1W2X3Y4Z
货物名称	规格型号	数量	税率
轴承钢	GCr15	12	13%
销售方 名称：江阴华特特钢有限公司
纳税人识别号：91320281MA1N8P9Q0R
"""
OFFICE = """租赁合同
出租方：王建国
承租方：李小梅
一、房屋建筑面积为126.5平方米，月租金为税前人民币8,500元。
二、其他约定见附件。
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
        pytest.param(
            JUDGMENT,
            {"案由": ["金融借款合同纠纷"]},
            id="parties that are not named",
        ),
        pytest.param(
            INVOICE,
            {
                "购买方税号": ["91320400MA1W2X3Y4Z"], "销售方税号": ["91320281MA1N8P9Q0R"],
                "销售方": ["江阴华特特钢有限公司"],
            },
            id="names of parties begin their blocks",
        ),
        pytest.param(
            "采购合同\n甲方：河东区税务局\n乙方：河东文汇商贸有限公司\n合同金额：5万元\n二、联系方式\n"
            "乙方联系人：孙悦  联系电话：022-24556677\n甲方联系人：刘涛  联系电话：022-24551122\n",
            {"甲方电话": ["022-24551122"], "乙方电话": ["022-24556677"]},
            id="who to ask of each party begins its block",
        ),
        pytest.param(
            OFFICE, {"租赁面积": ["126.5平方米"], "月租金": ["人民币8,500元"]}, id="an area",
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
    assert is_other_kind(label, (name,)) == is_other


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


def test_a_judgment_says_who_stands_surety() -> None:
    text = fold_width(JUDGMENT)
    found = {text[p.start : p.end] for p in find_phrases(text) if p.words == "保证人"}
    assert found == {"吴刚", "李红"}
    other = text.replace("自愿为上述债务提供连带责任保证", "要求原告就借款提供担保物")
    assert "保证人" not in {phrase.words for phrase in find_phrases(other)}
