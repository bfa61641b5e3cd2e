"""Nearest rows of a space, exactly: every vector is compared, block by block.

Guarantees: the k best of all rows, ties in the order of storing; a score is a function of the two
vectors alone, to the last bit; memory for one block, whatever the size of the file. An approximate
index may be faster from some millions of vectors on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from featpipe.errors import UsageError
from featpipe.settings import check_n_hits

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
        UsageError: k is no whole number of 1 or more, or no such metric.

    """
    check_n_hits(k)
    if metric not in {"cosine", "dot", "euclidean"}:
        raise UsageError(f"no metric {metric!r}", hint="choose from cosine, dot, euclidean")
    if metric == "cosine":
        queries = unit_rows(queries)
    best = [_Best(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries]
    for numbers, vectors in blocks:
        rough, slack = _rough_scores(queries, vectors, metric)
        for at, query in enumerate(queries):
            near = _reaching(rough[at], k, 2 * float(slack[at]))
            scores = _scores(query, vectors[near], metric)
            best[at] = best[at].joined(numbers[near], scores, k)
    n = len(best[0].rows) if best else 0
    rows = np.array([one.rows for one in best], np.int64).reshape(len(best), n)
    return rows, np.array([one.scores for one in best], np.float32).reshape(len(best), n)


class _Best(NamedTuple):
    """The best rows of a query so far, and their scores, best first."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]

    def joined(self, rows: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> _Best:
        """The k best of these and of more, by score, then by row."""
        rows, scores = np.concatenate([self.rows, rows]), np.concatenate([self.scores, scores])
        order = np.lexsort((rows, -scores))[:k]
        return _Best(rows[order], scores[order])


def _rough_scores(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], metric: Metric
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scores (n_queries, n) of a block, squared distances negated, and their largest error (n,).

    A product of matrices sums a row in an order that depends on its place among the others: the
    last bits do, too. The error is bounded by that of any order (Higham, Accuracy and Stability of
    Numerical Algorithms, section 3.1).
    """
    products = queries @ vectors.T
    n_roundings = (vectors.shape[1] + 8) * np.finfo(np.float32).eps
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    own = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    longest = lengths.max(initial=0.0)
    if metric == "dot":
        return products, n_roundings * own * longest
    if metric == "cosine":
        # A vector of zeros has cosine 0 with every other.
        whole = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return whole, np.asarray(2 * n_roundings * own, np.float32)
    squared = (own * own)[:, None] + (lengths * lengths)[None, :] - 2 * products
    return -squared, np.asarray(n_roundings * (own + longest) ** 2, np.float32)


def _reaching(scores: NDArray[np.float32], k: int, slack: float) -> NDArray[np.intp]:
    """All that may reach the k-th best score, not just any k of them: ties are broken by row."""
    if len(scores) <= k:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -k)[-k] - slack)


def _scores(
    query: NDArray[np.float32], vectors: NDArray[np.float32], metric: Metric
) -> NDArray[np.float32]:
    """Scores (n,) of some rows: the same bits for a row in whatever company it is."""
    asked, rows = query.astype(np.float64), vectors.astype(np.float64)
    if metric == "euclidean":
        apart = rows - asked
        return np.asarray(-np.sqrt((apart * apart).sum(axis=1)), np.float32)
    products = (rows * asked).sum(axis=1)
    if metric == "cosine":
        lengths = np.sqrt((rows * rows).sum(axis=1))
        products = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.asarray(products, np.float32)


def unit_rows(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    """Each vector (n, dim) at length 1, so that inner products are cosines; zero stays zero."""
    matrix = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    whole = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return np.ascontiguousarray(whole, np.float32)
