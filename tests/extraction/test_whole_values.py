"""Values are whole: no part of a code, what stands behind a label, an amount that is no date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.labels import labelled_values
from featpipe.extraction.scoring.locate import infer_type, locate_value
from featpipe.extraction.values.codes import clock_colons, find_codes
from featpipe.extraction.values.text import fold_width
from featpipe.extraction.values.values import find_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.values.values import FieldType

CONTRACTS = Path(__file__).parents[2] / "data" / "documents" / "contracts"
FORM = """采购合同
合同编号：{合同编号}
甲方：{甲方}
乙方：{乙方}
签订日期：{签订日期}
第一条 合同金额
本合同总金额为人民币{合同金额}（大写见附件）。
第二条 交货期限为30日，联系电话13800138000。
"""
SAMPLES = (
    {
        "合同编号": "HT-2024-001", "甲方": "北京天成商贸有限公司",
        "乙方": "上海华信电缆有限公司", "签订日期": "2024年3月5日", "合同金额": "500,000元",
    },
    {
        "合同编号": "HT-2024-017", "甲方": "天津远大贸易有限公司",
        "乙方": "武汉长江泵业有限公司", "签订日期": "2024年6月18日", "合同金额": "1,260,000元",
    },
)  # fmt: skip


def learned(name: str, kind: str | None = None) -> FieldModel:
    known = [(features_of(FORM.format(**values)), values[name]) for values in SAMPLES]
    found = kind or infer_type(known)
    samples = [sample_of(features, [value], found) for features, value in known]  # type: ignore[arg-type]  # a type by name
    return fit_field(samples, found, (name,))  # type: ignore[arg-type]  # likewise


def extract(model: FieldModel, text: str) -> list[str]:
    scored = model.score(features_of(text))
    spans = [scored.groups[number].spans[0] for number in model.choose(scored)]
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("编号：借-2023-0148", ["借-2023-0148"]),
        ("合同编号为借-2023-0148的合同", ["借-2023-0148"]),
        ("HT-2024-001、HT-采购-2024-002-A", ["ht-2024-001", "ht-采购-2024-002-a"]),
        ("合同编号：CG〔2024〕第031号", ["cg(2024)第031号"]),
        ("法院作出（2023）京01民初12号判决", ["(2023)京01民初12号"]),
        ("编号2023－001", ["2023-001"]),
        ("（2023）京01执123号之二十一裁定", ["(2023)京01执123号之二十一"]),
        ("（2023）京01民初12号之规定", ["(2023)京01民初12号"]),
        ("证号：沪（2023）浦字不动产权第012345号", ["沪(2023)浦字不动产权第012345号"]),
        ("持有粤（2020）深圳市不动产权第1号之1", ["粤(2020)深圳市不动产权第1号之1"]),
        ("新（2023）京01民初12号", ["(2023)京01民初12号"]),
        ("2023-2025年度，5-8万元，RM35.40", []),
        ("1.2024年5月1日", []),
        ("甲方—2024年", []),
        ("公民身份号码452702199306****25，住", ["452702199306****25"]),
        ("手机138****5678、1380013****", ["138****5678", "1380013****"]),
        ("账号6222 **** **** 1234。", ["6222 **** **** 1234"]),
        ("车牌粤B***88，编号AB—2023—***", ["粤b***88", "ab-2023-***"]),
        ("张××，1990年生，第××号，***重要***", []),
        ("***2023-001***和**2023-002**", ["2023-001", "2023-002"]),
    ],
)
def test_a_code_is_whole(text: str, codes: list[str]) -> None:
    folded = fold_width(text)
    spans = sorted(find_codes(folded), key=lambda span: (span[0], -span[1]))
    whole = [span for at, span in enumerate(spans) if not at or span[1] > spans[at - 1][1]]
    assert [folded[start:end] for start, end in whole] == codes
    ids = [folded[found.start : found.end] for found in find_values(folded, "id")]
    assert set(codes) <= set(ids)
    assert not any(one != code and one in code for one in ids for code in codes)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("下午2:30，9:00:15", [3, 8, 11]),
        ("股东2:25%，附件1:30万元，电话1:13800138000，被告2:张三", []),
        ("比例1:1000，24:00:", []),
    ],
)
def test_colons_of_times_of_the_day_are_no_others(text: str, places: list[int]) -> None:
    assert clock_colons(text) == places


@pytest.mark.parametrize("kind", ["id", "text"])
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("合同编号：借-2023-0148", "借-2023-0148"),
        ("合同编号：HT-2025-0031-B", "HT-2025-0031-B"),
        ("合同编号： HT/2024/0099", "HT/2024/0099"),
        ("合同编号：\nHT-2024-1001", "HT-2024-1001"),
        ("合同编号\tHT-2024-1001\t签订日期\t2024年2月2日", "HT-2024-1001"),
    ],
)
def test_no_part_of_a_contract_number_is_its_value(kind: str, line: str, code: str) -> None:
    text = f"采购合同\n{line}\n甲方：成都锦江实业有限公司\n乙方：重庆嘉陵机械有限公司\n"
    assert extract(learned("合同编号", kind), text) == [code]


@pytest.mark.parametrize(
    "values",
    [
        ("110105194912310025", "33010619850805294X"),
        ("6222021234567890123",),
        ("24117000000123456789", "18273645", "25327000001234567890", "24447000000987654321"),
    ],
)
def test_numbers_of_certificates_and_accounts_are_codes(values: Sequence[str]) -> None:
    known = [(features_of(f"证件号码：{value}\n家庭住址：杭州\n"), value) for value in values]
    assert infer_type(known) == "id"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("2023-066", "2022-012", "2021-105"), "id"),
        (("2024-007号", "2024-112号"), "id"),
        (("0571-83051234", "0755-83051234", "010-64336566"), "phone"),
        (("3-5", "10-20", "7-9"), "number"),
    ],
)
def test_numbers_joined_by_dashes_are_codes_or_telephones_unless_they_are_ranges(
    values: Sequence[str], kind: str
) -> None:
    known = [(features_of(f"公告\n编号或电话：{value}\n"), value) for value in values]
    assert infer_type(known) == kind


def test_samples_that_are_parts_of_codes_teach_it() -> None:
    texts = [f"发票\n批次：PC-2024-{n:03}\n" for n in (101, 102, 103)]
    known = [(features_of(text), "2024") for text in texts]
    model = fit_field([sample_of(f, [v], "text") for f, v in known], "text", ("年份",))
    assert model.boundaries.may_cut_codes
    assert extract(model, "发票\n批次：PC-2025-777\n") == ["2025"]


def test_a_sample_value_is_located_where_it_is_whole() -> None:
    features = features_of("合同编号：HT-2024-001\n批次：HT-2024\n")
    (start, end), *others = locate_value(features, "HT-2024", "text")
    assert (features.page.text[start:end], others) == ("HT-2024", [])
    assert start > features.page.text.index("批次")


@pytest.mark.parametrize(
    ("kind", "value", "places"),
    [
        ("number", "120", ["120.00"]),
        ("number", "1250.5", ["1,250.50"]),
        ("number", "5", ["5", "5个"]),
        ("money", "60012", ["60,012.00"]),
        ("number", "17", ["17"]),
    ],
)
def test_a_number_in_a_table_is_located_by_meaning(
    kind: FieldType, value: str, places: list[str]
) -> None:
    text = "电缆\tA-120\t5\t120.00\n水泵\t17\t1,250.50\n合计\t60,012.00\n于5个工作日内，税率13.5%"
    features = features_of(text)
    assert [text[a:b] for a, b in locate_value(features, value, kind)] == places


PRICES = "采购清单\n货物\t数量\t单价\n{}\t{}\t{}\n交货地点：杭州\n"


def test_prices_without_trailing_zeros_teach_whole_prices() -> None:
    rows = (("电缆", "20", "120.00"), ("水泵", "5", "1,250.50"), ("阀门", "40", "899.00"))
    known = [(features_of(PRICES.format(*row)), row[2].replace(",", "")[:-1]) for row in rows]
    values = [(features, value.removesuffix(".0")) for features, value in known]
    kind = infer_type(values)
    model = fit_field([sample_of(f, [v], kind) for f, v in values], kind, ("单价",))
    assert not model.boundaries.may_cut_codes
    assert extract(model, PRICES.format("轴承", "3", "2,358.75")) == ["2,358.75"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("单价1,250.50元", "1,250.50"),
        ("于2022-09-18 09:30开标", "09:30"),
        ("见10:05:59", "10:05:59"),
    ],
)
def test_no_value_begins_or_ends_inside_a_number_or_a_time(text: str, whole: str) -> None:
    cuts = features_of(text).cuts
    start = text.index(whole)
    assert [int(place) for place in cuts.nonzero()[0] if start <= place <= start + len(whole)] == [
        *range(start + 1, start + len(whole))
    ]


@pytest.mark.parametrize(
    ("text", "party"),
    [
        ("甲方（贷款人）：中国工商银行", "中国工商银行"),
        ("甲方(贷款人、抵押权人):中国工商银行", "中国工商银行"),
        ("贷款人（甲方）：中国工商银行", "中国工商银行"),
        ("甲　　方：  广州珠江钢琴厂", "广州珠江钢琴厂"),
        ("甲方：\n青岛海尔电器有限公司", "青岛海尔电器有限公司"),
        ("甲方\n青岛海尔电器有限公司", "青岛海尔电器有限公司"),
        ("甲方\t苏州工业园区管委会\t乙方\t无锡太湖建设有限公司", "苏州工业园区管委会"),
        ("甲方：张三  乙方：李四", "张三"),
        ("一、甲方：北京某某公司（以下简称甲方）", "北京某某公司"),
    ],
)
def test_what_stands_behind_a_label_is_a_candidate(text: str, party: str) -> None:
    found = labelled_values(fold_width(f"借款合同\n{text}\n"), ("甲方",))
    whole = f"借款合同\n{text}\n"
    assert whole[slice(*found[0])] == party
    features = features_of(whole)
    candidates = learned("甲方").boundaries.propose(features)
    starts = features.tokens.start[candidates.first].tolist()
    ends = features.tokens.end[candidates.last - 1].tolist()
    assert found[0] in zip(starts, ends, strict=True)


@pytest.mark.parametrize(
    "text", ["甲方代表：张三", "致甲方的函：张三", "甲方：\n乙方：李四", "甲方"]
)
def test_another_label_that_holds_the_name_is_none_of_the_field(text: str) -> None:
    assert labelled_values(fold_width(f"合同\n{text}\n"), ("甲方",)) == []


@pytest.mark.parametrize(
    ("name", "text", "party"),
    [
        ("甲方", "借款合同\n甲方（贷款人）：中国工商银行\n乙方（借款人）：杭州西溪科技有限公司\n",
         "中国工商银行"),
        ("乙方", "借款合同\n甲方（贷款人）：中国工商银行\n乙方（借款人）：杭州西溪科技有限公司\n",
         "杭州西溪科技有限公司"),
        ("甲方", "采购合同\n甲　　方：广州珠江钢琴厂\n乙　　方：深圳市福田区教育局\n",
         "广州珠江钢琴厂"),
        ("乙方", "采购合同\n甲　　方：广州珠江钢琴厂\n乙　　方：深圳市福田区教育局\n",
         "深圳市福田区教育局"),
        ("甲方", "采购合同\n甲方：\n青岛海尔电器有限公司\n乙方：\n济南泉城物流有限公司\n",
         "青岛海尔电器有限公司"),
    ],
)  # fmt: skip
def test_labelled_parties_are_found(name: str, text: str, party: str) -> None:
    assert extract(learned(name), text) == [party]


LOANS = {
    "loan_working_capital.txt": "毓信（柳州）股权投资管理有限公司",
    "loan_guaranteed.txt": "三亚泓图创业投资有限公司",
}


@pytest.mark.parametrize("party", ["中国工商银行", "中国工商银行股份有限公司深圳分行", "张伟"])
def test_a_label_says_what_samples_of_another_kind_do_not(party: str) -> None:
    """All samples are companies: neither a bank, nor a branch, nor a person looks like them."""
    known = [(features_of((CONTRACTS / name).read_text("utf-8")), v) for name, v in LOANS.items()]
    samples = [sample_of(features, [value], "organisation") for features, value in known]
    model = fit_field(samples, "organisation", ("贷款人",))
    text = (
        f"流动资金借款合同\n\n合同编号：HT-2024-001\n\n甲方（贷款人）：{party}\n"
        "乙方（借款人）：深圳市明辉电子有限公司\n丙方（保证人）：王小明\n\n二、借款用途：购买原材料。\n"
    )
    assert extract(model, text) == [party]


@pytest.mark.parametrize("word", ["无", "暂无", "不适用", "N/A", "无。"])
def test_a_word_for_none_is_no_value(word: str) -> None:
    text = f"采购合同\n合同编号：HT-3\n甲方：{word}\n乙方：无锡太湖建设有限公司\n"
    features = features_of(text)
    found = learned("甲方").boundaries.propose(features)
    place = text.index(word)
    assert place not in features.tokens.start[found.first].tolist()
    assert extract(learned("乙方"), text) == ["无锡太湖建设有限公司"]


NO_AMOUNT = """采购合同
合同编号：HT-2024-555
甲方：长沙岳麓书院文化有限公司
合同金额：{amount}
签订日期：2024年11月11日
交货期限为12个月，履约率不低于95%，联系电话0731-88888888，编号2024-0731。
"""


@pytest.mark.parametrize("kind", ["money", "number"])
def test_an_amount_is_never_a_date_a_period_a_share_a_telephone_number_or_a_code(kind: str) -> None:
    model = learned("合同金额", kind)
    features = features_of(NO_AMOUNT.format(amount="以补充协议为准"))
    candidates = model.boundaries.propose(features)
    assert extract(model, features.page.text) == []
    digits = [
        features.page.text[features.tokens.start[a] : features.tokens.end[b - 1]]
        for a, b in zip(candidates.first.tolist(), candidates.last.tolist(), strict=True)
    ]
    assert [text for text in digits if any(char.isdigit() for char in text)] == []
    assert extract(model, NO_AMOUNT.format(amount="人民币650,000元")) in (
        ["人民币650,000元"], ["650,000元"]
    )  # fmt: skip


def test_amounts_without_a_known_shape_are_never_dates_either() -> None:
    """Sample values that no pattern knows are searched by boundaries: dates would be found."""
    text = "价目表\n单价：{}\n有效期：2024年5月3日\n日期：2024-05-04\n订单：DD-2024-001\n"
    known = [(features_of(text.format(n)), n) for n in ("1,250", "3,400", "2,880")]
    model = fit_field([sample_of(f, [v], "money") for f, v in known], "money", ("单价",))
    assert model.boundaries.uses_grid
    assert extract(model, text.format("4,120")) == ["4,120"]
    found = model.score(features_of(text.format("面议"))).groups
    assert not [g.value.key for g in found if "2024" in g.value.key or "001" in g.value.key]


@pytest.mark.parametrize(
    ("text", "amounts"), [("2025元旦开工", []), ("支付2025元", ["2025元"]), ("100元/日", ["100元"])]
)
def test_a_feast_is_no_amount(text: str, amounts: list[str]) -> None:
    found = find_values(fold_width(text), "money")
    assert [text[one.start : one.end] for one in found] == amounts


COURTS = (
    "广东省高级人民法院",
    "宁波市海曙区人民法院",
    "厦门市公安局",
    "沈阳市中级人民法院（执行局）",
)
TABLE = "冻结明细\n股东\t冻结机关\t协助机关\n张明\t{}\t{}\n特此公告。"


def proposed(model: FieldModel, text: str) -> set[str]:
    features = features_of(text)
    found = model.boundaries.propose(features)
    start, end = features.tokens.start[found.first], features.tokens.end[found.last - 1]
    return {text[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)}


@pytest.mark.parametrize("kind", ["organisation", "text"])
def test_no_value_goes_on_from_one_cell_to_the_next(kind: FieldType) -> None:
    pages = [features_of(TABLE.format(one, COURTS[n - 1])) for n, one in enumerate(COURTS)]
    model = fit_field(
        [sample_of(page, [court], kind) for page, court in zip(pages, COURTS, strict=True)],
        kind,
        ("冻结机关",),
    )
    found = proposed(model, TABLE.format("北京市第二中级人民法院", "厦门市公安局"))
    assert "北京市第二中级人民法院" in found
    assert not [text for text in found if "\t" in text]
    assert "2024年\t3月\t5日" in proposed(learned("签订日期"), "签订日期：2024年\t3月\t5日")


def test_samples_teach_that_a_value_may_go_on_in_the_next_cell() -> None:
    values = [f"{one}\t{COURTS[n - 1]}" for n, one in enumerate(COURTS)]
    pages = [features_of(TABLE.format(*value.split("\t"))) for value in values]
    samples = [sample_of(page, [value], "text") for page, value in zip(pages, values, strict=True)]
    model = fit_field(samples, "text", ("机关",))
    assert model.boundaries.may_span_cells
    found = proposed(model, TABLE.format("北京市第二中级人民法院", "厦门市公安局"))
    assert "北京市第二中级人民法院\t厦门市公安局" in found


@pytest.mark.parametrize(
    ("amount", "text", "meaning"),
    [
        ("不超过300万元", "300万元", ("3000000", "CNY", "<=")),
        ("3,000-5,000万元", "3,000-5,000万元", ("30000000..50000000", "CNY", "")),
        ("起3,000～5,000万元", "3,000", ("30000000", "CNY", "")),
    ],
)
def test_a_value_means_what_it_does_in_its_place(
    amount: str, text: str, meaning: tuple[str, str, str]
) -> None:
    features = features_of(f"合同金额为{amount}。")
    start = features.page.text.index(text)
    value = features.value_at("money", start, start + len(text))
    assert (value.key, value.unit, value.bound) == meaning


def test_a_field_of_the_low_end_of_a_range_has_its_scale() -> None:
    contract = "采购合同\n第一条 预计采购金额为{}-{}万元，按季结算。\n第二条 保证金为{}元。\n"
    numbers = [("3,000", "5,000", "100,000"), ("200", "800", "60,000"), ("45", "90", "7,000")]
    for stated in (None, "{}0000"):  # as it is written, and as it is meant
        known = [
            (features_of(contract.format(*row)), stated.format(row[0]) if stated else row[0])
            for row in ((a.replace(",", ""), b, c) for a, b, c in numbers)
        ]
        samples = [sample_of(features, [value], "money") for features, value in known]
        assert [sample.spans for sample in samples] == [((16, 16 + n),) for n in (4, 3, 2)]
        model = fit_field(samples, "money", ("最低金额",))
        scored = model.score(features_of(contract.format("7,000", "9,000", "12,000")))
        first = scored.groups[model.choose(scored)[0]]
        assert (first.value.key, first.value.unit) == ("70000000", "CNY")


def test_a_value_that_was_selected_has_the_meaning_of_its_place() -> None:
    text = "每年12月31日盘点。租期自2023年1月1日至12月31日，即2023年12月31日届满。"
    first, second = text.index("12月31日，"), text.index("2023年12月31日")
    sample = sample_of(
        features_of(text), ["12月31日"], "date", [(first, first + 6)], is_selected=True
    )
    assert sample.spans == ((first, first + 6), (second, second + 11))


def test_codes_with_a_word_before_them_are_codes_in_any_order() -> None:
    values = ["临2022-045", "2024-012", "2024-013", "2024-014", "2024-015", "2024-016", "2024-017"]
    features = features_of("".join(f"公告编号：{value}\n" for value in values))
    for first in range(len(values)):
        turned = values[first:] + values[:first]
        assert infer_type([(features, value) for value in turned]) == "id"
