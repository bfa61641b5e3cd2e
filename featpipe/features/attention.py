"""Attention over packed sequences: each sequence sees itself only, and there is no padding.

On CPU sequences of equal length run as one plain batch. Each kernel below computes a sequence from
that sequence alone, so its bits do not depend on the company it is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

Group = tuple[int, int, int]
"""(first token, number of sequences, their length)."""

#: Below this length bf16 `matmul` picks its kernel by the size of the whole batch, which would let
#: neighbours change a sequence's bits; SDPA does not.
_SHORT = 16


def attend(qkv: torch.Tensor, groups: Sequence[Group], *, n_heads: int) -> torch.Tensor:
    """Scaled dot-product attention per sequence.

    Shapes: qkv (tokens, 3 * width), columns query, key, value -> (tokens, width), same dtype.
    """
    width = qkv.shape[1] // 3
    out = torch.empty(qkv.shape[0], width, dtype=qkv.dtype, device=qkv.device)
    for first, count, length in groups:
        rows = slice(first, first + count * length)
        heads = qkv[rows].view(count, length, 3, n_heads, width // n_heads).permute(2, 0, 3, 1, 4)
        mixed = _mix(heads[0], heads[1], heads[2])
        out[rows].view(count, length, n_heads, width // n_heads).copy_(mixed.transpose(1, 2))
    return out


def _mix(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Shapes: each (sequences, heads, length, size) -> the same."""
    if query.dtype == torch.float32 or query.shape[2] < _SHORT or query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value)
    scores = torch.matmul(query, key.transpose(-1, -2)).mul_(query.shape[-1] ** -0.5)
    return torch.matmul(torch.softmax(scores, -1), value)
