"""Real files, real spawned workers, a real cache: what a build promises."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from building import build, contents, stored_terms, with_waiting_loader
from waiting import HANG_S

from featpipe import Cache, Pipeline
from featpipe.build import run
from featpipe.build.publish import open_folder
from featpipe.build.queue import UnitQueue
from featpipe.build.shards.folder_plan import Models, plan_folder
from featpipe.documents import of_texts
from featpipe.encoders.builtin import find_builtin_model
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import (
    CheckpointError,
    DictionaryLocked,
    MissingDocuments,
    UnknownDevice,
    UnreadableDictionary,
)
from featpipe.store import Writer, key_of


def transformers_vector(folder: Path, text: str) -> np.ndarray:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        tokens = tokenizer(text, return_tensors="pt")
        return model(**tokens).last_hidden_state[0].mean(0).numpy()


def test_a_queue_that_is_full_before_its_workers_are_served_ends_no_build(
    tmp_path: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read while so much waits, and the workers are handed out no less than more."""
    monkeypatch.setattr(run, "_MOST_WAITING_BYTES", 20_000)
    texts = [f"第{n}号 " + "合同金额" * 200 for n in range(80)]
    with Pipeline(tmp_path / "c.h5", encoder_folder, "none", devices=["cpu", "cpu"]) as pipeline:
        report = pipeline.build(of_texts(texts))
    assert report.is_complete
    assert report.n_loaded == len(texts)
    assert report.n_encoded == report.n_unique > len(texts)


def test_every_unit_gets_the_vector_that_transformers_computes(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    exact = EncoderSettings(precision="exact")
    report = build(tmp_path / "c.h5", corpus, encoder_folder, encoder=exact)
    assert report.is_complete
    assert report.n_loaded == 12
    assert report.n_encoded == report.n_unique > 20
    with Cache.open(tmp_path / "c.h5") as cache:
        documents = list(cache.documents())
        dictionary = cache.dictionary("tiny", "sentence")
        for document in documents:
            for level in ("paragraph", "sentence", "word"):
                for unit in document.units(level):
                    assert unit.text == document.text[unit.start : unit.end]
                    assert unit.text in dictionary
        sentence = documents[3].units("sentence")[1].text
        expected = transformers_vector(encoder_folder, sentence)
        np.testing.assert_allclose(dictionary[sentence], expected, atol=2e-3)
    assert len(documents) == 12


@pytest.mark.parametrize(
    ("chosen", "limit"), [("unnamed", 11), ("by folder", 11), ("another", 11), ("unnamed", 12)]
)
def test_many_documents_by_the_built_in_model_are_worth_a_hint(
    tmp_path: Path,
    corpus: Path,
    encoder_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    chosen: str,
    limit: int,
) -> None:
    monkeypatch.setattr("featpipe.build.pipeline._MANY", limit)
    named = {"unnamed": None, "by folder": find_builtin_model(), "another": encoder_folder}
    with Pipeline(tmp_path / "c.h5", named[chosen], "none", devices=["cpu"]) as pipeline:
        report = pipeline.build(corpus)
    hint = "12 documents by the small built-in model; a full-size encoder (--model) gives better"
    is_hinted = any(note.startswith(hint) for note in report.notes)
    assert is_hinted == (limit < 12 and chosen != "another")


def test_words_are_those_of_jieba(tmp_path: Path, corpus: Path, encoder_folder: Path) -> None:
    import jieba

    build(tmp_path / "c.h5", corpus, encoder_folder)
    tokenizer = jieba.Tokenizer()
    with Cache.open(tmp_path / "c.h5") as cache:
        for document in cache.documents():
            words = [unit.text for unit in document.units("word")]
            expected = [
                word
                for sentence in document.units("sentence")
                for word in tokenizer.cut(sentence.text)
                if not word.isspace()
            ]
            assert words == expected


def test_a_second_run_encodes_nothing(tmp_path: Path, corpus: Path, encoder_folder: Path) -> None:
    first = build(tmp_path / "c.h5", corpus, encoder_folder)
    before = contents(tmp_path / "c.h5")
    second = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert (second.n_encoded, second.n_hits) == (0, first.n_unique)
    assert second.n_unchanged == second.n_loaded == 12
    assert second.units_by_level == first.units_by_level
    assert contents(tmp_path / "c.h5") == before


def test_a_second_run_imports_no_torch(tmp_path: Path, corpus: Path, encoder_folder: Path) -> None:
    build(tmp_path / "c.h5", corpus, encoder_folder)
    code = (
        "import sys; from featpipe import Pipeline\n"
        f"p = Pipeline({str(tmp_path / 'c.h5')!r}, model={str(encoder_folder)!r}, ner='none',"
        " devices=['cpu'])\n"
        f"r = p.build({str(corpus)!r}); states = {{w.name for w in p._pool.workers() if w.pid}}\n"
        "p.close(); print(r.n_encoded, 'torch' in sys.modules, sorted(states))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=2)[:2] == ["0", "False"]
    assert "encode" not in done.stdout


def test_one_and_two_workers_store_the_same_bytes(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    build(tmp_path / "one.h5", corpus, encoder_folder, devices=["cpu"])
    build(tmp_path / "two.h5", corpus, encoder_folder, devices=["cpu", "cpu"])
    assert contents(tmp_path / "one.h5") == contents(tmp_path / "two.h5")


def test_one_changed_sentence_is_one_encoded_sentence(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    build(tmp_path / "c.h5", corpus, encoder_folder)
    changed = corpus / "01.txt"
    changed.write_text(changed.read_text("utf-8") + "\n全新补充条款也有效。", "utf-8")
    report = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert report.n_unchanged == 11
    new = {"全新补充条款也有效。"}
    with Cache.open(tmp_path / "c.h5") as cache:
        assert len(list(cache.documents())) == 12
        latest = next(d for d in cache.documents() if d.id.endswith("01.txt"))
        new |= {unit.text for unit in latest.units("word")[-8:]}
        assert "全新补充条款也有效。" in cache.dictionary()
    assert 1 <= report.n_encoded <= len(new)


def test_another_model_fills_another_space(
    tmp_path: Path, corpus: Path, encoder_folder: Path, tagger_folder: Path
) -> None:
    first = build(tmp_path / "c.h5", corpus, encoder_folder)
    second = build(tmp_path / "c.h5", corpus, tagger_folder)
    assert second.n_unchanged == 12
    assert second.n_encoded == first.n_encoded
    with Cache.open(tmp_path / "c.h5") as cache:
        a, b = (cache.dictionary(name) for name in cache.spaces())
        text = next(a.texts())
        assert a[text].tobytes() != b[text].tobytes()


def test_a_copied_file_is_the_same_content(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    build(tmp_path / "c.h5", corpus, encoder_folder)
    (corpus / "copy.txt").write_bytes((corpus / "01.txt").read_bytes())
    report = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert (report.n_unchanged, report.n_encoded) == (13, 0)
    with Cache.open(tmp_path / "c.h5") as cache:
        assert "docs/copy.txt" in {d.id for d in cache.documents()}


def test_a_renamed_file_is_the_same_content(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    build(tmp_path / "c.h5", corpus, encoder_folder)
    (corpus / "01.txt").rename(corpus / "inner" / "moved.txt")
    report = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert (report.n_unchanged, report.n_encoded) == (12, 0)
    with Cache.open(tmp_path / "c.h5") as cache:
        assert "docs/inner/moved.txt" in {document.id for document in cache.documents()}


def test_entities_point_at_their_characters(
    tmp_path: Path, corpus: Path, encoder_folder: Path, tagger_folder: Path
) -> None:
    from featpipe.encoders.tagger import Tagger

    report = build(tmp_path / "c.h5", corpus, encoder_folder, ner=tagger_folder)
    tagger = Tagger.load(tagger_folder)
    found = 0
    with Cache.open(tmp_path / "c.h5") as cache:
        for document in cache.documents():
            expected = []
            for unit in document.units("paragraph"):
                one = tagger.find_entities([unit.text])
                expected += [
                    (unit.start + int(a), unit.start + int(b), tagger.labels[kind])
                    for a, b, kind in zip(one.start, one.end, one.label, strict=True)
                ]
            entities = document.entities()
            assert [(e.start, e.end, e.label) for e in entities] == expected
            assert all(e.text == document.text[e.start : e.end] for e in entities)
            found += len(entities)
    assert 0 < report.n_entities <= found


def test_terms_of_every_sentence_are_those_of_the_analyser_also_after_another_run(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    from featpipe.lexical.terms import Analyser

    build(tmp_path / "c.h5", corpus, encoder_folder)
    (corpus / "more.txt").write_text("全新词语使词表变长。甲方与乙方协商解决争议。", "utf-8")
    build(tmp_path / "c.h5", corpus, encoder_folder)
    analyser = Analyser("chars")
    with Cache.open(tmp_path / "c.h5") as cache:
        stored = stored_terms(cache)
        sentences = {u.text for d in cache.documents() for u in d.units("sentence")}
        assert len(stored) == len(sentences)
        for sentence in sentences:
            counted = analyser.count([sentence])
            expected = [counted.vocabulary[number] for number in counted.ids]
            assert stored[key_of(sentence)] == expected


def test_bad_documents_are_named_and_the_others_finish(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    (corpus / "empty.txt").write_bytes(b"")
    (corpus / "blank.txt").write_text(" \n\t\n", "utf-8")
    (corpus / "rubbish.bin").write_bytes(bytes(range(256)) * 64)
    (corpus / "one.txt").write_text("合", "utf-8")
    report = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert {q.source.rpartition("/")[2] for q in report.quarantined} == {
        "empty.txt",
        "blank.txt",
        "rubbish.bin",
    }
    assert all(q.reason for q in report.quarantined)
    assert report.n_loaded + len(report.quarantined) == report.n_documents == 16
    with Cache.open(tmp_path / "c.h5") as cache:
        assert "合" in cache.dictionary()


def test_a_build_killed_at_any_time_goes_on_where_it_was(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    for number in range(100, 160):
        (corpus / f"{number}.txt").write_text(f"第{number}份附加文件的内容。" * 20, "utf-8")
    build(tmp_path / "whole.h5", corpus, encoder_folder)
    whole = contents(tmp_path / "whole.h5")
    cache = tmp_path / "c.h5"
    command = [sys.executable, "-m", "featpipe", "build-cache", str(corpus), "--cache", str(cache)]
    command += ["--model", str(encoder_folder), "--ner", "none", "--json", "--workers", "1"]
    for n_encoded in (1, 40):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as run:
            assert run.stdout is not None
            for line in run.stdout:
                if json.loads(line).get("n_encoded", 0) >= n_encoded:
                    run.kill()
                    break
        with h5py.File(cache, "r") as plain:
            assert "documents" in plain
    report = build(cache, corpus, encoder_folder)
    assert report.is_complete
    assert contents(cache) == whole


@pytest.fixture
def only_one_encode_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is not handed out, so that no machine is fast enough to end; each answer is told.

    Otherwise an encoder that is much faster than the disk has done it all before the first
    acknowledgement.
    """
    next_task, n_given = UnitQueue.next_task, 0

    def first_task(self: UnitQueue, *, is_last: bool) -> object:
        nonlocal n_given
        if self.product.role == "encode" and n_given:
            return None
        task = next_task(self, is_last=is_last)
        n_given += task is not None and self.product.role == "encode"
        return task

    monkeypatch.setattr(UnitQueue, "next_task", first_task)
    monkeypatch.setattr(run, "_TICK_S", 0.0)


def test_the_first_interrupt_commits_and_reports(
    tmp_path: Path,
    corpus: Path,
    encoder_folder: Path,
    only_one_encode_task: None,  # noqa: ARG001  # undone in the middle
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(100, 400):
        (corpus / f"{number}.txt").write_text(f"第{number}份附加文件的内容。" * 40, "utf-8")
    cache = tmp_path / "c.h5"
    with Pipeline(cache, model=encoder_folder, ner="none", devices=["cpu"]) as pipeline:
        seen: list[int] = []

        def stop_early(progress: object) -> None:
            seen.append(progress.n_encoded)  # type: ignore[attr-defined]
            if seen[-1]:
                pipeline.stop_after_current()

        report = pipeline.build(corpus, listen=stop_early)
    assert report.was_interrupted
    assert 0 < report.n_encoded < report.n_unique
    with Cache.open(cache) as opened:
        assert len(opened.dictionary()) == report.n_encoded
    monkeypatch.undo()
    rest = build(cache, corpus, encoder_folder)
    assert rest.is_complete
    assert rest.n_hits == report.n_encoded


def test_an_interrupt_ends_the_taking_in_of_known_documents(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    for number in range(100, 400):
        (corpus / f"{number}.txt").write_text(f"第{number}份。", "utf-8")
    cache = tmp_path / "c.h5"
    whole = build(cache, corpus, encoder_folder)
    with Pipeline(cache, model=encoder_folder, ner="none", devices=["cpu"]) as pipeline:
        report = pipeline.build(corpus, listen=lambda _: pipeline.stop_after_current())
    assert report.was_interrupted
    assert report.n_loaded < whole.n_loaded


def test_a_build_that_was_broken_off_leaves_nothing_to_the_next(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    """As in a notebook: Ctrl-C while workers have tasks, and the same cell again."""

    def break_off(_: object) -> None:  # the first call: documents are being read
        raise KeyboardInterrupt

    with Pipeline(tmp_path / "c.h5", encoder_folder, "none", devices=["cpu"]) as pipeline:
        with pytest.raises(KeyboardInterrupt):
            pipeline.build(corpus, listen=break_off)
        assert not pipeline.is_running
        report = pipeline.build(corpus)
    assert report.is_complete
    assert report.n_loaded == 12
    build(tmp_path / "other.h5", corpus, encoder_folder)
    assert contents(tmp_path / "c.h5") == contents(tmp_path / "other.h5")


def test_a_second_build_of_a_pipeline_at_once_is_refused_and_the_first_is_whole(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    refused = []
    with Pipeline(tmp_path / "c.h5", encoder_folder, "none", devices=["cpu"]) as pipeline:

        def build_another(_: object) -> None:  # while the first goes on, as a thread would
            for run in (pipeline.build, pipeline.dry_run):
                with pytest.raises(DictionaryLocked, match="another build of this pipeline"):
                    run(corpus / "02.txt")
                refused.append(run.__name__)

        assert pipeline.build(corpus / "01.txt").is_complete  # workers are there
        report = pipeline.build(corpus, listen=build_another)
        assert refused
        assert (report.is_complete, report.n_loaded) == (True, 12)
        assert pipeline.build(corpus).n_hits == report.n_unique


def test_the_same_text_is_never_encoded_twice(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    report = build(tmp_path / "c.h5", corpus, encoder_folder, devices=["cpu", "cpu"])
    with Cache.open(tmp_path / "c.h5") as cache:
        texts = list(cache.dictionary().texts())
        distinct = {
            unit.text
            for document in cache.documents()
            for level in report.units_by_level
            for unit in document.units(level)
        }
    assert len(texts) == len(set(texts)) == report.n_encoded == report.n_unique
    assert set(texts) == distinct


def test_archives_records_and_texts_at_hand_are_documents(
    tmp_path: Path, encoder_folder: Path
) -> None:
    import zipfile

    from featpipe.documents import of_texts

    folder = tmp_path / "docs"
    folder.mkdir()
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("a.txt", "甲方与乙方签订合同。")
        archive.writestr("b.txt", "双方协商解决争议。")
    records = [{"id": "r1", "text": "合同金额为三万元。"}, {"id": "r2", "text": "<p>标签</p>"}]
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    given = [folder, *of_texts([("t1", "中标金额为五亿元。")])]
    for n_encoded in (True, False):
        report = build(tmp_path / "c.h5", given, encoder_folder)
        assert (report.n_loaded, bool(report.n_encoded)) == (5, n_encoded)
    with Cache.open(tmp_path / "c.h5") as cache:
        texts = {document.text for document in cache.documents()}
    assert texts == {
        "甲方与乙方签订合同。",
        "双方协商解决争议。",
        "合同金额为三万元。",
        "<p>标签</p>",
        "中标金额为五亿元。",
    }


def test_a_run_over_one_level_leaves_the_others_as_they_were(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    from featpipe.settings import BuildSettings

    words = build(
        tmp_path / "c.h5", corpus, encoder_folder, settings=BuildSettings(levels=("word",))
    )
    assert list(words.units_by_level) == ["word"]
    whole = build(tmp_path / "c.h5", corpus, encoder_folder)
    again = build(
        tmp_path / "c.h5", corpus, encoder_folder, settings=BuildSettings(levels=("word",))
    )
    assert whole.n_unchanged == again.n_unchanged == 12
    assert (again.n_encoded, again.n_hits) == (0, words.n_unique)
    with Cache.open(tmp_path / "c.h5") as cache:
        assert all(document.units("sentence") for document in cache.documents())


@pytest.mark.parametrize("empty", ["model", "ner"])
def test_an_empty_name_of_a_model_is_not_the_built_in_one(
    tmp_path: Path, encoder_folder: Path, empty: str
) -> None:
    given = {"model": str(encoder_folder), "ner": "none"} | {empty: ""}
    with pytest.raises(CheckpointError, match="the name of a model is empty"):
        Pipeline(tmp_path / "c.h5", **given)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="the name of a model is empty"):
        plan_folder(open_folder(tmp_path / "c.fp"), Models(**given), None, ("cpu",), 2)


def test_a_cache_among_the_documents_is_none_of_them(corpus: Path, encoder_folder: Path) -> None:
    for _ in range(2):
        report = build(corpus / "c.h5", corpus, encoder_folder)
        assert (report.n_documents, report.is_complete) == (12, True)


def test_a_cache_behind_a_link_is_made_where_the_link_points(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    (tmp_path / "link.h5").symlink_to(tmp_path / "target.h5")
    assert build(tmp_path / "link.h5", corpus, encoder_folder).is_complete
    assert (tmp_path / "target.h5").is_file()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_cache_path_that_is_no_file_is_named(
    tmp_path: Path, corpus: Path, encoder_folder: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "odd.h5")
    with pytest.raises(UnreadableDictionary, match=r"odd\.h5"):
        build(tmp_path / "odd.h5", corpus, encoder_folder)


def test_a_dry_run_counts_what_a_build_then_does(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    cache = tmp_path / "c.h5"
    with Pipeline(cache, model=encoder_folder, ner="none", devices=["cpu"]) as pipeline:
        before = pipeline.dry_run(corpus)
        assert not cache.exists()
        report = pipeline.build(corpus)
        (corpus / "new.txt").write_text("新增补充条款也有效。", "utf-8")
        after = pipeline.dry_run(corpus)
        then = pipeline.build(corpus)
    assert (before.n_missing, before.n_hits) == (report.n_encoded, 0)
    assert before.units_by_level == report.units_by_level
    assert (after.n_missing, after.n_unchanged) == (then.n_encoded, 12)
    assert after.n_hits == then.n_hits


def test_two_runs_at_once_encode_every_text_once(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    command = [sys.executable, "-m", "featpipe", "build-cache", str(corpus), "--json"]
    command += ["--cache", str(tmp_path / "c.h5"), "--model", str(encoder_folder), "--ner", "none"]
    command += ["--workers", "1"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    reports = [json.loads(run.communicate(timeout=HANG_S)[0].splitlines()[-1]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert reports[0]["n_unique"] == reports[1]["n_unique"]
    assert sum(report["n_encoded"] for report in reports) == reports[0]["n_unique"]


def test_a_cache_that_is_being_written_is_said_to_be_so(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    with Writer.open(tmp_path / "c.h5"), pytest.raises(DictionaryLocked, match=r"c\.h5"):
        build(tmp_path / "c.h5", corpus, encoder_folder)


def test_a_foreign_file_is_left_alone(tmp_path: Path, corpus: Path, encoder_folder: Path) -> None:
    for name, data in (("a.h5", b"not hdf5 at all" * 100), ("b.h5", b"")):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(UnreadableDictionary, match=name):
            build(path, corpus, encoder_folder)
        assert path.read_bytes() == data


def test_a_plain_hdf5_file_is_left_alone(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    path = tmp_path / "other.h5"
    with h5py.File(path, "x") as other:
        other["data"] = [1, 2, 3]
    before = path.read_bytes()
    with pytest.raises(UnreadableDictionary, match=r"other\.h5"):
        build(path, corpus, encoder_folder)
    assert path.read_bytes() == before


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "cpu:1"])
def test_an_unknown_device_is_named(tmp_path: Path, encoder_folder: Path, device: str) -> None:
    with pytest.raises(UnknownDevice, match=device):
        Pipeline(tmp_path / "c.h5", model=encoder_folder, ner="none", devices=[device])


def test_missing_and_empty_folders_are_named(tmp_path: Path, encoder_folder: Path) -> None:
    (tmp_path / "nothing").mkdir()
    for name in ("absent", "nothing"):
        with pytest.raises(MissingDocuments, match=name):
            build(tmp_path / "c.h5", tmp_path / name, encoder_folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_quarantined(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    (corpus / "01.txt").chmod(0)
    report = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert [q.error for q in report.quarantined] == ["UnreadableDocument"]


def test_a_program_without_a_guard_can_build(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "from featpipe import Pipeline\n"
        f"with Pipeline({str(tmp_path / 'c.h5')!r}, model={str(encoder_folder)!r}, ner='none',"
        " devices=['cpu', 'cpu']) as pipeline:\n"
        f"    print(pipeline.build({str(corpus)!r}).summary())\n",
        "utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout.startswith("documents 12 loaded, 0 quarantined; units ")
    assert done.stdout.count("\n") == 1


def test_sigterm_to_the_command_commits_and_exits(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    word, cache = tmp_path / "word", tmp_path / "c.h5"
    environment = with_waiting_loader(tmp_path)
    (corpus / "00.waits").write_text(f"WAITS {word}", "utf-8")
    command = [sys.executable, "-m", "featpipe", "build-cache", str(corpus), "--cache", str(cache)]
    command += ["--model", str(encoder_folder), "--ner", "none", "--json", "--workers", "1"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as command_run:
        assert command_run.stdout is not None
        assert command_run.stderr is not None
        assert json.loads(command_run.stdout.readline())["n_encoded"] == 0
        command_run.send_signal(signal.SIGTERM)
        assert any("once more to stop at once" in line for line in command_run.stderr)
        word.touch()
        rest = command_run.stdout.read()
    assert command_run.returncode == 130
    assert '"was_interrupted": true' in rest
    with Cache.open(cache) as opened:
        assert "docs/00.waits" in {document.id for document in opened.documents()}


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_one_and_many_look_ups_agree_in_every_stored_type(
    tmp_path: Path, encoder_folder: Path, dtype: str
) -> None:
    from featpipe.encoders.encoder import Encoder

    text = "合同金额为三万元。"
    (tmp_path / "a.txt").write_text(text, "utf-8")
    settings = EncoderSettings(precision="exact", dtype=dtype)  # type: ignore[arg-type]
    build(tmp_path / "c.h5", tmp_path / "a.txt", encoder_folder, encoder=settings)
    exact = Encoder.load(
        encoder_folder, EncoderSettings(precision="exact", dtype="float32")
    ).encode([text])
    with Cache.open(tmp_path / "c.h5") as cache:
        dictionary = cache.dictionary()
        one = np.array(dictionary[text], np.float32)
        many, found = dictionary.lookup([text, "不在其中"])
        assert found.tolist() == [True, False]
        assert np.array_equal(one, np.asarray(many[0], np.float32))
        assert not np.asarray(many[1]).any()
        assert dictionary.get("不在其中") is None
    tolerance = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(one, exact.vectors[0], atol=tolerance, rtol=tolerance)


def test_public_values_have_short_reprs(tmp_path: Path, corpus: Path, encoder_folder: Path) -> None:
    cache = tmp_path / "c.h5"
    with Pipeline(cache, model=encoder_folder, ner="none", devices=["cpu"]) as pipeline:
        report = pipeline.build(corpus)
        with Cache.open(cache) as opened:
            (space,) = opened.spaces()
            assert repr(pipeline) == f"<Pipeline {cache}: {space} on cpu>"
            vectors = f"{report.n_encoded} vectors of {opened.dictionary().dim} numbers"
            assert repr(opened.dictionary()) == f"<Dictionary {space}: {vectors}>"
            assert repr(opened.dictionary(level="word")).endswith(", level word>")
    assert repr(report) == f"<RunReport {report.run_id}: {report.summary()}>"
