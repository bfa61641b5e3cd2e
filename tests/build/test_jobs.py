"""Jobs on a folder cache make the rows that one machine makes, whatever happens to them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from featpipe.build.jobs import Job, JobReport, Seat, SeatJobs, run_job
from featpipe.build.publish import open_folder
from featpipe.build.shards.encode import Shard
from featpipe.build.shards.folder_plan import FolderPlan, Models, plan_folder
from featpipe.build.shards.part_lists import RunPlan, plan_run
from featpipe.cache.levels import level_bits
from featpipe.cache.texts import split_keys
from featpipe.documents.find import search
from featpipe.errors import CheckpointError, UnreadableDictionary, UsageError
from featpipe.settings import BuildSettings
from featpipe.store import Reader, open_reader
from tests.build.folder_contents import folder_differences
from tests.building import build

SEAT = Seat(("cpu",), threads=1)
N_SHARDS = 4
SHARED = "本公司及董事会全体成员保证公告内容的真实、准确、完整，不存在虚假记载。"


def plan(folder: Path, documents: Path, models: Models, n_parts: int = 2) -> RunPlan:
    target = open_folder(folder)
    plan_folder(target, models, BuildSettings(), ("cpu",), N_SHARDS)
    sources = search([documents]).sources
    return plan_run(
        target, sources, BuildSettings(), n_parts_asked=n_parts, is_unfinished=lambda _: False
    )


def run_all(folder: Path, run: RunPlan, seat: Seat = SEAT) -> list[JobReport]:
    with SeatJobs(folder, seat) as jobs:
        reports = [jobs.run(Job("prepare", n, run.id)) for n in range(run.n_parts)]
        return reports + [jobs.run(Job("encode", n)) for n in range(N_SHARDS)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve documents that share sentences, three of them in another format."""
    folder = tmp_path_factory.mktemp("corpus") / "docs"
    folder.mkdir()
    for number in range(12):
        lines = [f"第{number}号合同", SHARED, f"合同金额为{number},000万元，分{number % 3}期支付。"]
        if number % 4:
            (folder / f"{number:02d}.txt").write_text("\n".join(lines), "utf-8")
        else:
            html = "".join(f"<p>{line}</p>" for line in lines)
            (folder / f"{number:02d}.html").write_text(f"<html><body>{html}</body></html>")
    return folder


@pytest.fixture(scope="module")
def models(encoder_folder: Path, tagger_folder: Path) -> Models:
    return Models(encoder_folder, tagger_folder)


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory: pytest.TempPathFactory, corpus: Path, models: Models) -> Path:
    path = tmp_path_factory.mktemp("one") / "one.h5"
    build(path, corpus, Path(str(models.model)), ner=models.ner)
    return path


def test_two_parts_and_four_shards_hold_what_one_file_does(
    tmp_path: Path, corpus: Path, models: Models, one_machine: Path
) -> None:
    folder = tmp_path / "corpus.fp"
    reports = run_all(folder, plan(folder, corpus, models))
    assert all(report.is_done and not report.was_done for report in reports)
    assert sum(report.run.n_loaded for report in reports) == 12
    assert folder_differences(folder, one_machine) == []
    again = run_all(folder, plan(folder, corpus, models))
    assert [r.run.n_encoded for r in again] == [0] * len(again)
    assert sum(r.run.n_unchanged for r in again) == 12
    assert [r.was_done for r in again] == [False] * 2 + [True] * N_SHARDS
    assert folder_differences(folder, one_machine) == []


def test_a_job_that_was_broken_off_leaves_nothing_to_the_next_of_its_seat(
    tmp_path: Path, corpus: Path, models: Models, one_machine: Path
) -> None:
    folder = tmp_path / "corpus.fp"
    run = plan(folder, corpus, models)
    calls = iter([KeyboardInterrupt])

    def break_off_once(_: object) -> None:  # the first call: documents are being read
        for error in calls:
            raise error

    with SeatJobs(folder, SEAT, break_off_once) as jobs:
        with pytest.raises(KeyboardInterrupt):
            jobs.run(Job("prepare", 0, run.id))
        reports = [jobs.run(Job("prepare", n, run.id)) for n in range(run.n_parts)]
        reports += [jobs.run(Job("encode", n)) for n in range(N_SHARDS)]
    assert sum(report.run.n_loaded for report in reports) == 12
    assert folder_differences(folder, one_machine) == []


def test_later_documents_are_added_and_nothing_published_is_written_again(
    tmp_path: Path, corpus: Path, models: Models, one_machine: Path
) -> None:
    folder, one, more = tmp_path / "corpus.fp", tmp_path / "one.h5", tmp_path / "more"
    run_all(folder, plan(folder, corpus, models))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    more.mkdir()
    (more / "known.txt").write_text((corpus / "01.txt").read_text("utf-8"), "utf-8")
    # A sentence that was a part of a paragraph before is a paragraph by itself now.
    (more / "new.txt").write_text("分1期支付。\n此前没有的一段。", "utf-8")
    reports = run_all(folder, plan(folder, more, models))
    total = [sum(getattr(r.run, name) for r in reports) for name in ("n_loaded", "n_unchanged")]
    assert total == [2, 1]
    shutil.copyfile(one_machine, one)
    build(one, more, Path(str(models.model)), ner=models.ner)
    assert folder_differences(folder, one) == []
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / "shards" / "0.2.h5").exists()
    with open_reader(folder) as reader, Reader(one) as expected:
        assert levels_by_key(reader) == levels_by_key(expected)


def levels_by_key(reader: Reader) -> dict[bytes, int]:
    texts = reader.table("texts")
    keys = np.asarray(texts.gather("keys", np.arange(texts.n_rows)))
    return dict(zip(split_keys(keys), level_bits(reader).tolist(), strict=True))


@pytest.mark.parametrize("is_earlier_first", [True, False])
def test_of_attempts_at_a_shard_that_end_at_once_the_one_that_did_more_is_told_of(
    tmp_path: Path, corpus: Path, models: Models, *, is_earlier_first: bool
) -> None:
    target, job = open_folder(tmp_path / "corpus.fp"), Job("encode", 0)
    run = plan(tmp_path / "corpus.fp", corpus, models)
    attempts = []
    with SeatJobs(tmp_path / "corpus.fp", SEAT) as jobs:
        for number in range(run.n_parts):
            jobs.run(Job("prepare", number, run.id))
            attempts.append(Shard(target, FolderPlan.read(target), job))
        report = replace(jobs.run(Job("encode", 1)), job=job)
    for shard in attempts if is_earlier_first else reversed(attempts):
        shard.write_report(report)
    assert Shard(target, FolderPlan.read(target), job).done() is not None


def test_on_scratch_only_whole_files_reach_the_folder(
    tmp_path: Path, corpus: Path, models: Models, one_machine: Path
) -> None:
    folder, scratch = tmp_path / "corpus.fp", tmp_path / "scratch"
    seat = Seat(("cpu",), threads=1, scratch=str(scratch))
    run_all(folder, plan(folder, corpus, models), seat)
    assert folder_differences(folder, one_machine) == []
    assert not [path for path in scratch.rglob("*") if path.is_file()]
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_a_folder_without_a_plan_and_jobs_that_do_not_exist_are_refused(
    tmp_path: Path, corpus: Path, models: Models
) -> None:
    with pytest.raises(UnreadableDictionary, match="nothing was planned"):
        run_job(tmp_path / "nothing.fp", Job("encode", 0), SEAT)
    folder = tmp_path / "corpus.fp"
    plan(folder, corpus, models)
    for job in (Job("encode", N_SHARDS), Job("prepare", 2), Job("prepare", 0, "other")):
        with pytest.raises(UsageError):
            run_job(folder, job, SEAT)


def test_a_machine_with_other_weights_or_loaders_is_refused_with_the_difference(
    tmp_path: Path, corpus: Path, models: Models
) -> None:
    folder = tmp_path / "corpus.fp"
    plan(folder, corpus, models)
    description = folder / "cache.json"
    planned = description.read_text("utf-8")
    told = json.loads(planned)
    told["encoder"]["spec"]["weights"] = told["encoder"]["fingerprint"] = "of another machine"
    description.write_text(json.dumps(told), "utf-8")
    with pytest.raises(CheckpointError, match=r'weights: "of another machine" \| '):
        run_job(folder, Job("encode", 0), SEAT)
    told = json.loads(planned)
    told["preparation"]["segmenter"] = "of another machine"
    description.write_text(json.dumps(told), "utf-8")
    with pytest.raises(UsageError, match=r'segmenter: "of another machine" \| ') as error:
        run_job(folder, Job("prepare", 0), SEAT)
    assert "after an upgrade, build another folder, with --also" in str(error.value.hint)
    assert not list(folder.rglob("*.h5"))
