"""Nearest rows of a space, exactly: every vector is compared, block by block.

Guarantees: the k best of all rows, ties in the order of storing; memory for one block, whatever the
size of the file. An approximate index may be faster from some millions of vectors on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    Metric = Literal["cosine", "dot", "euclidean"]
    #: Row numbers (n,) and their vectors (n, dim) float32.
    Block = tuple[NDArray[np.int64], NDArray[np.float32]]

#: Values of a block, so that it takes 32 MiB whatever the dimension.
BLOCK_VALUES = 8 << 20


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored text and its score: larger is nearer; a distance counts negative.

    ``key`` is that of the text, by which its vector is found.
    """

    text: str
    score: float
    key: bytes


def as_queries(vectors: ArrayLike, dim: int) -> NDArray[np.float32]:
    """One vector (dim,) or several (n, dim) as (n, dim) float32.

    Raises:
        UsageError: another dimension than the space has, or numbers that are not finite.

    """
    queries = np.atleast_2d(np.asarray(vectors, np.float32))
    if queries.ndim != 2 or queries.shape[1] != dim:
        raise UsageError(f"a vector of this space has {dim} numbers, not {queries.shape[-1]}")
    if not np.isfinite(queries).all():
        raise UsageError("a query holds numbers that are not finite")
    return queries


def find_rows(
    blocks: Iterable[Block], queries: NDArray[np.float32], k: int, metric: Metric = "cosine"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best rows of each query.

    Returns:
        ``rows`` (n, k) and ``scores`` (n, k), best first; fewer columns where there are fewer rows.

    Raises:
        UsageError: k below 1, or no such metric.

    """
    if k < 1:
        raise UsageError(f"k must be at least 1, not {k}")
    if metric not in {"cosine", "dot", "euclidean"}:
        raise UsageError(f"no metric {metric!r}", hint="choose from cosine, dot, euclidean")
    if metric == "cosine":
        queries = unit_rows(queries)
    rows = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    for numbers, vectors in blocks:
        more = _scores(queries, vectors, metric)
        rows, scores = _merge(rows, scores, numbers, more, k)
    return rows, scores


def _scores(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], metric: Metric
) -> NDArray[np.float32]:
    products = queries @ vectors.T
    if metric == "dot":
        return products
    squares = np.einsum("ij,ij->i", vectors, vectors)
    if metric == "cosine":
        lengths = np.sqrt(squares)
        # A vector of zeros has cosine 0 with every other.
        whole = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.asarray(whole, np.float32)
    own = np.einsum("ij,ij->i", queries, queries)
    squared = own[:, None] + squares[None, :] - 2 * products
    return np.asarray(-np.sqrt(np.maximum(squared, 0.0)), np.float32)


def _merge(
    rows: NDArray[np.int64],
    scores: NDArray[np.float32],
    numbers: NDArray[np.int64],
    more: NDArray[np.float32],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best of the earlier blocks and of one more, by score, then by row."""
    n_kept = min(k, scores.shape[1] + more.shape[1])
    out_rows = np.empty((len(scores), n_kept), np.int64)
    out_scores = np.empty((len(scores), n_kept), np.float32)
    for query in range(len(scores)):
        candidates = np.arange(more.shape[1])
        if more.shape[1] > n_kept:
            # All that reach the k-th score, not just any k of them: the tie is broken below.
            least = np.partition(more[query], -n_kept)[-n_kept]
            candidates = np.flatnonzero(more[query] >= least)
        all_scores = np.concatenate([scores[query], more[query, candidates]])
        all_rows = np.concatenate([rows[query], numbers[candidates]])
        best = np.lexsort((all_rows, -all_scores))[:n_kept]
        out_rows[query], out_scores[query] = all_rows[best], all_scores[best]
    return out_rows, out_scores


def unit_rows(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    """Each vector (n, dim) at length 1, so that inner products are cosines; zero stays zero."""
    matrix = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    whole = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return np.ascontiguousarray(whole, np.float32)
