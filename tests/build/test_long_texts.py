"""Texts longer than the model's window: counted in the run record, whatever becomes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from featpipe import Cache, Pipeline
from featpipe.build.encode_worker import EncodeRole
from featpipe.cache import tables
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.on_demand.space import find_space
from featpipe.settings import BuildSettings
from featpipe.store import Reader

if TYPE_CHECKING:
    from featpipe.report import RunReport

LONG, SHORT = "合同金额为" * 40, "短句一条"
LENGTH = 32


def build(cache: Path, docs: Path, model: Path, on_truncate: str) -> RunReport:
    with Pipeline(
        cache=cache,
        model=model,
        ner="none",
        devices=["cpu"],
        encoder=EncoderSettings(
            max_length=LENGTH,
            on_truncate=on_truncate,  # type: ignore[arg-type]
            precision="exact",
        ),
        settings=BuildSettings(levels=("paragraph",)),
    ) as pipeline:
        return pipeline.build(docs)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text(f"{LONG}\n{SHORT}\n", "utf-8")
    return folder


def test_windows_are_the_rule_and_the_record_counts_them(
    tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    report = build(tmp_path / "c.h5", docs, encoder_folder, "window")
    assert report.is_complete
    beyond = 200 + 2 - LENGTH
    assert (report.n_long, report.n_long_tokens, report.n_cut_tokens) == (1, beyond, 0)
    assert report.n_extra_windows == -(-beyond // 26)
    with Reader(tmp_path / "c.h5") as reader:
        record = json.loads(bytes(reader.table(tables.RUNS).ragged("record", 0)))
    assert (record["n_long"], record["n_long_tokens"]) == (1, beyond)


def test_refused_texts_are_named_and_fill_the_same_space(
    tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    report = build(tmp_path / "c.h5", docs, encoder_folder, "error")
    assert not report.is_complete
    assert (report.n_encoded, report.failed[0].n_units) == (1, 1)
    assert "more than the 32 of one window" in report.failed[0].reason
    later = build(tmp_path / "c.h5", docs, encoder_folder, "window")
    assert (later.n_hits, later.n_encoded, later.is_complete) == (1, 1, True)


def test_cut_texts_are_counted_and_fill_a_space_of_their_own(
    tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    build(tmp_path / "c.h5", docs, encoder_folder, "window")
    report = build(tmp_path / "c.h5", docs, encoder_folder, "warn")
    assert (report.n_hits, report.n_encoded) == (0, 2)
    assert (report.n_extra_windows, report.n_cut_tokens) == (0, 200 + 2 - LENGTH)
    with Cache.open(tmp_path / "c.h5") as cache:
        spaces = [cache.dictionary(name) for name in cache.spaces()]
        assert len({s[LONG].tobytes() for s in spaces}) == 2
        assert len({s[SHORT].tobytes() for s in spaces}) == 1
        # A query is encoded by the settings of the space it is asked of, cutting included.
        space, settings = find_space(cache, encoder_folder)
        again = Encoder.load(encoder_folder, settings).encode([LONG]).vectors[0]
        assert np.array_equal(again, space[LONG])


def test_a_note_is_reported_once_and_counts_as_they_grow() -> None:
    role = EncodeRole.__new__(EncodeRole)
    role._reported = {}
    assert role._new_notes("vectors", {"slow": 0}) == (("slow", 0),)
    assert role._new_notes("vectors", {"slow": 0, "halved": 3}) == (("halved", 3),)
    assert role._new_notes("entities", {"halved": 1}) == (("halved", 1),)
    assert role._new_notes("vectors", {"slow": 0, "halved": 5}) == (("halved", 2),)


def test_how_an_unusual_model_is_run_stands_in_the_report(
    tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    from transformers import AlbertConfig, AlbertModel

    config = AlbertConfig(
        vocab_size=600,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    AlbertModel(config).save_pretrained(tmp_path / "albert")
    for name in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / "albert" / name).write_bytes((encoder_folder / name).read_bytes())
    report = build(tmp_path / "c.h5", docs, tmp_path / "albert", "window")
    assert [note for note in report.notes if note.startswith("albert is run by transformers")]
