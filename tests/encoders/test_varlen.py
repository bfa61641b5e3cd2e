"""The kernel for all lengths, on a processor: a plain loop stands in for the card's.

The oracle is the way by groups of equal length, which runs where there is no such kernel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.attention.varlen
import torch.nn.functional as F

from featpipe.encoders import attention
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings

pytestmark = pytest.mark.usefixtures("scripts_are_importable")

MIXED = EncoderSettings(precision="mixed", dtype="float32")


def attend_in_turn(  # torch's own order
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    edges: torch.Tensor,
    _key_edges: torch.Tensor,
    longest: int,
    _longest_key: int,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
) -> torch.Tensor:
    """As torch documents `varlen_attn`; half precision alone, as the card's kernel."""
    assert {query.dtype, key.dtype, value.dtype} == {torch.bfloat16}
    assert edges.dtype == torch.int32
    assert int(edges[-1]) == len(query)
    assert longest == int(edges.diff().max())
    out = torch.empty_like(query)
    for first, last in torch.stack([edges[:-1], edges[1:]], 1).tolist():
        q, k, v = (x[first:last].transpose(0, 1)[None] for x in (query, key, value))
        mixed = F.scaled_dot_product_attention(
            q, k, v, scale=scale, is_causal=window_size == (-1, 0), enable_gqa=enable_gqa
        )
        out[first:last] = mixed[0].transpose(0, 1)
    return out


@pytest.mark.parametrize("name", ["bge", "Qwen3", "EuroBERT"])
def test_one_kernel_for_all_lengths_gives_what_one_for_each_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from encoder_families import FAMILIES, TEXTS, save_family

    [family] = [family for family in FAMILIES if family.name == name]
    folder = save_family(family, tmp_path / "model")
    expected = Encoder.load(folder, MIXED).encode(TEXTS).vectors
    calls: list[int] = []

    def count(*args: object, **options: object) -> torch.Tensor:
        calls.append(1)
        return attend_in_turn(*args, **options)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(attention, "has_varlen", lambda *_: True)
    monkeypatch.setattr(attention, "_has_grouped_varlen", lambda: True)
    monkeypatch.setattr(torch.nn.attention.varlen, "varlen_attn", count)
    encoder = Encoder.load(folder, MIXED)
    calls.clear()
    found = encoder.encode(TEXTS).vectors
    assert len(calls) == 2  # layers, each once for all texts
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    assert ((found * expected).sum(1) / lengths).min() > 0.9995
