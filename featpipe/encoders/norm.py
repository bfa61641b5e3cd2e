"""LayerNorm of a sum, which ends each half of a layer.

On a card in half precision one kernel does it, in a third of the time: this step is bound by the
bytes that it moves. Sum, mean and variance are float32; what goes on to the next layer is half, as
its linear layers read it. Elsewhere x and the result are float32, and the kernels are torch's.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F

from featpipe.encoders.fused import is_fused


class Norm(Protocol):
    """A LayerNorm over the sum of two tensors."""

    def __call__(self, x: torch.Tensor, y: torch.Tensor, *, is_last: bool = False) -> torch.Tensor:
        """LayerNorm of x + y; x may be overwritten.

        Shapes: x, y (rows, width) -> (rows, width), float32 if `is_last`.
        """
        ...


class PlainNorm:
    """x and the result are float32."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, epsilon: float) -> None:
        self._weight, self._bias, self._epsilon = weight, bias, epsilon

    def __call__(self, x: torch.Tensor, y: torch.Tensor, *, is_last: bool = False) -> torch.Tensor:  # noqa: ARG002 - float32 anyway
        """See `Norm`."""
        # In place: only this forward holds x, and a fresh block of memory costs more than the sum.
        return F.layer_norm(x.add_(y), self._weight.shape, self._weight, self._bias, self._epsilon)


class FusedNorm:
    """x and the result are half, but for the last result."""

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor, epsilon: float, dtype: torch.dtype
    ) -> None:
        self._norm, self._epsilon, self._dtype = (weight, bias), epsilon, dtype

    def __call__(self, x: torch.Tensor, y: torch.Tensor, *, is_last: bool = False) -> torch.Tensor:
        """See `Norm`."""
        from featpipe.encoders.card_kernels import add_norm

        dtype = torch.float32 if is_last else self._dtype
        return add_norm(x, y, self._norm, self._epsilon, dtype)


def make_norm(weight: torch.Tensor, bias: torch.Tensor, epsilon: float, dtype: torch.dtype) -> Norm:
    """The norm for the device of `weight`, and linear layers in `dtype`."""
    if is_fused(weight.device, dtype):
        return FusedNorm(weight, bias, epsilon, dtype)
    return PlainNorm(weight, bias, epsilon)
