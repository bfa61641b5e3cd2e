"""Many field queries against one document's sentences, in one pass: extraction's hot call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from featpipe.features.bm25.statistics import Statistics, compute_statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.features.bm25.variants import Floats, Variant


def score_fields(
    ids: NDArray[np.int32],
    lengths: NDArray[np.int64],
    queries: Sequence[NDArray[np.int32]],
    variant: Variant,
    *,
    statistics: Statistics | None = None,
    backend: Literal["numba", "numpy"] = "numpy",
) -> Floats:
    """Score every sentence of a document for every query.

    With ``statistics=None`` the document is its own corpus and the scores are, to the last bit,
    those of a fresh rank-bm25 over its sentences. With a corpus's statistics the same sentences
    are scored by the corpus's idf and mean length, which is what a document of one or two
    sentences needs.

    Args:
        ids: (n_tokens,) term ids of the sentences, laid end to end.
        lengths: (n_sentences,) terms per sentence.
        queries: term ids of each query; -1 or any id not in the document adds nothing (BM25+ adds
            its background for terms the statistics know).
        variant: the BM25.
        statistics: of a corpus with the same term ids.
        backend: whose kernels run.

    Returns:
        (n_queries, n_sentences) float64.
    """
    if backend == "numba":
        from featpipe.features.bm25.numba_kernels import score_document
    else:
        from featpipe.features.bm25.numpy_kernels import score_document
    bounds = np.zeros(len(queries) + 1, np.int64)
    np.cumsum([len(query) for query in queries], out=bounds[1:])
    asked = np.concatenate([*queries, np.zeros(0, np.int32)]).astype(np.int32, copy=False)
    lengths = np.asarray(lengths, np.int64)
    scores: Floats = score_document(ids, lengths, asked, bounds, variant, statistics)
    return scores


def weigh_query(
    asked: NDArray[np.int32],
    local: NDArray[np.int64] | NDArray[np.int32],
    pointers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    variant: Variant,
    statistics: Statistics | None,
) -> tuple[Floats, Floats] | None:
    """Idf of each query token and norm of each sentence; None where every score is 0.0.

    ``local`` numbers the document's terms by first appearance, -1 for those not in it.
    """
    if statistics is None:
        counts = np.diff(pointers)
        order = np.arange(len(counts), dtype=np.int32)
        own = compute_statistics(variant, counts, len(lengths), int(lengths.sum()), order)
        if not own.is_defined:
            return None
        idf = np.where(local >= 0, own.idf.take(local, mode="clip"), 0.0)
        return idf, variant.norms(lengths, own.mean_length)
    if not statistics.is_defined:
        return None
    known = (asked >= 0) & (asked < len(statistics.idf))
    idf = np.where(known, statistics.idf.take(asked, mode="clip"), 0.0)
    return idf, variant.norms(lengths, statistics.mean_length)
