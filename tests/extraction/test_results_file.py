"""Results as files: what each format holds, and what it says about what it cannot hold."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from featpipe import Extraction, Extractor, Provenance
from featpipe.documents import load_document
from featpipe.documents.own_files import describe_own_file
from featpipe.errors import UsageError
from featpipe.extraction import workbook
from featpipe.extraction.partial_results import PartialResults
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.extraction.results_file import write_extractions

ODD = [
    '=HYPERLINK("http://x.example","A")', "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\t=1",
    "\r=1", "＝1+1", "'=1",
]  # fmt: skip
PLAIN = ["-12.50", "+3%", "-1,234.5", "—", "-", "正常", "2024-01-01", "a=b", ""]


def value(text: str, probability: float = 0.5, start: int = 0) -> ExtractedValue:
    return ExtractedValue(text, text, "", "", start, start + len(text), 3, probability)


def extraction(
    texts: list[str], name: str = "a.txt", template: str = "合同", probability: float = 0.5
) -> Extraction:
    fields = {f"f{n}": FieldResult((value(t, probability),)) for n, t in enumerate(texts)}
    return Extraction(name, fields, (), Provenance(template, "ab" * 16, "1", "s", "/c.h5"))


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_a_table_runs_no_formula_of_a_document_and_says_so(
    tmp_path: Path, suffix: str, delimiter: str
) -> None:
    out = tmp_path / f"o{suffix}"
    written = write_extractions([extraction([*ODD, *PLAIN], name="=1+1.txt")], out)
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    by_file = [row["text"] for row in rows]
    assert by_file[len(ODD) :] == PLAIN
    assert by_file[: len(ODD)] == [*(f"'{text}" for text in ODD[:-1]), ODD[-1]]
    assert {row["document"] for row in rows} == {"'=1+1.txt"}
    # In each odd row name, text and value; in each other row the name.
    n_odd = 2 * (len(ODD) - 1) + len(rows)
    [note] = written.notes
    assert note.startswith(f"{n_odd} cells")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_formats_for_programs_hold_every_text_as_it_is(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"o{suffix.upper()}"
    written = write_extractions([extraction(ODD), extraction(PLAIN, "b.txt")], out)
    assert (written.n_extractions, written.notes) == (2, ())
    if suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        found = [row["text"] for row in parquet.read_table(out).to_pylist()]
    else:
        text = out.read_text("utf-8")
        whole = json.loads(text) if suffix == ".json" else list(map(json.loads, text.splitlines()))
        found = [v["text"] for one in whole for vs in one["fields"].values() for v in vs]
    assert found == [*ODD, *PLAIN]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".json"])
def test_a_table_says_which_extractions_it_has_no_row_or_record_of(
    tmp_path: Path, suffix: str
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    whole = extraction(["a", "b"])
    values = [result.values[0] for result in whole.fields.values()]
    several = replace(whole, records=({"f0": values[0]}, {"f1": values[1]}))
    given = [whole, several, extraction([], "empty.txt")]
    notes = write_extractions(given, tmp_path / f"o{suffix}").notes
    if suffix.startswith(".json"):
        assert notes == ()
        return
    rowless, unparted = notes
    assert "no row: 1, such as of empty.txt" in rowless
    assert "not told apart: 1;" in unparted


def test_json_of_nothing_is_an_array(tmp_path: Path) -> None:
    assert write_extractions([], tmp_path / "o.json").n_extractions == 0
    assert json.loads((tmp_path / "o.json").read_text("utf-8")) == []


def test_half_a_surrogate_pair_is_written_as_each_format_can(tmp_path: Path) -> None:
    odd = [extraction(["a\ud800b"], name="\udcff.txt")]
    for suffix in (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".xlsx"):
        write_extractions(odd, tmp_path / f"o{suffix}")
    assert json.loads((tmp_path / "o.jsonl").read_text("utf-8"))["document"] == "\udcff.txt"
    assert "a\ufffdb" in (tmp_path / "o.csv").read_text("utf-8")


def test_a_workbook_on_a_full_disk_is_one_error_and_no_more() -> None:
    """A half-written archive would be closed when Python ends, with an error that is printed."""
    code = """
from featpipe.extraction.workbook import write_workbook
with open("/dev/full", "wb", buffering=0) as file:
    try:
        write_workbook([], file)
    except OSError as error:
        print(error.strerror)
    else:
        raise SystemExit("it was written")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("No space left on device\n", "")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".xlsx"])
def test_results_are_no_documents(tmp_path: Path, suffix: str) -> None:
    """Whatever their format; half written ones neither."""
    out = tmp_path / f"o{suffix}"
    write_extractions([extraction(["x"] * 500)], out)
    assert describe_own_file(out) == "results"
    with PartialResults(out, {"a": "b" * 9000}, ["[]"]) as partial:
        assert describe_own_file(partial.path) == "results"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.samples.jsonl", '{"document": "a.txt", "fields": {"甲方": ["甲"]}}\n'),
        (
            "t.corrections.jsonl",
            '{"template": "t", "id": "1", "when": "", "who": "", "verdict": ""}\n',
        ),
        ("t.json", '{"name": "t", "fields": [{"name": "f"}], "samples": [{"text": "甲"}]}'),
    ],
)
def test_results_take_the_place_of_no_work_of_people(
    tmp_path: Path, name: str, content: str
) -> None:
    out = tmp_path / name
    out.write_text(content, "utf-8")
    with pytest.raises(UsageError, match=r"a template, and would be lost"):
        write_extractions([], out)
    assert out.read_text("utf-8") == content


# ---- workbooks


@pytest.fixture
def openpyxl() -> ModuleType:
    pytest.importorskip("xlsxwriter")
    module: ModuleType = pytest.importorskip("openpyxl")
    return module


def rows_of(sheet: Any) -> list[list[str | int | None]]:  # noqa: ANN401  # openpyxl is untyped
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


def test_a_workbook_has_a_row_a_document_and_record_and_a_column_a_field(
    cache: Path, templates: Path, tmp_path: Path, openpyxl: ModuleType
) -> None:
    with Extractor(templates, cache, checkpoints="none") as extractor:
        found = [one for one in extractor.extract_many(extractor.cache.documents(), "*")
                 if isinstance(one, Extraction)]  # fmt: skip
    assert write_extractions(found, tmp_path / "o.xlsx").notes == ()
    book = openpyxl.load_workbook(tmp_path / "o.xlsx")
    assert book.properties.creator == "featpipe"
    for name in ("租赁合同", "减持公告"):
        mine = [one for one in found if one.provenance.template == name]
        header, *rows = rows_of(book[name])
        assert header == ["document", "record", *mine[0].fields]
        for one in mine:
            of_it = [row for row in rows if row[0] == one.document]
            assert [row[1] for row in of_it if row[1]] == list(range(1, len(one.records) + 1))
            for number, record in enumerate(one.records):
                cells = dict(zip(header, of_it[number], strict=True))
                assert all(cells[field] == v.text for field, v in record.items())
            # Nothing is left out.
            for field, result in one.fields.items():
                at = header.index(field)
                inside = {line for row in of_it for line in str(row[at] or "").split("\n")}
                assert {line for v in result.values for line in v.text.split("\n")} <= inside


def test_probability_is_a_shade_and_a_comment(tmp_path: Path, openpyxl: ModuleType) -> None:
    steps = [0.0, 0.31, 0.5, 0.99, 1.0]
    found = [extraction(["x"], f"{p}", probability=p) for p in steps]
    write_extractions(found, tmp_path / "o.xlsx")
    [sheet] = openpyxl.load_workbook(tmp_path / "o.xlsx")
    cells = [sheet.cell(row, 3) for row in range(2, 2 + len(steps))]
    shades = [int(cell.fill.start_color.rgb[-2:], 16) for cell in cells]
    assert shades == sorted(set(shades))
    assert cells[-1].fill.start_color.rgb == "FFFFFFFF"
    for cell, p in zip(cells, steps, strict=True):
        assert f"p = {p:.2f}: x, page 3, characters 0 to 1" in cell.comment.text


def test_cells_are_strings_whatever_they_begin_with(tmp_path: Path, openpyxl: ModuleType) -> None:
    texts = [*ODD, *(t for t in PLAIN if t), "a\x01b\x0bc", "_x0041_", "<&>", "http://a.example/"]
    one = extraction(texts, name="=1+1.txt", template="=1*[x]:/\\?'")
    assert write_extractions([one], tmp_path / "o.xlsx").notes == ()
    sheet = openpyxl.load_workbook(tmp_path / "o.xlsx").worksheets[0]
    cells = [cell for row in sheet.iter_rows(min_row=2) for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s"}
    assert all(cell.hyperlink is None for cell in cells)
    for text in (t for t in texts if t.isprintable() and t != "_x0041_"):
        assert text in [cell.value for cell in cells]
    with zipfile.ZipFile(tmp_path / "o.xlsx") as archive:
        sheets = [archive.read(n).decode() for n in archive.namelist() if "worksheets/sheet" in n]
    assert not any("<f>" in sheet for sheet in sheets)
    # Our own reader reads it back.
    text = load_document((tmp_path / "o.xlsx").read_bytes(), source="o.xlsx").text
    assert "=1+1.txt" in text
    assert "正常" in text


def test_a_text_beyond_a_cell_is_cut_and_said_never_in_silence(
    tmp_path: Path, openpyxl: ModuleType
) -> None:
    fits, longer = "长" * 32_767, "😀" * 16_384  # each of two units
    written = write_extractions([extraction([fits, longer, "\ufffe"])], tmp_path / "o.xlsx")
    _, _, one, other, third = rows_of(openpyxl.load_workbook(tmp_path / "o.xlsx").worksheets[0])[1]
    assert one == fits
    assert str(other).startswith("😀" * 1000)
    assert str(other).endswith("… (cut)")
    assert third == "\ufffd"
    cut, replaced = written.notes
    assert cut.startswith("1 cells are cut at 32,767 characters")
    assert "f1 of a.txt" in cut
    assert replaced.startswith("1 characters")


def test_rows_beyond_a_sheet_go_on_in_another(
    tmp_path: Path, openpyxl: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "MOST_ROWS", 4)
    found = [extraction(["x"], f"{n}.txt") for n in range(7)]
    write_extractions(found, tmp_path / "o.xlsx")
    book = openpyxl.load_workbook(tmp_path / "o.xlsx")
    assert book.sheetnames == ["合同", "合同 (2)", "合同 (3)"]
    names = [row[0] for sheet in book for row in rows_of(sheet)[1:]]
    assert names == [f"{n}.txt" for n in range(7)]


def test_sheets_have_names_that_the_format_allows(tmp_path: Path, openpyxl: ModuleType) -> None:
    names = ["a/b", "a?b", "A/B", "", "'x'", "History", "长" * 40, "长" * 31 + "尾"]
    write_extractions([extraction(["x"], template=n) for n in names], tmp_path / "o.xlsx")
    found = openpyxl.load_workbook(tmp_path / "o.xlsx").sheetnames
    assert found == ["a_b", "a_b (2)", "A_B (3)", "results", "x", "History_", "长" * 31,
                     "长" * 27 + " (2)"]  # fmt: skip


def test_a_field_called_document_has_its_own_column(tmp_path: Path, openpyxl: ModuleType) -> None:
    fields = {name: FieldResult((value(name.upper()),)) for name in ("document", "record")}
    one = Extraction("a.txt", fields, (), Provenance("t", "f", "", "s", "c"))
    write_extractions([one], tmp_path / "o.xlsx")
    header, row = rows_of(openpyxl.load_workbook(tmp_path / "o.xlsx").worksheets[0])
    assert header == ["document", "record", "document", "record"]
    assert row == ["a.txt", None, "DOCUMENT", "RECORD"]


def test_values_in_no_record_have_a_row_of_their_own(tmp_path: Path, openpyxl: ModuleType) -> None:
    a, b, far = value("甲"), value("乙", start=10), value("丙", start=900)
    fields = {
        "一": FieldResult((a,)),
        "二": FieldResult((b, far)),
        "三": FieldResult((value("丁"),)),
    }
    one = Extraction("a.txt", fields, ({"一": a, "二": b},), Provenance("t", "f", "", "s", "c"))
    write_extractions([one], tmp_path / "o.xlsx")
    _, *rows = rows_of(openpyxl.load_workbook(tmp_path / "o.xlsx").worksheets[0])
    assert rows == [["a.txt", 1, "甲", "乙", "丁"], ["a.txt", None, None, "丙", None]]


def test_a_workbook_of_nothing_opens(tmp_path: Path, openpyxl: ModuleType) -> None:
    assert write_extractions([], tmp_path / "o.xlsx").n_extractions == 0
    assert rows_of(openpyxl.load_workbook(tmp_path / "o.xlsx").worksheets[0])[0][0] == "document"


def test_equal_results_are_equal_bytes(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    for name in ("a.xlsx", "b.xlsx"):
        write_extractions([extraction(["x", "y"])], tmp_path / name)
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
