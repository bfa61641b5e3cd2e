"""Attention over packed sequences: each sequence attends to itself only, without padding.

On CPU sequences of equal length run as one plain batch. Each kernel below computes a sequence from
that sequence alone, so its bits do not depend on the others in the pack.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.encoders.packing import Group

#: Requirements of flash attention: width of a head, and compute capability of the card.
_WIDEST_FLASH = 256
_FIRST_FLASH = (8, 0)

#: Numbers in one sequence's queries below which `matmul` picks its bf16 kernel by the size of the
#: whole batch, so that a sequence's bits would depend on the others; SDPA does not. (The limit in
#: torch is 16**3, over the batch.)
_SMALL = 4 * 16**3

#: Numbers of bf16 in the widest vector register.
_VECTOR = 32

#: Scores that are computed at a time, so that they stay in the processor's cache.
_SCORES_AT_ONCE = 1 << 20

#: Narrower heads are padded with zero columns: for 8 or 10 columns the float32 kernel's bits were
#: seen to depend on the thread that runs it; for 12 and more never.
_NARROWEST = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of the sequences in a pack; made once per pack and used by every layer."""

    groups: Sequence[Group]
    edges: torch.Tensor | None = None
    """Cumulative lengths from 0, int32, on the card; None without `has_varlen`."""
    longest: int = 0


def has_varlen(device: torch.device, size: int) -> bool:
    """Whether `device` has one kernel for all lengths, for heads of width `size`."""
    return (
        device.type == "cuda"
        and size % 8 == 0
        and size <= _WIDEST_FLASH
        and find_spec("torch.nn.attention.varlen") is not None
        and torch.cuda.get_device_capability(device) >= _FIRST_FLASH
    )


def attend(qkv: torch.Tensor, layout: Layout, *, n_heads: int) -> torch.Tensor:
    """Scaled dot-product attention per sequence.

    Shapes: qkv (tokens, 3 * width), columns query, key, value -> (tokens, width), same dtype.
    """
    width = qkv.shape[1] // 3
    if layout.edges is not None and qkv.dtype != torch.float32:
        return _attend_varlen(qkv, layout.edges, layout.longest, n_heads)
    has_scores = qkv.dtype != torch.float32 and not qkv.is_cuda
    groups = list(_cut_groups(layout.groups, n_heads)) if has_scores else layout.groups
    if len(groups) == 1:
        return _attend_group(qkv, groups[0], n_heads).reshape(qkv.shape[0], width)
    out = torch.empty(qkv.shape[0], width, dtype=qkv.dtype, device=qkv.device)
    for first, count, length in groups:
        rows = slice(first, first + count * length)
        mixed = _attend_group(qkv[rows], (0, count, length), n_heads)
        out[rows].view(count, length, n_heads, width // n_heads).copy_(mixed)
    return out


def _attend_group(qkv: torch.Tensor, group: Group, n_heads: int) -> torch.Tensor:
    """Shapes: qkv of the group's tokens -> (sequences, length, heads, size)."""
    _, count, length = group
    size = qkv.shape[1] // (3 * n_heads)
    heads = qkv.view(count, length, 3, n_heads, size).permute(2, 0, 3, 1, 4)
    return _mix(*heads.unbind()).transpose(1, 2)


def _attend_varlen(
    qkv: torch.Tensor, edges: torch.Tensor, longest: int, n_heads: int
) -> torch.Tensor:
    """One kernel for all lengths: flash attention on the card, half precision only."""
    from torch.nn.attention.varlen import varlen_attn

    query, key, value = qkv.view(qkv.shape[0], 3, n_heads, -1).unbind(1)
    mixed = varlen_attn(query, key, value, edges, edges, longest, longest)
    return mixed.reshape(qkv.shape[0], -1)  # type: ignore[union-attr]  # a tuple only on request


def _cut_groups(groups: Sequence[Group], n_heads: int) -> Iterator[Group]:
    """The same sequences in groups of at most `_SCORES_AT_ONCE` scores, or of one sequence."""
    for first, count, length in groups:
        step = max(1, _SCORES_AT_ONCE // (n_heads * length * length))
        for at in range(0, count, step):
            yield first + at * length, min(step, count - at), length


def _mix(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Shapes: each (sequences, heads, length, size) -> the same."""
    size = query.shape[-1]
    if size < _NARROWEST:
        query, key, value = (F.pad(x, (0, _NARROWEST - size)) for x in (query, key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, scale=size**-0.5)
        return mixed[..., :size]
    if query.dtype == torch.float32 or query[0].numel() < _SMALL or query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value)
    scores = torch.matmul(query, key.transpose(-1, -2)).mul_(size**-0.5)
    # Softmax in bf16 is as fast only for rows of whole registers; it takes a remainder one by one.
    dtype = torch.float32 if scores.shape[-1] % _VECTOR else scores.dtype
    return torch.matmul(torch.softmax(scores, -1, dtype=dtype).to(query.dtype), value)


def attend_separate(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    groups: Sequence[Group],
    *,
    scale: float | None,
) -> torch.Tensor:
    """As `attend`, for query, key and value in separate tensors.

    Shapes: each (heads, tokens, size) -> (tokens, heads, size). Key and value may have fewer heads,
    each of which then serves several queries (grouped-query attention).
    """
    n_heads, n_tokens, size = query.shape
    out = torch.empty(n_tokens, n_heads, size, dtype=query.dtype, device=query.device)
    for first, count, length in groups:
        rows = slice(first, first + count * length)
        q, k, v = (
            x[:, rows].reshape(x.shape[0], count, length, size).transpose(0, 1)
            for x in (query, key, value)
        )
        mixed = F.scaled_dot_product_attention(
            q, k, v, scale=scale, enable_gqa=key.shape[0] != n_heads
        )
        out[rows] = mixed.transpose(1, 2).reshape(count * length, n_heads, size)
    return out
