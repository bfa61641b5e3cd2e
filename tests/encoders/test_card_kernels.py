"""Kernels of cards against torch: on a card, or on a processor with TRITON_INTERPRET=1."""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from featpipe.encoders.crf import Head
from featpipe.encoders.fused import describe_missing, is_fused, why_not_fused
from featpipe.encoders.viterbi import Transitions, find_best_paths

CARD = torch.device("cuda", 0)
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
can_compute = torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"
needs_triton = pytest.mark.skipif(
    not can_compute or find_spec("triton") is None, reason="no CUDA device, and no interpreter"
)


def test_a_processor_and_float32_have_no_kernels_and_miss_none() -> None:
    for device, dtype in ((torch.device("cpu"), torch.bfloat16), (CARD, torch.float32)):
        assert not is_fused(device, dtype)
        assert describe_missing(device, dtype) == ()


def test_a_card_without_triton_uses_torchs_own_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featpipe.encoders.fused.find_spec", lambda _name: None)
    why_not_fused.cache_clear()
    try:
        assert not is_fused(CARD, torch.float16)
        [note] = describe_missing(CARD, torch.float16)
    finally:
        why_not_fused.cache_clear()
    assert "triton is not installed" in note


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("width", [8, 312, 768])
def test_norms_are_torchs(width: int) -> None:
    from featpipe.encoders.card_kernels import add_norm, embed_norm

    torch.manual_seed(0)
    x, y = (torch.randn(7, width, device=DEVICE).half() for _ in range(2))
    norm = torch.randn(width, device=DEVICE), torch.randn(width, device=DEVICE)
    expected = F.layer_norm(x.float() + y.float(), (width,), *norm, 1e-12)
    torch.testing.assert_close(
        add_norm(x, y, norm, 1e-12, torch.float32), expected, atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(add_norm(x, y, norm, 1e-12, torch.float16), expected.half())
    tables = torch.randn(50, width, device=DEVICE), torch.randn(20, width, device=DEVICE)
    ids = torch.randint(0, 50, (9,), dtype=torch.int32, device=DEVICE)
    places = torch.randint(0, 20, (9,), device=DEVICE)
    expected = F.layer_norm(tables[0][ids.long()] + tables[1][places], (width,), *norm, 1e-12)
    found = embed_norm(ids, places, tables, norm, 1e-12, torch.float32)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize(("n_heads", "size"), [(2, 16), (3, 32), (2, 64), (1, 128)])
def test_attention_is_torchs_for_each_sequence(n_heads: int, size: int) -> None:
    from featpipe.encoders.card_kernels import attend

    torch.manual_seed(0)
    lengths = [1, 5, 63, 64, 65, 130, 0, 0]
    edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    qkv = torch.randn(sum(lengths) + 5, 3 * n_heads * size, device=DEVICE).half()
    found = attend(qkv, torch.from_numpy(edges).to(DEVICE), 256, n_heads)
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first < last:
            q, k, v = qkv[first:last].float().view(-1, 3, n_heads, size).permute(1, 2, 0, 3)
            expected = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
            torch.testing.assert_close(found[first:last].float(), expected, atol=2e-3, rtol=2e-3)


@pytest.mark.gpu
@needs_triton
def test_gelu_is_within_5e5_of_the_exact_one_and_hides_nothing() -> None:
    from featpipe.encoders.card_kernels import gelu_

    given = torch.cat([torch.linspace(-12, 12, 9001), torch.tensor([-1e4, 1e4, 0.0, 4.4])])
    found = gelu_(given.to(DEVICE).clone()).cpu()
    assert (found - F.gelu(given.double())).abs().max() < 5e-5
    odd = gelu_(torch.tensor([torch.nan, torch.inf], device=DEVICE).half())
    assert not odd.isfinite().any()


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize(("n_labels", "decimals"), [(2, 3), (15, 3), (15, 0), (40, 1), (130, 0)])
def test_paths_are_those_of_the_processor(n_labels: int, decimals: int) -> None:
    """Also of equally good ones, and where transitions are forbidden."""
    from featpipe.encoders.card_kernels import best_paths

    chance = np.random.default_rng(n_labels)

    def draw(*shape: int) -> np.ndarray:
        return chance.standard_normal(shape).round(decimals).astype(np.float32)

    lengths = np.array([1, 0, 2, 17, 40, 0, 3])
    edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    scores, between = draw(int(edges[-1]), n_labels), draw(n_labels, n_labels)
    between[chance.random(between.shape) < 0.2] = -np.inf
    arrays = between, draw(n_labels), draw(n_labels)
    given = [torch.from_numpy(array).to(DEVICE) for array in (scores, edges, *arrays)]
    found = best_paths(given[0], given[1], (given[2], given[3], given[4]))
    expected = find_best_paths(scores, lengths, Transitions(*arrays))
    np.testing.assert_array_equal(found.cpu().numpy(), expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_head_on_a_card_chooses_as_one_on_the_processor() -> None:
    chance = np.random.default_rng(0)
    lengths = chance.integers(0, 300, 500)
    scores = chance.standard_normal((int(lengths.sum()), 15)).astype(np.float32)
    parts = (chance.standard_normal(n).astype(np.float32) for n in ((15, 15), 15, 15))
    transitions = Transitions(*parts)
    labels, odds = Head(transitions=transitions).choose(scores, lengths)
    on_card = Head(transitions=transitions, device=CARD).choose(scores, lengths)
    np.testing.assert_array_equal(on_card[0], labels)
    np.testing.assert_allclose(on_card[1], odds, rtol=1e-6)
    nothing = Head(transitions=transitions, device=CARD).choose(scores[:0], lengths[:0])
    assert [len(part) for part in nothing] == [0, 0]
