"""Values compare by what they mean: the table, its spellings in running text, and a few laws."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.values.text import close_spacing, compact, fold, fold_width
from featpipe.extraction.values.values import (
    FieldType,
    Value,
    find_values,
    is_readable,
    read_value,
    remark_on,
)

#: kind, text, key, unit, bound; the expected keys were written by hand or by another speller.
LINES = (Path(__file__).parent / "value_cases.tsv").read_text("utf-8").splitlines()
CASES = [tuple(line.split("\t")) for line in LINES]
SHAPED = ("money", "percent", "date", "period", "email", "phone")


def shaped() -> Iterator[tuple[str, ...]]:
    """Cases whose text is found by its shape alone, and is no range."""
    for case in CASES:
        kind, text, key, unit, _ = case
        is_bare = kind == "money" and not unit
        is_fraction = kind == "percent" and text.isascii() and text.replace(".", "").isdigit()
        starts_late = (
            text.startswith(("约", "不", "最", "至", "超", "接", ".", "$."))
            or text.replace(".", "").isdigit()
        )
        if kind in SHAPED and ".." not in key and not (is_bare or is_fraction or starts_late):
            yield case


def test_the_table_has_three_hundred_cases() -> None:
    assert len(CASES) >= 300


@pytest.mark.parametrize(("kind", "text", "key", "unit", "bound"), CASES)
def test_every_spelling_has_its_value(kind, text, key, unit, bound) -> None:  # noqa: ANN001  # a table
    assert read_value(text, kind) == Value(kind, key, unit, bound)
    assert is_readable(text, kind)


@pytest.mark.parametrize(("kind", "text", "key", "unit", "bound"), list(shaped()))
def test_a_shaped_value_is_found_in_running_text(kind, text, key, unit, bound) -> None:  # noqa: ANN001, ARG001
    sentence = f"双方约定，{text}，以此为准。"
    found = [f for f in find_values(fold_width(sentence), kind) if f.value.key == key]
    assert [sentence[f.start : f.end] for f in found] == [text]


def test_a_range_is_also_found_as_its_two_ends() -> None:
    text = "金额为3,000-5,000万元。"
    found = list(find_values(fold_width(text), "money"))
    assert [(text[f.start : f.end], f.value.key) for f in found] == [
        ("3,000-5,000万元", "30000000..50000000"),
        ("3,000", "30000000"),
        ("5,000万元", "50000000"),
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("净利润为-1.5亿元", "-150000000"),
        ("利润\t-500元", "-500"),
        ("总价—500元", "500"),
        ("总价——500元", "500"),
        ("医疗费自负500元", "500"),
    ],
)
def test_a_minus_is_part_of_its_amount_and_a_dash_is_not(text: str, key: str) -> None:
    assert [found.value.key for found in find_values(fold_width(text), "money")] == [key]


@pytest.mark.parametrize(
    ("text", "key", "unit"),
    [
        ("单位：万元 1,234.56", "12345600", "CNY"),
        ("注册资本（万元：100）", "1000000", "CNY"),
        ("百万美元 1.5", "1500000", "USD"),
        ("万元：3-5", "30000..50000", "CNY"),
        ("共100万元 300", "1000000", "CNY"),
        ("另数万元 300元", "300", "CNY"),
        ("宽带费 10元 100 Gbps", "10", "CNY"),
        ("between $1.5B and $2b", "1500000000", "USD"),
        ("$1-2b", "1000000000..2000000000", "USD"),
        ("USD 10M SOFR-linked loan", "10000000", "USD"),
    ],
)
def test_a_scale_before_or_behind_its_amount_counts(text: str, key: str, unit: str) -> None:
    found = next(find_values(fold_width(text), "money"))
    assert (found.value.key, found.value.unit) == (key, unit)
    assert text[found.start : found.end] == text[found.start : found.end].strip()
    assert read_value(text[found.start : found.end], "money").key == key


def test_rupees_are_counted_in_lakhs_and_crores() -> None:
    text = fold_width("Rs. 12,50,000/-, INR 7.80 crore, INR 3.5 lakhs and Rs. 500/- only")
    found = list(find_values(text, "money"))
    assert [one.value.key for one in found] == ["1250000", "78000000", "350000", "500"]
    assert text[found[0].start : found[0].end] == "rs. 12,50,000/-"
    assert read_value("Rs. 500/- only", "money").key == "500"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Miete €1.234, Kaution €3.702,00", ["1234", "3702"]),
        ("€1.234.567 und 12.345 €", ["1234567", "12345"]),
        ("€500-1.000 oder 1.234,50 €", ["500..1000", "500", "1000", "1234.5"]),
        ("€1.234 je Liter", ["1.234"]),
        ("€1.234, in total 1,234.50", ["1.234"]),
        ("€1.234 million, 1.234,50 €", ["1234000", "1234.5"]),
        ("$1.234 und 1.234,50 €", ["1.234", "1234.5"]),
    ],
)
def test_euros_have_points_between_groups_where_the_document_shows_it(
    text: str, keys: list[str]
) -> None:
    assert [one.value.key for one in find_values(fold_width(text), "money")] == keys


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("money", "第3条"),
        ("money", "10 Gbps"),
        ("money", "USD 1M LIBOR plus 2%"),
        ("money", "EUR 6M EURIBOR"),
        ("money", "USD 3M Term SOFR"),
        ("money", "A100元件"),
        ("money", "5万3元"),
        ("money", "两三万元"),
        ("money", "数百万元"),
        ("money", "几十万元"),
        ("money", "3千5百元"),
        ("money", "數百萬元"),
        ("date", "農曆五月初五"),
        ("money", "1\t000元"),
        ("money", "100,00元"),
        ("money", "三五元"),
        ("period", "两三天"),
        ("period", "3+2年"),
        ("period", "三五年"),
        ("number", "七八个"),
        ("number", "20千伏"),
        ("number", "2023-15台"),
        ("number", "编号：2016-060\n台海核电"),
        ("number", "编号：2015-105\n万达信息"),
        ("period", "上世纪80-90年代"),
        ("period", "第 1-17 年"),
        ("number", "几百人"),
        ("number", "三五百人"),
        ("date", "2017年度报告第5页2017-034"),
        ("date", "期限9月"),
        ("date", "6个月内"),
        ("date", "12.5月3日"),
        ("date", "前三季度"),
        ("date", "农历二〇二三年五月初五"),
        ("date", "今年五月初八"),
        ("date", "农历1990年5月3日"),
        ("date", "民国1000年"),
        ("date", "1799年5月3日"),
        ("date", "2123年5月3日"),
        ("period", "5月13日"),
    ],
)
def test_what_only_looks_like_a_value_is_none(kind, text) -> None:  # noqa: ANN001  # a table
    keys = {f.value.key for f in find_values(fold_width(text), kind)}
    assert keys <= {"2017"}


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        ("number", "8,923,815股", "8923815"),
        ("money", "160.5万元", "1605000"),
        ("date", "2017年3月5日", "2017-03-05"),
        ("percent", "12.5%", "0.125"),
    ],
)
@pytest.mark.parametrize("mark", ["①", "⑵", "③", "²"])
def test_a_circled_number_is_no_digit_of_the_value_behind_it(
    kind: FieldType, text: str, key: str, mark: str
) -> None:
    folded = fold_width(f"冻结情况：{mark}{text}；")
    assert [folded[f.start : f.end] for f in find_values(folded, kind)] == [text]
    assert [f.value.key for f in find_values(folded, kind)] == [key]


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("money", "Subtotal USD 600,250.25\nTax", ["USD 600,250.25"]),
        ("money", "税额\t¥79.86\t备注", ["¥79.86"]),
        ("money", "pay $1,200 at once", ["$1,200"]),
        ("money", "1,200\n万元", ["1,200\n万元"]),
        ("money", "1亿\t2000万元", ["2000万元"]),
        ("money", "每次3元5分钟", ["3元"]),
        ("money", "首付100元3分期", ["100元"]),
        ("money", "100万元 300万元", ["100万元", "300万元"]),
        ("number", "证件号码：3301\n家庭住址：杭州", []),
        ("number", "1\t台式计算机\t5\t台\t3", ["5\t台"]),
        ("number", "共3\n万科企业", []),
        ("number", "共1,200\n万股股份", ["1,200\n万股"]),
        ("number", "装机500千瓦、重3千克", ["500千瓦", "3千克"]),
    ],
)
def test_an_amount_ends_with_its_own_unit(kind: FieldType, text: str, found: list[str]) -> None:
    assert [text[f.start : f.end] for f in find_values(fold_width(text), kind)] == found


def test_a_thousand_that_is_part_of_a_unit_is_no_scale() -> None:
    assert read_value("500千瓦", "number").key == "500"
    assert read_value("5万千瓦", "number").key == "50000"
    assert read_value("3千人", "number").key == "3000"


@pytest.mark.parametrize(
    "text", ["30天 6个月", "1年\t6个月", "10个工作日6个月", "12 months, 6 months notice"]
)
def test_two_periods_are_added_only_if_they_are_one(text: str) -> None:
    first, second = find_values(text, "period")
    assert first.value.key in {"30 days", "12 months", "10 workdays"}
    assert second.value.key == "6 months"


@pytest.mark.parametrize("text", ["11月7日晚", "11月7日晚间", "11月7日 下午"])
def test_the_hours_of_a_day_are_no_part_of_its_date(text: str) -> None:
    assert read_value(text, "date").means(read_value("11月7日", "date"))
    assert not read_value(text, "date").means(read_value("11月", "date"))


def test_a_date_with_its_year_is_found_once_and_is_not_one_without() -> None:
    text = "据悉,2018年11月7日、12月3日；初为2018年初步核算,3月5日初定。"
    found = [(text[f.start : f.end], f.value.key) for f in find_values(text, "date")]
    assert found == [
        ("2018年11月7日", "2018-11-07"),
        ("12月3日", "--12-03"),
        ("2018年", "2018"),
        ("3月5日", "--03-05"),
    ]
    assert not read_value("11月7日", "date").means(read_value("2018年11月7日", "date"))


def test_tenths_and_hundredths_alone_are_an_amount_where_nothing_else_stands() -> None:
    assert read_value("伍角伍分", "money") == Value("money", "0.55", "CNY")
    assert not list(find_values("三角形的五分之一", "money"))


def test_a_number_in_brackets_is_negative_alone_in_its_cell() -> None:
    features = features_of("项目\t本期\n净利润\t(1,234.00)\n见附注 (5,678.00) 号\n")
    (place,) = locate_value(features, "-1234", "money")
    assert features.folded[slice(*place)] == "(1,234.00)"
    (place,) = locate_value(features, "1234", "money")
    assert features.folded[slice(*place)] == "1,234.00"
    assert not locate_value(features, "-5678", "money")


def test_a_unit_left_out_does_not_part_two_values() -> None:
    assert read_value("68587100", "money").means(read_value("6,858.71万元", "money"))
    assert not read_value("100美元", "money").means(read_value("100元", "money"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("76.2㎡", "76.2平方米"),
        ("9 m2", "9平米"),
        ("3km", "3公里"),
        ("5kg", "5千克"),
        ("2MW", "2兆瓦"),
        ("300臺", "300台"),
    ],
)
def test_spellings_of_one_unit_are_equal(one: str, other: str) -> None:
    assert read_value(one, "number").means(read_value(other, "number"))
    assert read_value(one, "number").unit != read_value(other, "number").unit
    text = f"建筑面积为{one}，层高3米。"
    features = features_of(text)
    assert [text[a:b] for a, b in locate_value(features, other, "number")] == [one]
    assert not read_value("3km", "number").means(read_value("3kg", "number"))


def test_large_amounts_that_agree_in_ten_digits_are_equal() -> None:
    given = read_value("225811713.5", "money")
    assert given.means(read_value("225,811,713.51元", "money"))
    assert not given.means(read_value("225,811,713.61元", "money"))
    # Rounded as spreadsheets do.
    assert read_value("113827651.7", "money").means(read_value("113,827,651.65元", "money"))
    assert not read_value("2258117.5", "money").means(read_value("2258117.51", "money"))
    assert not read_value("225811713.5", "id").means(read_value("225811713.51", "id"))


@given(st.text(), st.sampled_from(get_args(FieldType)))
def test_any_text_has_some_value_and_found_ones_lie_inside_it(text: str, kind: str) -> None:
    assert read_value(text, kind).means(read_value(text, kind))
    folded = fold_width(text)
    assert len(folded) == len(text)
    for found in find_values(folded, kind):
        assert 0 <= found.start < found.end <= len(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("总价1 234 567元", "1234567"),
        ("总价1 234 567.89元", "1234567.89"),
        ("总价1\u00a0234\u00a0567元整", "1234567"),
        ("总价12\u2009345万元", "123450000"),
        ("净利润为-1 200万元", "-12000000"),
        ("2023 1 234 567元", "1234567"),
        ("2023 567元", "567"),
        ("1 234 5678元", "5678"),
        ("2023-05-12 300元", "300"),
        ("12:30 300元", "300"),
        ("1 000 000-2 000 000元", "1000000..2000000"),
        ("共EUR 1 234 567", "1234567"),
        ("共EUR: 1 234 567.89", "1234567.89"),
        ("¥1 200 000整", "1200000"),
        ("US$1 200-1 500", "1200..1500"),
        ("RMB -12 345", "-12345"),
        ("EUR 1 234 5678", "1234"),
        ("EUR 5 12345", "5"),
        ("元 500 600 700", "500"),
    ],
)
def test_blanks_part_groups_of_three_digits(text: str, key: str) -> None:
    found = next(find_values(fold_width(text), "money"))
    assert found.value.key == key
    assert read_value(text[found.start : found.end], "money").key == key


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("id", sign * (60_000 // len(sign))) for sign in ("(", "([", "_-", "a/", "a(", "\n")),
        *(("period", sign * 60_000) for sign in ("〇", "三", "千")),
        ("period", "2月" * 30_000),
        *(("number", sign * 60_000) for sign in ("三", "9", "3-", "三至", "1,000")),
        ("money", "234 " * 30_000),
        ("date", "2023年" * 40_000),
    ],
)
def test_the_time_that_a_long_line_takes_is_by_its_length(kind: FieldType, text: str) -> None:
    start = time.process_time()
    assert all(found.end <= len(text) for found in find_values(fold_width(text), kind))
    # Half a second at most; by the square of the length it is eight and more.
    assert time.process_time() - start < 4


def test_an_id_has_a_digit_in_it_or_behind_it_in_the_same_signs() -> None:
    text = "abcd((5 借-2023 借-abcd efgh/1"
    found = [text[one.start : one.end] for one in find_values(text, "id")]
    assert found == ["abcd", "借-2023", "efgh/1"]


@pytest.mark.parametrize("kind", SHAPED)
@pytest.mark.parametrize("text", ["○" * 5000 + "元年月日", "一" * 5000 + "年", "9" * 50_000 + "元"])
def test_a_line_of_digits_is_read_without_an_error(text: str, kind: FieldType) -> None:
    assert read_value(text, kind).kind == kind
    assert all(found.end <= len(text) for found in find_values(fold_width(text), kind))


@given(st.text())
def test_a_compact_text_knows_where_each_character_came_from(text: str) -> None:
    folded = compact(text)
    assert folded.text == fold(text)
    assert len(folded.places) == len(folded.text)
    for at, char in enumerate(folded.text):
        start, end = folded.original_span(at, at + 1)
        assert char in fold(text[start:end])


@given(st.text(alphabet="甲元a1% \u3000\t\n,"))
def test_spacing_is_closed_beside_numbers_of_what_is_counted_alone(text: str) -> None:
    closed = close_spacing(text)
    kept = closed.places.tolist()
    assert closed.text == "".join(text[place] for place in kept)
    for place in set(range(len(text))) - set(kept):
        before, blank, behind = text[place - 1 : place + 2]
        assert blank in " \u3000"
        assert (before == "1" and behind in "元%") or (before in "甲元" and behind == "1")


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("于 2023 年 5 月完成 2 亿元融资", "于2023年5月完成2亿元融资"),
        ("占 5.1 % 的股份", "占5.1% 的股份"),
        ("8月2日 mx科技与 58同城", "8月2日 mx科技与 58同城"),
        ("股数  2 股  甲方", "股数  2股  甲方"),
    ],
)
def test_a_blank_sets_off_a_number_and_parts_what_a_name_begins_behind(
    text: str, closed: str
) -> None:
    assert close_spacing(text).text == closed


@given(st.text(alphabet="甲乙丙 ,，（）a1"), st.text(alphabet=" \u3000,"))
def test_blanks_and_separators_do_not_hide_a_name(name: str, noise: str) -> None:
    text = f"由{noise.join(name)}承担"
    for start, end in compact(text).find_all(fold(name)):
        assert fold(text[start:end]) == fold(name)
    assert bool(compact(text).find_all(fold(name))) == bool(fold(name))


@pytest.mark.parametrize(
    ("text", "is_no_day"),
    [
        ("2023年2月30日", True), ("2023-02-29", True), ("2024-02-29", False), ("2月29日", False),
        ("2月30日", True), ("去年9月31日", True), ("2023年2月", False), ("2023年第一季度", False),
        ("2023年1月1日至2023年6月31日", True), ("2023年1月1日至2023年6月30日", False),
        ("面议", False), ("010-88-99", True), ("2023年2月32日", True), ("2023年13月5日", True),
        ("13月5日", True), ("2023年12月", False),
    ],
)  # fmt: skip
def test_a_day_that_no_calendar_has_is_kept_and_remarked(text: str, *, is_no_day: bool) -> None:
    value = read_value(text, "date")
    assert bool(remark_on(value)) == is_no_day
    assert not remark_on(read_value(text, "text"))


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-28 00:00:00", "2023-02-28T10:30:00+08:00", "2023-02-28T10:30:00.5Z",
        "2023/2/28 9:05", "2023年2月28日 10:30", "2023年2月28日10:30", "2023年2月28日晚",
        "2023年2月28日上午10时30分", "2023年2月28日下午3点", "2023年2月28日（星期二）",
        "2023年2月28日24时",
    ],
)  # fmt: skip
def test_a_date_is_read_with_its_time_of_day(text: str) -> None:
    assert read_value(text, "date") == Value("date", "2023-02-28")


@pytest.mark.parametrize(
    "text",
    [
        "截至2023年2月28日",
        "截止2023-02-28",
        "自2023年2月28日起",
        "自2023-02-28起",
        "2023年2月28日止",
    ],
)
def test_a_date_is_read_with_the_words_that_begin_or_end_a_range(text: str) -> None:
    assert read_value(text, "date") == Value("date", "2023-02-28")


@pytest.mark.parametrize("text", ["10:30:00", "2023-02-28 10", "2023-02-28 合计 10:30"])
def test_a_time_without_a_date_or_another_word_is_none(text: str) -> None:
    assert not is_readable(text, "date")


@pytest.mark.parametrize(
    ("kind", "text", "bound"),
    [
        ("money", "不得超过300万元", "<="),
        ("money", "不应低于300万元", ">="),
        ("money", "低于300万元", "<="),
        ("money", "300万元（含）以上", ">="),
        ("money", "300万元以内", "<="),
        ("money", "约300万元", ""),
        ("money", "not exceeding $3,000", "<="),
        ("money", "in excess of $3,000", ">="),
        ("percent", "不超过20%", "<="),
        ("percent", "百分之三以上", ">="),
        ("number", "至少300台", ">="),
        ("period", "不得超过三年", "<="),
        ("period", "三年以上", ">="),
    ],
)
def test_a_bound_stands_before_its_amount_or_behind_it(
    kind: FieldType, text: str, bound: str
) -> None:
    (found,) = find_values(fold_width(f"双方约定{text}，以此为准。"), kind)
    assert found.value.bound == bound
    assert read_value(text, kind) == found.value


@pytest.mark.parametrize(
    ("kind", "text", "keys"),
    [
        ("number", "100-200台", ["100..200", "100", "200"]),
        ("number", "1500-2000万股", ["15000000..20000000", "15000000", "20000000"]),
        ("number", "3人至5人", ["3..5", "3", "5"]),
        ("number", "300千瓦", ["300"]),
        ("number", "5万千瓦时", ["50000"]),
        ("number", "500余人", ["500"]),
        ("percent", "百分之五至百分之八", ["0.05..0.08"]),
        ("percent", "百分之五至八十天", ["0.05"]),
        ("percent", "百分之五到八", ["0.05..0.08"]),
        ("percent", "百分之5-8的股份", ["0.05..0.08"]),
        ("percent", "百分之5 - 10 日内", ["0.05"]),
        ("percent", "百分之三至五年", ["0.03"]),
    ],
)
def test_ranges_of_counts_and_shares_are_found_whole(
    kind: FieldType, text: str, keys: list[str]
) -> None:
    found = list(find_values(fold_width(text), kind))
    assert [one.value.key for one in found] == keys
    assert read_value(text[found[0].start : found[0].end], kind) == found[0].value


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("期限3-5年", ["36..60 months", "36 months", "60 months"]),
        ("三至五年", ["36..60 months", "36 months", "60 months"]),
        ("6个月至1年", ["6..12 months", "6 months", "12 months"]),
        ("1～3个工作日", ["1..3 workdays", "1 workdays", "3 workdays"]),
        ("three to five years", ["36..60 months", "36 months", "60 months"]),
        ("3年或5年", ["36 months", "60 months"]),
        ("30天至3个月", ["30 days", "3 months"]),
        ("5-3年", ["36 months"]),
        ("第3-5年", []),
        ("A1-3年", []),
        ("2023年5月3-5日", []),
        ("3个月\t10天", ["3 months", "10 days"]),
        ("3个月5月10日", ["3 months"]),
    ],
)
def test_a_range_of_periods_is_found_before_its_ends(text: str, keys: list[str]) -> None:
    found = list(find_values(fold_width(text), "period"))
    assert [one.value.key for one in found] == keys
    for one in found[:1]:
        assert read_value(text[one.start : one.end], "period") == one.value
        assert read_value(one.value.key, "period") == one.value


@pytest.mark.parametrize(
    ("text", "key"),
    [("五年期", "60 months"), ("10个工作日内", "10 workdays"), ("为期三个月", "3 months")],
)
def test_a_period_is_read_with_the_words_around_it(text: str, key: str) -> None:
    assert read_value(text, "period") == Value("period", key)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("自2023年1月1日至3月31日", [("2023年1月1日", "2023-01-01"), ("3月31日", "2023-03-31")]),
        (
            "2023年4月1日起至次年3月31日",
            [("2023年4月1日", "2023-04-01"), ("次年3月31日", "2024-03-31")],
        ),
        ("2023年6月1日至5月31日", [("2023年6月1日", "2023-06-01"), ("5月31日", "--05-31")]),
        ("2023.6.1——2024.5.31", [("2023.6.1", "2023-06-01"), ("2024.5.31", "2024-05-31")]),
        ("2023-06-01-2024-05-31", [("2023-06-01", "2023-06-01"), ("2024-05-31", "2024-05-31")]),
        ("2023-06-01--2024-05-31", [("2023-06-01", "2023-06-01"), ("2024-05-31", "2024-05-31")]),
        ("2023年6月1日-6月3日", [("2023年6月1日", "2023-06-01"), ("6月3日", "2023-06-03")]),
        (
            "2023年1-3月净利润",
            [("2023年1-3月", "2023-01..2023-03"), ("2023年1", "2023-01"), ("3月", "2023-03")],
        ),
        (
            "2023年5月3日至5日",
            [
                ("2023年5月3日至5日", "2023-05-03..2023-05-05"),
                ("2023年5月3日", "2023-05-03"),
                ("5日", "2023-05-05"),
            ],
        ),
        (
            "5月3-5日",
            [("5月3-5日", "--05-03..--05-05"), ("5月3", "--05-03"), ("5日", "--05-05")],
        ),
        (
            "January 1 to December 31, 2023",
            [("January 1", "2023-01-01"), ("December 31, 2023", "2023-12-31")],
        ),
        ("November 1 to February 28, 2024", [("February 28, 2024", "2024-02-28")]),
        (
            "中華民國113年1月1日至12月31日",
            [("中華民國113年1月1日", "2024-01-01"), ("12月31日", "2024-12-31")],
        ),
        (
            "民國113年5月3-5日",
            [
                ("民國113年5月3-5日", "2024-05-03..2024-05-05"),
                ("民國113年5月3", "2024-05-03"),
                ("5日", "2024-05-05"),
            ],
        ),
        ("2023年上半年", [("2023年上半年", "2023-H1")]),
        ("2023年年底", [("2023年年底", "2023 end")]),
        ("2023Q1", [("2023Q1", "2023-Q1")]),
        ("2023年H1", [("2023年H1", "2023-H1")]),
        ("1H2023及H2 2024", [("1H2023", "2023-H1"), ("H2 2024", "2024-H2")]),
        ("2023上半年", [("2023上半年", "2023-H1")]),
        ("2023年度末", [("2023年度末", "2023 end")]),
        (
            "2023年第1季度至第3季度",
            [("2023年第1季度", "2023-Q1"), ("第3季度", "2023-Q3")],
        ),
        ("2023年上半年至5月3日", [("2023年上半年", "2023-H1"), ("5月3日", "--05-03")]),
        ("2023年2月32日", [("2023年2月32日", "2023-02-32")]),
    ],
)  # fmt: skip
def test_dates_of_a_range_tell_each_other_their_year_and_month(
    text: str, found: list[tuple[str, str]]
) -> None:
    dates = list(find_values(fold_width(text), "date"))
    assert [(text[one.start : one.end], one.value.key) for one in dates] == found


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("2023年1月1日至12月31日", "2023-01-01..2023-12-31"),
        ("2023年1月1日（含）至2024年1月1日", "2023-01-01..2024-01-01"),
        ("2023年1-3月", "2023-01..2023-03"),
        ("去年上半年", "去年-H1"),
        ("2023-Q1", "2023-Q1"),
        ("2023-05 end", "2023-05 end"),
        ("--Q3 end", "--Q3 end"),
        ("2023年5月上旬", "2023-05 early"),
        ("5月中旬", "--05 middle"),
        ("2023-05 late", "2023-05 late"),
        ("今年三季度末", "--Q3 end"),
        ("2023-05", "2023-05"),
        ("2023年度", "2023"),
    ],
)
def test_a_range_of_dates_and_a_key_are_read_whole(text: str, key: str) -> None:
    assert read_value(text, "date") == Value("date", key)
    assert is_readable(text, "date")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("账号：6222 0212 3456 7890 123，", ["6222021234567890123"]),
        ("身份证310101 19900101 123X，", ["31010119900101123x"]),
        ("车牌号沪A12345，", ["沪a12345"]),
        ("车牌号：沪A·12345", ["沪a12345"]),
        ("车牌号粤B·F12345和粤Z1234港", ["粤bf12345", "粤z1234港"]),
        ("2019 2020 2021 2022", ["2019", "2020", "2021", "2022"]),
        ("1234 5678 9012.5", ["1234", "5678", "9012.5"]),
        ("投标价 2900 2498 5000", ["2900", "2498", "5000"]),
        ("GST ID: 0016 6993 5104", ["001669935104"]),
        ("鲁A1234567", ["a1234567"]),
        ("编号：2012借字第0922号", ["2012借字第0922号"]),
        ("《房屋所有权证》京房权证朝字第123456号", ["京房权证朝字第123456号"]),
        ("号码沪信〔2013〕230号", ["沪信(2013)230号"]),
    ],
)
def test_a_card_in_groups_a_plate_and_a_certificate_are_one_id(text: str, keys: list[str]) -> None:
    assert [one.value.key for one in find_values(fold_width(text), "id")] == keys


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("400 1234 567", "4001234567"),
        ("400-1234-567", "4001234567"),
        ("4001234567", "4001234567"),
        ("212-555-1234", "2125551234"),
        ("(86)13812345678", "13812345678"),
        ("86-21-12345678", "02112345678"),
        ("(86) 21 1234 5678", "02112345678"),
        ("021-12345678-801", "02112345678801"),
        ("03-7832 6929", "0378326929"),
        ("HT2023-12345678", None),
        ("138****5678", "138****5678"),
        ("138XXXX5678", "138****5678"),
        ("1380013××××", "1380013****"),
        ("010-8888****", "0108888****"),
        ("1380013*2", None),
        ("452702199306****25", None),
        ("4401**********1234", None),
    ],
)
def test_a_telephone_number_is_found_whole(text: str, key: str | None) -> None:
    found = [(one.start, one.end, one.value.key) for one in find_values(fold_width(text), "phone")]
    assert found == ([(0, len(text), key)] if key else [])


def test_marks_of_bold_text_hide_nothing() -> None:
    [found] = find_values("**13800138000**", "phone")
    assert found.value.key == "13800138000"
    assert not list(find_values("**重要** 甲方**ABC**公司 3*5=15", "id"))


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        ("date", "27 March 2040", "2040-03-27"),
        ("date", "January 13, 2000", "2000-01-13"),
        ("date", "22nd day of May, 2028", "2028-05-22"),
        ("period", "thirty-six (36) months", "36 months"),
        ("percent", "50bps", "0.005"),
    ],
)
def test_english_stands_between_chinese_words(kind: FieldType, text: str, key: str) -> None:
    (found,) = find_values(fold_width(f"日期为{text}签订"), kind)
    assert (found.start, found.end, found.value.key) == (3, 3 + len(text), key)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1 500元\n2 300元\n3 1 200元\n", ["500", "300", "1200"]),
        ("包 1 547.00 元\n标段 2 693 元\n", ["547", "693"]),
        ("序号 金额\n9 500元\n10 300元\n合计 800元", ["500", "300", "800"]),
        ("1 500元\n7 300元\n", ["1500", "7300"]),
        ("共1 500元", ["1500"]),
        ("1 500元", ["1500"]),
    ],
)
def test_the_number_of_a_row_is_no_part_of_the_amount_behind_it(text: str, keys: list[str]) -> None:
    assert [one.value.key for one in find_values(text, "money")] == keys
    assert [one.value.key for one in find_values(text.replace("元", "万股"), "number")] == [
        f"{key}0000" for key in keys
    ]


@pytest.mark.parametrize(
    "text",
    [
        "华宇（北京）科技有限公司（以下简称“甲方”）",
        "华宇（北京）科技有限公司（“买方”）",
        "华宇（北京）科技有限公司（甲方）",
        '华宇（北京）科技有限公司 (hereinafter "Party A")',
        '华宇（北京）科技有限公司 ("Party A")',
    ],
)
def test_what_a_document_calls_a_party_is_no_part_of_its_name(text: str) -> None:
    assert read_value(text, "organisation").key == "华宇(北京)科技有限公司"
    assert "有限合伙" in read_value("华宇投资（有限合伙）", "organisation").key


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("自2024年3月1日起至2027年2月28日止", "2024年3月1日起至2027年2月28日"),
        ("2023-07-18 至 2024-07-17", "2023-07-18 至 2024-07-17"),
        ("January 1, 2024 to December 31, 2026", "January 1, 2024 to December 31, 2026"),
        ("自2024年3月1日零时起至2025年2月28日二十四时止", "2024年3月1日零时起至2025年2月28日"),
        ("2024年3月1日00:00起至2025年2月28日24:00止", "2024年3月1日00:00起至2025年2月28日"),
    ],
)
def test_a_period_runs_between_two_dates(text: str, found: str) -> None:
    places = [(one.start, one.end) for one in find_values(fold_width(text), "period")]
    assert [text[start:end] for start, end in places] == [found]
    # Equal by meaning, whatever is written around the dates.
    assert read_value(text, "period").means(read_value(found, "period"))
    assert read_value(text, "period").key.count("..") == 1


@pytest.mark.parametrize("text", ["2024年3月1日、2024年5月1日", "2024年3月1日签订，至2024年5月1日"])
def test_two_dates_that_nothing_joins_are_no_period(text: str) -> None:
    assert not list(find_values(fold_width(text), "period"))
