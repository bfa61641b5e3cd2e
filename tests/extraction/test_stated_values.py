"""Values that forms and sentences state, without any sample. Oracle: the values as written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pages import features_of

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.names.kinds_of_names import kind_of_names
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.labels import (
    form_marks,
    labelled_values,
    named_values,
    stated_starts,
)
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.table_headers import table_headers
from featpipe.extraction.values.text import fold_width

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from featpipe.extraction.scoring.field_model import FieldModel


def starts(spans: Iterable[tuple[int, int]]) -> list[int]:
    return [start for start, _ in spans]


def values_by_name(cache: Path, text: str, names: Iterable[str]) -> dict[str, list[str]]:
    """What is found of fields by their names alone."""
    template = Template(name="one", fields=tuple(FieldSpec(name=name) for name in names))
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(text).fields
    return {name: [value.text for value in fields[name].values] for name in names}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("出租方（甲方）___李四___  身份证号___330203___", "甲方", "李四"),
        ("乙方（劳动者）姓名：_王芳_", "姓名", "王芳"),
        ("合同编号    HT-001", "合同编号", "HT-001"),
        ("设备（材料）规格（见附表）：DN-80", "设备规格", "DN-80"),
        ("    户  名  宁波华信贸易有限公司\n", "户名", "宁波华信贸易有限公司"),
        ("保证人：（签字）王芳", "保证人", "王芳"),
        ("担保人：王芳(签字按印)", "担保人", "王芳"),
        ("租赁用途：□商业 ☑居住 □办公", "租赁用途", "居住"),
        ("项目经理：王芳（一级建造师），电话", "项目经理", "王芳"),
        ("收货人（经手人：王芳）签字", "经手人", "王芳"),
        ("联 系 人：王芳　　电　　话：138", "联系人", "王芳"),
        ("被告二：宁波华信贸易有限公司，住", "被告", "宁波华信贸易有限公司"),
        ("试用期为三个月。", "试用期", "三个月"),
        ("甲方（用人单位）名称：_宁波华信贸易有限公司_", "用人单位", "宁波华信贸易有限公司"),
        ("乙方（劳动者）姓名：_王芳_", "劳动者姓名", "王芳"),
        ("项目经理：粟建武，注册编号1", "项目经理", "粟建武"),
        (
            "付款方式：签订后付30%，发货前付60%，余款验收后付清。",
            "付款方式",
            "签订后付30%，发货前付60%，余款验收后付清",
        ),
        ("付款方式：□现金，☑转账，□支票", "付款方式", "转账"),
        ("主持人：董事长王芳女士\n", "主持人", "王芳"),
        ("主持人：总经理 曲振东\n", "主持人", "曲振东"),
        ("主持人：董事会秘书处\n", "主持人", "董事会秘书处"),
        ("本协议有效期两年，自生效日起算。", "协议有效期", "两年"),
        ("借款期限：12个月，自实际提款日起算", "借款期限", "12个月"),
    ],
)
def test_the_value_of_a_form(text: str, name: str, value: str) -> None:
    folded = fold_width(text)
    found = [folded[start:end] for start, end in labelled_values(folded, [name])]
    assert fold_width(value) in found
    # Nothing that is no value begins where it begins and ends before it.
    assert not [
        one for one in found if fold_width(value).startswith(one) and one != fold_width(value)
    ]


def test_a_list_behind_a_label_is_read_to_its_end() -> None:
    names = [f"王{name}" for name in "芳强敏静丽磊军洋勇艳杰娟涛明超"]
    text = fold_width(f"参会人员：{'、'.join(names)}\n记录人：周杰\n")
    found = {text[start:end] for start, end in labelled_values(text, ["参会人员"])}
    assert set(names) <= found


def test_a_list_behind_a_label_has_several_values() -> None:
    folded = fold_width("保证人：王芳、李明、张建国，电话138")
    found = {folded[start:end] for start, end in labelled_values(folded, ["保证人"])}
    assert {"王芳", "李明", "张建国"} <= found


def test_a_place_for_a_seal_is_no_value() -> None:
    folded = fold_width("供方：（公章）        需方：（公章）\n")
    assert labelled_values(folded, ["供方"]) == []


@pytest.mark.parametrize(
    ("text", "name", "behind"),
    [
        ("年利率为4.15%", "年利率", "4.15%"),
        ("押金人民币5000元", "押金", "5000元"),
        ("押金人民币壹万元整", "押金", "壹万元整"),
        ("余额为人民币（大写）陆仟万元整", "余额", "陆仟万元整"),
        ("运费合计19800元", "运费", "19800元"),
        ("，法定代表人 王芳，", "法定代表人", "王芳"),
        ("租赁期限共三年", "租赁期限", "三年"),
    ],
)
def test_what_a_sentence_states(text: str, name: str, behind: str) -> None:
    folded = fold_width(text)
    assert folded.index(behind) in stated_starts(folded, [name])


def test_a_name_right_behind_what_someone_is_begins_there() -> None:
    text = fold_width(
        "由监理单位清河监理有限公司签发，项目经理王芳，监理单位应当到场。项目经理王芳华丽。"
    )
    assert starts(named_values(text, ["监理单位"])) == [text.index("清河")]
    assert starts(named_values(text, ["项目经理"])) == [text.index("王芳")]
    assert named_values(text, ["签发"]) == []


def test_an_organisation_acts_by_words_before_it() -> None:
    text = fold_width("招标代理由清河咨询有限公司承担。")
    assert starts(named_values(text, ["招标代理机构", "招标代理"])) == []
    assert starts(named_values(text, ["代理公司"])) == []
    text = fold_width("代理单位由清河咨询有限公司担任。")
    assert starts(named_values(text, ["代理单位"])) == [text.index("清河")]


def test_what_a_wide_gap_parts_is_stated_by_no_sentence() -> None:
    folded = fold_width("自然人股东    348    2042-10-01")
    assert stated_starts(folded, ["股东"]) == []


def test_a_place_for_a_signature_is_no_part_of_a_value(cache: Path) -> None:
    text = "投标函\n法定代表人或其委托代理人：    佟立言    （签字）\n"
    assert values_by_name(cache, text, ["委托代理人"]) == {"委托代理人": ["佟立言"]}


def test_a_procurement_notice_says_whose_details_follow(cache: Path) -> None:
    text = (
        "采购公告\n七、联系方式\n1.采购人信息\n"
        "名    称：临河市第一中学\n地    址：临河市学府路1号\n"
        "2.采购代理机构信息\n名    称：江淮招标代理有限公司\n地    址：临河市人民路88号\n"
        "3.项目联系方式\n电    话：0551-6677889\n"
    )
    wanted = {
        "采购人": ["临河市第一中学"],
        "采购人地址": ["临河市学府路1号"],
        "采购代理机构": ["江淮招标代理有限公司"],
        "代理机构地址": ["临河市人民路88号"],
    }
    assert values_by_name(cache, text, wanted) == wanted


def test_no_value_goes_on_to_the_next_label(cache: Path) -> None:
    text = (
        "送货单\n订单号：PO-240828-03    收款方式：承兑汇票\n姓    名：韦春燕        性    别：女\n"
    )
    wanted = {"采购订单号": ["PO-240828-03"], "姓名": ["韦春燕"]}
    assert values_by_name(cache, text, wanted) == wanted


def test_parties_alone_stand_above_their_details(cache: Path) -> None:
    text = (
        "买卖合同\n正文。\n出 卖 人                      买 受 人\n"
        "单位名称：无锡恒岳重工机械有限公司        单位名称：山东鲁泽新型建材有限公司\n"
        "法定代表人：邹启明                       法定代表人：孟祥奎\n\n"
        "见证人（担保方）\n姓    名：王芳\n电    话：13800138000\n"
    )
    wanted = {
        "出卖人": ["无锡恒岳重工机械有限公司"],
        "卖方法定代表人": ["邹启明"],
        "买受人法定代表人": ["孟祥奎"],
    }
    assert values_by_name(cache, text, wanted) == wanted


def test_details_stand_behind_a_party_with_a_colon(cache: Path) -> None:
    text = (
        "借款协议\n甲方（出借人）：王芳，女，住宁波市中山路1号，公民身份号码330203198001010021。\n"
        "乙方（借款人）：李明，男，住杭州市学院路2号，公民身份号码330106199002020033。\n"
    )
    wanted = {
        "乙方住址": ["杭州市学院路2号"],
        "甲方身份证号": ["330203198001010021"],
    }
    assert values_by_name(cache, text, wanted) == wanted


def test_minutes_of_a_meeting(cache: Path) -> None:
    """A colon in a time of the day ends no label, and what comes next time is another meeting."""
    minutes = """会议纪要
时间：2024年3月5日下午2:30
地点：公司三楼会议室
主持人：王建国
参会人员：李明、张华、赵敏
缺席：钱伟（出差）
主题：第一季度销售工作会议
一、会议内容
王建国总结了上季度销售情况。
下次会议时间：2024年3月25日
"""
    expected = {
        "会议时间": ["2024年3月5日下午2:30"],
        "会议地点": ["公司三楼会议室"],
        "主持人": ["王建国"],
        "与会人员": ["李明", "张华", "赵敏"],
        "缺席人员": ["钱伟"],
        "会议主题": ["第一季度销售工作会议"],
    }
    assert values_by_name(cache, minutes, expected) == expected


@pytest.mark.parametrize("time", ["14:00", "14：00时", "下午2:30", " 09:30:00", "9时30分"])
def test_a_time_of_the_day_belongs_to_its_date(cache: Path, time: str) -> None:
    notice = f"项目名称：智慧园区建设项目\n开标时间：2024年3月5日{time}\n开标地点：三楼会议室\n"
    found = values_by_name(cache, notice, ["开标时间"])
    assert found == {"开标时间": [f"2024年3月5日{time}"]}


def test_a_number_of_which_a_part_is_hidden_is_whole(cache: Path) -> None:
    contract = (
        "出租方：张三，身份证号码：452702199306****25，联系电话：138****5678\n"
        "银行账号：6222 **** **** 1234\n"
    )
    expected = {
        "身份证号码": ["452702199306****25"],
        "联系电话": ["138****5678"],
        "银行账号": ["6222 **** **** 1234"],
    }
    assert values_by_name(cache, contract, expected) == expected


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("涉案的金额：5,000元", "涉案金额", "5,000元"),
        ("截标            2024/08/28 10:00", "截标", "2024/08/28 10:00"),
        ("标段编号YZ2024-01，现招标", "标段编号", "yz2024-01"),
        ("7.1 招标代理联系人王芳，电话", "联系人", "王芳"),
        ("Supplier: Alder Covers (North) Ltd", "supplier", "alder covers (north) ltd"),
        ("Buyer\tAlder Werke AG, Am Hafen 3, Lindau", "buyer", "alder werke ag"),
        ("Terms: 50% with order, rest later", "terms", "50% with order, rest later"),
    ],
)
def test_a_labelled_value_is_all_of_it(text: str, name: str, value: str) -> None:
    folded = fold_width(text)
    assert value in [folded[a:b] for a, b in labelled_values(folded, [name])]


def test_behind_a_companys_legal_form_its_address_begins() -> None:
    folded = fold_width("Buyer\tAlder Werke AG, Am Hafen 3, Lindau")
    assert [folded[a:b] for a, b in labelled_values(folded, ["buyer"])] == ["alder werke ag"]


def test_long_names_of_sums_and_days_state_them() -> None:
    def stated(text: str, name: str) -> list[int]:
        return stated_starts(fold_width(text), [name], are_own=False)

    assert stated("招标控制价为47万元", "招标控制价") == [6]
    assert stated("递交截止时间为3月5日", "递交截止时间") == [7]
    assert stated("预算为47万元", "预算") == []
    assert stated("租赁期限为3年", "租赁期限") == []
    assert stated("累计质押金额为47万元", "质押金额") == []
    assert stated("草原质押金额为47万元", "质押金额") == [7]


def test_synonyms_state_no_amounts() -> None:
    assert stated_starts("金额5000元", ["金额"], are_own=False) == []
    assert stated_starts("需方是王芳", ["需方"], are_own=False) == [3]


def test_boxes_and_lines_are_counted_and_codes_are_not() -> None:
    assert form_marks("a_b")[-1] == 0
    assert form_marks("__x_")[-1] == 3
    assert form_marks("☑是 □否")[-1] == 2


def test_a_header_is_no_value() -> None:
    text = "名称\t数量\n钢材\t5吨\n水泥\t7吨\n"
    headers = tuple(
        LabelledSpan(text.index(cell), text.index(cell) + len(cell), label)
        for cell, label in (("钢材", "名称"), ("5吨", "数量"), ("水泥", "名称"), ("7吨", "数量"))
    )
    features = PageFeatures(replace(page_of_text(text), headers=headers))
    start = features.tokens.start
    heads = {text[start[n]] for n in range(len(start)) if features.is_header[n]}
    assert heads == set("名称数量")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("押金", "money"), ("合同总金额", "money"), ("Total Amount", "money"), ("签订日期", "date"),
        ("年利率", "percent"), ("联系电话", "phone"), ("E-mail", "email"), ("乙方账号", "id"),
        ("租赁期限", "text"), ("违约金", "text"), ("甲方", "text"), ("付款方式", "text"),
    ],
)  # fmt: skip
def test_the_type_that_a_name_tells(name: str, kind: str) -> None:
    assert kind_of_names([name]) == kind


def test_a_contract_is_read_without_samples(cache: Path) -> None:
    text = (
        "房 屋 租 赁 合 同\n出租方（甲方）___李四___\n承租方（乙方）___王芳___\n"
        "一、月租金6,800元，押金人民币13,600元。\n二、租赁用途：□商业 ☑居住 □办公\n"
        "                    2023年8月9日\n"
    )
    wanted = {
        "甲方": ["李四"],
        "乙方": ["王芳"],
        "月租金": ["6,800元"],
        "押金": ["人民币13,600元"],
        "租赁用途": ["居住"],
        "签订日期": ["2023年8月9日"],
    }
    assert values_by_name(cache, text, wanted) == wanted


def headed(text: str) -> PageFeatures:
    return PageFeatures(replace(page_of_text(text), headers=table_headers(text, ())))


def texts_of(model: FieldModel, features: PageFeatures) -> set[str]:
    """All values that a document may have."""
    return {features.page.text[slice(*g.spans[0])] for g in model.score(features).groups}


def test_cells_without_a_sign_are_shares_below_headers_of_shares() -> None:
    features = headed("Goods\tUnit price\tVAT\nLamp\t41.00\t19\nTray\t7.60\t410.00\nBox\t2.00\t7\n")
    assert texts_of(fit_field([], "percent", ("VAT",)), features) == {"19", "7"}


def test_a_party_has_letters() -> None:
    pages = [features_of(f"INVOICE\nTo {name}\nSum 4.00\n") for name in ("Oak Trust", "Elm Board")]
    samples = [
        sample_of(page, [name], "text")
        for page, name in zip(pages, ("Oak Trust", "Elm Board"), strict=True)
    ]
    features = headed("INVOICE\nAsh Guild\nGoods\tSum\nLamp\t64,000.00\nTray\t11,000.00\n")
    found = texts_of(fit_field(samples, "text", ("Buyer",)), features)
    assert found
    assert all(any(map(str.isalpha, text)) for text in found)
    assert "64,000.00" in texts_of(fit_field(samples, "text", ("Remark",)), features)


def test_a_label_again_has_another_value(cache: Path) -> None:
    text = "关于股份质押的公告\n" + "".join(
        f"股东名称：{name}\n质押股数：{shares}\n质权人名称：{bank}\n"
        for name, shares, bank in (
            ("李明", "300,000股", "东岭证券（上海）资产管理有限公司"),
            ("王芳", "450,000股", "青州银行股份有限公司"),
        )
    )
    found = values_by_name(cache, text, ("股东名称", "质押股数", "质权人"))
    assert {name: sorted(values) for name, values in found.items()} == {
        "股东名称": ["李明", "王芳"],
        "质押股数": ["300,000股", "450,000股"],
        "质权人": ["东岭证券（上海）资产管理有限公司", "青州银行股份有限公司"],
    }


def test_what_asks_for_yes_or_no_names_nobody(cache: Path) -> None:
    text = "登记表\n股东是否为控股股东：是\n被担保人是否为关联方：否\n"
    assert values_by_name(cache, text, ("股东", "被担保人")) == {"股东": [], "被担保人": []}


def test_a_long_label_has_a_name(cache: Path) -> None:
    text = "公告\n2、本次冻结股份数量及占比：260.11 万股，占其所持公司股份的 14.40%；\n"
    assert values_by_name(cache, text, ("冻结股数",)) == {"冻结股数": ["260.11 万股"]}


def test_the_same_label_of_another_party_is_no_further_value(cache: Path) -> None:
    text = (
        "采购合同\n甲方：青州机械有限公司\n地址：青州市一路1号\n联系电话：0571-1111 0000\n"
        "乙方：东岭电缆有限公司\n地址：东岭市二路2号\n联系电话：0572-2222 0000\n"
    )
    found = values_by_name(cache, text, ("联系电话",))
    assert len(found["联系电话"]) == 1
