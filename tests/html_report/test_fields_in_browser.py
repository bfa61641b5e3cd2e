"""The table of fields in a real browser: its rows, their order, and the file saved of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from featpipe import Cache
from featpipe.extraction.results_file import _Cells
from featpipe.html_report import ReportSettings, write_report

Make = Callable[..., dict[str, Any]]
Open = Callable[..., Any]


@pytest.fixture
def open_fields(shown_cache: Path, tmp_path: Path, open_page: Open) -> Open:
    """Open the table of fields of some results, one line each."""

    def open_table(*lines: dict[str, Any]) -> object:
        path = tmp_path / "results.jsonl"
        path.write_text("".join(json.dumps({"template": "t"} | line) + "\n" for line in lines))
        with Cache.open(shown_cache) as cache:
            write_report(cache, tmp_path / "page.html", ReportSettings(results=path))
        page = open_page(tmp_path / "page.html", "#fields")
        page.wait_for_selector(".grid-body .cell")
        return page

    return open_table


def saved_rows(page: Any) -> list[list[str]]:  # noqa: ANN401  # optional
    """Of the file that is saved, without its header."""
    with page.expect_download() as saved:
        page.click(".save")
    with Path(saved.value.path()).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))[1:]


def test_values_in_no_record_have_a_row_of_their_own(
    texts: dict[str, str], open_fields: Open, value: Make
) -> None:
    a = texts["docs/a.txt"]
    parties = [value("甲方", a), value("乙方", a)]
    amounts = [value("合同", a), value("签订", a), value("三万元", a, p=0.1)]
    page = open_fields(
        {"document": "docs/a.txt", "fields": {"方": parties, "款": amounts},
         "records": [{"方": "甲方", "款": "合同"}, {"方": "乙方", "款": "签订"}]}
    )  # fmt: skip
    rows = saved_rows(page)
    assert [row[1] for row in rows] == ["甲方", "乙方", ""]
    assert {text for row in rows for text in row[2].split("; ")} == {"三万元", "合同", "签订"}
    page.click(".grid-body .cell >> nth=0")
    page.wait_for_selector(".records tbody tr")
    assert page.locator(".records tbody tr").count() == 3
    found = page.locator(".records .record-value").all_inner_texts()
    assert {"三万元", "合同", "签订"} <= set(found)


def test_numbers_are_sorted_by_their_size(
    texts: dict[str, str], open_fields: Open, value: Make
) -> None:
    meanings = ["300000.5", "-5", "300000.25", "-10", "不详"]
    lines = [
        {"document": f"elsewhere-{meaning}.txt", "fields": {"款": [one | {"value": meaning}]}}
        for meaning in meanings
        for one in [value("三万元", texts["docs/a.txt"])]
    ]
    page = open_fields(*lines)
    page.click(".sort >> nth=1")
    sizes = ["-10", "-5", "300000.25", "300000.5", "不详"]
    assert [row[0] for row in saved_rows(page)] == [f"elsewhere-{size}.txt" for size in sizes]


def test_cells_are_quoted_as_in_a_file_of_results(
    texts: dict[str, str], open_fields: Open, value: Make
) -> None:
    cells = ["-3.2%", "+1,000.50", "-", "=1+1", "＝1+1", "@a", "-1+1", "三万元"]
    one = value("三万元", texts["docs/a.txt"])
    lines = [
        {"document": f"elsewhere-{at}.txt", "fields": {"款": [one | {"text": text}]}}
        for at, text in enumerate(cells)
    ]
    page = open_fields(*lines)
    quoted = _Cells()
    assert [row[1] for row in saved_rows(page)] == [quoted.harmless(text) for text in cells]
    assert quoted.n_quoted == 4
