"""Statements of judgments about loans. Oracle: what each sentence says of itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.statements.loan_statements import find_loans, find_sureties
from featpipe.extraction.values.text import fold_width

if TYPE_CHECKING:
    from pathlib import Path

PARTIES = (
    "原告：严立春，男，1980年1月1日生，住海州市东湖区。\n"
    "被告：程光明，男，1981年2月2日生，住海州市东湖区。\n"
    "被告：姬文秀，女，1982年3月3日生，住海州市东湖区。\n"
    "被告：海州宏岳商贸有限公司（以下简称宏岳公司），住所地海州市东湖区。\n"
)
ORDERS = "本院认为，借贷关系合法有效，判决如下：\n一、驳回原告的诉讼请求。\n案件受理费50元。\n"
JUDGMENT = f"""海州市东湖区人民法院
民 事 判 决 书
（ 2021 ）苏 0199 民初 101 号
{PARTIES}原告严立春与被告程光明、姬文秀、海州宏岳商贸有限公司民间借贷纠纷一案，本院于2021年1月5日立案后，依法进行了审理。
原告向本院提出诉讼请求：判令被告归还借款本金70000元及利息。
被告程光明、姬文秀共同辩称，没有能力归还。
经审理查明：2019年3月1日，被告程光明向原告借款人民币80000元，约定月利率1.5%，借期一年，姬文秀在担保人处签名。2019年8月20日，程光明又向原告借款20000元，宏岳公司为上述借款提供连带责任保证。2020年6月1日，程光明归还本金30000元。
本院认为，被告尚欠借款本金70000元，应予归还。依照法律规定，判决如下：
一、被告程光明于本判决生效之日起十日内归还原告严立春借款本金70000元，并支付自2020年6月2日起至实际付清之日止按年利率15.4%计算的利息；
二、被告姬文秀、海州宏岳商贸有限公司对上述债务承担连带清偿责任。
案件受理费1550元，由被告负担。
审　判　长　　段　敏
审　判　员　　薛海涛
人民陪审员　　许金山
二〇二一年六月十八日
书　记　员　　唐佳
"""


def told(text: str, words: str, orders: str = ORDERS) -> list[str]:
    folded = fold_width(PARTIES + text + "\n" + orders)
    found = sorted({*find_loans(folded), *find_sureties(folded)})
    return [folded[one.start : one.end] for one in found if one.words == words]


@pytest.mark.parametrize(
    ("text", "sums", "days"),
    [
        (
            "经审理查明：2019年3月1日，被告程光明向原告借款10万元，约定2020年3月1日前还清。",
            ["10万元"],
            ["2019年3月1日"],
        ),
        (
            "本院查明：程光明于2018年6月3日出具借条，载明：今借到严立春现金叁拾万元整，2019年6月3日归还。",
            ["叁拾万元整"],
            ["2018年6月3日"],
        ),
        (
            (
                "查明：2016年5月10日，原告与程光明签订借款合同，约定借款金额200万元。"
                "2016年5月12日，原告发放了上述贷款。"
            ),
            ["200万元"],
            ["2016年5月12日"],
        ),
        (
            "查明：2018年9月1日双方签订合同，约定贷款额度500万元。2018年9月5日发放300万元，2018年9月9日发放200万元。",
            ["300万元", "200万元"],
            ["2018年9月5日", "2018年9月9日"],
        ),
        (
            "查明：被告于2014年3月5日、2014年6月8日分别向原告借款二万元、三万元。",
            ["二万元", "三万元"],
            ["2014年3月5日", "2014年6月8日"],
        ),
        (
            "查明：2020年1月20日双方签订合同。同日，原告向程光明发放贷款5万元。",
            ["5万元"],
            ["2020年1月20日"],
        ),
        (
            "查明：2021年9月13日，被告向原告申请办理分期业务，分期金额168,000元。",
            ["168,000元"],
            ["2021年9月13日"],
        ),
        (
            "原告诉称：2013年11月2日，被告向原告借款12万元，请求判令被告归还借款11万元。",
            ["12万元"],
            ["2013年11月2日"],
        ),
        ("查明：2020年5月6日，被告归还借款3万元，尚欠借款2万元。", [], []),
        ("查明：2020年5月6日，双方签订买卖合同，货款3万元。", [], []),
    ],
)
def test_what_was_lent_and_when(text: str, sums: list[str], days: list[str]) -> None:
    assert told(text, "借款本金") == sums
    assert told(text, "借款日期") == days


def test_the_principal_is_what_a_court_takes_for_it() -> None:
    text = (
        "查明：2020年11月16日，被告向原告借款90000元，实际到账85500元。\n"
        "本院认为，借款本金应认定为85500元。"
    )
    assert told(text, "借款本金") == ["85500元"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("双方约定月利率1.5%", ["月利率1.5%"]),
        ("约定月息二分", ["月息二分"]),
        ("载明月息壹分伍", ["月息壹分伍"]),
        ("约定年息一分二厘", ["年息一分二厘"]),
        ("合同约定固定年利率6.525%，逾期罚息利率上浮50%", ["年利率6.525%"]),
        ("约定利率为月利率8.7‰", ["月利率8.7‰"]),
        ("约定按日利率万分之五计收利息", ["日利率万分之五"]),
        ("约定利息1分", ["利息1分"]),
        ("期限一年，年利率9.6%，到期一次还本", ["年利率9.6%"]),
        ("没有约定利息", []),
        ("约定逾期按年利率24%支付违约金", []),
        ("原告主张按月利率2%计算", []),
    ],
)
def test_rates_that_are_agreed_on(text: str, expected: list[str]) -> None:
    text = f"经审理查明：2019年3月1日，被告向原告借款10万元，{text}。"
    assert told(text, "约定利率") == expected


@pytest.mark.parametrize(
    ("orders", "principal", "since"),
    [
        (
            "一、被告程光明归还原告借款本金100000元及利息（从2020年3月1日起按月利率2%计算）；",
            ["100000元"],
            ["2020年3月1日"],
        ),
        (
            "一、被告偿还贷款本金1,985,000元、利息1,234.5元，并自2018年1月1日起计付逾期利息；\n二、被告支付律师费3000元；",
            ["1,985,000元"],
            ["2018年1月1日"],
        ),
        (
            "一、被告支付原告80000元及逾期付款利息（自2021年1月5日起计算）；",
            ["80000元"],
            ["2021年1月5日"],
        ),
        (
            "一、程光明归还借款本金30万元；\n二、姬文秀对上述债务中的本金10万元承担连带清偿责任；",
            ["30万元"],
            [],
        ),
        ("一、驳回原告的诉讼请求；", [], []),
        ("一、被告姬文秀对第一项债务承担连带清偿责任；", [], []),
    ],
)
def test_what_is_to_be_paid(orders: str, principal: list[str], since: list[str]) -> None:
    orders = f"本院认为，借款应当归还，判决如下：\n{orders}\n案件受理费2300元。"
    assert told("", "判决本金", orders) == principal
    assert told("", "利息起算日", orders) == since


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("由姬文秀、宏岳公司提供连带责任保证。", {"姬文秀", "海州宏岳商贸有限公司"}),
        ("姬文秀在借条担保人处签名。", {"姬文秀"}),
        ("姬文秀以担保人身份在借条上签名。", {"姬文秀"}),
        ("同日，姬文秀与原告签订《最高额保证合同》。", {"姬文秀"}),
        ("姬文秀为程光明的上述借款承担连带保证责任。", {"姬文秀"}),
        ("借条载明担保人：姬文秀。", {"姬文秀"}),
        ("原告作为保证人代偿了借款。", set()),
        ("姬文秀以其房产提供抵押担保。", set()),
        ("程光明向原告借款，姬文秀系程光明之妻。", set()),
    ],
)
def test_who_stands_surety(text: str, expected: set[str]) -> None:
    assert {*told(f"经审理查明：{text}", "保证人")} == expected


def test_other_judgments_tell_of_no_loan() -> None:
    text = f"{PARTIES}查明：2020年5月6日，双方签订买卖合同。判决如下：被告支付货款本金3万元。"
    assert not [*find_loans(fold_width(text))]


@pytest.mark.parametrize(
    "words",
    [
        "借款本金",
        "本金",
        " ",
        "向原告借款5万元",
        "2020年6月10日、",
        "5万元、",
        "将贷款",
        "约定年利率",
        "自2020年6月10日起息\n",
        "归还",
        "提供保证",
    ],
)
def test_long_texts_take_no_longer_for_each_character(words: str) -> None:
    text = fold_width(PARTIES) + "借款1元," + words * (20_000 // len(words))
    started = time.perf_counter()
    list(find_loans(text))
    list(find_sureties(text))
    assert time.perf_counter() - started < 3


def test_fields_are_found_by_their_names(cache: Path) -> None:
    expected = {
        "案号": ["（ 2021 ）苏 0199 民初 101 号"],
        "借款本金": ["人民币80000元", "20000元"],
        "放款日期": ["2019年3月1日", "2019年8月20日"],
        "约定利率": ["月利率1.5%"],
        "判决本金": ["70000元"],
        "利息起算日": ["2020年6月2日"],
        "担保人": ["姬文秀", "海州宏岳商贸有限公司"],
        "审判人员": ["段　敏", "薛海涛"],
        "被告": ["程光明", "姬文秀", "海州宏岳商贸有限公司"],
    }
    template = Template(name="loans", fields=tuple(FieldSpec(name=name) for name in expected))
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(JUDGMENT).fields
    found = {name: {value.text for value in fields[name].values} for name in expected}
    assert found == {name: {*values} for name, values in expected.items()}
