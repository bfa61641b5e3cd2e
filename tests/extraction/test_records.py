"""Records: values of one document that belong together."""

from __future__ import annotations

from featpipe.extraction.records import make_records
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.extraction.scoring.page import page_of_text

TEXT = "中标项目：北岸电缆工程；南岸管道工程。\n\n中标金额分别为300万元和500万元。"
PROJECTS, AMOUNTS = ("北岸电缆工程", "南岸管道工程"), ("300万元", "500万元")


def value(text: str, inside: str = TEXT, p: float = 0.9) -> ExtractedValue:
    start = inside.index(text)
    return ExtractedValue(text, text, "", "", start, start + len(text), None, p)


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


TABLE = "甲公司 北岸工程 3万元\n乙公司 南岸工程 5万元\n合计 8万元"


def test_a_value_that_one_field_has_beside_the_others_makes_a_record_if_it_is_sure() -> None:
    def in_table(p: float, amounts: tuple[str, ...]) -> list[dict[str, str]]:
        """Records of a table of two rows, with the amounts of one column and their sum below."""
        fields = {
            "金额": FieldResult(tuple(value(one, TABLE, p) for one in amounts)),
            "中标人": FieldResult(tuple(value(one, TABLE) for one in ("甲公司", "乙公司"))),
            "项目": FieldResult(tuple(value(one, TABLE) for one in ("北岸工程", "南岸工程"))),
        }
        records = make_records(page_of_text(TABLE), fields, list(fields))
        return [{name: one.text for name, one in record.items()} for record in records]

    rows = [
        {"金额": "3万元", "中标人": "甲公司", "项目": "北岸工程"},
        {"金额": "5万元", "中标人": "乙公司", "项目": "南岸工程"},
    ]
    assert in_table(0.6, ("8万元", "3万元", "5万元")) == rows
    assert in_table(0.6, ("3万元", "5万元")) == rows
    assert len(in_table(1.0, ("8万元", "3万元", "5万元"))) == 3


def test_of_a_field_of_several_alone_each_likely_value_makes_a_record() -> None:
    several = (value("北岸工程", TABLE), value("南岸工程", TABLE, 0.7), value("合计", TABLE, 0.1))
    fields = {"项目": FieldResult(several), "中标人": FieldResult((value("甲公司", TABLE),))}
    records = make_records(page_of_text(TABLE), fields, list(fields))
    assert [record["项目"].text for record in records] == ["北岸工程", "南岸工程"]
    assert [record["中标人"].text for record in records] == ["甲公司", "甲公司"]
