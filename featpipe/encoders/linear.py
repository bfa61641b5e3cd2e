"""Linear layers: y = x W^T + b, with the activation fused where the kernel can.

On CPU the weights are laid out once for oneDNN. That kernel is faster than a plain `F.linear`
(MKL), and gives each of two or more rows the same bits for any other rows and any number of
threads, which MKL does not: batch invariance depends on it. A single row would be summed in another
order by layers of more than 1,024 inputs, so it is computed as two. Its ops are private to torch;
where they are missing, a plain layer replaces it and `is_invariant` is False.

Processors without AVX-512 have no kernel for bf16: `WidenedLinear` multiplies it there, so that a
cache goes on in mixed precision on any machine.

Its kernels for AMX, the matrix unit of Intel's processors, cut the sum over a layer's inputs into
pieces by the number of rows and of threads, so that a row's bits would depend on the other rows:
`AmxLinear` is for them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F

from featpipe.encoders.fused import is_fused
from featpipe.encoders.processor import lists_instructions

if TYPE_CHECKING:
    from collections.abc import Sequence

Activation = str
"""``none``, ``gelu`` (exact), ``gelu_tanh`` or ``relu``."""

#: Rows for which oneDNN tunes the layout; any number works.
_TYPICAL_ROWS = 2048

#: Rows of a call of `AmxLinear`, in any layer.
_FEW = 32

#: Larger numbers of rows, where they are summed as few are.
_MANY = (4096, 2048, 1024, 512, 256, 128, 64)

#: Least share of such a call's rows that are no padding.
_LEAST_FILLED = 0.75

#: Rows that `Int8Linear` computes at once: its intermediate results stay in the processor's cache.
_ROWS_AT_ONCE = 512

#: Numbers that an activation's kernel computes at a time, and the most that one thread gets alone.
_TOGETHER, _UNSHARED = 32, 1 << 14

#: Lower bound of a row's largest number, so that a row of zeros has a scale.
_LEAST = 1e-12

_FUSED = {
    "none": ("none", ""),
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
}


class Linear(Protocol):
    """A layer with its activation."""

    @property
    def is_invariant(self) -> bool:
        """Whether a row's bits do not depend on the other rows."""
        ...

    @property
    def needs_one_thread(self) -> bool:
        """Whether that holds for one thread alone."""
        ...

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """Activation of x W^T + b. Shapes: x (rows, in) -> (rows, out), in x's dtype."""
        ...


class PrepackedLinear:
    """oneDNN with weights in its own layout; CPU only."""

    is_invariant = True
    needs_one_thread = False

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
        self._bias = bias

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        if len(x) == 1:
            return self._compute(x.expand(2, -1).contiguous(), activation)[:1]
        return self._compute(x, activation)

    def _compute(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        name, algorithm = _FUSED[activation]
        # The overload is named, so that torch need not choose one at every call.
        y: torch.Tensor = torch.ops.mkldnn._linear_pointwise.default(
            x, self._weight, self._bias, name, [], algorithm
        )
        return y


class WidenedLinear(PrepackedLinear):
    """bf16 on a processor that oneDNN has no kernel for: float32, in which its products are exact.

    The sums are float32's, as a kernel for bf16 has them, and rounded once. As slow as float32.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__(weight.float(), bias.float())

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        return super().__call__(x.float(), activation).to(x.dtype)


class AmxLinear(PrepackedLinear):
    """bf16 on AMX: oneDNN by calls of so many rows that each has the same bits in any company.

    Calls are of 32 rows, the last filled up, and of more where the layer sums those in the same
    order; one thread computes them. Which numbers these are differs by shape. It is measured when a
    layer first has so many rows, with sums that cancel: of another order the bits are others.

    What it costs beside one call for all rows: a fifteenth of the time of a text in the built-in
    model, a quarter in bge-small, whose layers of 2,048 inputs sum no larger number of rows alike;
    float32 takes three times as long. Near the processor's FLOPS.
    """

    needs_one_thread = True

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__(weight, bias)
        self._n_out, self._n_in = weight.shape

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        n_rows, first, parts = len(x), 0, []
        while first < n_rows:
            size = self._size_of_call(n_rows - first, activation)
            rows = x[first : first + size]
            if len(rows) < size:
                rows = F.pad(rows, (0, 0, 0, size - len(rows)))
            parts.append(self._compute(rows, activation))
            first += size
        whole = torch.cat(parts) if len(parts) > 1 else parts[0]
        return whole[:n_rows]

    def _size_of_call(self, n_rows: int, activation: Activation) -> int:
        """Rows of the next call, of so many that are left."""
        for size in _MANY:
            is_filled = n_rows >= _LEAST_FILLED * size
            if is_filled and sums_alike(self._n_in, self._n_out, size, activation):
                return size
        return _FEW


@cache
def sums_alike(n_in: int, n_out: int, n_rows: int, activation: Activation) -> bool:
    """Whether each of `n_rows` rows, a multiple of `_FEW`, has the bits that it has among `_FEW`.

    All sums are of numbers and their opposites in another order, so that nothing is left of them
    but what was rounded.
    """
    layer, few = _make_trial(n_in, n_out)
    expected = layer(few, activation)
    found = layer(few.repeat(n_rows // _FEW, 1), activation)
    return bool((found.view(-1, *expected.shape) == expected).all())


@lru_cache(maxsize=1)
def _make_trial(n_in: int, n_out: int) -> tuple[PrepackedLinear, torch.Tensor]:
    """A layer of this shape, and rows (_FEW, n_in) whose sums cancel."""
    chance = torch.Generator().manual_seed(n_in)
    weight, few = (torch.randn(n, -(-n_in // 2), generator=chance) for n in (n_out, _FEW))
    shuffled = torch.randperm(weight.shape[1], generator=chance)
    weight = torch.cat((weight, -weight[:, shuffled]), 1)[:, :n_in]
    few = torch.cat((few, few[:, shuffled]), 1)[:, :n_in]
    bias = torch.zeros(n_out, dtype=torch.bfloat16)
    return PrepackedLinear(weight.bfloat16(), bias), few.bfloat16()


class PlainLinear:
    """`F.linear`, for devices and torch builds without the prepacked kernel.

    Its kernel is chosen by the number of rows, which on a card is one for all packs (`forward`).
    """

    needs_one_thread = False

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self.is_invariant = weight.is_cuda
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        return apply_activation(F.linear(x, self._weight, self._bias), activation)


class CardLinear(PlainLinear):
    """A plain one on a card that has the kernels of `fused`."""

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        if activation != "gelu":
            return super().__call__(x, activation)
        from featpipe.encoders.card_kernels import gelu_

        return gelu_(F.linear(x, self._weight, self._bias))


class Int8Linear:
    """8-bit integers with one scale per weight row and per row of x, which is float32; CPU only.

    Each row of x has its own scale and sums of integers are exact, so a row's bits do not depend on
    the other rows.
    """

    is_invariant = True
    needs_one_thread = False

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._n_out = len(weight)
        n_more = -self._n_out % _TOGETHER
        weight, bias = F.pad(weight, (0, 0, 0, n_more)), F.pad(bias, (0, n_more))
        scale = weight.abs().amax(1, keepdim=True).clamp_min_(_LEAST).div_(127)
        self._weight = torch.round(weight / scale).to(torch.int8).t().contiguous()
        self._scale = scale[:, 0].contiguous()
        self._bias = bias

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        out = torch.empty(x.shape[0], self._weight.shape[1])
        for first in range(0, x.shape[0], _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            scale = x[rows].abs().amax(1, keepdim=True).clamp_min_(_LEAST).div_(127)
            whole = (x[rows] / scale).round_().to(torch.int8)
            y = torch._int_mm(whole, self._weight).float()
            y = y.mul_(scale).mul_(self._scale).add_(self._bias)
            _activate_parts(y, activation, out[rows])
        return out[:, : self._n_out].contiguous()


def _activate_parts(y: torch.Tensor, activation: Activation, out: torch.Tensor) -> None:
    """Write the activation of y, whose rows are a multiple of `_TOGETHER` long, to `out`.

    The kernels compute numbers that do not fill their registers in another way than the others, at
    the end of what a thread gets. So each thread gets whole rows.
    """
    step = max(1, _UNSHARED // y.shape[1])
    for first in range(0, len(y), step):
        rows = slice(first, first + step)
        out[rows] = apply_activation(y[rows], activation)


def make_linear(
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    *,
    dtype: torch.dtype,
    device: torch.device,
) -> Linear:
    """Choose the layer for `device`; several weights are stacked into one (fused Q, K and V).

    ``dtype`` int8 gives an `Int8Linear`, whose x and result are float32.
    """
    if dtype == torch.int8:
        whole = torch.cat(list(weights)).detach().float()
        return Int8Linear(whole, torch.cat(list(biases)).detach().float())
    weight = torch.cat(list(weights)).detach().to(device=device, dtype=dtype).contiguous()
    bias = torch.cat(list(biases)).detach().to(device=device, dtype=dtype).contiguous()
    if is_fused(device, dtype):
        return CardLinear(weight, bias)
    if device.type != "cpu" or not has_prepacked():
        return PlainLinear(weight, bias)
    if dtype != torch.bfloat16:
        return PrepackedLinear(weight, bias)
    if lists_instructions("amx_bf16"):
        return AmxLinear(weight, bias)
    return (PrepackedLinear if multiplies_bf16() else WidenedLinear)(weight, bias)


def has_prepacked() -> bool:
    """Whether this torch has the oneDNN ops that `PrepackedLinear` uses."""
    ops = torch.ops.mkldnn
    return (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # torch left it unannotated
        and hasattr(ops, "_linear_pointwise")
        and hasattr(ops, "_reorder_linear_weight")
    )


def multiplies_bf16() -> bool:
    """Whether oneDNN has kernels of bf16 for this processor; they need AVX-512 at least."""
    is_supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return is_supported is None or bool(is_supported())


def apply_activation(y: torch.Tensor, activation: Activation) -> torch.Tensor:
    """Apply `activation` to a layer's result."""
    if activation == "none":
        return y
    if activation == "relu":
        return F.relu(y)
    return F.gelu(y, approximate="tanh" if activation == "gelu_tanh" else "none")
