"""Statements on dividends. Oracle: what each sentence says of itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from test_stated_values import values_by_name

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.statements.dividend_statements import find_dividends
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.values.text import fold_page, fold_width

if TYPE_CHECKING:
    from pathlib import Path


def told(text: str, *words: str) -> list[str]:
    folded = fold_width(text)
    found = sorted(find_dividends(folded))
    return [folded[one.start : one.end] for one in found if one.words in words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "向全体股东每10股派发现金股利人民币2.50元（含税），合计派发83,400,000元。",
            ["人民币2.50元"],
        ),
        ("每10股派1.000000元人民币现金（含税；扣税后，QFII每10股派0.900000元）。", ["1.000000元"]),
        ("扣税前每股派发现金红利：A股0.03元人民币，B股0.0046美元。", ["0.03元", "0.0046美元"]),
        ("每10股送红股2股并派现金0.50元（含税），以资本公积金每10股转增3股。", ["0.50元"]),
        ("每10股送4股转增6股派1元（含税）。", ["1元"]),
        ("派息：扣税前每股0.08元，扣税后每股0.072元。", ["0.08元"]),
        ("末期股息每股人民币0.25元（含税）。", ["人民币0.25元"]),
        ("派息即12,000,000.00元=80,000,000股×0.15元/股。", ["0.15元"]),
        ("税后每股实际派发现金红利0.225元。", []),
        ("持股1个月以内的，每10股补缴税款0.30元。", []),
        ("按总股本折算的每10股现金红利=0.982400元。", []),
        ("公司上年度每10股派发现金红利0.80元。", []),
        ("公司2021年度利润分配实施完毕。2019年度每10股派发现金红利0.80元。", []),
        ("摊薄计算的2021年度每股净收益为0.26元。", []),
        ("每股面值1元，向公众发行。公司将派发红利。", []),
        ("每10股派现金红利由1元调整为2元。每10股派1元改为每10股派2元。", ["2元"]),
    ],
)
def test_what_a_share_gets_before_tax(text: str, expected: list[str]) -> None:
    assert told(text, "每股派息", "每10股派息") == expected


def test_what_ten_shares_get_is_apart_from_what_one_gets() -> None:
    text = "每股现金红利0.15元（含税），即每10股派发现金红利1.50元（含税）。"
    assert told(text, "每股派息") == ["0.15元"]
    assert told(text, "每10股派息") == ["1.50元"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("每10股派发现金红利0.30元（含税），共派发12,576,000元。", ["12,576,000元"]),
        ("每股转增0.45股，共计派发现金红利22,080,000.00元。", ["22,080,000.00元"]),
        ("送红股9,600,000股，转增14,400,000股，派现3,840,000.00元。", ["3,840,000.00元"]),
        ("以100股（其中A股60股）为基数，合计分配利润1,250万元。", ["1,250万元"]),
        ("红利派发总额为人民币20,960,000元。", ["人民币20,960,000元"]),
        ("公司将派发股利，首次公开发行募集资金总额100,000,000元。", []),
        ("公司分红，共计支付股权转让款50,000,000元。", []),
        ("合计派发红利500,000元，其中A股派发300,000元，B股派发200,000元。", ["500,000元"]),
        ("派发红利后，剩余未分配利润共计126,508,331.42元。", []),
        ("近三年累计现金分红3亿元。", []),
        ("公司曾合计派发现金红利500,000元。", []),
        ("回购股份支付的金额合计300,000元。公司将派发红利。", []),
    ],
)
def test_sums(text: str, expected: list[str]) -> None:
    assert told(text, "现金红利总额") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("以总股本100,000,000股为基数，每10股派2元。", ["100,000,000股"]),
        ("以总股本100万股剔除回购专户3万股后的97万股为基数，每10股派2元。", ["97万股"]),
        ("以公司总股本100万股扣除回购专户3万股为基数，每10股派2元。", ["100万股"]),
        ("实际参与分配的股份数为97万股，每股派0.2元。", ["97万股"]),
        (
            "回购的3万股不参与分配；以股权登记日的总股本为基数，每10股派2元，总股本为100万股。",
            ["100万股"],
        ),
        ("以普通股总股本3,564万股计算，每10股派2元。", ["3,564万股"]),
        ("公司总股本100万股，每10股派2元。", []),
    ],
)
def test_on_how_many_shares(text: str, expected: list[str]) -> None:
    assert told(text, "派息基数") == expected


def test_shares_for_shares_and_how_many_there_are_then() -> None:
    text = (
        "以总股本1,000万股为基数，向全体股东每10股送红股2股、转增3股、派发现金0.5元，"
        "不足1股的部分向股东派发1股。送转后公司总股本由1,000万股增加至1,500万股。"
    )
    assert told(text, "送转股数") == ["2股", "3股"]
    assert told(text, "变动后总股本") == ["1,500万股"]
    assert told("不送红股，每10股派1元。公司总股本为100万股。", "变动后总股本") == []
    table = (
        "派发红利\n\t变动前\t变动数\t变动后\n"
        "流通股\t90,000\t36,000\t126,000\n合计\t100,000\t40,000\t140,000\n"
    )
    assert told(table, "变动后总股本") == ["140,000"]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("分红方案已获2022年5月20日召开的股东大会审议通过。", "股东大会日期", ["2022年5月20日"]),
        (
            "分红方案经公司2022年6月10日的2021年年度股东大会审议通过。",
            "股东大会日期",
            ["2022年6月10日"],
        ),
        (
            (
                "分红预案经2024年8月27日召开的第四届董事会第九次会议审议通过，"
                "并经2024年9月13日召开的临时股东会审议通过。"
            ),
            "股东大会日期",
            ["2024年9月13日"],
        ),
        (
            "2013年度股东大会于2014年5月23日在海州召开，审议通过了分红方案。",
            "股东大会日期",
            ["2014年5月23日"],
        ),
        ("分红预案尚需提交2020年5月18日召开的股东大会审议通过。", "股东大会日期", []),
        ("现金红利自2013年6月27日起发放。", "红利发放日", ["2013年6月27日"]),
        (
            "代派的现金红利将于2020年6月10日通过托管券商划入其资金账户。",
            "红利发放日",
            ["2020年6月10日"],
        ),
        (
            "所送股份于2023年5月25日记入证券账户，现金红利同日划入。",
            "红利发放日",
            ["2023年5月25日"],
        ),
        ("公司将于2022年7月8日向全体股东派发现金红利。", "红利发放日", ["2022年7月8日"]),
        ("派息日定为2022-07-08，除息日为2022-07-07。", "红利发放日", ["2022-07-08"]),
        ("除权（除息）日：2020年6月10日，红利另行发放。", "除权除息日", ["2020年6月10日"]),
        ("分红的权益登记日为：2020年6月9日。", "股权登记日", ["2020年6月9日"]),
        ("2021年半年度权益分派实施公告，2020年度报告。", "分红年度", ["2021年半年度"]),
        (
            "2020年年度权益分派公告。公司2020年度拟以总股本派息，2019年度利润分配已完成。",
            "分红年度",
            ["2020年年度", "2020年度"],
        ),
    ],
)
def test_days_and_years(text: str, words: str, expected: list[str]) -> None:
    assert told(text, words) == expected


def test_sentences_go_on_in_the_next_line() -> None:
    text = (
        "海州星桥港务股份有限公司\n2021年年度权益分派实施公告\n\n"
        "本次利润分配以方案实施前的公司总股本 300,000,000 股为基数，每股派发\n"
        "现金红利 0.12 元（含税），共计派发现金红利 36,000,000.00 元。\n"
    )
    folded = fold_page(text)
    found = {(one.words, folded[one.start : one.end]) for one in find_phrases(folded)}
    assert {("每股派息", "0.12 元"), ("派息基数", "300,000,000 股")} <= found


def test_other_texts_say_nothing_of_dividends() -> None:
    text = "股东大会于2021年5月6日召开，审议通过年度报告。共计支付1,000,000元，每股收益为0.3元。"
    assert not [*find_dividends(text)]


@pytest.mark.parametrize(
    "words",
    [
        "每10股派",
        "共计派发",
        "红利每股0.5元",
        "以1,000股为基数派",
        "现金红利于2020年6月10日",
        "2020年1月1日股东大会派",
        "每10股送2股、转增",
        "总股本由1,000股",
        "红利1,",
        " ",
        "\n每股派 ",
    ],
)
def test_long_texts_take_no_longer_for_each_character(words: str) -> None:
    text = "分红每10股派1元,b股，除权" + words * (20_000 // len(words))
    started = time.perf_counter()
    list(find_dividends(text))
    assert time.perf_counter() - started < 2


def test_other_fields_keep_what_they_had(cache: Path) -> None:
    text = (
        "海州公司关于诉讼和分红的公告\n\n派息金额：30,000,000元\n审理结果：驳回\n日期：2024年4月10日\n"
        "每股现金红利0.15元，每10股派发现金红利1.50元。\n"
    )
    wanted = {
        "判决结果": ["驳回"],
        "现金股利": ["30,000,000元"],
        "每10股分红": ["1.50元"],
        "每股股利": ["0.15元"],
        "发放日期": ["2024年4月10日"],
    }
    assert values_by_name(cache, text, wanted) == wanted


def test_fields_are_found_by_their_names(cache: Path) -> None:
    text = (
        "证券代码：300991  证券简称：松禾股份  公告编号：2022-039\n\n"
        "浙江松禾生物科技股份有限公司2021年年度权益分派实施公告\n\n"
        "公司2021年年度权益分派方案已获2022年5月11日召开的2021年年度股东大会审议通过。\n"
        "以公司现有总股本120,000,000股为基数，向全体股东每10股派1.50元人民币现金（含税），"
        "每10股转增4股，共计派发现金18,000,000元。分红后总股本增至168,000,000股。\n"
        "股权登记日为：2022年6月1日，除权除息日为：2022年6月2日。\n"
        "委托代派的现金红利将于2022年6月2日划入股东资金账户。\n\n"
        "浙江松禾生物科技股份有限公司董事会\n2022年5月25日\n"
    )
    expected = {
        "分红所属年度": "2021年年度",
        "分红基数": "120,000,000股",
        "每10股派息": "1.50元",
        "每10股转增": "4股",
        "派息总额": "18,000,000元",
        "转增后总股本": "168,000,000股",
        "股权登记日": "2022年6月1日",
        "除息日": "2022年6月2日",
        "派息日": "2022年6月2日",
        "股东大会召开日期": "2022年5月11日",
    }
    template = Template(name="dividends", fields=tuple(FieldSpec(name=name) for name in expected))
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(text).fields
    assert {name: [v.text for v in fields[name].values] for name in expected} == {
        name: [value] for name, value in expected.items()
    }
