"""The kernel for all lengths, on a processor: a plain loop stands in for the card's.

The oracle is the way by groups of equal length, which runs where there is no such kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.nn.attention.varlen
import torch.nn.functional as F

from featpipe.encoders import attention
from featpipe.encoders.bert import PackedBert
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.graphs import Graphs
from featpipe.encoders.packing import Sequences
from featpipe.encoders.spec import EncoderSettings

if TYPE_CHECKING:
    from featpipe.encoders.graphs import Record

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
    assert int(edges[-1]) <= len(query)
    assert longest >= int(edges.diff().max())
    out = torch.full_like(query, torch.nan)  # rows of no sequence hold anything
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


def repeat_by_hand(
    work: Callable[[], torch.Tensor],
) -> tuple[Callable[[], None], torch.Tensor]:
    """As a CUDA graph: the same operations over the same memory."""
    result = work()

    def repeat() -> None:
        result.copy_(work())

    return repeat, result


def fail_to_record(work: Callable[[], torch.Tensor]) -> tuple[Callable[[], None], torch.Tensor]:
    work()
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize("record", [repeat_by_hand, fail_to_record])
@pytest.mark.parametrize("name", ["bge", "RoBERTa"])
def test_recorded_forwards_give_the_bytes_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, record: Record
) -> None:
    from encoder_families import FAMILIES, TEXTS, save_family

    monkeypatch.setattr(attention, "has_varlen", lambda *_: True)
    monkeypatch.setattr(torch.nn.attention.varlen, "varlen_attn", attend_in_turn)
    [family] = [family for family in FAMILIES if family.name == name]
    encoder = Encoder.load(save_family(family, tmp_path / "model"), MIXED)
    trunk = encoder.trunk
    assert isinstance(trunk, PackedBert)
    tokens = encoder.tokenizer.encode([text[:n] for n in (9, 24) for text in TEXTS])
    sequences = Sequences(tokens.ids, tokens.ends - tokens.lengths, tokens.lengths, (1,), (2,))
    chance = np.random.default_rng(0)
    some = [chance.permutation(16)[: 1 + n % 16] for n in range(24)]
    packs = [sequences.pack(numbers, n_rows=(0, 700)[n % 6 > 0]) for n, numbers in enumerate(some)]
    with torch.inference_mode():
        expected = [trunk.forward(pack).clone() for pack in packs]
        records: list[int] = []

        def count(work: Callable[[], torch.Tensor]) -> tuple[Callable[[], None], torch.Tensor]:
            records.append(1)
            return record(work)

        trunk._graphs = Graphs(trunk._compute, count)
        for pack, states in zip(packs, expected, strict=True):
            assert torch.equal(trunk.forward(pack), states)
            alone = trunk.forward(pack, n_layers=1)
            assert not torch.equal(alone, states)
    assert 1 < len(records) < 8
    assert any("recorded" in note for note in encoder.notes) == (record is fail_to_record)


def test_graphs_are_for_cards_where_they_are_not_turned_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card, processor = torch.device("cuda", 0), torch.device("cpu")
    monkeypatch.setenv("FEATPIPE_CUDA_GRAPHS", "0")
    half = torch.float16
    assert Graphs.wanted(lambda inputs: inputs.ids, card, half) is None
    monkeypatch.delenv("FEATPIPE_CUDA_GRAPHS")
    assert Graphs.wanted(lambda inputs: inputs.ids, card, half) is not None
    assert Graphs.wanted(lambda inputs: inputs.ids, card, torch.float32) is None
    assert Graphs.wanted(lambda inputs: inputs.ids, processor, half) is None
