"""BM25 and vectors together: two ways to combine two rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.lexical.bm25 import Floats


def normalise(scores: Floats) -> Floats:
    """Scale each query's scores to 0 ... 1 by their least and greatest: (..., n) -> (..., n).

    Scores that are all equal become 0.
    """
    least = scores.min(axis=-1, keepdims=True, initial=np.inf)
    spread = scores.max(axis=-1, keepdims=True, initial=-np.inf) - least
    scaled: Floats = np.divide(scores - least, spread, out=np.zeros_like(scores), where=spread > 0)
    return scaled


def combine(words: Floats, vectors: Floats, weight: float) -> Floats:
    """Convex combination of two scorings of the same candidates, each normalised per query.

    Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval" (arXiv 2210.11934): better
    than reciprocal ranks in and out of domain, nearly indifferent to the normalisation, and its one
    weight is found with few samples.

    Args:
        words: BM25 scores, (..., n_candidates).
        vectors: similarities of the same candidates.
        weight: of BM25, 0 to 1.
    """
    if not 0 <= weight <= 1:
        raise UsageError(f"the weight of BM25 must be within 0 and 1, not {weight}")
    combined: Floats = weight * normalise(words) + (1 - weight) * normalise(vectors)
    return combined


def fuse_ranks(rankings: Sequence[NDArray[np.int64]], *, k: int = 60) -> list[tuple[int, float]]:
    """Reciprocal rank fusion: candidates of several rankings, best first, with their scores.

    A candidate's score is the sum of 1 / (k + its rank) over the rankings that hold it, ranks
    counting from 1 (Cormack, Clarke, Büttcher 2009). Needs no samples and no comparable scores.
    Equal scores go by number.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, candidate in enumerate(ranking.tolist(), 1):
            scores[candidate] = scores.get(candidate, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))
