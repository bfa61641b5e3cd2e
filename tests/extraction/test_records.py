"""Records: values of one document that belong together."""

from __future__ import annotations

from featpipe.extraction.records import make_records
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.extraction.scoring.page import page_of_text

TEXT = "中标项目：北岸电缆工程；南岸管道工程。\n\n中标金额分别为300万元和500万元。"
PROJECTS, AMOUNTS = ("北岸电缆工程", "南岸管道工程"), ("300万元", "500万元")


def value(text: str, inside: str = TEXT) -> ExtractedValue:
    start = inside.index(text)
    return ExtractedValue(text, text, "", "", start, start + len(text), None, 0.9)


def result(*texts: str) -> FieldResult:
    return FieldResult(tuple(map(value, texts)))


def made(fields: dict[str, FieldResult]) -> list[dict[str, str]]:
    records = make_records(page_of_text(TEXT), fields, list(fields))
    return [{name: one.text for name, one in record.items()} for record in records]


def test_as_many_amounts_as_projects_match_in_the_order_of_both() -> None:
    found = made({"项目": result(*PROJECTS[::-1]), "金额": result(*AMOUNTS[::-1])})
    assert found == [
        {"项目": project, "金额": amount} for project, amount in zip(PROJECTS, AMOUNTS, strict=True)
    ]


def test_one_value_belongs_to_every_record() -> None:
    found = made({"项目": result(*PROJECTS), "类别": result("中标项目")})
    assert found == [{"项目": project, "类别": "中标项目"} for project in PROJECTS]


def test_a_field_without_values_is_in_no_record() -> None:
    assert made({"项目": result(PROJECTS[0]), "金额": result()}) == [{"项目": PROJECTS[0]}]


def test_a_value_too_many_of_one_field_makes_no_record() -> None:
    """Two fields agree upon two records; the third has an amount that is a sum."""
    text = "甲公司 北岸工程 3万元\n乙公司 南岸工程 5万元\n合计 8万元"
    fields = {
        name: FieldResult(tuple(value(one, text) for one in texts))
        for name, texts in {
            "金额": ("8万元", "3万元", "5万元"),
            "中标人": ("甲公司", "乙公司"),
            "项目": ("北岸工程", "南岸工程"),
        }.items()
    }
    records = make_records(page_of_text(text), fields, list(fields))
    assert [{name: one.text for name, one in record.items()} for record in records] == [
        {"金额": "3万元", "中标人": "甲公司", "项目": "北岸工程"},
        {"金额": "5万元", "中标人": "乙公司", "项目": "南岸工程"},
    ]
