"""sentence-transformers folders: its own vectors, or a refusal; oracle the library itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tiny_checkpoints import save_encoder

from featpipe.errors import CheckpointError, UnsupportedModel
from featpipe.features import linear
from featpipe.features.checkpoint import describe_checkpoint
from featpipe.features.encoder import Encoder
from featpipe.features.feature import EncoderSettings, encoder_spec

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TEXTS = ["合同金额为二千元", "the contract", "公司", "一" * 30]
FLOAT32 = EncoderSettings(precision="exact", dtype="float32")


def save_recipe(
    folder: Path, pooling: str, *, normalise: bool, prompt: str = ""
) -> SentenceTransformer:
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules

    save_encoder(folder / "plain")
    parts = [modules.Transformer(str(folder / "plain"), max_seq_length=40)]
    parts.append(modules.Pooling(32, pooling_mode=pooling))
    parts += [modules.Normalize()] if normalise else []
    options = {"prompts": {"query": prompt}, "default_prompt_name": "query"} if prompt else {}
    model: SentenceTransformer = library.SentenceTransformer(modules=parts, device="cpu", **options)
    model.save(str(folder / "saved"))
    return model


@pytest.mark.parametrize(
    ("pooling", "normalise", "prompt"),
    [
        ("mean", False, ""),
        ("mean", True, ""),
        ("cls", True, "the query: "),
        ("max", False, ""),
        ("lasttoken", False, ""),
    ],
)
def test_a_saved_model_gives_the_vectors_of_sentence_transformers(
    tmp_path: Path, pooling: str, normalise: bool, prompt: str
) -> None:
    model = save_recipe(tmp_path, pooling, normalise=normalise, prompt=prompt)
    expected = model.encode(TEXTS)
    encoder = Encoder.load(tmp_path / "saved", FLOAT32)
    np.testing.assert_allclose(encoder.encode(TEXTS).vectors, expected, atol=2e-5)
    assert encoder.spec["max_length"] == 40
    assert encoder.spec["prompt"] == prompt


def write_modules(folder: Path, *kinds: str) -> None:
    modules = [{"idx": n, "path": "", "type": f"models.{kind}"} for n, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")


@pytest.mark.parametrize("kind", ["Dense", "LSTM", "CNN", "WeightedLayerPooling", "Anything"])
def test_a_module_that_would_change_vectors_is_refused(tmp_path: Path, kind: str) -> None:
    folder = save_encoder(tmp_path)
    write_modules(folder, "Transformer", kind)
    with pytest.raises(UnsupportedModel, match=kind):
        describe_checkpoint(folder)


@pytest.mark.parametrize(
    "modes",
    [
        {"pooling_mode_mean_sqrt_len_tokens": True},
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
        {"pooling_mode": "weightedmean"},
        {"pooling_mode": "mean", "include_prompt": False},
        {},
    ],
    ids=str,
)
def test_a_pooling_that_is_not_reproduced_is_refused(
    tmp_path: Path, modes: dict[str, object]
) -> None:
    folder = save_encoder(tmp_path)
    write_modules(folder, "Transformer", "Pooling")
    (folder / "config.json").write_text(
        json.dumps(json.loads((folder / "config.json").read_text("utf-8")) | modes), "utf-8"
    )
    with pytest.raises(UnsupportedModel):
        describe_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[1]"),
        ("modules.json", "{"),
        ("tokenizer_config.json", "nonsense"),
    ],
)
def test_damaged_json_is_a_checkpoint_error(tmp_path: Path, name: str, content: str) -> None:
    folder = save_encoder(tmp_path)
    (folder / name).write_text(content, "utf-8")
    with pytest.raises(CheckpointError):
        encoder_spec(describe_checkpoint(folder), FLOAT32)


def test_without_the_prepacked_kernels_vectors_are_the_same_and_it_is_said(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Encoder.load(encoder_folder, FLOAT32).encode(TEXTS).vectors
    monkeypatch.setattr(linear, "has_prepacked", lambda: False)
    plain = Encoder.load(encoder_folder, FLOAT32)
    np.testing.assert_allclose(plain.encode(TEXTS).vectors, expected, atol=2e-5)
    assert not plain.is_invariant
    assert "batch-invariant kernels are missing" in plain.notes[0]


def test_mixed_precision_stays_close_to_exact(encoder_folder: Path) -> None:
    exact = Encoder.load(encoder_folder, FLOAT32).encode(TEXTS).vectors
    settings = EncoderSettings(dtype="float32", precision="mixed")
    mixed = Encoder.load(encoder_folder, settings).encode(TEXTS).vectors
    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(mixed, axis=1)
    assert ((exact * mixed).sum(axis=1) / lengths).min() > 0.999
    assert not np.array_equal(exact, mixed)
