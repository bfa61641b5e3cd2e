"""Extraction on workers: equal to extraction here, and a poison document costs itself alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from featpipe import Extractor
from featpipe.cli.main import featpipe
from featpipe.documents import load_document
from featpipe.errors import CheckpointError, DictionaryChanged, TemplateError, UsageError
from featpipe.extraction.messages import (
    ALL,
    AUTO,
    ExtractTask,
    FieldsTask,
    Inline,
    OnDisk,
    ReloadTask,
    Stored,
    Upload,
)
from featpipe.extraction.on_workers import extract_role
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.extraction.results import Extraction
from featpipe.extraction.worker import ExtractRole
from featpipe.on_demand.space import Checkpoints
from featpipe.pool import Pool
from featpipe.report import Quarantined

LEASES = [f"contracts/lease_{n}" for n in ("factory.txt", "office.md", "shop.txt")]
POISON = "编号：" + "a" * 60 + "!"


@pytest.fixture
def mixed(documents: Path, tmp_path: Path) -> list[str | Path]:
    """A cached id, a cached path, a text from nowhere, a file beside the cache, a broken file."""
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / "new.txt").write_text("出租方：汉口置业有限公司\n月租金：3,500元\n", "utf-8")
    text = "甲方（出租方）：长沙实业有限公司，每月租金为人民币8,000元。"
    return [LEASES[0], documents / LEASES[1], text, tmp_path / "new.txt", tmp_path / "bad.pdf",
            LEASES[2]]  # fmt: skip


@pytest.mark.parametrize("template", ["租赁合同", ALL, AUTO])
def test_workers_give_what_this_process_gives(
    cache: Path, templates: Path, mixed: list[str | Path], template: str
) -> None:
    with Extractor(templates, cache) as extractor:
        here = list(extractor.extract_many(mixed, template))
        there = list(extractor.extract_many(mixed, template, workers=2))
    assert there == here
    # The broken file; two texts of one line are like no sample.
    n_left_out = 3 if template == AUTO else 1
    assert [type(one) for one in here].count(Quarantined) == n_left_out
    assert isinstance(here[-1], Extraction)
    assert here[-1].document == f"documents/{LEASES[2]}"


def test_a_loaded_document_travels(cache: Path, templates: Path, documents: Path) -> None:
    data = (documents / LEASES[0]).read_bytes() + "\n补充条款：无。".encode()
    loaded = load_document(data, source="loaded.txt")
    with Extractor(templates, cache) as extractor:
        here = list(extractor.extract_many([loaded], "租赁合同"))
        assert list(extractor.extract_many([loaded], "租赁合同", workers=1)) == here
    assert isinstance(here[0], Extraction)
    assert here[0].document == "loaded.txt"


def write_trap(folder: Path) -> Path:
    """A template whose pattern takes for ever on one text, and no time on others."""
    file = folder / "trap.toml"
    file.write_text(
        'name = "trap"\n[[fields]]\nname = "编号"\ntype = "pattern"\npattern = "编号：(a+)+b"\n',
        "utf-8",
    )
    return file


def test_a_document_that_never_ends_is_given_up_and_the_others_are_done(
    cache: Path, tmp_path: Path
) -> None:
    given = ["编号：aab", POISON, "编号：ab 两份", "没有"]
    with Extractor(write_trap(tmp_path), cache) as extractor:
        found = list(extractor.extract_many(given, workers=1, deadline_s=8.0))
    assert [isinstance(one, Extraction) for one in found] == [True, False, True, True]
    lost = found[1]
    assert isinstance(lost, Quarantined)
    assert (lost.error, "past its deadline" in lost.reason) == ("TaskTimedOut", True)
    assert isinstance(found[0], Extraction)
    assert found[0].fields["编号"].value == "编号：aab"


def test_a_task_is_tried_document_by_document() -> None:
    """So that one that never ends costs its deadline twice, not once for every halving."""
    given = tuple(Inline(text) for text in "abc")
    pieces = ExtractTask(given, "t", with_text=True).split()
    assert pieces == tuple(ExtractTask((one,), "t", with_text=True) for one in given)
    works = tuple((path, "t", (("f", "ab"),)) for path in "abc")
    assert FieldsTask(works).split() == tuple(FieldsTask((work,)) for work in works)
    assert ExtractTask(given[:1]).split() is None
    assert FieldsTask(works[:1]).split() is None


def test_a_command_gives_a_pattern_that_never_ends_to_a_worker(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "poison.txt").write_text(POISON, "utf-8")
    result = CliRunner().invoke(
        featpipe,
        ["extract", str(tmp_path / "poison.txt"), "--cache", str(cache),
         "--templates", str(write_trap(tmp_path)), "--deadline", "1"],
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (1, "")
    assert "past its deadline" in result.stderr


def test_a_role_answers_for_every_kind_of_document(
    cache: Path, templates: Path, documents: Path
) -> None:
    data = (documents / LEASES[0]).read_bytes()
    given = (
        Stored(LEASES[0]), OnDisk(str(documents / LEASES[0])), Upload(data, "mine.txt"),
        Upload(b"\x00\x01", "x.bin"), Stored("gone"), Inline("出租方：汉口置业有限公司", "note"),
    )  # fmt: skip
    with Pool([extract_role(cache, templates)]) as pool:
        done = pool.call("extract", ExtractTask(given, "租赁合同", with_text=True))
    known = f"documents/{LEASES[0]}"
    assert [d.document for d in done] == [known, known, "mine.txt", "x.bin", "gone", "note"]
    assert [d.quarantined is None for d in done] == [True, True, True, False, False, True]
    values = [done[n].extractions[0].as_dict()["fields"] for n in range(3)]
    assert values[0] == values[1] == values[2]
    json.dumps(values)
    for one in done[:3]:
        for result in one.extractions[0].fields.values():
            for value in result.values:
                assert one.text[value.start : value.end] == value.text


def test_a_worker_that_has_read_texts_only_sees_the_file_that_replaced_its_cache(
    cache: Path, templates: Path, tmp_path: Path
) -> None:
    role = ExtractRole(cache=str(cache), templates=str(templates), checkpoints="none")
    task = ExtractTask((Inline("出租方：汉口置业有限公司"),), "租赁合同")
    try:
        [before] = role.run(task)
        copy = shutil.copy(cache, tmp_path / "copy.h5")
        os.truncate(cache, cache.stat().st_size // 4)
        with pytest.raises(DictionaryChanged):
            role.run(task)
        copy.replace(cache)
        [after] = role.run(task)
    finally:
        role.close()
    assert after.extractions[0].fields == before.extractions[0].fields


def test_a_worker_sees_a_changed_template_and_says_when_it_is_broken(
    cache: Path, templates: Path
) -> None:
    file = templates / "lease.toml"
    good = file.read_text("utf-8")
    with Pool([extract_role(cache, templates)]) as pool:
        before = pool.call("extract", ReloadTask())
        renamed = good.replace('name = "月租金"', 'name = "租金"').replace('"月租金" =', '"租金" =')
        file.write_text(renamed, "utf-8")
        after = pool.call("extract", ReloadTask())
        done = pool.call("extract", ExtractTask((Stored(LEASES[0]),), "租赁合同"))
        file.write_text("name = ", "utf-8")
        broken = pool.call("extract", ReloadTask())
    assert before.fingerprints["减持公告"] == after.fingerprints["减持公告"]
    assert before.fingerprints["租赁合同"] != after.fingerprints["租赁合同"]
    assert "租金" in done[0].extractions[0].fields
    assert broken.fingerprints == after.fingerprints
    assert "lease.toml:1" in broken.problem
    assert not after.problem


def test_unknown_texts_are_encoded_by_the_model_of_the_cache_and_by_no_other(
    cache: Path, built: Path, templates: Path, tmp_path: Path
) -> None:
    from tiny_checkpoints import save_encoder

    same = Checkpoints(model=str(built.parent / "tiny"))
    text = "出租方：汉口置业有限公司。\n乙方应于每月五日前付款。"
    with Extractor(templates, cache, checkpoints=same) as extractor:
        here = list(extractor.extract_many([text], "租赁合同"))
        assert extractor.engine.pages.n_encoded == 2
        assert list(extractor.extract_many([text], "租赁合同", workers=1)) == here
        known = extractor.engine.page_of(LEASES[0])[0].page
        again = extractor.engine.pages.page_of_text(known.text).page
        assert known.vectors is not None
        assert again.vectors is not None
        assert known.vectors.tobytes() == again.vectors.tobytes()
    other = Checkpoints(model=str(save_encoder(tmp_path / "other", seed=9)))
    with Extractor(templates, cache, checkpoints=other) as extractor:
        with pytest.raises(CheckpointError, match="the cache was built with"):
            list(extractor.extract_many([text], "租赁合同", workers=1))
        with pytest.raises(CheckpointError, match="the cache was built with"):
            list(extractor.extract_many([text], "租赁合同"))


def test_mistakes_of_the_caller_are_raised_and_not_quarantined(
    cache: Path, templates: Path
) -> None:
    with Extractor(templates, cache, encode=len) as extractor:  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no template 'x'"):
            list(extractor.extract_many(LEASES, "x"))
        with pytest.raises(UsageError, match="cannot travel"):
            list(extractor.extract_many(LEASES, "租赁合同", workers=1))
    with Extractor(templates, cache) as extractor, pytest.raises(UsageError, match="no template"):
        list(extractor.extract_many(LEASES, "x", workers=1))


def test_a_template_that_cannot_be_used_is_named_by_the_pool(cache: Path, tmp_path: Path) -> None:
    from featpipe.errors import PoolBroken

    (tmp_path / "t.toml").write_text("name = ", "utf-8")
    role = extract_role(cache, tmp_path / "t.toml")
    with Pool([role]) as pool, pytest.raises(PoolBroken) as caught:
        pool.call("extract", ReloadTask())
    assert isinstance(caught.value.__cause__, TemplateError)


def test_the_likeliest_template_is_chosen_for_each_document(cache: Path, templates: Path) -> None:
    with Extractor(templates, cache) as extractor:
        extractions = {}
        for document in extractor.cache.documents():
            page = extractor.engine.pages.page_of_text(document.text)  # its name shall tell nothing
            extractions[document.id] = extractor.engine.template_set.choose_for(page, AUTO)[
                0
            ].template.name
    right = {"lease": "租赁合同", "reduction": "减持公告"}
    for name, chosen in extractions.items():
        for part, wanted in right.items():
            if part in name:
                assert chosen == wanted, name


def test_reprocess_on_workers_equals_reprocess_here(
    cache: Path, templates: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.h5"
    other.write_bytes(cache.read_bytes())
    found = []
    for path, workers in ((cache, 0), (other, 2)):
        with Extractor(templates, path) as extractor:
            report = reprocess(extractor, workers=workers)
            assert (report.n_encoded, report.lost) == (0, [])
            again = reprocess(extractor, workers=workers)
            assert again.n_extracted == 0
            found.append(
                {(e.document, e.provenance.template): dict(e.fields)
                 for e in read_results(extractor)}
            )  # fmt: skip
    assert found[0] == found[1]


def test_a_document_that_is_lost_in_reprocessing_is_named_and_tried_again(
    cache: Path, built: Path, tmp_path: Path
) -> None:
    from featpipe import Pipeline

    (tmp_path / "poison.txt").write_text(POISON, "utf-8")
    with Pipeline(cache, built.parent / "tiny", "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(tmp_path / "poison.txt").is_complete
    with Extractor(write_trap(tmp_path), cache) as extractor:
        report = reprocess(extractor, workers=1, deadline_s=8.0)
        n = len(list(extractor.cache.documents()))
    assert report.n_extracted == n - 1
    assert [one.error for one in report.lost] == ["TaskTimedOut"]
    assert "lost 1" in report.summary()
    (tmp_path / "trap.toml").write_text(
        (tmp_path / "trap.toml").read_text("utf-8").replace("(a+)+b", "a+!"), "utf-8"
    )
    with Extractor(tmp_path / "trap.toml", cache) as extractor:
        assert reprocess(extractor, workers=1).lost == []


def test_the_commands_take_workers(cache: Path, templates: Path) -> None:
    where = ["--cache", str(cache), "--templates", str(templates / "lease.toml"), "--workers", "1"]
    here = CliRunner().invoke(featpipe, ["extract", *LEASES, *where[:-1], "0"])
    there = CliRunner().invoke(featpipe, ["extract", *LEASES, *where])
    assert (there.exit_code, there.stdout) == (0, here.stdout)
    report = CliRunner().invoke(featpipe, ["reprocess", *where, "--json"])
    assert json.loads(report.stdout)["extracted"] == 40
