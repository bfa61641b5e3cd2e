"""Records: values of one document that belong together."""

from __future__ import annotations

from featpipe.extraction.results import ExtractedValue, FieldResult, make_records
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
