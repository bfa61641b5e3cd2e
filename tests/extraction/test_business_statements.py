"""Statements of acquisitions, works, employment, issues, houses, posts and debts."""

from __future__ import annotations

import pytest

from featpipe.extraction.statements.english_roles import find_roles
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.statements.statements import find_statements
from featpipe.extraction.values.text import fold_width


def told(text: str) -> set[tuple[str, str]]:
    folded = fold_width(text)
    return {(one.words, folded[one.start : one.end]) for one in find_statements(folded)}


def phrases(text: str) -> set[tuple[str, str]]:
    folded = fold_width(text)
    return {(one.words, folded[one.start : one.end]) for one in find_phrases(folded)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "公司拟收购陆青等人合计持有的宁州佳禾科技有限公司（以下简称“佳禾”）55%股权，转让总价为8,200万元。",
            {
                ("标的公司", "宁州佳禾科技有限公司"),
                ("收购股权比例", "55%"),
                ("交易对价", "8,200万元"),
            },
        ),
        (
            "以2023年6月30日为评估基准日，股东全部权益价值为1.5亿元。",
            {("评估基准日", "2023年6月30日"), ("评估值", "1.5亿元")},
        ),
        (
            "买方宏达物流有限公司与卖方泰恒运输有限公司订立协议，代价为港币3,000万元。",
            {
                ("收购方", "宏达物流有限公司"),
                ("交易对方", "泰恒运输有限公司"),
                ("交易对价", "港币3,000万元"),
            },
        ),
        ("（股票代码：600000）", {("证券代码", "600000")}),
        (
            "本工程位于宁州市东风路8号，乙方于2022年3月1日进场，至2022年9月30日全部完成。",
            {("工程地点", "宁州市东风路8号"), ("竣工日期", "2022年9月30日")},
        ),
        ("质保期自竣工验收合格之日起两年。", {("质保期", "两年")}),
        ("合同价款暂定为人民币88,000元。", {("合同金额", "人民币88,000元")}),
        (
            "其中前两个月为试用期。公司聘请乙方担任仓库主管，月薪为人民币6,500元。",
            {("试用期", "两个月"), ("岗位", "仓库主管"), ("月工资", "人民币6,500元")},
        ),
        ("试用期月工资为5,000元。", set()),
        (
            ("发行价格最终确定为12.50元/股，发行股票数量为8,000,000股，募集资金总额人民币1亿元，"
            "实际募集资金净额为人民币9,500万元。"),
            {
                ("发行价格", "12.50元/股"),
                ("发行数量", "8,000,000股"),
                ("募集资金总额", "人民币1亿元"),
                ("募集资金净额", "人民币9,500万元"),
            },
        ),
        ("公司股票已于2021年5月6日起在某交易所上市。", {("上市日期", "2021年5月6日")}),
        (
            ("凭宁(2019)东城区不动产权第0012345号证书，单价为每平方米9,800元，买方支付定金50,000元，"
            "卖方于2024年8月1日前交付该房屋。"),
            {
                ("产权证号", "宁(2019)东城区不动产权第0012345号"),
                ("单价", "9,800元"),
                ("定金", "50,000元"),
                ("交房日期", "2024年8月1日"),
            },
        ),
        (
            "张桂超先生因个人原因，申请辞去公司副总经理职务。董事会聘任王伟为公司财务总监。",
            {
                ("离任人员", "张桂超"),
                ("离任原因", "个人"),
                ("离任职务", "副总经理"),
                ("新任人员", "王伟"),
                ("新任职务", "财务总监"),
            },
        ),
        ("免去李四同志的总工程师职务。", {("离任人员", "李四"), ("离任职务", "总工程师")}),
        (
            "截至2023年12月31日，贵公司尚欠货款人民币58,000元。",
            {("对账截止日", "2023年12月31日"), ("欠款金额", "人民币58,000元")},
        ),
        ("宁州宏达商贸有限公司:\n贵司尚欠货款9,000元。", {
            ("债务人", "宁州宏达商贸有限公司"), ("欠款金额", "9,000元")
        }),
    ],
)  # fmt: skip
def test_what_sentences_say(text: str, expected: set[tuple[str, str]]) -> None:
    assert expected <= told(text)
    if not expected:
        assert told(text) == set()


def test_a_contract_of_employment_names_its_parties() -> None:
    text = (
        "宏达集团 劳动合同\n本合同由宁州宏达商贸有限公司（以下称“甲方”，住所地为宁州市）"
        "与张桂超（以下称“乙方”，身份证号码略）于2024年2月6日订立。\n"
    )
    expected = {
        ("用人单位", "宁州宏达商贸有限公司"),
        ("劳动者", "张桂超"),
        ("甲方", "宁州宏达商贸有限公司"),
    }
    assert expected <= phrases(text)


def test_who_signs_an_announcement_or_is_named_by_its_title_makes_it() -> None:
    text = (
        "关于收购资产的公告\n证券代码：600000\n公司拟以现金收购宁州佳禾科技有限公司部分股权。\n"
        "北辰机电股份有限公司董事会\n2024年3月5日\n"
    )
    assert {("公司名称", "北辰机电股份有限公司"), ("收购方", "北辰机电股份有限公司")} <= phrases(
        text
    )
    titled = "宁州宏达商贸股份有限公司关于总经理辞职的公告\n公司近日收到总经理的辞职报告。\n"
    expected = {("公司名称", "宁州宏达商贸股份有限公司"), ("任职公司", "宁州宏达商贸股份有限公司")}
    assert expected <= phrases(titled)
    tender = "某项目中标公告\n中标人为泰恒公司。\n宁州招标代理有限公司\n2024年3月5日\n"
    assert "公司名称" not in dict(phrases(tender))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\nNorthmoor Foods, LLC,\nas Purchaser,\n", {("purchaser", "northmoor foods, llc")}),
        (
            'In this letter "the Bank" means Harrow Bank plc and "you" means Tarn Ltd.',
            {("bank", "harrow bank plc")},
        ),
        (
            ('Pell Partners LLP\nDraft 3\nTHIS AGREEMENT is made BETWEEN\n(1) Tarn Bank Limited, '
            'of 8 Court (the "Lender"); and\n(2) Moor Ltd (the "Borrower").'),
            {("lender", "tarn bank limited"), ("borrower", "moor ltd")},
        ),
    ],
)  # fmt: skip
def test_roles_stand_beside_names(text: str, expected: set[tuple[str, str]]) -> None:
    folded = fold_width(text)
    assert {(one.words, folded[one.start : one.end]) for one in find_roles(folded)} == expected


def test_an_english_letter_has_its_date_before_the_salutation() -> None:
    text = "Tarn Ltd\n5 Quay Lane\n\n7 March 2023\n\nDear Ms Pell\n\nYour letter of 1 May 2022.\n"
    assert ("letterdate", "7 march 2023") in phrases(text)
