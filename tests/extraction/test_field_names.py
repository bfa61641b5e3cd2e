"""Columns of a field's names. Oracle: which words of a sentence are named, marked by hand."""

from __future__ import annotations

import pytest
from pages import features_of

from featpipe.extraction.scoring.candidates import Candidates
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.field_names import NAMES, end_before_bracket, name_columns


def column(text: str, name: str, *names: str) -> float:
    """Of the part of a text in []."""
    start, rest = text.index("["), text.replace("[", "")
    end = rest.index("]")
    features = features_of(rest.replace("]", ""))
    first, last = features.tokens.spans([(start, end)])
    row = name_columns(features, Candidates(first, last, first * 0), names)
    return float(row[0, NAMES.index(name)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("甲方：[江苏水务局]", 1.0),
        ("本次采购的甲方为[江苏水务局]，详见附件。", 0.8),
        ("本项目甲方单位系 [江苏水务局]，详见附件。", 0.8),
        ("1、甲方名称：\n[江苏水务局]\n主要职责：供水", 1.0),
        ("本项目业主是[江苏水务局]，详见附件。", 0.8 * 0.9),  # a synonym
        ("甲方为了供水，[江苏水务局]参加。", 0.0),
        ("甲方为[30万元]的供应商。", 0.0),  # an amount is no value of such a sentence
        ("[江苏水务局]是甲方。", 0.0),
    ],
)
def test_a_name_before_a_value_is_its_label(text: str, expected: float) -> None:
    assert column(text, "behind alias", "甲方") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("公司收到[江苏水务局]（以下简称“甲方”）的通知。", 1.0),
        ("公司收到[江苏水务局] （下称 “甲方” 或 “水务局”）的通知。", 1.0),
        ("公司收到[江苏水务局]（以下简称“业主”）的通知。", 0.9),
        ("公司收到[江苏水务]局（以下简称“甲方”）的通知。", 0.0),
        ("公司收到[江苏水务局]（以下简称“公司”）的通知。", 0.0),
        ("公司收到[江苏水务局]（与甲方同城）的通知。", 0.0),
        ("公司收到[江苏水务局]（地址）的通知，称“甲方”。", 0.0),
    ],
)
def test_a_quoted_name_in_the_brackets_behind_a_value_is_its_name(
    text: str, expected: float
) -> None:
    assert column(text, "named in bracket", "甲方") == pytest.approx(expected)


def test_brackets_that_open_the_text_or_stand_far_off_name_nothing() -> None:
    for before in ("(", "某局(" + "长" * 50):
        text = f"{before}“甲方”)"
        start = text.index("甲方")
        assert end_before_bracket(text, start, start + 2) == 0
    assert end_before_bracket("甲方", 0, 2) == 0


def test_a_party_is_found_in_a_form_that_no_sample_has() -> None:
    def notice(sentence: str) -> str:
        return f"关于中标的公告\n{sentence}中标金额30万元。\n特此公告。\n钱江股份有限公司董事会"

    samples = [
        sample_of(features_of(notice(f"招标人：{name}。")), [name], "organisation")
        for name in ("江苏水务局", "安徽公路局", "河北电力有限公司")
    ]
    model = fit_field(samples, "organisation", ("甲方",))
    for sentence in (
        "本项目的招标人为浙江桥梁建设有限公司，钱江股份有限公司中标。",
        "钱江股份有限公司收到浙江桥梁建设有限公司（以下简称“招标人”）的通知。",
    ):
        scored = model.score(features_of(notice(sentence)))
        assert scored.groups[0].value.key == "浙江桥梁建设有限公司"
