"""Linear layers in bf16 on processors with AMX, Intel's matrix unit.

oneDNN's kernels for AMX cut the sum over a layer's inputs into pieces by the number of rows and of
threads, so that a row's bits depend on the other rows. So rows are computed in calls of 32, the
last filled up, and by one thread; and where a layer sums more rows in the same order, in calls of
so many. Which numbers these are differs by shape, and is measured when a layer first has that many
rows, with sums that cancel: of another order the bits are others.

What it costs beside one call for all rows: a fifteenth of the time of a text in the built-in model,
a quarter in bge-small, whose layers of 2,048 inputs sum no larger number of rows alike; float32
takes three times as long. Near the processor's FLOPS.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from featpipe.encoders.linear import PrepackedLinear

if TYPE_CHECKING:
    from featpipe.encoders.linear import Activation

#: Rows of a call, in any layer.
FEW = 32
#: Larger numbers of rows, where they are summed as few are.
_MANY = (4096, 2048, 1024, 512, 256, 128, 64)
#: Least share of a larger call's rows that are no padding.
_LEAST_FILLED = 0.75


class AmxLinear(PrepackedLinear):
    """A layer whose rows have the same bits in any company, by calls of chosen sizes."""

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
            parts.append(super().__call__(rows, activation))
            first += size
        whole = torch.cat(parts) if len(parts) > 1 else parts[0]
        return whole[:n_rows]

    def _size_of_call(self, n_rows: int, activation: Activation) -> int:
        """Rows of the next call, of so many that are left."""
        for size in _MANY:
            is_filled = n_rows >= _LEAST_FILLED * size
            if is_filled and sums_alike(self._n_in, self._n_out, size, activation):
                return size
        return FEW


@cache
def sums_alike(n_in: int, n_out: int, n_rows: int, activation: Activation) -> bool:
    """Whether each of `n_rows` rows, a multiple of `FEW`, has the bits that it has among `FEW`.

    All sums are of numbers and their opposites in another order, so that nothing is left of them
    but what was rounded.
    """
    layer, few = _make_trial(n_in, n_out)
    expected = layer(few, activation)
    found = layer(few.repeat(n_rows // FEW, 1), activation)
    return bool((found.view(-1, *expected.shape) == expected).all())


@lru_cache(maxsize=1)
def _make_trial(n_in: int, n_out: int) -> tuple[PrepackedLinear, torch.Tensor]:
    """A layer of this shape, and rows (FEW, n_in) whose sums cancel."""
    chance = torch.Generator().manual_seed(n_in)
    weight, few = (torch.randn(n, -(-n_in // 2), generator=chance) for n in (n_out, FEW))
    shuffled = torch.randperm(weight.shape[1], generator=chance)
    weight = torch.cat((weight, -weight[:, shuffled]), 1)[:, :n_in]
    few = torch.cat((few, few[:, shuffled]), 1)[:, :n_in]
    bias = torch.zeros(n_out, dtype=torch.bfloat16)
    return PrepackedLinear(weight.bfloat16(), bias), few.bfloat16()
