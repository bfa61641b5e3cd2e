"""Heads in two rows. Oracle: the header that a reader gives each cell."""

from __future__ import annotations

import pytest

from featpipe.extraction.tables.grouped_heads import grouped_tables
from featpipe.extraction.tables.table_headers import table_headers

_TOP = ["股东名称", "股份性质", "本次减持前持有股份", "本次减持后持有股份"]
_SECOND = ["股数（股）", "占总股本比例"] * 2
_ROWS = [
    ["云岭基金", "合计持有股份", "9,870,000", "6.10%", "8,252,000", "5.10%"],
    ["其中：无限售条件股份", "9,870,000", "6.10%", "8,252,000", "5.10%"],
]
_BEFORE, _AFTER = "本次减持前持有股份", "本次减持后持有股份"


def headers(text: str) -> list[tuple[str, str]]:
    return [
        (text[one.start : one.end], one.label)
        for _, _, cells in grouped_tables(text)
        for one in cells
    ]


@pytest.mark.parametrize("mark", ["\t", "    ", " | ", " "])
def test_each_grouped_cell_has_both_heads(mark: str) -> None:
    rows = [_TOP, _SECOND, *_ROWS]
    if mark == " ":  # a colon parts no cells, and ends such a table
        rows = rows[:3]
    text = "1.2 持股情况\n" + "\n".join(mark.join(row) for row in rows) + "\n二、其他说明。"
    expected = [
        ("云岭基金", "股东名称"),
        ("合计持有股份", "股份性质"),
        ("9,870,000", f"{_BEFORE}股数（股）"),
        ("6.10%", f"{_BEFORE}占总股本比例"),
        ("8,252,000", f"{_AFTER}股数（股）"),
        ("5.10%", f"{_AFTER}占总股本比例"),
    ]
    assert headers(text)[:6] == expected
    # The first cell of the row below is merged with the one above it.
    assert headers(text)[6:] == (
        [] if mark == " " else [("其中：无限售条件股份", "股份性质"), *expected[2:]]
    )


def test_cells_in_lines_of_their_own() -> None:
    cells = [*_TOP, *_SECOND, *_ROWS[0]]
    text = "\n".join(["二、持股情况。", *cells, "三、其他说明。"])
    assert [label for _, label in headers(text)] == [
        "股东名称", "股份性质", f"{_BEFORE}股数（股）", f"{_BEFORE}占总股本比例",
        f"{_AFTER}股数（股）", f"{_AFTER}占总股本比例",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [["名称", "数量", "数量", "金额"], ["云岭", "3", "4", "5"]],  # one row of heads
        [_TOP, ["股数", "比例", "股数", "金额"], _ROWS[0]],  # other heads in each group
        [_TOP, _SECOND, ["云岭基金", "合计", "见附件", "6.10%", "无", "5.10%"]],  # no numbers
    ],
)
def test_other_tables_are_none(rows: list[list[str]]) -> None:
    assert headers("\n".join("\t".join(row) for row in rows)) == []


def test_lines_without_cells_are_none() -> None:
    assert headers("|\n|\n|\n|\n+--+--+\n| | | | |\n甲\n乙\n甲\n乙\n1\n2\n甲\n") == []


def test_known_tables_are_left_alone() -> None:
    text = "\n".join("\t".join(row) for row in (_TOP, _SECOND, *_ROWS))
    assert list(grouped_tables(text, [(0, 10)])) == []


def test_the_unit_above_a_table_is_that_of_its_grouped_cells() -> None:
    rows = "\n".join("\t".join(row) for row in (_TOP, _SECOND, _ROWS[0]))
    units = {text.unit for text in table_headers(f"单位：万股\n{rows}\n", ())}
    assert units == {"万股"}


def test_a_head_that_comes_again_is_of_the_head_before_it() -> None:
    text = "股东|减持前（股）|占总股本|减持后（股）|占总股本\n云岭基金|4012|4.94%|3199|3.94%\n"
    labels = {text[one.start : one.end]: one.label for one in table_headers(text, ())}
    assert labels["4.94%"] == "减持前占总股本"
    assert labels["3.94%"] == "减持后占总股本"
    assert labels["3199"] == "减持后（股）"


def test_a_unit_in_a_line_of_its_own_goes_on_its_header() -> None:
    heads = ["股东名称", "减持均价", "（元/股）", "减持股数", "（股）"]
    cells = ["云岭基金", "27.63", "1,618,000", "合计", "-", "1,618,000"]
    text = "\n".join(["减持情况如下。", *heads, *cells, "二、其他说明。"])
    labels = [
        (text[one.start : one.end], "".join(one.label.split())) for one in table_headers(text, ())
    ]
    assert labels == [
        ("云岭基金", "股东名称"), ("27.63", "减持均价（元/股）"), ("1,618,000", "减持股数（股）"),
        ("合计", "股东名称"), ("-", "减持均价（元/股）"), ("1,618,000", "减持股数（股）"),
    ]  # fmt: skip
