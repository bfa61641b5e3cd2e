"""Heads of tables that go on below. Oracle: what each cell says, written beside the table."""

from __future__ import annotations

import pytest

from featpipe.extraction.tables.table_headers import table_headers
from featpipe.extraction.tables.wrapped_heads import wrapped_tables


def headers_of(text: str) -> list[tuple[str, str]]:
    return [(text[one.start : one.end], one.label) for one in table_headers(text, [])]


@pytest.mark.parametrize(
    "text",
    [
        (
            "股东名称    本次质押数    占其所持    质押        质押\n"
            "            量（股）      股份比例    起始日      到期日\n"
            "李明        5,000,000     11.45%      2022-06-07  2023-06-06\n"
        ),
        (
            "股东\t本次质押数\t占其所持\t质押起\t质押\n名称\t量（股）\t股份\t始日\t到期日\n\t\t比例\n"
            "李明\t5,000,000\t11.45%\t2022-06-07\t2023-06-06\n"
        ),
    ],
)
def test_a_head_goes_on_in_the_lines_below(text: str) -> None:
    assert headers_of(text) == [
        ("李明", "股东名称"), ("5,000,000", "本次质押数量（股）"), ("11.45%", "占其所持股份比例"),
        ("2022-06-07", "质押起始日"), ("2023-06-06", "质押到期日"),
    ]  # fmt: skip


def test_lines_of_words_are_no_heads() -> None:
    labels = headers_of("春    夏    秋    冬\n花    月    风    雪\n1    2    3    4\n")
    assert "春花" not in {label for _, label in labels}


def test_shares_behind_all_that_is_pledged_are_of_that() -> None:
    text = (
        "股东名称\t持股数量\t持股比例\t本次质押前累计质押数量\t本次质押后累计质押数量\t占其所持股份比例\n"
        "李明\t9,000\t5.00%\t1,000\t3,000\t33.33%\n"
    )
    assert dict(headers_of(text))["33.33%"] == "累计占其所持股份比例"
    text = "股东名称\t本次质押股数\t占其所持股份比例\t质权人\n李明\t3,000\t33.33%\t王强\n"
    assert dict(headers_of(text))["33.33%"] == "占其所持股份比例"


def test_a_row_of_tabs_lacks_the_first_cells_above_it() -> None:
    text = (
        "股东名称\t质押股数\t质押到期日\t质权人\n李明\t800\t/\t王强\n\t500\t2019-01-02\t赵刚\n"
        "\t430\t2019-01-03\t钱伟\n"
    )
    assert ("430", "质押股数") in headers_of(text)


def test_every_second_or_third_line_is_a_label() -> None:
    rows = [
        ("股东名称", "李明", "王强"), ("本次解除质押股份", "310,000", "100,000"),
        ("解除质押时间", "2024-02-20", "2024-02-21"), ("持股数量（股）", "1,608,000", "482,400"),
        ("持股比例", "10.00%", "3.00%"),
    ]  # fmt: skip
    for n in (1, 2):
        cells = [(row[0], value) for row in rows for value in row[1 : 1 + n]]
        text = "\n".join(words for row in rows for words in row[: 1 + n])
        assert headers_of(text) == [(value, label) for label, value in cells]
    # A heading is no cell.
    parts = ["持股比例", "5.00%", "二、解除质押情况", *(words for row in rows for words in row[:2])]
    assert ("二、解除质押情况", "持股比例") not in headers_of("\n".join(parts))
    assert ("310,000", "本次解除质押股份") in headers_of("\n".join(parts))


@pytest.mark.parametrize("gap", ["  ", "\t"])
def test_a_line_of_more_cells_than_a_table_has_is_no_head_and_none_of_its_rows(gap: str) -> None:
    # It took more than a minute while each cell asked how wide all of those before it are.
    assert [*wrapped_tables(gap.join(["质押股数"] * 30_000) + "\n质押日期\n1\n")] == []
    heads = gap.join(["股东名称", "质押股数", "质权人", "质押日"])
    rows = ["\n", gap.join(["", "", "", "期"]), "\n"]
    assert [*wrapped_tables("".join((heads, *rows, gap.join("1" * 17))))] == []
