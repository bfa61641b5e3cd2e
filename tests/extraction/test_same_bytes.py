"""Files with the same bytes: every result carries the document that was asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from featpipe import Extraction, Extractor, Pipeline
from featpipe.cli.main import featpipe
from featpipe.documents import Source, load_document
from featpipe.extraction.messages import ExtractTask, FromSource, OnDisk, Stored, Upload
from featpipe.extraction.on_workers import extract_role
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.html_report.results import read_file, read_stored
from featpipe.pool import Pool

TEXT = "出租方：汉口**置业**有限公司\n承租方：张三\n月租金：3,500元\n"
NAMES = ["lease_1.txt", "lease_2.txt", "lease_3.md"]
IDS = [f"twins/{name}" for name in NAMES]


@pytest.fixture
def twins(cache: Path, built: Path, tmp_path: Path) -> Path:
    """A folder with two texts and one Markdown file of the same bytes; the cache holds all."""
    folder = tmp_path / "twins"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text(TEXT, "utf-8")
    with Pipeline(cache, built.parent / "tiny", "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder).is_complete
    return folder


def names_of(found: object) -> list[str]:
    return [one.document for one in found if isinstance(one, Extraction)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [0, 1])
def test_the_library_names_each_file_as_it_was_asked_for(
    cache: Path, twins: Path, templates: Path, tmp_path: Path, workers: int
) -> None:
    shutil.copytree(twins, tmp_path / "copies")
    copies = [tmp_path / "copies" / name for name in NAMES]
    with Extractor(templates, cache, checkpoints="none") as extractor:
        cached = list(
            extractor.extract_many([twins / n for n in NAMES], "租赁合同", workers=workers)
        )
        stored = list(extractor.extract_many(NAMES, "租赁合同", workers=workers))
        loaded = [load_document(TEXT.encode(), source=name) for name in NAMES]
        given = list(extractor.extract_many(loaded, "租赁合同", workers=workers))
        known = [extractor.cache.document(name) for name in NAMES]
        handed = list(extractor.extract_many(known, "租赁合同", workers=workers))
        copied = list(extractor.extract_many(copies, "租赁合同", workers=workers))
    assert cached == stored == handed
    assert names_of(cached) == IDS
    assert names_of(given) == NAMES
    assert names_of(copied) == list(map(str, copies))


def test_the_same_bytes_as_another_kind_of_text_are_another_text(
    cache: Path, twins: Path, templates: Path, tmp_path: Path
) -> None:
    """Markdown loses its asterisks; plain text keeps them."""
    with Extractor(templates, cache, checkpoints="none") as extractor:
        for name in NAMES:
            copy = Path(shutil.copy(twins / name, tmp_path / name))
            assert ("**" in extractor.engine.page_of(copy)[0].page.text) == name.endswith(".txt")
            other = name.replace("lease_1.txt", "lease_1.html")
            copy = Path(shutil.copy(twins / name, tmp_path / other))
            found = extractor.extract(copy, "租赁合同")
            text = extractor.engine.page_of(copy)[0].page.text
            for field in found.fields.values():
                assert all(text[v.start : v.end] == v.text for v in field.values)


def test_the_command_names_each_file(cache: Path, twins: Path, templates: Path) -> None:
    words = ["extract", "--cache", str(cache), "--templates", str(templates), "--template",
             "租赁合同"]  # fmt: skip
    for given in ([str(twins)], [str(twins / n) for n in NAMES], NAMES):
        result = CliRunner().invoke(featpipe, [*words, *given])
        assert result.exit_code == 0, result.output
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert [row["document"] for row in rows] == IDS


def test_what_the_service_and_the_consumer_hand_in_is_named_as_it_came(
    cache: Path, twins: Path, templates: Path
) -> None:
    given = (
        Upload(TEXT.encode(), "mine.txt"), OnDisk(str(twins / "lease_2.txt")),
        OnDisk(str(twins / "lease_1.txt"), "other"), Stored("lease_1.txt"),
        FromSource(Source("inside", twins / "lease_3.md")),
    )  # fmt: skip
    with Pool([extract_role(cache, templates)]) as pool:
        done = pool.call("extract", ExtractTask(given, "租赁合同"))
    expected = ["mine.txt", IDS[1], "other", IDS[0], "inside"]
    assert [one.document for one in done] == expected
    assert [one.extractions[0].document for one in done] == expected


def test_reprocess_and_report_keep_them_apart(
    cache: Path, twins: Path, templates: Path, tmp_path: Path
) -> None:
    with Extractor(templates, cache, checkpoints="none") as extractor:
        reprocess(extractor)
        found = [e for e in read_results(extractor) if e.provenance.template == "租赁合同"]
        assert set(IDS) <= set(names_of(found))
        documents = list(extractor.cache.documents())
        out = tmp_path / "o.jsonl"
        out.write_text("".join(e.as_json() + "\n" for e in found), "utf-8")
        from_file = read_file(out, documents)
        in_cache = read_stored(extractor.cache)
    places = {("租赁合同", str(twins / name)) for name in NAMES}
    assert places <= from_file.fields.keys()
    assert places <= in_cache.fields.keys()


def test_two_places_with_one_id_are_named_by_their_paths(
    cache: Path, built: Path, templates: Path, tmp_path: Path
) -> None:
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        text = TEXT.replace("3,500", f"{number + 3},500")
        (tmp_path / folder / "lease_x.txt").write_text(text, "utf-8")
        with Pipeline(cache, built.parent / "tiny", "none", devices=["cpu"]) as pipeline:
            assert pipeline.build(tmp_path / folder).is_complete
    with Extractor(templates, cache, checkpoints="none") as extractor:
        documents = [d for d in extractor.cache.documents() if d.path.endswith("lease_x.txt")]
        found = list(extractor.extract_many(documents, "租赁合同"))
        assert len(set(names_of(found))) == 2
        out = tmp_path / "o.jsonl"
        lines = [e.as_json() + "\n" for e in found if isinstance(e, Extraction)]
        out.write_text("".join(lines), "utf-8")
        from_file = read_file(out, list(extractor.cache.documents()))
    assert set(from_file.fields) == {("租赁合同", d.path) for d in documents}
