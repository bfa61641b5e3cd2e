"""Attention over packed sequences: each sequence attends to itself only, without padding.

On CPU sequences of equal length run as one plain batch. Each kernel below computes a sequence from
that sequence alone, so its bits do not depend on the others in the pack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from featpipe.encoders.fused import has_kernels
from featpipe.encoders.transfer import send

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.encoders.packing import Group, Pack

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

    @classmethod
    def of(cls, pack: Pack, device: torch.device, size: int) -> Layout:
        """For heads of width `size` on `device`."""
        if not has_varlen(device, size):
            return cls(pack.groups)
        edges = np.concatenate(([0], np.cumsum(pack.lengths))).astype(np.int32)
        return cls(pack.groups, send(edges, device), int(pack.lengths.max()))


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
        if _has_own(qkv.device, width // n_heads):
            from featpipe.encoders.card_kernels import attend as attend_all

            return attend_all(qkv, layout.edges, layout.longest, n_heads)
        query, key, value = qkv.view(qkv.shape[0], 3, n_heads, -1).unbind(1)
        return _attend_varlen(query, key, value, layout).reshape(qkv.shape[0], width)
    has_scores = qkv.dtype != torch.float32 and not qkv.is_cuda
    groups = list(_cut_groups(layout.groups, n_heads)) if has_scores else layout.groups
    # A pack may have rows beyond its tokens, of no sequence.
    if len(groups) == 1 and groups[0][1] * groups[0][2] == qkv.shape[0]:
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


@lru_cache
def _has_own(device: torch.device, size: int) -> bool:
    """Whether our kernel for all lengths takes the place of torch's, in half its time."""
    if not has_kernels(device):
        return False
    from featpipe.encoders.card_kernels import HEAD_SIZES

    return size in HEAD_SIZES


def _attend_varlen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    layout: Layout,
    **options: object,
) -> torch.Tensor:
    """One kernel for all lengths: flash attention on the card, half precision only.

    Shapes: each (tokens, heads, size) -> (tokens, heads, size).
    """
    from torch.nn.attention.varlen import varlen_attn

    edges, longest = layout.edges, layout.longest
    mixed: torch.Tensor = varlen_attn(query, key, value, edges, edges, longest, longest, **options)  # type: ignore[assignment,arg-type]  # a tuple only on request
    return mixed


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
    layout: Layout,
    *,
    scale: float | None,
    is_causal: bool = False,
) -> torch.Tensor:
    """As `attend`, for query, key and value in separate tensors.

    Shapes: each (heads, tokens, size) -> (tokens, heads, size). Key and value may have fewer heads,
    each of which then serves several queries (grouped-query attention). With `is_causal` a token
    attends to itself and those before it.
    """
    n_heads, n_tokens, size = query.shape
    is_grouped = key.shape[0] != n_heads
    if layout.edges is not None and value.dtype != torch.float32 and _has_grouped_varlen():
        # Under autocast a norm of queries and keys leaves them in float32.
        q, k, v = (x.transpose(0, 1).to(value.dtype) for x in (query, key, value))
        window = (-1, 0) if is_causal else (-1, -1)
        return _attend_varlen(
            q, k, v, layout, scale=scale, window_size=window, enable_gqa=is_grouped
        )
    out = torch.empty(n_tokens, n_heads, size, dtype=query.dtype, device=query.device)
    for first, count, length in layout.groups:
        part = slice(first, first + count * length)
        q, k, v = (
            x[:, part].reshape(x.shape[0], count, length, size).transpose(0, 1)
            for x in (query, key, value)
        )
        mixed = F.scaled_dot_product_attention(
            q, k, v, scale=scale, is_causal=is_causal, enable_gqa=is_grouped
        )
        out[part] = mixed.transpose(1, 2).reshape(count * length, n_heads, size)
    return out


@lru_cache
def _has_grouped_varlen() -> bool:
    """Whether the kernel for all lengths takes a scale, windows and fewer keys, as after 2.10."""
    from torch.nn.attention.varlen import varlen_attn

    return "enable_gqa" in signature(varlen_attn).parameters
