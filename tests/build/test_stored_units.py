"""Another model for a cache reads no document; rows of another cache are copied, not computed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featpipe import Cache, Pipeline
from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.jobs import Seat
from featpipe.build.shards.folder_plan import Models
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import UnreadableDictionary, UsageError
from featpipe.settings import BuildSettings
from tests.build.folder_contents import contents, folder_differences, gather
from tests.building import build
from tests.tiny_checkpoints import save_encoder

if TYPE_CHECKING:
    from featpipe.encoders.spec import Pooling, Precision
    from featpipe.report import RunReport

SEAT = Seat(("cpu",), threads=1)


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("models") / "other", seed=5)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "docs"
    folder.mkdir()
    for number in range(6):
        text = f"第{number}号合同\n本合同一式两份。合同金额为{number},000万元。\n本合同一式两份。"
        (folder / f"{number}.txt").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, documents: Path, encoder_folder: Path) -> Path:
    cache = tmp_path_factory.mktemp("own") / "own.h5"
    build(cache, documents, encoder_folder)
    return cache


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, documents: Path, other_folder: Path) -> Path:
    cache = tmp_path_factory.mktemp("whole") / "whole.h5"
    build(cache, documents, other_folder)
    return cache


def vectors_of(tables: dict[str, dict[bytes, tuple[bytes, ...]]]) -> dict[bytes, bytes]:
    [rows] = [rows for name, rows in tables.items() if name.startswith("embeddings/other@")]
    return {key: row[0] for key, row in rows.items()}


def test_another_model_is_given_to_a_file_without_its_documents(
    tmp_path: Path, own: Path, whole: Path, other_folder: Path
) -> None:
    cache = Path(shutil.copyfile(own, tmp_path / "c.h5"))
    sentences = BuildSettings(levels=("sentence",))
    with Pipeline(cache, other_folder, "none", devices=["cpu"], settings=sentences) as pipeline:
        first = pipeline.encode_stored()
    with Cache.open(cache) as opened:
        n_sentences = len(set(opened.dictionary("tiny", "sentence").texts()))
    assert (first.n_documents, first.n_hits, first.n_encoded) == (0, 0, n_sentences)
    with Pipeline(cache, other_folder, "none", devices=["cpu"]) as pipeline:
        rest, again = pipeline.encode_stored(), pipeline.encode_stored()
    assert (rest.n_hits, rest.is_complete) == (n_sentences, True)
    assert (again.n_encoded, again.n_hits) == (0, n_sentences + rest.n_encoded)
    assert vectors_of(contents(cache)) == vectors_of(contents(whole))


def test_a_cache_that_is_not_there_has_no_texts(tmp_path: Path, encoder_folder: Path) -> None:
    with (
        Pipeline(tmp_path / "c.h5", encoder_folder, "none", devices=["cpu"]) as pipeline,
        pytest.raises(UnreadableDictionary),
    ):
        pipeline.encode_stored()
    assert not (tmp_path / "c.h5").exists()


def test_keys_of_another_cache_are_hits_and_a_folder_gets_another_model_from_its_shards(
    tmp_path: Path,
    documents: Path,
    own: Path,
    whole: Path,
    encoder_folder: Path,
    other_folder: Path,
) -> None:
    folder, moved = tmp_path / "c.fp", Path(shutil.copytree(documents, tmp_path / "docs"))
    seat = Seat(("cpu",), threads=1, also=(str(whole), str(own)))
    pipeline = FolderPipeline(folder, Models(encoder_folder, "none"), n_shards=2, seat=seat)
    report = pipeline.build([moved])
    assert (report.n_encoded, report.n_hits) == (0, report.n_unique)  # none of the other model
    assert folder_differences(folder, own) == []
    shutil.rmtree(moved)
    shutil.rmtree(folder / "outbox")
    other = FolderPipeline(folder, Models(other_folder), seat=SEAT)
    filled, again = other.encode_stored(), other.encode_stored()
    assert (filled.n_documents, filled.n_hits, filled.is_complete) == (0, 0, True)
    assert (again.n_encoded, again.n_hits) == (0, filled.n_encoded)
    found, problems = gather(folder)
    assert vectors_of(found) == vectors_of(contents(whole))
    assert problems == []
    assert (folder / "shards" / "0.1.h5").exists()


def test_builds_of_a_folder_state_why_it_has_its_precision_where_that_was_left_open(
    tmp_path: Path, documents: Path, encoder_folder: Path
) -> None:
    folder, note = tmp_path / "c.fp", "vectors in mixed precision, worthwhile here"
    pipeline = FolderPipeline(folder, Models(encoder_folder, "none"), n_shards=2, seat=SEAT)
    plan = pipeline.plan()
    plan = replace(plan, encoder=replace(plan.encoder, note=note))
    (folder / "cache.json").write_bytes(plan.to_json())
    assert note in pipeline.build([documents]).notes
    assert note in pipeline.build([documents]).notes
    assert note in pipeline.encode_stored().notes
    asked = EncoderSettings(precision=plan.encoder.settings["precision"])
    exact = FolderPipeline(folder, Models(encoder_folder, "none", asked), seat=SEAT)
    assert note not in exact.build([documents]).notes


def test_a_file_takes_rows_of_another_cache(
    tmp_path: Path, documents: Path, own: Path, encoder_folder: Path
) -> None:
    report = build(tmp_path / "c.h5", documents, encoder_folder, also=[own])
    assert (report.n_encoded, report.n_hits) == (0, report.n_unique)
    assert contents(tmp_path / "c.h5") == contents(own)


def test_a_folder_keeps_its_settings_and_says_what_differs(
    tmp_path: Path, encoder_folder: Path, other_folder: Path
) -> None:
    folder = tmp_path / "c.fp"
    FolderPipeline(folder, Models(encoder_folder, "none"), n_shards=2, seat=SEAT).plan()
    assert FolderPipeline(folder).plan().n_shards == 2
    with pytest.raises(UsageError, match="shards: 2"):
        FolderPipeline(folder, n_shards=4, seat=SEAT).plan()
    with pytest.raises(UsageError, match="weights: "):
        FolderPipeline(folder, Models(other_folder), seat=SEAT).plan()
    with pytest.raises(UsageError, match="no number of shards"):
        FolderPipeline(tmp_path / "d.fp", n_shards=6, seat=SEAT).plan()


def test_a_further_space_of_a_folder_goes_on_in_its_precision(
    tmp_path: Path, documents: Path, encoder_folder: Path, other_folder: Path
) -> None:
    folder = tmp_path / "c.fp"
    exact = EncoderSettings(precision="exact")
    own = FolderPipeline(folder, Models(encoder_folder, "none", exact), n_shards=2, seat=SEAT)
    own.build([documents])

    def encode(model: Path, pooling: Pooling, precision: Precision) -> RunReport:
        settings = EncoderSettings(pooling=pooling, precision=precision)
        return FolderPipeline(folder, Models(model, "none", settings), seat=SEAT).encode_stored()

    asked: tuple[tuple[Path, Pooling], ...] = ((encoder_folder, "cls"), (other_folder, "mean"))
    for model, pooling in asked:
        filled = encode(model, pooling, "mixed")
        assert filled.n_encoded > 0
        again = encode(model, pooling, "auto")
        assert (again.n_encoded, again.n_hits) == (0, filled.n_encoded)
