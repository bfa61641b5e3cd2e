"""Writing the evidence page: what stands in it, what is refused, and that it is self-contained."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import HANG_S

from featpipe import Cache
from featpipe.errors import UnknownSpace, UsageError
from featpipe.html_report import ReportSettings, service_page, write_report
from featpipe.html_report.page import as_json
from featpipe.html_report.results import read_file
from featpipe.html_report.space_map import project


class Blocks(HTMLParser):
    """The page as any HTML parser sees it: its script and data blocks, and addresses it names."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.data: dict[str, str] = {}
        self.scripts: list[str] = []
        self.addresses: list[str] = []
        self._open: dict[str, str | None] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [str(given[name]) for name in ("src", "href") if name in given]
        self._open = given if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None if tag == "script" else self._open

    def handle_data(self, data: str) -> None:
        if self._open is None:
            return
        if "id" in self._open:
            self.data[str(self._open["id"])] = data
        else:
            self.scripts.append(data)


VALUE = (
    '{"text": "x", "value": "x", "unit": "", "bound": "", "start": 0, "end": 1, "page": null,'
    ' "probability": 0.5}'
)


def line_with(value: str) -> str:
    return f'{{"document": "a", "template": "t", "fields": {{"f": [{value}]}}}}'


def write(cache: Path, target: Path, **settings: object) -> dict[str, Any]:
    with Cache.open(cache) as opened:
        write_report(opened, target, ReportSettings(**settings))  # type: ignore[arg-type]  # by name
    blocks = Blocks(target.read_text("utf-8"))
    assert len(blocks.scripts) == 1
    assert blocks.addresses == ["data:,"]
    contents: dict[str, Any] = json.loads(blocks.data.pop("contents"))
    contents["blocks"] = [json.loads(blocks.data[f"d{n}"]) for n in range(len(blocks.data))]
    return contents


def test_every_document_and_value_stands_in_the_page(
    shown_cache: Path, results: Path, tmp_path: Path, texts: dict[str, str]
) -> None:
    contents = write(shown_cache, tmp_path / "page.html", results=results)
    ids = [entry["id"] for entry in contents["docs"]]
    assert set(ids) == {*texts, "elsewhere.txt"}
    for entry, block in zip(contents["docs"], contents["blocks"], strict=True):
        assert block["text"] == texts.get(entry["id"])
        for row in entry["values"]:
            if len(row) > 2 and block["text"] is not None:
                assert block["text"][row[7] : row[8]] == row[2]
    assert [run["n_quarantined"] for run in contents["runs"]] == [1]
    assert contents["runs"][0]["quarantined"][0]["source"] == "docs/bad.bin"
    assert contents["in_cache"] == 4
    assert {point[2] for point in contents["maps"][0]["points"]} == {0, 1, 2, 3}


def test_values_of_another_version_of_a_document_are_left_out_and_said(
    shown_cache: Path, results: Path, tmp_path: Path
) -> None:
    before = results.read_text("utf-8")
    results.write_text(before.replace('"text": "五万元"', '"text": "六万元"'), "utf-8")
    with Cache.open(shown_cache) as cache:
        size = write_report(cache, tmp_path / "page.html", ReportSettings(results=results))
        assert size.stale == ("docs/table.html",)
        documents = list(cache.documents())
        now = read_file(results, documents)
        place = ("合同", cache.document("docs/a.txt").path)
        changed = replace(now, contents={place: "0" * 32}).of_versions(documents)
        assert place not in changed.fields
    contents = write(shown_cache, tmp_path / "page.html", results=results)
    (entry,) = (one for one in contents["docs"] if one["id"] == "docs/table.html")
    assert entry["values"] == []
    assert "another version" in entry["notes"][-1]


def test_the_page_without_its_texts_is_small(shown_cache: Path, tmp_path: Path) -> None:
    contents = write(shown_cache, tmp_path / "page.html")
    size = (tmp_path / "page.html").stat().st_size
    assert size - len(json.dumps(contents, ensure_ascii=False).encode()) < 200_000
    assert len(service_page().encode()) < 200_000


def test_documents_with_values_come_before_those_without(
    shown_cache: Path, results: Path, tmp_path: Path
) -> None:
    kept = [line for line in results.read_text("utf-8").split("\n") if "table.html" in line]
    (tmp_path / "one.jsonl").write_text(kept[0], "utf-8")
    contents = write(shown_cache, tmp_path / "page.html", results=tmp_path / "one.jsonl", limit=1)
    assert [entry["id"] for entry in contents["docs"]] == ["docs/table.html"]
    assert contents["in_cache"] == 4


def test_changes_are_those_of_meaning_and_of_probability(
    shown_cache: Path, results: Path, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in results.read_text("utf-8").rstrip("\n").split("\n")]
    before = [line for line in lines if line["document"] != "docs/astral.txt"]
    first = before[0]["fields"]["合同名称"][0]
    first["value"], first["probability"] = "另一份合同", 0.2
    for values in before[1]["fields"].values():
        for value in values:
            value["probability"] = 0.1
    (tmp_path / "before.jsonl").write_text("\n".join(map(json.dumps, before)), "utf-8")
    contents = write(
        shown_cache, tmp_path / "page.html", results=results, compare=str(tmp_path / "before.jsonl")
    )
    item, *others = contents["changes"]["items"]
    assert item[:2] == ["合同", "合同名称"]
    assert item[3] == "docs/a.txt"
    assert [old[:2] for old in item[4]] == [["买卖合同", 0.2]]
    assert others
    for other in others:
        assert [value[0] for value in other[4]] == [value[0] for value in other[5]]
        assert {value[1] for value in other[4]} == {0.1}
    assert contents["changes"]["only_now"] == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", ":1: is no extraction"),
        ('{"document": "a.txt"}', ":1: is no extraction"),
        (line_with('{"text": "x"}'), "is no extraction"),
        (line_with(VALUE), None),
        (line_with(VALUE.replace("0.5", "NaN")), "finite"),
        (line_with(VALUE.replace('"start": 0', '"start": "0"')), "whole numbers"),
        (line_with(VALUE.replace('"page": null', '"page": "<b>"')), "page a whole number"),
    ],
)
def test_a_file_that_holds_no_results_is_refused(
    shown_cache: Path, tmp_path: Path, line: str, message: str | None
) -> None:
    (tmp_path / "r.jsonl").write_text(line, "utf-8")
    if message is None:  # what the others are made of is good
        write(shown_cache, tmp_path / "page.html", results=tmp_path / "r.jsonl")
        return
    with pytest.raises(UsageError, match=message):
        write(shown_cache, tmp_path / "page.html", results=tmp_path / "r.jsonl")
    assert not (tmp_path / "page.html").exists()


def test_what_cannot_be_shown_is_refused(shown_cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run of reprocess"):
        write(shown_cache, tmp_path / "page.html", compare="2020")
    with pytest.raises(UnknownSpace):
        write(shown_cache, tmp_path / "page.html", space="other")
    with pytest.raises(UsageError, match="cannot be written"):
        write(shown_cache, tmp_path / "none" / "page.html")
    with pytest.raises(UsageError, match="limit"):
        ReportSettings(limit=0)
    page, file = tmp_path / "page.html", tmp_path / "e.jsonl"
    with pytest.raises(UsageError, match=r"e\.jsonl: cannot be read"):
        write(shown_cache, page, evaluation=file)
    for line in ("{", "[]", "7", '{"template": "t"}', "\ufeff{}"):
        file.write_text(f"\n{line}\n", "utf-8")
        with pytest.raises(UsageError, match=r"e\.jsonl, line 2: no evaluation"):
            write(shown_cache, page, evaluation=file)
    assert not page.exists()


def test_no_text_can_end_a_block() -> None:
    hostile = "</script><!--<script>]]>&amp;\u2028\u2029\ud800"
    text = as_json([hostile.replace("\ud800", "")])
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == [hostile.replace("\ud800", "")]


def test_a_lone_surrogate_keeps_the_offsets(a_copy: Path, tmp_path: Path) -> None:
    odd = {"document": "x\ud800y", "template": "t", "fields": {"f": []}}
    (tmp_path / "r.jsonl").write_text(json.dumps(odd), "utf-8")
    contents = write(a_copy, tmp_path / "page.html", results=tmp_path / "r.jsonl")
    assert contents["docs"][-1]["id"] == "x\ufffdy"


def test_the_map_shows_the_two_widest_directions() -> None:
    rng = np.random.default_rng(5)
    flat = rng.normal(size=(60, 2)) * [4.0, 1.0]
    turned = flat @ np.linalg.qr(rng.normal(size=(8, 8)))[0][:2]
    plane = project(turned)
    distances = lambda points: np.linalg.norm(points[:, None] - points[None], axis=2)  # noqa: E731
    scale = distances(flat).max() / distances(plane.points.astype(float)).max()
    np.testing.assert_allclose(
        distances(plane.points.astype(float)) * scale, distances(flat), rtol=1e-3, atol=1e-4
    )
    assert sum(plane.shares) == pytest.approx(1)
    assert plane.shares[0] > plane.shares[1]
    np.testing.assert_array_equal(project(turned).points, plane.points)
    assert project(np.ones((5, 3))).points.tolist() == [[0, 0]] * 5
    assert project(np.ones((1, 3))).points.tolist() == [[0, 0]]


def test_the_script_parses_no_markup() -> None:
    page = service_page()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
    ):
        assert word not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_the_commands_write_the_page_and_list_the_runs(shown_cache: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "featpipe", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S,
        )  # fmt: skip

    done = run("report", str(shown_cache), "-o", "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("page.html: 4 documents of 4, 0 values, ")
    done = run("report", str(shown_cache), "-o", "page.html", "--compare", "previous")
    assert done.returncode == 2
    assert "no run of reprocess named 'previous'" in done.stderr
    listed = run("runs", "list", str(shown_cache))
    (line,) = listed.stdout.splitlines()
    run_id = line.split()[0]
    assert "documents 4 loaded, 1 quarantined" in line
    shown = run("runs", "show", str(shown_cache), run_id[:15])
    assert f"run         {run_id}" in shown.stdout
    assert "quarantined docs/bad.bin: " in shown.stdout
    record = json.loads(run("runs", "show", str(shown_cache), "--json").stdout)
    assert record["run_id"] == run_id
    assert record["kind"] == "build-cache"
    assert json.loads(run("runs", "list", str(shown_cache), "--json").stdout) == record
    assert run("runs", "show", str(shown_cache), "1999").returncode == 2


def test_a_report_replaces_a_report_and_nothing_that_it_is_made_of(
    a_copy: Path, results: Path, tmp_path: Path
) -> None:
    evaluation = tmp_path / "evaluation.jsonl"
    evaluation.write_text("", "utf-8")
    settings = ReportSettings(results=results, evaluation=evaluation)
    with Cache.open(a_copy) as cache:
        source = Path(cache.document("docs/table.html").path)
        for file in (a_copy, results, evaluation, source):
            before = file.read_bytes()
            with pytest.raises(UsageError, match="would be lost"):
                write_report(cache, file, settings)
            assert file.read_bytes() == before
        page = tmp_path / "page.html"
        for _ in range(2):
            write_report(cache, page, settings)
        link = tmp_path / "link.html"
        link.symlink_to(a_copy)
        with pytest.raises(UsageError, match="would be lost"):
            write_report(cache, link, settings)
