"""Files that featpipe wrote are recognised by what they hold, whatever they are called."""

from __future__ import annotations

import csv
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from featpipe.documents import find_sources
from featpipe.documents.find import search
from featpipe.documents.own_files import describe_own_file
from featpipe.errors import DocumentError, MissingDocuments, UsageError
from featpipe.extraction.corrections import Correction
from featpipe.extraction.corrections_log import CorrectionsLog
from featpipe.extraction.results import ExtractedValue as Value
from featpipe.extraction.results import Extraction, FieldResult, Provenance
from featpipe.extraction.results_file import write_extractions
from featpipe.store import Writer


def write_all(folder: Path) -> dict[str, str]:
    """One of each kind, under names of documents; name -> what it is."""
    found = FieldResult((Value("甲", "甲", "", "", 0, 1, None, 0.9),))
    extraction = Extraction("a.txt", {"甲方": found}, (), Provenance("t", "0" * 32, "", "", "c"))
    Writer.open(folder / "notes.txt").close()
    for name in ("r.jsonl", "r.csv"):
        write_extractions([extraction], folder / name)
    whole = (folder / "r.jsonl").read_bytes()
    (folder / "half.txt").write_bytes(whole[: len(whole) // 2])
    (folder / "t.toml").write_text('name = "t"\n[[fields]]\nname = "甲方"\n', "utf-8")
    (folder / "u.json").write_text(
        '{"name": "u", "fields": [{"name": "甲方"}],\n"samples": [{"text": "甲", "fields": {}}]}',
        "utf-8",
    )
    none = Correction(template="t", verdict="none", document="a.txt", key="0" * 32, field="甲方")
    CorrectionsLog(folder / "t.toml").append([none])
    (folder / "t.samples.jsonl").write_text('{"text": "甲", "fields": {"甲方": ["甲"]}}\n', "utf-8")
    with zipfile.ZipFile(folder / "r.xlsx", "w") as book:
        book.writestr("docProps/core.xml", "<dc:creator>featpipe</dc:creator>")
    page = (Path(__file__).parents[2] / "featpipe/html_report/assets/page.html").read_bytes()
    (folder / "page.html").write_bytes(page)
    return {
        "notes.txt": "a cache", "r.jsonl": "results", "r.csv": "results", "half.txt": "results",
        "t.toml": "a template", "t.samples.jsonl": "samples of a template", "r.xlsx": "results",
        "page.html": "a report", "u.json": "a template",
        "t.corrections.jsonl": "corrections of a template",
    }  # fmt: skip


def test_each_kind_is_recognised_by_its_content(tmp_path: Path) -> None:
    written = write_all(tmp_path)
    assert {name: describe_own_file(tmp_path / name) for name in written} == written


def test_parquet_results_are_recognised(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_extractions([], tmp_path / "r.parquet")
    assert describe_own_file(tmp_path / "r.parquet") == "results"


def test_documents_that_look_alike_are_documents(tmp_path: Path) -> None:
    texts = {
        "a.jsonl": '{"id": "1", "text": "甲"}\n', "b.json": '{"name": "x", "fields": [{}]}',
        "c.toml": '[tool]\nname = "x"\n', "d.html": "<html><title>featpipe</title></html>",
        "e.txt": "", "f.toml": "not toml [", "j.json": '{"name": "x", "fields": [{"name": "y"}]}',
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    with (tmp_path / "g.csv").open("w", encoding="utf-8") as file:
        csv.writer(file).writerow(["document", "amount"])
    (tmp_path / "h.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(200))
    with zipfile.ZipFile(tmp_path / "i.xlsx", "w") as book:
        book.writestr("docProps/core.xml", "<dc:creator>somebody</dc:creator>")
    assert {path.name: describe_own_file(path) for path in tmp_path.iterdir()} == dict.fromkeys(
        [*texts, "g.csv", "h.h5", "i.xlsx"]
    )


def test_in_a_folder_they_are_passed_over_and_said_once(tmp_path: Path) -> None:
    written = write_all(tmp_path)
    (tmp_path / "doc.txt").write_text("正文", "utf-8")
    found = search([tmp_path])
    assert [source.path.name for source in found.sources] == ["doc.txt"]
    (note,) = found.notes
    assert note.startswith(f"{len(written)} files that featpipe wrote were passed over (")


def test_one_that_is_named_is_an_error(tmp_path: Path) -> None:
    write_all(tmp_path)
    with pytest.raises(UsageError, match=r"r\.jsonl is results that featpipe wrote"):
        find_sources([tmp_path / "r.jsonl"])


def test_the_cache_being_written_may_be_named_among_documents(tmp_path: Path) -> None:
    write_all(tmp_path)
    (tmp_path / "doc.txt").write_text("正文", "utf-8")
    found = search([tmp_path / "doc.txt", tmp_path / "notes.txt"], own=tmp_path / "notes.txt")
    assert [source.path.name for source in found.sources] == ["doc.txt"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_cache_as_its_own_and_only_document_is_named_as_the_reason(
    tmp_path: Path, *, is_there: bool
) -> None:
    if is_there:
        Writer.open(tmp_path / "c.h5").close()
    with pytest.raises(MissingDocuments, match=r"no documents in .*c\.h5") as error:
        search([tmp_path / "c.h5"], own=tmp_path / "c.h5")
    assert error.value.hint == "that is the cache to be written; name the documents for it"


@pytest.mark.parametrize("suffix", ["docx", "zip"])
def test_a_damaged_archive_is_none_of_them_and_no_end_of_the_search(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("docProps/core.xml", "<dc:creator>somebody</dc:creator>" * 9)
    whole = path.read_bytes()
    data = 30 + len("docProps/core.xml")  # the compressed bytes begin here
    places = [range(data, data + 12), *(range(place, place + 1) for place in range(len(whole)))]
    for damaged in places:
        content = bytes(b ^ 0xFF if place in damaged else b for place, b in enumerate(whole))
        path.write_bytes(content)
        assert describe_own_file(path) is None
        for source in search([tmp_path], expand=True).sources:
            with suppress(DocumentError):
                source.read()
