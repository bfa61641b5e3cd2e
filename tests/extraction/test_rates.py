"""Rates of interest with their period: how they are read, found and given."""

from __future__ import annotations

import pytest
from pages import features_of

from featpipe.extraction.scoring.locate import infer_type, locate_value
from featpipe.extraction.values.text import fold_width
from featpipe.extraction.values.values import find_values, read_value


def _found(text: str) -> list[tuple[str, str, str]]:
    values = find_values(fold_width(text), "percent")
    return [(text[one.start : one.end], one.value.key, one.value.unit) for one in values]


def test_rates_are_found_with_their_period_and_shares_without_it() -> None:
    assert _found("约定月息2分，逾期按年利率24%计，违约金为5%。") == [
        ("月息2分", "0.02", "month"),
        ("年利率24%", "0.24", "year"),
        ("24%", "0.24", ""),
        ("5%", "0.05", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "本月利息一分未付",
        "年息二分期支付",
        "月息三分之一",
        "利息分10期支付",
        "得分8分",
        "2020年利息5%",
        "十二月利息8%",
        "5月1日利息2分钱",
        "月利2厘米",
        "利息12.5分",
    ],
)
def test_what_is_no_rate(text: str) -> None:
    assert not [one for one in _found(text) if one[2] or "分" in one[0]]


@pytest.mark.parametrize(
    ("text", "key", "unit"),
    [
        ("年利率6.5%", "0.065", "year"),
        ("月利率8.7‰", "0.0087", "month"),
        ("日利率万分之五", "0.0005", "day"),
        ("年化利率为3.85%", "0.0385", "year"),
        ("利率：4.35%", "0.0435", ""),
    ],
)
def test_a_share_is_read_with_its_period(text: str, key: str, unit: str) -> None:
    value = read_value(text, "percent")
    assert (value.key, value.unit) == (key, unit)


@pytest.mark.parametrize(
    "text", ["不超过年利率6%", "年利率不超过6%", "不超过月息2分", "年利率6%以下"]
)
def test_a_rate_may_have_a_bound(text: str) -> None:
    assert read_value(text, "percent").bound == "<="
    found = list(find_values(fold_width(f"约定{text}，"), "percent"))
    assert {one.value.bound for one in found} == {"<="}


def test_a_rate_by_the_year_is_none_by_the_month() -> None:
    year, month = (read_value(text, "percent") for text in ("年利率1%", "月利率1%"))
    assert not year.means(month)
    assert year.means(read_value("1%", "percent"))
    assert month.means(read_value("月息1分", "percent"))


def test_samples_are_located_as_they_are_written() -> None:
    features = features_of("双方约定年利率9.5%。\n被告未付。\n借款利率：9.5%。")
    text = features.page.text
    for value, places in (("年利率9.5%", ["年利率9.5%", "9.5%"]), ("9.5%", ["9.5%", "9.5%"])):
        assert [text[a:b] for a, b in locate_value(features, value, "percent")] == places


def test_a_field_of_rates_has_the_type_of_shares() -> None:
    texts = ["年利率6.5%", "月息2分", "月利率8.7‰", "年息一分二厘"]
    assert infer_type([(features_of(f"约定{text}。"), text) for text in texts]) == "percent"
