"""Statements: sentences of announcements, contracts and judgments that say a value."""

from __future__ import annotations

import pytest
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field
from featpipe.extraction.scoring.pretrained import kind_of_values, shipped_fields
from featpipe.extraction.statements.english_roles import find_roles
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.statements.statements import (
    find_company,
    find_orders,
    find_statements,
)
from featpipe.extraction.values.text import fold_width

PLEDGE = (
    "关于控股股东部分股份质押的公告\n北辰机电股份有限公司（以下简称“公司”）近日接到控股股东南岭控股集团有限公司"
    "（以下简称“南岭集团”）函告，获悉南岭集团将其持有的公司股份2,500,000股（占公司总股本的3.12%）质押给"
    "东海信托有限责任公司，质押期限自2024年3月5日起至2025年3月4日止。\n南岭集团持有公司股份18,000,000股，"
    "占公司总股本的22.50%；累计质押9,000,000股，占其所持股份的50.00%，占公司总股本的11.25%。\n"
)


def statements(text: str) -> list[tuple[str, str]]:
    folded = fold_width(text)
    return [(one.words, folded[one.start : one.end]) for one in find_statements(folded)]


def first(text: str, name: str) -> str:
    """The likeliest value of a field of which the name alone is known."""
    features = features_of(text)
    kind = kind_of_values([], (name,), shipped_fields())
    model = fit_field([], kind, (name,), pretrained=shipped_fields().find((name,), kind))
    scored = model.score(features)
    return text[slice(*scored.groups[int(scored.probabilities.argmax())].spans[0])]


def test_a_pledge_says_who_pledges_how_many_shares_to_whom_until_when() -> None:
    found = statements(PLEDGE)
    assert {
        ("出质人", "南岭控股集团有限公司"),  # in full, where it is named first
        ("质权人", "东海信托有限责任公司"),
        ("质押股数", "2,500,000股"),
        ("起始日期", "2024年3月5日"),
        ("到期日期", "2025年3月4日"),
        ("持股数量", "18,000,000股"),
        ("持股比例", "22.50%"),
        ("累计质押数量", "9,000,000股"),
    } <= {*found}
    # Shares of a sum of pledges, and of what is held, are no shares of one.
    assert {value for words, value in found if words == "占总股本比例"} == {"3.12%"}
    assert not [value for words, value in found if words == "占所持股份比例"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("出质人", "南岭控股集团有限公司"), ("质权人", "东海信托有限责任公司"),
        ("质押股数", "2,500,000股"), ("质押到期日", "2025年3月4日"), ("持股比例", "22.50%"),
        ("累计质押股数", "9,000,000股"), ("公司名称", "北辰机电股份有限公司"),
    ],
)  # fmt: skip
def test_fields_without_samples_find_what_sentences_state(name: str, value: str) -> None:
    assert first(PLEDGE, name) == value


def test_what_was_pledged_before_names_no_pledgee() -> None:
    assert statements("某股东将原质押给东海信托有限责任公司的100股办理了解除质押。\n") == [
        ("解除质押股数", "100股")
    ]


def test_a_meeting_says_when_how_and_who_and_counts_its_votes() -> None:
    text = (
        "第三届监事会第八次会议于2024年4月18日在公司会议室以现场方式召开，由监事会主席吴敏女士主持。"
        "会议应到监事3人，实到监事2人。会议审议通过了《2023年度报告》，同意2票，反对0票，弃权0票。\n"
    )
    assert dict(statements(text)) == {
        "会议届次": "第三届监事会第八次会议",
        "会议时间": "2024年4月18日",
        "会议地点": "公司会议室",
        "召开方式": "现场方式",
        "主持人": "吴敏",
        "应到人数": "3人",
        "实到人数": "2人",
        "议案名称": "2023年度报告",
        "表决结果": "同意2票,反对0票,弃权0票",
        "同意票数": "2票",
        "反对票数": "0票",
        "弃权票数": "0票",
    }


def test_who_sends_a_notice_of_award_is_the_client_and_an_agent_is_not() -> None:
    notice = "公司收到招标代理机构江北招标有限公司代表采购单位{}发来的《中标通知书》。\n"
    assert statements(notice.format("清河市城市管理局")) == [("招标人", "清河市城市管理局")]
    assert statements("公司收到江北招标代理有限公司发出的《中标通知书》。\n") == []
    both = "公司收到清河市水务集团有限公司和江北招标有限公司发出的《中标通知书》。\n"
    assert statements(both) == [("招标人", "清河市水务集团有限公司")]


def test_a_contract_names_the_other_party_the_loan_and_the_surety() -> None:
    text = (
        "公司与清河水泥有限公司就供货事宜于2024年1月5日正式签署了《水泥供货合同》。\n"
        "乙方向甲方借款人民币伍拾万元整，由张强提供连带责任保证，逾期还款的，每日按万分之五支付违约金。\n"
        "公司为全资子公司清河电缆有限公司向银行申请贷款提供担保。公司为子公司提供担保。\n"
    )
    assert dict(statements(text)) == {
        "合同对方": "清河水泥有限公司",
        "合同名称": "水泥供货合同",
        "借款金额": "人民币伍拾万元整",
        "保证人": "张强",
        "违约金比例": "万分之五",
        "被担保人": "清河电缆有限公司",
    }


def test_a_probation_is_no_period_of_a_contract() -> None:
    text = "合同期限三年，其中试用期自2022年7月11日起至2022年10月10日止。\n"
    assert statements(text) == []


def test_a_date_that_begins_a_period_may_be_a_part_of_it() -> None:
    text = "服务合同\n有效期限：2023年10月26日至2024年12月31日\n"
    assert first(text, "有效期限") == "2023年10月26日至2024年12月31日"
    assert (
        first("服务合同\n合同有效期限自2023年10月26日至2024年12月31日。\n", "起始日期")
        == "2023年10月26日"
    )


def test_who_makes_an_announcement_stands_at_the_beginning_of_a_sentence() -> None:
    text = fold_width("将推进北辰机电股份有限公司（以下简称“公司”）的项目。\n")
    assert not [*find_company(text)]
    [company] = find_company(fold_width(PLEDGE))
    assert company.words == "公司名称"


def test_a_court_orders_amounts_to_be_paid_behind_its_decision_alone() -> None:
    text = "原告请求支付货款9万元。判决如下：一、被告支付原告货款80,000元；二、驳回其他请求。"
    folded = fold_width(text)
    assert [folded[one.start : one.end] for one in find_orders(folded)] == ["80,000元"]
    assert not [*find_orders(folded.replace("判决如下", "本院认为"))]


def test_a_sentence_alone_has_no_statements_of_documents() -> None:
    line = "南岭集团将其持有的公司股份2,500,000股质押给东海信托有限责任公司。"
    assert find_phrases(fold_width(line)) == ()
    assert find_phrases(fold_width(f"通知\n{line}\n"))


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ('made between Granite Foods LLC (the "Client") and Summit Ltd. (the "Provider").',
         {"client": "granite foods llc", "provider": "summit ltd."}),
        ('between Harbor Books, Inc., a Utah corporation ("Client"), and Blue Ltd. ("Provider").',
         {"client": "harbor books, inc.", "provider": "blue ltd."}),
        ('(1) ACME CORP. hereinafter referred to as "Seller"', {"seller": "acme corp."}),
        ('The goods (the "Goods") are made by the company (the "Maker").', {}),
    ],
)  # fmt: skip
def test_english_agreements_say_who_is_what_in_brackets(text: str, roles: dict[str, str]) -> None:
    folded = fold_width(text)
    assert {one.words: folded[one.start : one.end] for one in find_roles(folded)} == roles


def test_an_english_agreement_is_read_without_samples() -> None:
    text = (
        "SERVICES AGREEMENT\nThis Agreement is entered into as of March 5, 2024 by and between "
        'Granite Foods LLC (the "Client") and Summit Ltd. (the "Provider").\nClient shall pay.\n'
    )
    assert first(text, "client") == "Granite Foods LLC"
    assert first(text, "service provider") == "Summit Ltd."
