"""Statements of loans and of awards, lists of names, and names of English agreements."""

from __future__ import annotations

import pytest
from test_statements import first, statements

from featpipe.extraction.names.synonyms import names_same
from featpipe.extraction.scoring.labels import labelled_values
from featpipe.extraction.statements.english_roles import find_roles
from featpipe.extraction.values.text import fold_width


@pytest.mark.parametrize(
    ("sentence", "words", "value"),
    [
        ("乙方提供借款人民币（大写）贰佰万元整（小写：2,000,000元）。", "借款金额", "2,000,000元"),
        ("乙方提供总额为人民币32,000万元的固定资产贷款。", "借款金额", "人民币32,000万元"),
        ("贷款期限为7年，自提款日起。", "借款期限", "7年"),
        ("借款期限一年六个月。", "借款期限", "一年六个月"),
        ("借款年利率为3.95%，固定不变。", "借款利率", "3.95%"),
        ("执行利率为年4.15%（单利）。", "借款利率", "4.15%"),
        ("本合同项下借款用于采购棉纱，不得挪用。", "借款用途", "采购棉纱"),
        ("贷款专项用于：设备购置。", "借款用途", "设备购置"),
    ],
)  # fmt: skip
def test_a_loan_contract_states_what_is_lent(sentence: str, words: str, value: str) -> None:
    assert (words, value) in statements(f"合同\n{sentence}\n")


@pytest.mark.parametrize(
    "sentence", ["罚息利率为5.9%。", "逾期利率为6.1%。", "每期限为30日。", "资金用于生产。"]
)
def test_other_rates_and_uses_are_of_no_loan(sentence: str) -> None:
    assert not {words for words, _ in statements(f"合同\n{sentence}\n")} & {
        "借款利率", "借款期限", "借款用途",
    }  # fmt: skip


def test_an_award_says_who_bought_and_who_won() -> None:
    text = (
        "公告\n受定河县人民医院的委托，组织公开招标。\n经采购人东屿理工大学确认，"
        "本项目由厦岚市闽锋装备有限公司、翼禾科技有限公司中标。\n"
    )
    assert {
        ("采购人", "定河县人民医院"), ("采购人", "东屿理工大学"),
        ("中标人", "厦岚市闽锋装备有限公司"), ("中标人", "翼禾科技有限公司"),
    } <= {*statements(text)}  # fmt: skip


def test_every_name_of_a_list_stands_surety() -> None:
    found = statements("合同\n债务由天成控股有限公司、恒润染整有限公司提供连带责任保证。\n")
    assert [value for words, value in found if words == "保证人"] == [
        "天成控股有限公司", "恒润染整有限公司",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "name", "is_same"),
    [
        ("供应商名称", "供应商", True), ("供应商地址", "供应商", False),
        ("采购代理编号", "采购代理", False), ("甲方(盖章)", "甲方", True),
        ("甲方代表", "甲方", False),
        ("签订日期", "日期", True),
    ],
)  # fmt: skip
def test_a_label_about_a_name_does_not_name_it(label: str, name: str, *, is_same: bool) -> None:
    assert names_same(label, name) is is_same


def test_a_vague_synonym_is_all_of_a_label() -> None:
    # 名称 is a synonym of 公司名称; 股东名称 is another thing.
    text = "公告\n股东名称：林守钧\n名称：天成机械股份有限公司\n"
    assert first(text, "公司名称") == "天成机械股份有限公司"


def test_details_of_a_party_without_a_block_are_those_of_no_other_block() -> None:
    text = "公告\n被担保人基本情况\n法定代表人：覃世宁\n甲方：天成公司\n法定代表人：王伟\n"
    assert first(text, "被担保人法定代表人") == "覃世宁"
    assert first(text, "甲方法定代表人") == "王伟"


def test_roles_in_quotes_may_have_their_article_inside() -> None:
    text = fold_width('(1) Oosterdal Pharma Limited ("the Client"), and (2) X LLC ("Vendor").')
    assert [(one.words, text[one.start : one.end]) for one in find_roles(text)] == [
        ("client", "oosterdal pharma limited"), ("vendor", "x llc"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "key staff: denise arceneaux; marcus whitfield\n",
        "key staff: denise arceneaux, marcus whitfield\n",
        "key staff:\n- denise arceneaux\n- marcus whitfield\n\n",
    ],
)
def test_people_of_an_english_list_are_values_each(text: str) -> None:
    found = {text[start:end] for start, end in labelled_values(text, ["key staff"])}
    assert {"denise arceneaux", "marcus whitfield"} <= found


def test_members_of_a_list_may_have_their_office_in_brackets() -> None:
    text = "评审专家名单:骆其昌(组长)、阮静怡、巫国安(采购人代表)\n"
    found = {text[start:end] for start, end in labelled_values(text, ["评审专家名单"])}
    assert {"骆其昌", "阮静怡", "巫国安"} <= found
