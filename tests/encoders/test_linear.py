"""A row has the same bits in any company, also where kernels sum by the number of rows."""

from __future__ import annotations

import pytest
import torch

from featpipe.encoders import linear
from featpipe.encoders.linear import (
    AmxLinear,
    PrepackedLinear,
    WidenedLinear,
    has_prepacked,
    make_linear,
    multiplies_bf16,
)
from featpipe.encoders.precision import running_threads
from featpipe.encoders.processor import lists_instructions

pytestmark = pytest.mark.skipif(not has_prepacked(), reason="this torch lacks oneDNN's layers")

#: Layers for bf16: one needs kernels that not every processor has.
KINDS = [
    pytest.param(
        AmxLinear,
        marks=pytest.mark.skipif(
            not multiplies_bf16(), reason="oneDNN has no kernel of bf16 for this processor"
        ),
    ),
    WidenedLinear,
]
#: Inputs and outputs of layers: of the built-in model, of BERT, and odd ones.
SHAPES = [(256, 768), (1024, 256), (768, 768), (3072, 768), (313, 121), (20, 60)]


def cancelling(shape: tuple[int, int], n_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A weight, and rows whose sums leave nothing but what was rounded."""
    n_in, n_out = shape
    weight, rows = (torch.randn(n, n_in // 2) for n in (n_out, n_rows))
    shuffled = torch.randperm(n_in // 2)
    odd = n_in % 2
    return (
        torch.cat((weight, -weight[:, shuffled], torch.zeros(n_out, odd)), 1),
        torch.cat((rows, rows[:, shuffled], torch.zeros(n_rows, odd)), 1).bfloat16(),
    )


@pytest.mark.parametrize("activation", ["none", "gelu"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_the_same_bits_alone_and_among_any_number(
    kind: type[PrepackedLinear], shape: tuple[int, int], activation: str
) -> None:
    torch.manual_seed(0)
    weight, rows = cancelling(shape, 2100)
    layer = kind(weight.bfloat16(), torch.randn(shape[1]).mul(1e-6).bfloat16())
    with torch.inference_mode(), running_threads(1):
        alone = torch.cat([layer(rows[at : at + 1], activation) for at in range(0, 2100, 7)])
        for n in (2, 31, 40, 63, 64, 129, 300, 511, 700, 1000, 1600, 2100):
            for first in (0, 2100 - n):
                found = layer(rows[first : first + n], activation)
                own = torch.arange(first, first + n) % 7 == 0
                expected = alone[first // 7 + (first % 7 > 0) :][: int(own.sum())]
                assert torch.equal(found[own], expected), (n, first)


@pytest.mark.parametrize("activation", ["none", "gelu", "gelu_tanh"])
@pytest.mark.parametrize("shape", [(312, 1200), (1200, 312), (1536, 384)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8])
def test_so_it_has_in_float32_and_int8_on_any_number_of_threads(
    dtype: torch.dtype, shape: tuple[int, int], activation: str
) -> None:
    torch.manual_seed(0)
    weight, rows = cancelling(shape, 300)
    rows, bias = rows.float(), torch.randn(shape[1])
    layer = make_linear([weight], [bias], dtype=dtype, device=torch.device("cpu"))
    assert layer.is_invariant
    with torch.inference_mode(), running_threads(1):
        alone = torch.cat([layer(row[None], activation) for row in rows])
    for threads in (1, 2, 3):
        with torch.inference_mode(), running_threads(threads):
            for n in (1, 2, 33, 121, 300):
                found = layer(rows[300 - n :], activation)
                assert torch.equal(found, alone[300 - n :]), (threads, n)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_computes_what_a_plain_one_does(kind: type[PrepackedLinear]) -> None:
    torch.manual_seed(0)
    weight, bias, rows = torch.randn(96, 64) / 8, torch.randn(96), torch.randn(777, 64)
    found = kind(weight.bfloat16(), bias.bfloat16())(rows.bfloat16())
    assert found.dtype == torch.bfloat16
    found = found.float()
    assert (found - torch.nn.functional.linear(rows, weight, bias)).abs().max() < 0.1


@pytest.mark.skipif(not lists_instructions("amx_bf16"), reason="the processor has no AMX")
def test_layers_in_bf16_are_of_this_kind_where_there_is_amx() -> None:
    weight, bias = torch.randn(8, 16), torch.zeros(8)
    for dtype, is_so in ((torch.bfloat16, True), (torch.float32, False)):
        layer = make_linear([weight], [bias], dtype=dtype, device=torch.device("cpu"))
        assert isinstance(layer, AmxLinear) == is_so
        assert layer.needs_one_thread == is_so


def test_a_processor_without_a_kernel_of_bf16_multiplies_it_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear, "multiplies_bf16", lambda: False)
    monkeypatch.setattr(linear, "lists_instructions", lambda _: False)
    torch.manual_seed(0)
    weight, bias, rows = torch.randn(8, 16), torch.randn(8), torch.randn(5, 16).bfloat16()
    layer = make_linear([weight], [bias], dtype=torch.bfloat16, device=torch.device("cpu"))
    assert isinstance(layer, WidenedLinear)
    exact = torch.nn.functional.linear(
        rows.double(), weight.bfloat16().double(), bias.bfloat16().double()
    )
    assert torch.equal(layer(rows), exact.bfloat16())
