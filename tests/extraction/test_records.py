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


def records_in(text: str, fields: dict[str, list[tuple[str, int]]]) -> list[dict[str, str]]:
    """Of values, each with how often it stands in a text: all of its places are known."""
    found = {}
    for name, values in fields.items():
        own = []
        for one, n in values:
            starts = [at for at in range(len(text)) if text.startswith(one, at)][:n]
            assert len(starts) == n
            places = tuple((at, at + len(one)) for at in starts)
            own.append(ExtractedValue(one, one, "", "", *places[0], None, 0.9, places=places[1:]))
        found[name] = FieldResult(tuple(own))
    records = make_records(page_of_text(text), found, list(found))
    return [{name: one.text for name, one in record.items()} for record in records]


def test_values_listed_in_one_line_match_by_their_order_as_often_as_they_are_named() -> None:
    text = "其所持1万股、2万股和3万股分别被甲法院、乙法院和甲法院冻结。\n特此公告。"
    found = records_in(
        text,
        {
            "股数": [("1万股", 1), ("2万股", 1), ("3万股", 1)],
            "法院": [("甲法院", 2), ("乙法院", 1)],
        },
    )
    assert [record["法院"] for record in found] == ["甲法院", "乙法院", "甲法院"]


def test_cells_of_one_column_are_a_record_where_labels_stand_at_the_left() -> None:
    text = "冻结机关\t甲法院\t乙法院\t乙法院\n备注\t无\t无\t无\n冻结股数\t1万股\t2万股\t3万股\n"
    found = records_in(
        text,
        {
            "股数": [("1万股", 1), ("2万股", 1), ("3万股", 1)],
            "法院": [("甲法院", 1), ("乙法院", 2)],
        },
    )
    assert [record["法院"] for record in found] == ["甲法院", "乙法院", "乙法院"]


def test_what_a_holder_has_belongs_to_its_records_wherever_they_stand() -> None:
    text = (
        "甲公司\t90万股\n乙公司\t80万股\n\n"
        "甲公司\t1万股\t5月1日\n乙公司\t2万股\t5月2日\n乙公司\t3万股\t5月3日\n"
    )
    fields = {
        "股数": [("1万股", 1), ("2万股", 1), ("3万股", 1)],
        "日期": [("5月1日", 1), ("5月2日", 1), ("5月3日", 1)],
        "股东": [("甲公司", 2), ("乙公司", 3)],
        "持股": [("90万股", 1), ("80万股", 1)],
    }
    assert [record["持股"] for record in records_in(text, fields)] == ["90万股", "80万股", "80万股"]


def test_a_row_that_repeats_values_of_other_rows_is_a_record() -> None:
    rows = [
        ("1万股", "甲公司", "5月1日", "甲银行"),
        ("2万股", "甲公司", "5月2日", "乙银行"),
        ("3万股", "甲公司", "5月2日", "乙银行"),
        ("4万股", "乙公司", "5月1日", "甲银行"),
    ]
    text = "".join("\t".join(row) + "\n" for row in rows)
    columns = list(zip(*rows, strict=True))
    fields = {
        name: [(one, column.count(one)) for one in dict.fromkeys(column)]
        for name, column in zip(("股数", "股东", "日期", "质权人"), columns, strict=True)
    }
    assert [tuple(record.values()) for record in records_in(text, fields)] == rows
