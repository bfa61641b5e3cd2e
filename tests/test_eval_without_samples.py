"""The evaluation of fields without samples. Oracle: counts and values written beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from eval_without_samples import Found

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def found(text: str, probability: float | None = 0.5) -> Found:
    from eval_without_samples import Found

    return Found(text, False, probability, [], is_untaught=True, is_told=True)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("王 芳", "王芳"), ("28,000元", "人民币2.8万元"), ("2023年3月1日", "二〇二三年三月一日"),
        ("¥3000000.00元", "人民币（大写）叁佰万元整（¥3000000.00元）"), ("5%", "百分之五"),
    ],
)  # fmt: skip
def test_values_are_the_same_by_text_or_meaning(text: str, stated: str) -> None:
    from eval_without_samples import is_same

    assert is_same(text, stated)


@pytest.mark.parametrize(
    ("text", "stated"),
    [("王芳", "王芳芳"), ("2.8元", "2.8万元"), ("2023年3月", "2023年3月1日"), ("5%", "6%")],
)
def test_other_values_are_not(text: str, stated: str) -> None:
    from eval_without_samples import is_same

    assert not is_same(text, stated)


def test_a_stated_value_counts_once_and_what_is_not_reported_not_at_all() -> None:
    from eval_without_samples import counts_of

    values = [found("28,000元"), found("2.8万元"), found("3元"), found("9元", None)]
    assert counts_of(values, ["人民币28000元", "9元"]) == (2, 2, 1)


@pytest.mark.parametrize("name", ["judgments", "contracts", "mixed", "wider", "unseen"])
def test_every_value_stands_in_its_document(name: str) -> None:
    from eval_without_samples import read_written

    rows = read_written(name)
    assert len(rows) >= 24
    for row in rows:
        text = "".join(row["text"].split())
        values = [value for values in row["fields"].values() for value in values]
        assert values
        assert [value for value in values if "".join(value.split()) not in text] == []
