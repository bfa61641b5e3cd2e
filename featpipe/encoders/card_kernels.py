"""Kernels of a card for what torch computes in several steps; imports Triton.

Each reads its input once and writes its result once; memory's speed is their limit, or, for the
short sequences that attention is for, the exponentials and the products of scores. Computed is in
float32, stored in half precision. A row, or a sequence and head, is computed from itself alone by
the same steps whatever else is in the pack, so its bits do not depend on that.

Flash attention: Dao et al. 2022, arXiv:2205.14135.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Widths of a head that `attend` computes.
HEAD_SIZES = frozenset({16, 32, 64, 128})

#: Queries that one program holds, keys that it reads at a time, and its warps.
_QUERIES, _KEYS, _WARPS = 64, 64, 4

#: Numbers that one program of `gelu_` takes.
_NUMBERS = 4096

#: Base-2 exponentials are what the card has.
_LOG2_E = 1.4426950408889634

# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917 - of the functions in Triton's language


@triton.jit
def _normed(total, inside, columns, weight, bias, width, epsilon):
    centred = tl.where(inside, total - tl.sum(total, 0) / width, 0.0)
    variance = tl.sum(centred * centred, 0) / width
    scaled = centred / tl.sqrt(variance + epsilon)
    return scaled * tl.load(weight + columns, inside) + tl.load(bias + columns, inside)


@triton.jit
def _add_norm(x, y, weight, bias, out, width, epsilon, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    total = tl.load(x + at, inside, 0.0).to(tl.float32) + tl.load(y + at, inside, 0.0).to(
        tl.float32
    )
    normed = _normed(total, inside, columns, weight, bias, width, epsilon)
    tl.store(out + at, normed.to(out.dtype.element_ty), inside)


@triton.jit
def _embed_norm(
    ids, places, words, positions, weight, bias, out, width, epsilon, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    word = tl.load(words + tl.load(ids + row).to(tl.int64) * width + columns, inside, 0.0)
    place = tl.load(positions + tl.load(places + row).to(tl.int64) * width + columns, inside, 0.0)
    normed = _normed(word + place, inside, columns, weight, bias, width, epsilon)
    tl.store(out + row * width + columns, normed.to(out.dtype.element_ty), inside)


@triton.jit
def _attend(
    qkv, edges, out, width, scale, SIZE: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    sequence = tl.program_id(2)
    start = tl.load(edges + sequence)
    length = tl.load(edges + sequence + 1) - start
    first = tl.program_id(0) * QUERIES
    if first < length:
        columns = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
        rows = first + tl.arange(0, QUERIES)
        is_query = (rows < length)[:, None]
        base = qkv + start.to(tl.int64) * 3 * width
        query = tl.load(base + rows[:, None] * 3 * width + columns[None, :], is_query, 0.0)
        most = tl.full((QUERIES,), float("-inf"), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        mixed = tl.zeros((QUERIES, SIZE), tl.float32)
        for begin in range(0, length, KEYS):
            others = begin + tl.arange(0, KEYS)
            at = base + others[:, None] * 3 * width + columns[None, :]
            is_key = others < length
            key = tl.load(at + width, is_key[:, None], 0.0)
            scores = tl.dot(query, key.T) * scale
            scores = tl.where(is_key[None, :], scores, float("-inf"))
            higher = tl.maximum(most, tl.max(scores, 1))
            shares = tl.exp2(scores - higher[:, None])
            shrunk = tl.exp2(most - higher)
            value = tl.load(at + 2 * width, is_key[:, None], 0.0)
            mixed = tl.dot(shares.to(value.dtype), value, mixed * shrunk[:, None])
            total = total * shrunk + tl.sum(shares, 1)
            most = higher
        mixed = mixed / total[:, None]
        to = out + (start.to(tl.int64) + rows)[:, None] * width + columns[None, :]
        tl.store(to, mixed.to(out.dtype.element_ty), is_query)


@triton.jit
def _gelu(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    given = tl.load(x + at, inside, 0.0).to(tl.float32)
    near = tl.minimum(tl.maximum(given, -4.4), 4.4)
    square = near * near
    series = 7.146463976148709e-11 * square - 7.514265654151586e-09
    series = series * square + 3.483763748590718e-07
    series = series * square - 9.453444363316521e-06
    series = series * square + 0.000168624275829643
    series = series * square - 0.0021102125756442547
    series = series * square + 0.01928679458796978
    series = series * square - 0.13215398788452148
    series = series * square + 0.7975237965583801
    erf = tl.minimum(tl.maximum(near * series, -1.0), 1.0)
    half = 0.5 * given
    tl.store(x + at, (half * erf + half).to(x.dtype.element_ty), inside)


@triton.jit
def _best_paths(
    scores, edges, between, start, end, came_from, path, n_labels, LABELS: tl.constexpr
):
    start_row = tl.load(edges + tl.program_id(0))
    length = tl.load(edges + tl.program_id(0) + 1) - start_row
    if length > 0:
        first = start_row.to(tl.int64) * n_labels
        labels = tl.arange(0, LABELS)
        inside = labels < n_labels
        pairs = labels[:, None] * n_labels + labels[None, :]
        no_path = float("-inf")
        change = tl.load(between + pairs, inside[:, None] & inside[None, :], no_path)
        score = tl.load(start + labels, inside, no_path)
        score += tl.load(scores + first + labels, inside, 0.0)
        for token in range(1, length):
            emitted = tl.load(scores + first + token * n_labels + labels, inside, 0.0)
            reached = score[:, None] + change + emitted[None, :]
            score, came = tl.max(reached, 0, return_indices=True)
            tl.store(came_from + first + token * n_labels + labels, came, inside)
        best = tl.argmax(score + tl.load(end + labels, inside, no_path), 0)
        tl.debug_barrier()  # what one thread stored, all read now
        for ahead in range(length):
            token = length - 1 - ahead
            tl.store(path + start_row + token, best)
            if token > 0:
                best = tl.load(came_from + first + token * n_labels + best).to(tl.int32)


def add_norm(
    x: torch.Tensor,
    y: torch.Tensor,
    norm: tuple[torch.Tensor, torch.Tensor],
    epsilon: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    """LayerNorm of x + y, by `norm`'s weight and bias.

    Shapes: x, y (rows, width), contiguous -> (rows, width) `dtype`.
    """
    n_rows, width = x.shape
    out = torch.empty(n_rows, width, dtype=dtype, device=x.device)
    _add_norm[(n_rows,)](x, y, *norm, out, width, epsilon, **_block(width))
    return out


def embed_norm(
    ids: torch.Tensor,
    places: torch.Tensor,
    tables: tuple[torch.Tensor, torch.Tensor],
    norm: tuple[torch.Tensor, torch.Tensor],
    epsilon: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    """LayerNorm of the sum of a row of each of the two tables (of words and of positions).

    Shapes: ids, places (rows,); tables (any, width) float32, contiguous -> (rows, width) `dtype`.
    """
    n_rows, width = len(ids), tables[0].shape[1]
    out = torch.empty(n_rows, width, dtype=dtype, device=ids.device)
    _embed_norm[(n_rows,)](ids, places, *tables, *norm, out, width, epsilon, **_block(width))
    return out


def attend(qkv: torch.Tensor, edges: torch.Tensor, longest: int, n_heads: int) -> torch.Tensor:
    """Scaled dot-product attention of sequences that lie end to end.

    Rows of no sequence are left as they are: anything.

    Shapes: qkv (tokens, 3 * width) half, contiguous, columns query, key, value; edges (n + 1,)
    int32, where each sequence begins and the last one ends; -> (tokens, width), same dtype.
    """
    width = qkv.shape[1] // 3
    size = width // n_heads
    out = torch.empty(len(qkv), width, dtype=qkv.dtype, device=qkv.device)
    grid = (triton.cdiv(longest, _QUERIES), n_heads, len(edges) - 1)
    scale = size**-0.5 * _LOG2_E
    _attend[grid](
        qkv, edges, out, width, scale, SIZE=size, QUERIES=_QUERIES, KEYS=_KEYS, num_warps=_WARPS
    )
    return out


def best_paths(
    scores: torch.Tensor,
    edges: torch.Tensor,
    transitions: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """The paths of `viterbi.find_best_paths`, by the same sums in the same order.

    A program computes a text, one token after another: a step's latency is the limit, and as many
    texts as the card holds run side by side.

    Shapes: scores (tokens, k) float32, texts end to end; edges (n + 1,) int32, where each begins
    and the last one ends; transitions between (k, k), start and end (k,) -> (tokens,) int32.
    """
    n_tokens, n_labels = scores.shape
    path = torch.empty(n_tokens, dtype=torch.int32, device=scores.device)
    kind = torch.int8 if n_labels <= 128 else torch.int16
    came_from = torch.empty(n_tokens, n_labels, dtype=kind, device=scores.device)
    block = max(2, triton.next_power_of_2(n_labels))
    options = {"LABELS": block, "num_warps": min(max(block * block // 2048, 1), 8)}
    _best_paths[(len(edges) - 1,)](
        scores, edges, *transitions, came_from, path, n_labels, **options
    )
    return path


def gelu_(x: torch.Tensor) -> torch.Tensor:
    """GELU, x (1 + erf(x / sqrt 2)) / 2, in the place of x, which is contiguous.

    erf by an odd polynomial of degree 17, the one with the least greatest error up to x = 4.4: the
    result is within 5e-5 of the exact one. torch's takes a quarter longer.
    """
    n = x.numel()
    _gelu[(triton.cdiv(n, _NUMBERS),)](x, n, BLOCK=_NUMBERS, num_warps=8)
    return x


def _block(width: int) -> dict[str, int]:
    """Options of a kernel that takes a row at a time: eight numbers a thread."""
    block = triton.next_power_of_2(width)
    return {"BLOCK": block, "num_warps": min(max(block // 256, 1), 8)}
