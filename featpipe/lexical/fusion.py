"""BM25 and vectors together: two ways to make one ranking of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.lexical.bm25 import Floats

#: Weights tried by :func:`tune_weight`: from vectors alone to BM25 alone.
WEIGHTS = tuple(step / 20 for step in range(21))


def normalise(scores: Floats) -> Floats:
    """Scale each query's scores to 0 ... 1 by their least and greatest: (..., n) -> (..., n).

    Equal scores say nothing and become 0.
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


def tune_weight(words: Floats, vectors: Floats, relevant: NDArray[np.bool_]) -> float:
    """The weight for :func:`combine` that ranks the samples' relevant candidates highest.

    The measure is the mean reciprocal rank of the first relevant candidate; of equally good weights
    the middle one is taken, being the least likely to have been chosen by accident.

    Args:
        words: BM25 scores, (n_samples, n_candidates).
        vectors: similarities of the same.
        relevant: which candidates are right.

    Raises:
        UsageError: no sample has a relevant candidate.
    """
    telling = relevant.any(axis=1)
    if not telling.any():
        raise UsageError("no sample has a relevant candidate: there is nothing to tune on")
    words, vectors, relevant = words[telling], vectors[telling], relevant[telling]
    reached = []
    for weight in WEIGHTS:
        scores = combine(words, vectors, weight)
        best = np.where(relevant, scores, -np.inf).max(axis=1, keepdims=True)
        # Candidates of equal score count against us: half luck is no merit.
        ranks = (scores > best).sum(axis=1) + ((scores == best) & ~relevant).sum(axis=1) + 1
        reached.append(float((1 / ranks).mean()))
    winners = [place for place, value in enumerate(reached) if value == max(reached)]
    return WEIGHTS[winners[len(winners) // 2]]
