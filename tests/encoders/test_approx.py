"""Precision approx: int8 linear layers; opt-in, measured against exact, never mistaken for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.linear import Int8Linear
from featpipe.encoders.spec import (
    EncoderSettings,
    TaggerSettings,
    encoder_spec,
    fingerprint_of,
    tagger_spec,
)
from featpipe.errors import UsageError

APPROX = EncoderSettings(precision="approx", dtype="float32")
TEXTS = ["合同金额为二千元", "the contract", "公司", "一" * 30]


def test_a_layer_is_the_product_of_the_rounded_factors() -> None:
    """Oracle: the same integers multiplied in float64, which is exact for them."""
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(700, 96, generator=chance)
    x[3] = 0
    weight, bias = torch.randn(40, 96, generator=chance), torch.randn(40, generator=chance)
    found = Int8Linear(weight, bias)(x)

    def rounded(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = matrix.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        return torch.round(matrix / scale).double(), scale.double()

    (rows, row_scale), (columns, column_scale) = rounded(x), rounded(weight)
    expected = rows @ columns.T * row_scale * column_scale.T + bias
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    assert torch.equal(found[3], bias)
    error = (found - (x @ weight.T + bias)).norm() / found.norm()
    assert error < 0.02


def test_vectors_are_near_the_exact_ones_by_a_measured_distance(
    encoder_folder: Path,
) -> None:
    approx = Encoder.load(encoder_folder, APPROX)
    exact = Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
    a = approx.encode(TEXTS).vectors.astype(np.float64)
    b = exact.encode(TEXTS).vectors.astype(np.float64)
    expected = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(approx.compare_with_exact(TEXTS), expected, rtol=1e-9)
    assert 0.99 < expected.min() < 0.999999
    assert approx.is_invariant


def test_it_has_a_fingerprint_of_its_own(encoder_folder: Path) -> None:
    checkpoint = describe_checkpoint(encoder_folder)
    specs = [
        encoder_spec(checkpoint, EncoderSettings(precision=precision))  # type: ignore[arg-type]
        for precision in ("exact", "mixed", "approx")
    ]
    assert len({fingerprint_of(spec) for spec in specs}) == 3
    assert specs[2]["arithmetic"] == "int8"


def test_where_it_cannot_be_had_it_is_refused(encoder_folder: Path, tagger_folder: Path) -> None:
    with pytest.raises(UsageError, match="for processors, not for cuda:0"):
        encoder_spec(describe_checkpoint(encoder_folder), APPROX, "cuda:0")
    with pytest.raises(UsageError, match="precision of entities 'approx' is none of"):
        tagger_spec(describe_checkpoint(tagger_folder), TaggerSettings(precision="approx"))


def test_models_run_by_transformers_refuse_it(tmp_path: Path, encoder_folder: Path) -> None:
    from transformers import AlbertConfig, AlbertModel

    config = AlbertConfig(
        vocab_size=600, embedding_size=16, hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    AlbertModel(config).save_pretrained(tmp_path)
    for name in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((encoder_folder / name).read_bytes())
    with pytest.raises(UsageError, match="for BERT and its kin, not for albert"):
        Encoder.load(tmp_path, APPROX)
