"""What was found before the vectors or entities arrived is found again once they are there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from tiny_checkpoints import save_encoder, save_tagger

from featpipe import Extractor, Pipeline
from featpipe.cli.main import featpipe
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.extraction.reprocess_plan import plan_reprocess
from featpipe.extraction.template_file import check_template

if TYPE_CHECKING:
    from featpipe.extraction.results import FieldResult
    from featpipe.extraction.template import Template

TEXTS = {
    "a.txt": "租赁合同\n出租方：长沙实业有限公司\n每月租金为8,000元。\n双方应当遵守本合同。\n",
    "b.txt": "租赁合同\n由汉口置业有限公司出租。\n租金标准：每月9,500元，押金1,200元。\n其他无。\n",
    "c.txt": "租赁合同\n出租方：株洲禾宁运营有限公司\n承租方按月支付租金300元。\n由法院管辖。\n",
}
VALUES = {"出租方": "长沙实业有限公司", "月租金": "8,000元"}


def make() -> Template:
    content = {
        "name": "租赁",
        "fields": [{"name": name} for name in VALUES],
        "samples": [{"document": "a.txt", "fields": VALUES}],
    }
    return check_template(content, "", Path("t.toml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return save_encoder(tmp_path / "one")


def build(cache: Path, encoder: Path, documents: Path, tagger: Path | str = "none") -> None:
    with Pipeline(cache, encoder, tagger, devices=["cpu"]) as pipeline:
        assert pipeline.build(documents).is_complete


def outcome(cache: Path) -> dict[str, dict[str, FieldResult]]:
    with Extractor([make()], cache, space="one") as extractor:
        return {e.document: dict(e.fields) for e in read_results(extractor)}


def full_run(cache: Path) -> dict[str, dict[str, FieldResult]]:
    """Everything found anew, nothing read back."""
    with Extractor([make()], cache, space="one", models={}) as extractor:
        return {name: dict(extractor.extract(name).fields) for name in outcome(cache)}


def run(cache: Path) -> list[str]:
    """What the plan says, once it is carried out."""
    with Extractor([make()], cache, space="one") as extractor:
        plan = plan_reprocess(extractor)
        assert reprocess(extractor, plan).lost == []
        assert plan_reprocess(extractor).n_fields == 0
        return list(plan.lines())


def test_vectors_that_arrive_later_count(tmp_path: Path, folder: Path, encoder: Path) -> None:
    cache = tmp_path / "c.h5"
    build(cache, encoder, folder / "a.txt")
    build(cache, save_encoder(tmp_path / "other", seed=9), folder)  # b and c without vectors
    run(cache)
    without = outcome(cache)
    build(cache, encoder, folder / "b.txt")
    assert run(cache) == [
        "租赁: 1 document with vectors or entities that came later: documents/b.txt",
        "2 fields in 1 of 3 documents to extract, 0 texts to encode",
    ]
    build(cache, encoder, folder)
    run(cache)
    assert outcome(cache) == full_run(cache)
    assert {name for name, found in outcome(cache).items() if found != without[name]} == {
        "documents/b.txt", "documents/c.txt"
    }  # fmt: skip


def test_entities_that_arrive_later_count(tmp_path: Path, folder: Path, encoder: Path) -> None:
    cache = tmp_path / "c.h5"
    tagger = save_tagger(tmp_path / "tagger")
    build(cache, encoder, folder)
    build(cache, encoder, folder / "a.txt", tagger)
    run(cache)
    build(cache, encoder, folder, tagger)
    assert run(cache)[0] == (
        "租赁: 2 documents with vectors or entities that came later: "
        "documents/b.txt, documents/c.txt"
    )
    assert outcome(cache) == full_run(cache)


def test_a_sample_without_its_vectors_is_learned_from_again(
    tmp_path: Path, folder: Path, encoder: Path
) -> None:
    cache = tmp_path / "c.h5"
    build(cache, encoder, folder / "b.txt")
    build(cache, save_encoder(tmp_path / "other", seed=9), folder)  # the sample without vectors
    run(cache)
    build(cache, encoder, folder)
    assert "sample changed: a.txt" in run(cache)[0]
    assert outcome(cache) == full_run(cache)


def test_a_dry_run_names_what_became_of_documents(
    tmp_path: Path, folder: Path, encoder: Path
) -> None:
    cache = tmp_path / "c.h5"
    build(cache, encoder, folder)
    template = tmp_path / "t.json"
    template.write_text(make().model_dump_json(), "utf-8")
    where = ["reprocess", "--cache", str(cache), "--templates", str(template)]
    first = CliRunner().invoke(featpipe, [*where, "--dry-run"]).stdout.splitlines()
    assert first == [
        "租赁: 出租方: new template",
        "租赁: 月租金: new template",
        "6 fields in 3 of 3 documents to extract, 0 texts to encode",
    ]
    CliRunner().invoke(featpipe, where)
    (folder / "b.txt").write_text(TEXTS["b.txt"].replace("9", "7"), "utf-8")
    (folder / "d.txt").write_text(TEXTS["c.txt"].replace("3", "4"), "utf-8")
    build(cache, encoder, folder)
    assert CliRunner().invoke(featpipe, [*where, "--dry-run"]).stdout.splitlines() == [
        "租赁: 1 document changed: documents/b.txt",
        "租赁: 1 document new: documents/d.txt",
        "4 fields in 2 of 4 documents to extract, 0 texts to encode",
    ]
