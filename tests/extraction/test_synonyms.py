"""Synonyms: a field finds values behind other names of what it is named after."""

from __future__ import annotations

import pytest
from pages import features_of

from featpipe.extraction.names import synonyms
from featpipe.extraction.names.synonyms import (
    alternatives,
    heads_of,
    names_same,
    party_and_rest,
    synonyms_of,
    with_stems,
)
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of


def test_a_name_has_the_names_of_its_group_and_not_itself() -> None:
    assert "发包人" in synonyms_of(("甲方",))
    assert "甲方" not in synonyms_of(("甲方",))


def test_a_longer_name_counts_as_the_longest_name_inside_it() -> None:
    assert "中标价" in synonyms_of(("合同金额上限",))
    assert "中标价" not in synonyms_of(("担保金额上限",))


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("采购方式", "采购方"), ("承包方式", "承包方"), ("项目经理", "项目"), ("项目编号", "项目"),
        ("合同价格形式", "合同价"), ("合同总价款支付方式", "合同总价款"), ("合同登记编号", "合同"),
    ],
)  # fmt: skip
def test_a_name_is_no_other_name_that_it_begins_with(name: str, of: str) -> None:
    assert not {*synonyms_of((name,))} & {*synonyms_of((of,))}


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("合同登记编号", "编号"), ("合同总价款支付方式", "支付方式"), ("合作项目", "项目"),
        ("安全负责人", "负责人"), ("合同金额（元）", "合同金额"), ("租金标准", "租金"),
    ],
)  # fmt: skip
def test_a_name_is_what_it_ends_with_or_measures(name: str, of: str) -> None:
    assert {*synonyms_of((of,))} - {name} <= {*synonyms_of((name,))}


def test_a_label_is_the_head_of_a_longer_name() -> None:
    labels = {"开工日期", "日期", "计划开工日期", "竣工日期"}
    assert heads_of(("计划开工日期",), labels) == ["开工日期"]
    assert heads_of(("甲方电话",), {"电话"}) == []


def test_a_name_of_something_has_the_names_of_that() -> None:
    assert "审理法院" in synonyms_of(("法院名称",))
    assert "公司名称" not in synonyms_of(("法院名称",))


def test_what_is_asked_of_a_party_has_the_synonyms_of_that_alone() -> None:
    assert "联系电话" in synonyms_of(("甲方电话",))
    assert "发包人" not in synonyms_of(("甲方电话",))
    assert {"甲方", "发包人"} < {*synonyms_of(("甲方名称",))}
    assert "公司名称" not in synonyms_of(("甲方名称",))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("甲方法定代表人", ("甲方", "法定代表人")), ("丙方的地址", ("丙方", "地址")),
        ("许可方联系人", ("许可方", "联系人")), ("被告律师", ("被告", "律师")),
        ("buyerAddress", ("buyer", "address")), ("甲方", None), ("甲方名称", None),
        ("付款方式", None), ("采购方法", None), ("招标方案", None), ("双方约定", None),
    ],
)  # fmt: skip
def test_a_name_may_ask_for_something_of_a_party(name: str, parts: tuple[str, str] | None) -> None:
    assert party_and_rest(name) == parts


def test_english_names_are_met_whole_however_they_are_joined() -> None:
    assert "开票日期" in synonyms_of(("InvoiceDate",))
    assert synonyms_of(("subtotals",)) == ()


def test_the_samples_label_is_another_one_and_the_value_is_found_all_the_same() -> None:
    text = "甲方：{a}\n监理单位：{b}\n合同金额：{n}万元\n"
    samples = [
        features_of(text.format(a=f"{place}电缆有限公司", b=f"{place}监理有限公司", n=n))
        for n, place in enumerate(("包头", "株洲", "洛阳"), 3)
    ]
    model = fit_field(
        [
            sample_of(page, [f"{place}电缆有限公司"], "organisation")
            for page, place in zip(samples, ("包头", "株洲", "洛阳"), strict=True)
        ],
        "organisation",
        ("甲方",),
    )
    page = features_of("监理单位：大连监理有限公司\n发包人：三亚化工有限公司\n合同金额：9万元\n")
    scored = model.score(page)
    assert [page.page.text[slice(*scored.groups[n].spans[0])] for n in model.choose(scored)] == [
        "三亚化工有限公司"
    ]


def test_what_was_released_or_summed_up_is_another_thing() -> None:
    assert names_same("本次质押股数", "质押股数")
    assert not names_same("解除质押股数", "质押股数")
    assert not names_same("累计质押数量", "质押数量")
    assert not names_same("质押", "质押股数")
    assert "质押数量" in synonyms_of(("本次质押股数",))
    assert "质押数量" not in synonyms_of(("解除质押股数",))
    assert heads_of(["解除质押股数"], ["质押股数"]) == []
    assert not names_same("本次质押后质押股份数量", "质押股份数量")
    assert not names_same("本次质押前累计质押数量", "累计质押数量")
    assert names_same("本次质押后累计质押数量", "累计质押数量")
    assert not names_same("剩余被质押股份数量占其所持股份比例", "占其所持股份比例")
    assert names_same("本次质押占其所持股份比例", "占其所持股份比例")
    assert not names_same("原质押到期日", "到期日")
    assert names_same("展期后质押到期日", "质押到期日")


def test_what_is_held_may_be_called_a_share_and_not_the_other_way_round() -> None:
    assert "占总股本比例" in synonyms_of(("持股比例",))
    assert "持股比例" not in synonyms_of(("占总股本比例",))


def test_a_sum_of_money_is_named_once_too() -> None:
    assert with_stems(("押金金额",)) == ("押金金额", "押金")
    # 合同金额 is a name itself, and 保险 of 保险金额 no sum of money.
    assert with_stems(("合同金额", "保险金额")) == ("合同金额", "保险金额")


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("licensor or supplier", ("licensor", "supplier")),
        ("fee, royalty or price", ("fee", "royalty", "price")),
        ("vessel/voyage or flight", ("vessel", "voyage", "flight")),
        ("上市日或起息日", ("上市日", "起息日")),
        ("或有负债", ()),
        ("或有事项或承诺", ("或有事项", "承诺")),
        ("n/a", ()),
        ("单价(元/吨)", ()),
        ("order number", ()),
        ("合同金额", ()),
    ],
)
def test_a_name_may_give_a_choice(name: str, choice: tuple[str, ...]) -> None:
    assert alternatives(name) == choice
    assert {*choice} <= {*with_stems((name,))}


def test_a_group_ends_with_its_module() -> None:
    assert not [name for name in synonyms._ALL_NAMES if "\n" in name or ";" in name]
    assert "判决结果" in synonyms_of(("诉讼结果",))
    assert "判决结果" not in synonyms_of(("现金红利",))


@pytest.mark.parametrize(
    ("name", "other"),
    [("法官助理", "审判长"), ("分红年度", "现金红利"), ("每10股派息", "每股派息")],
)
def test_a_name_of_something_else_has_other_synonyms(name: str, other: str) -> None:
    assert other not in synonyms_of((name,))
