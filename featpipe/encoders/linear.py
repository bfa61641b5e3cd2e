"""Linear layers: y = x W^T + b, with the activation fused where the kernel can.

On CPU the weights are laid out once for oneDNN. Besides being faster, that kernel gives each row
the same bits whatever other rows it is computed with and on however many threads, which a plain
`F.linear` (MKL) does not: it is what batch invariance rests on. The ops are private to torch, so a
plain layer stands in where they are missing; `is_invariant` says which one is at work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

Activation = str
"""``none``, ``gelu`` (exact), ``gelu_tanh`` or ``relu``."""

#: Rows that the layout is tuned for; any number works.
_TYPICAL_ROWS = 2048

#: Rows that `Int8Linear` takes at once: what lies between its steps stays in the cache.
_ROWS_AT_ONCE = 512

#: Smallest largest number of a row, so that a row of zeros has a scale.
_LEAST = 1e-12

_FUSED = {
    "none": ("none", ""),
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
}


class Linear(Protocol):
    """Shapes: x (rows, in) -> (rows, out), in x's dtype."""

    @property
    def is_invariant(self) -> bool:
        """Whether a row's bits do not depend on the other rows."""
        ...

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """Activation of x W^T + b."""
        ...


class PrepackedLinear:
    """oneDNN with weights in its own layout; CPU only."""

    is_invariant = True

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
        self._bias = bias

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        name, algorithm = _FUSED[activation]
        y: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self._weight, self._bias, name, [], algorithm
        )
        return y


class PlainLinear:
    """`F.linear`, for devices and torch builds without the prepacked kernel."""

    is_invariant = False

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`."""
        return apply_activation(F.linear(x, self._weight, self._bias), activation)


class Int8Linear:
    """Eight-bit integers: every weight row and every row of x by its own scale, sums exact.

    Because a row of x is scaled by itself and integers do not round, a row's bits do not depend on
    the other rows. CPU only.
    """

    is_invariant = True

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        scale = weight.abs().amax(1, keepdim=True).clamp_min_(_LEAST).div_(127)
        self._weight = torch.round(weight / scale).to(torch.int8).t().contiguous()
        self._scale = scale[:, 0].contiguous()
        self._bias = bias

    def __call__(self, x: torch.Tensor, activation: Activation = "none") -> torch.Tensor:
        """See `Linear`; x is float32."""
        out = torch.empty(x.shape[0], self._weight.shape[1])
        for first in range(0, x.shape[0], _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            scale = x[rows].abs().amax(1, keepdim=True).clamp_min_(_LEAST).div_(127)
            whole = (x[rows] / scale).round_().to(torch.int8)
            y = torch._int_mm(whole, self._weight).float()
            y = y.mul_(scale).mul_(self._scale).add_(self._bias)
            out[rows] = apply_activation(y, activation)
        return out


def make_linear(
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    *,
    dtype: torch.dtype,
    device: torch.device,
) -> Linear:
    """The best layer for `device`; several weights are stacked into one (fused Q, K and V).

    ``dtype`` int8 gives an `Int8Linear`, whose x and result are float32.
    """
    if dtype == torch.int8:
        whole = torch.cat(list(weights)).detach().float()
        return Int8Linear(whole, torch.cat(list(biases)).detach().float())
    weight = torch.cat(list(weights)).detach().to(device=device, dtype=dtype).contiguous()
    bias = torch.cat(list(biases)).detach().to(device=device, dtype=dtype).contiguous()
    kind = PrepackedLinear if device.type == "cpu" and has_prepacked() else PlainLinear
    return kind(weight, bias)


def has_prepacked() -> bool:
    """Whether this torch has the oneDNN ops that `PrepackedLinear` uses."""
    ops = torch.ops.mkldnn
    return (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # torch left it bare
        and hasattr(ops, "_linear_pointwise")
        and hasattr(ops, "_reorder_linear_weight")
    )


def apply_activation(y: torch.Tensor, activation: Activation) -> torch.Tensor:
    """The activation on its own."""
    if activation == "none":
        return y
    if activation == "relu":
        return F.relu(y)
    return F.gelu(y, approximate="tanh" if activation == "gelu_tanh" else "none")
