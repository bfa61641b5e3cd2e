"""Statements on pledges of shares. Oracle: what each sentence says of itself."""

from __future__ import annotations

import pytest

from featpipe.extraction.statements.statements import find_statements
from featpipe.extraction.values.text import fold_width


def told(text: str, *names: str) -> set[tuple[str, str]]:
    folded = fold_width(text)
    found = {(one.words, folded[one.start : one.end]) for one in find_statements(folded)}
    return {one for one in found if one[0] in names}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "李明将其持有的公司股份共计900万股分两笔质押：其中500万股（占公司总股本的5.00%）质押给"
                "东岭银行股份有限公司，400万股（占公司总股本的4.00%）质押给王强。"
            ),
            {"500万股", "400万股"},
        ),
        (
            "李明将其持有的公司流通股300万股、200万股分别质押给上述两家机构。",
            {"300万股", "200万股"},
        ),
        ("李明将上述股份中的180万股（占公司总股本的1.8%）重新质押给王强。", {"180万股"}),
        ("李明将其持有的公司股份300万股解除质押。", set()),
    ],
)
def test_shares_of_each_pledge(text: str, expected: set[str]) -> None:
    assert {value for _, value in told(text, "质押股数")} == expected


@pytest.mark.parametrize(
    ("text", "shares", "day"),
    [
        (
            "李明原质押给东岭银行股份有限公司的本公司股份220万股，已于2019年9月3日办理了质押登记解除手续。",
            "220万股",
            "2019年9月3日",
        ),
        (
            "李明于2019年5月6日解除了质押予东岭银行股份有限公司的全部1,000,000股。",
            "1,000,000股",
            "2019年5月6日",
        ),
        (
            (
                "李明质押给东岭银行股份有限公司的公司股份400万股，现提前解除其中240万股的质押，"
                "解除质押登记日为2025年1月7日。"
            ),
            "240万股",
            "2025年1月7日",
        ),
        (
            "其中50万股（占公司总股本的1.54%）已于2018年3月15日提前购回，并办理完成解除质押手续。",
            "50万股",
            "2018年3月15日",
        ),
        ("李明将其持有的公司股份300万股于2020年1月2日解除质押。", "300万股", "2020年1月2日"),
    ],
)
def test_shares_that_are_released_and_when(text: str, shares: str, day: str) -> None:
    assert told(text, "解除质押股数", "解除日期") == {("解除质押股数", shares), ("解除日期", day)}
    assert not told(text, "质押股数")


@pytest.mark.parametrize(
    "text",
    [
        "李明持有公司股份900万股，其中已质押520万股。",
        "截至公告日，李明共计质押520万股。",
        "李明持有公司股份900万股，其中累计处于质押状态的股份为520万股。",
        "其所持公司股份中用于质押的股份余额为520万股。",
        "已办理质押的股份累计为520万股，占其所持公司股份的58.58%，占公司总股本的14.06%。",
        "李明所持股份累计被质押520万股，占公司总股本的9.65%。",
        "本次解除质押后，李明剩余质押520万股。",
    ],
)
def test_all_that_a_holder_has_pledged(text: str) -> None:
    assert told(text, "累计质押数量") == {("累计质押数量", "520万股")}
    assert not told(text, "质押股数", "占总股本比例", "占所持股份比例")


def test_what_was_pledged_before_or_by_several_is_not_all_that_a_holder_has_pledged() -> None:
    assert not told("李明本次质押前累计质押数量为520万股。", "累计质押数量")
    assert not told("李明、王强合计持有公司股份900万股，累计质押520万股。", "累计质押数量")


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        (
            "本次交易的初始交易日为2013年10月15日，购回交易日为2014年10月15日。",
            "2013年10月15日",
            "2014年10月15日",
        ),
        (
            "李明于2012年11月16日质押给东岭银行股份有限公司的股份，质押期限至2013年11月15日。",
            "2012年11月16日",
            "2013年11月15日",
        ),
        (
            "质押登记日为2008年6月10日，质押期限自该日起至办理解除质押登记手续之日止。",
            "2008年6月10日",
            "办理解除质押登记手续之日",
        ),
        (
            (
                "2018年3月19日，李明将其持有的公司股份300万股质押给王强，占公司总股本的0.92%，"
                "期限一年，到期日为2019年3月18日。"
            ),
            "2018年3月19日",
            "2019年3月18日",
        ),
    ],
)
def test_begin_and_end_of_a_pledge(text: str, begin: str, end: str) -> None:
    assert told(text, "质押起始日", "质押到期日") == {("质押起始日", begin), ("质押到期日", end)}


def test_shares_of_several_pledges() -> None:
    text = "上述质押股份分别占公司总股本的6.00%、3.88%和1.60%。"
    assert {value for _, value in told(text, "占总股本比例")} == {"6.00%", "3.88%", "1.60%"}


@pytest.mark.parametrize(
    "text",
    [
        "质押股份占李明持股数量的32.35%，占公司总股本的3.88%。",
        "本次质押的股份占其持股总数的32.35%，占公司总股本的3.88%。",
        "李明将其持有的100万股（占其所持有公司股份的32.35%，占公司总股本的3.88%）质押给王强。",
    ],
)
def test_what_share_a_pledge_is(text: str) -> None:
    assert told(text, "占所持股份比例", "占总股本比例") == {
        ("占所持股份比例", "32.35%"),
        ("占总股本比例", "3.88%"),
    }


def test_the_share_of_what_is_held_is_none_of_a_pledge() -> None:
    text = "李明持有公司股份1,000,000股，全部为流通股，占公司总股本的5.00%，未质押。"
    assert not told(text, "占总股本比例")
