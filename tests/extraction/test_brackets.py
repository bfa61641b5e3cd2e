"""Brackets. Oracle: texts with the places marked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of


@pytest.mark.parametrize(
    ("text", "before", "behind"),
    [
        ("东湖大桥项目（二期）中标", "（", "中"),
        ("东湖大桥项目(EPC总承包)：中标", "(", ""),
        ("榆林市万源镁业（集团）三江能源有限公司", "（", "三"),
        # These name, number or explain, or stand alone.
        ("东湖建设公司（以下简称“东湖”）中标", "", ""),
        ("东湖大桥项目（招标编号：A12）中标", "", ""),
        ("东湖大桥项目（证券代码600000）中标", "", ""),
        ("（二）东湖大桥", "", ""),
        ("东湖建设（未闭合", "", ""),
        ("Delta Bridge (Phase Two) is", "", ""),
        ("Delta Bridge(Phase Two) is", "(", ""),
        ('Delta Ltd(the "Company") is', "", ""),
        ("", "", ""),
    ],
)
def test_brackets_of_names_are_told_from_asides(text: str, before: str, behind: str) -> None:
    features = features_of(text)
    starts = [*features.tokens.start.tolist(), len(text)]
    for marks, wanted in zip(features.brackets, (before, behind), strict=True):
        found = [starts[place] for place in np.flatnonzero(marks).tolist()]
        assert [text[place] for place in found] == list(wanted)
        assert len(marks) == len(features.tokens) + 1


def test_a_name_is_given_with_its_bracket() -> None:
    def notice(name: str) -> str:
        return f"关于中标的公告\n公司收到通知，确定公司为{name}的中标人。\n特此公告。"

    names = ["东湖大桥项目", "西山隧道工程", "北江泵站改造项目（一期）", "南岸道路工程"]
    samples = [sample_of(features_of(notice(name)), [name], "text") for name in names]
    model = fit_field(samples, "text", ("项目名称",))
    scored = model.score(features_of(notice("清河水库加固工程（施工总承包）")))
    assert scored.groups[0].value.key == "清河水库加固工程(施工总承包)"
