"""Kernels of a card for what lies between the matrix products of `decoder`; imports Triton.

As those of `card_kernels`: each reads its input once and writes its result once, in half precision
and computed in float32; memory's speed is the limit; a row is computed from itself alone.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Columns that one program of `gate` takes.
_COLUMNS = 1024

# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917 - of the functions in Triton's language


@triton.jit
def _add_rms_norm(x, y, weight, out, width, epsilon, HAS_Y: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    total = tl.load(x + at, inside, 0.0).to(tl.float32)
    if HAS_Y:
        total += tl.load(y + at, inside, 0.0).to(tl.float32)
        tl.store(x + at, total, inside)
    scaled = total / tl.sqrt(tl.sum(total * total, 0) / width + epsilon)
    normed = scaled * tl.load(weight + columns, inside, 0.0)
    tl.store(out + at, normed.to(out.dtype.element_ty), inside)


@triton.jit
def _turn(
    qkv, cos, sin, weight, out, n_columns, n_heads, n_both, epsilon,
    HALF: tl.constexpr, HEADS: tl.constexpr, HAS_NORM: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, HALF)[None, :]
    heads = tl.arange(0, HEADS)[:, None]
    inside = (heads < n_both) & (columns < HALF)
    at = heads * 2 * HALF + columns
    first = tl.load(qkv + row * n_columns + at, inside, 0.0).to(tl.float32)
    second = tl.load(qkv + row * n_columns + at + HALF, inside, 0.0).to(tl.float32)
    if HAS_NORM:
        squares = tl.sum(first * first, 1) + tl.sum(second * second, 1)
        length = tl.sqrt(squares / (2 * HALF) + epsilon)[:, None]
        of_keys = (heads >= n_heads).to(tl.int32) * 2 * HALF + columns
        first = first / length * tl.load(weight + of_keys, inside, 0.0)
        second = second / length * tl.load(weight + of_keys + HALF, inside, 0.0)
    angle = row * 2 * HALF + columns
    left = first * tl.load(cos + angle) - second * tl.load(sin + angle)
    right = second * tl.load(cos + angle + HALF) + first * tl.load(sin + angle + HALF)
    to = out + row * n_both * 2 * HALF + at
    tl.store(to, left.to(out.dtype.element_ty), inside)
    tl.store(to + HALF, right.to(out.dtype.element_ty), inside)


@triton.jit
def _gate(gated, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    at = gated + row * 2 * width + columns
    first = tl.load(at, inside, 0.0).to(tl.float32)
    second = tl.load(at + width, inside, 0.0).to(tl.float32)
    product = first / (1.0 + tl.exp(-first)) * second
    tl.store(out + row * width + columns, product.to(out.dtype.element_ty), inside)


def add_rms_norm(
    x: torch.Tensor,
    y: torch.Tensor | None,
    weight: torch.Tensor,
    epsilon: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Add y to x, in place, and return the RMSNorm of the sum.

    Shapes: x (rows, width) float32, y the same half or None, both contiguous; weight (width,)
    float32 -> (rows, width) `dtype`.
    """
    n_rows, width = x.shape
    out = torch.empty(n_rows, width, dtype=dtype, device=x.device)
    block = triton.next_power_of_2(width)
    warps = min(max(block // 256, 1), 8)
    given = x, x if y is None else y, weight, out, width, epsilon
    _add_rms_norm[(n_rows,)](*given, HAS_Y=y is not None, BLOCK=block, num_warps=warps)
    return out


def turn(
    qkv: torch.Tensor,
    angles: tuple[torch.Tensor, torch.Tensor],
    norm: tuple[torch.Tensor, float] | None,
    *,
    n_heads: int,
    n_keys: int,
) -> torch.Tensor:
    """Rotary embeddings of queries and keys, after an RMSNorm of each head where there is `norm`.

    A pair is a column of the first half of a head and the same one of the second.

    Shapes: qkv (rows, any) half, contiguous, that begins with n_heads and n_keys heads; cosines and
    sines (rows, size) float32, contiguous; weights (2, size) float32, of queries and of keys, and
    epsilon -> (rows, n_heads + n_keys, size), same dtype. size is twice a power of two.
    """
    cos, sin = angles
    n_rows, size = cos.shape
    n_both = n_heads + n_keys
    out = torch.empty(n_rows, n_both, size, dtype=qkv.dtype, device=qkv.device)
    weight, epsilon = norm or (cos, 0.0)
    heads = triton.next_power_of_2(n_both)
    given = qkv, cos, sin, weight, out, qkv.shape[1], n_heads, n_both, epsilon
    warps = min(max(heads * size // 1024, 1), 8)
    _turn[(n_rows,)](
        *given, HALF=size // 2, HEADS=heads, HAS_NORM=norm is not None, num_warps=warps
    )
    return out


def gate(gated: torch.Tensor) -> torch.Tensor:
    """SiLU of the first half of the columns times the second.

    Shapes: (rows, 2 * width) half, contiguous -> (rows, width), same dtype.
    """
    n_rows, width = len(gated), gated.shape[1] // 2
    out = torch.empty(n_rows, width, dtype=gated.dtype, device=gated.device)
    _gate[(n_rows, triton.cdiv(width, _COLUMNS))](gated, out, width, BLOCK=_COLUMNS)
    return out
