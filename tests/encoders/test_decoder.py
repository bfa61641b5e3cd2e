"""Decoders with rotary embeddings: the states are those of transformers, its kernels torch's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from encoders.test_card_kernels import DEVICE, needs_triton

from featpipe.encoders.decoder import Decoder, agrees, load_decoder
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.foreign import ForeignTrunk
from featpipe.encoders.packing import Sequences
from featpipe.encoders.spec import EncoderSettings

if TYPE_CHECKING:
    from featpipe.encoders.packing import Pack

NAMES = ("Qwen2 (gte-Qwen2)", "Qwen3", "Mistral (e5-mistral)", "LoRA on Qwen3")

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def load(folder: Path, name: str, precision: Literal["exact", "mixed"] = "exact") -> Encoder:
    from encoder_families import FAMILIES, save_family

    family = next(family for family in FAMILIES if family.name == name)
    settings = EncoderSettings(precision=precision, dtype="float32")
    return Encoder.load(save_family(family, folder / "model"), settings)


def plain_of(encoder: Encoder) -> ForeignTrunk:
    assert isinstance(encoder.trunk, ForeignTrunk)
    return encoder.trunk


def make_pack(lengths: list[int], n_rows: int = 0) -> Pack:
    sizes = np.array(lengths)
    ids = np.random.default_rng(0).integers(5, 300, sizes.sum()).astype(np.int32)
    sequences = Sequences(ids, np.cumsum(sizes) - sizes, sizes, (), ())
    return sequences.pack(np.arange(len(sizes)), n_rows=n_rows)


@pytest.mark.parametrize("name", NAMES)
def test_states_of_every_layer_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    plain = plain_of(load(tmp_path, name))
    decoder = Decoder(plain)
    pack = make_pack([40, 9, 9, 1])
    with torch.inference_mode():
        for n_layers in (None, 0, 1, 2):
            found = decoder.forward(pack, n_layers=n_layers)
            expected = plain.forward(pack, n_layers=n_layers)
            torch.testing.assert_close(found, expected, atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_in_half_precision_are_near(tmp_path: Path, name: str) -> None:
    from encoder_families import TEXTS

    exact = load(tmp_path, name).encode(TEXTS).vectors
    encoder = load(tmp_path / "again", name, "mixed")
    decoder = Decoder(plain_of(encoder))
    assert agrees(decoder, plain_of(encoder))
    found = Encoder(decoder, encoder.tokenizer, encoder.spec, encoder.steps).encode(TEXTS).vectors
    assert (found * exact).sum(1).min() > 0.999


def test_rows_of_no_sequence_change_nothing(tmp_path: Path) -> None:
    decoder = Decoder(plain_of(load(tmp_path, "Qwen3")))
    with torch.inference_mode():
        expected = decoder.forward(make_pack([12, 7]))
        found = decoder.forward(make_pack([12, 7], n_rows=64))
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_a_copy_is_that_of_transformers(tmp_path: Path) -> None:
    plain = plain_of(load(tmp_path, "Qwen3", "mixed"))
    copy = Decoder(plain).copy_to()
    pack = make_pack([20, 3])
    with torch.inference_mode():
        torch.testing.assert_close(copy.forward(pack), plain.copy_to().forward(pack))


def test_layers_of_another_make_differ(tmp_path: Path) -> None:
    plain = plain_of(load(tmp_path, "Qwen3", "mixed"))
    decoder = Decoder(plain)
    plain.model.rotary_emb.inv_freq.mul_(1.5)
    assert not agrees(decoder, plain)


def test_a_processor_computes_by_transformers(tmp_path: Path) -> None:
    assert load_decoder(plain_of(load(tmp_path, "Qwen3", "mixed"))) is None


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("width", [8, 1000, 4096])
def test_norms_are_torchs(width: int) -> None:
    from featpipe.encoders.decoder_kernels import add_rms_norm

    torch.manual_seed(0)
    x, weight = torch.randn(5, width, device=DEVICE), torch.randn(width, device=DEVICE)
    y = torch.randn(5, width, device=DEVICE).half()
    for added, dtype in ((y, torch.float16), (None, torch.float32)):
        total = x + added.float() if added is not None else x.clone()
        found = add_rms_norm(x, added, weight, 1e-6, dtype)
        expected = F.rms_norm(total, (width,), weight, 1e-6).to(dtype)
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(x, total)


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize(("n_heads", "n_keys", "size"), [(4, 2, 16), (3, 1, 64), (16, 8, 128)])
def test_heads_are_turned_as_by_torch(
    n_heads: int, n_keys: int, size: int, *, has_norm: bool
) -> None:
    from featpipe.encoders.decoder_kernels import turn

    torch.manual_seed(0)
    n_both = n_heads + n_keys
    qkv = torch.randn(6, (n_both + n_keys) * size, device=DEVICE).half()
    angle = torch.rand(6, size // 2, device=DEVICE).repeat(1, 2) * 9
    angles = angle.cos(), angle.sin()
    norm = (torch.rand(2, size, device=DEVICE) + 0.5, 1e-6) if has_norm else None
    heads = qkv[:, : n_both * size].view(6, n_both, size).float()
    if norm is not None:
        weight = norm[0][[0] * n_heads + [1] * n_keys]
        heads = F.rms_norm(heads, (size,), None, norm[1]) * weight
    first, second = heads.chunk(2, -1)
    cos, sin = (part[:, None] for part in angles)
    expected = heads * cos + torch.cat([-second, first], -1) * sin
    found = turn(qkv, angles, norm, n_heads=n_heads, n_keys=n_keys)
    torch.testing.assert_close(found.float(), expected, atol=4e-3, rtol=2e-3)


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("width", [8, 1024, 3072])
def test_gates_are_torchs(width: int) -> None:
    from featpipe.encoders.decoder_kernels import gate

    torch.manual_seed(0)
    gated = (torch.randn(3, 2 * width, device=DEVICE) * 4).half()
    first, second = gated.float().chunk(2, -1)
    torch.testing.assert_close(gate(gated), (F.silu(first) * second).half(), atol=1e-3, rtol=2e-3)
    assert not gate(torch.full((1, 16), torch.nan, device=DEVICE).half()).isfinite().any()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["Qwen2 (gte-Qwen2)", "Qwen3"])
def test_on_a_card_it_takes_the_place_of_transformers(tmp_path: Path, name: str) -> None:
    from encoder_families import TEXTS

    exact = load(tmp_path, name).encode(TEXTS).vectors
    settings = EncoderSettings(precision="mixed", dtype="float32")
    encoder = Encoder.load(tmp_path / "model", settings, device="cuda:0")
    assert isinstance(encoder.trunk, Decoder)
    assert encoder.trunk.copy_to().device == encoder.trunk.device
    assert (encoder.encode(TEXTS).vectors * exact).sum(1).min() > 0.9999
