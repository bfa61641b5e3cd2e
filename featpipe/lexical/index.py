"""BM25 over the sentences of documents that are added."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from featpipe.lexical.bm25 import join_queries, open_kernels
from featpipe.lexical.collection import Collection
from featpipe.lexical.score_numpy import best_rows
from featpipe.settings import check_n_hits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.lexical.backend import Backend
    from featpipe.lexical.bm25 import Floats, Okapi, Query, Statistics
    from featpipe.lexical.collection import WeightedSegment
    from featpipe.lexical.score_numpy import Codes

Level = Literal["sentence", "document"]


class Ranking(NamedTuple):
    """The best rows of each query, best first; rows of equal score in order of position.

    ``rows`` (n_queries, n) int64 and ``scores`` (n_queries, n) float64, where n is k or the number
    of rows there are to choose from.
    """

    rows: NDArray[np.int64]
    scores: Floats


class _Weighed(NamedTuple):
    """Queries laid end to end: the terms that some row holds, their idf, and bounds by query."""

    terms: NDArray[np.int32]
    idf: Floats
    bounds: NDArray[np.int64]


class Index(Collection):
    """Scores of sentences, equal to the last bit to a fresh rank-bm25 over the documents' rows.

    A corpus without rows or without terms has the score 0.0 everywhere, where rank-bm25 raises
    ZeroDivisionError. Threads may share an index while no document is added.

    Args:
        okapi: the parameters.
        backend: whose kernels run; scores are the same.
    """

    def __init__(self, okapi: Okapi | None = None, *, backend: Backend = "auto") -> None:
        super().__init__(okapi, backend)

    def scores(self, queries: Sequence[Query]) -> Floats:
        """Score every row for every query: (n_queries, n_rows) float64.

        Terms may repeat, and count each time; ids in no row add nothing.
        """
        statistics = self.statistics
        out = np.zeros((len(queries), self._n_rows))
        if not statistics.is_defined:
            return out
        add_scores = open_kernels(self._backend).add_scores
        terms, idf, bounds = self._weigh(queries, statistics)
        at = 0
        for part in self._parts:
            places, factors = part.segment.places_of(terms), self._factors(part)
            end = at + part.segment.n_rows
            for own, (low, high) in zip(out, pairwise(bounds.tolist()), strict=True):
                weighed = (places[low:high], idf[low:high])
                add_scores(own[at:end], _postings(part), weighed, factors)
            at = end
        return out

    def top_k(self, queries: Sequence[Query], k: int, *, level: Level = "sentence") -> Ranking:
        """The best rows for every query, by score and then by position.

        Args:
            queries: term ids of each.
            k: how many rows, or how many documents.
            level: ``"document"`` ranks documents by their best sentence and answers its row.

        Raises:
            UsageError: k is no whole number of 1 or more.
        """
        check_n_hits(k)
        statistics = self.statistics
        if level == "document":
            return self._top_documents(queries, k)
        k = min(k, self._n_rows)
        if self._backend == "numba" and statistics.is_defined and k:
            return self._top_k_by_numba(queries, k, statistics)
        ranking = _empty_ranking(len(queries), k)
        for number, query in enumerate(queries):
            scores = self.scores([query])[0]
            ranking.rows[number] = rows = best_rows(scores, k)
            ranking.scores[number] = scores[rows]
        return ranking

    def rows_with(self, query: Query) -> NDArray[np.int64]:
        """The rows that hold any of the terms, ascending.

        Scores do not show it: a term in exactly half of the rows adds 0.0 to all of them, and in a
        corpus of one or two rows known terms can lower the score of the row that holds them.
        """
        found = [np.zeros(0, np.bool_)]
        for part in self._parts:
            holds = np.zeros(part.segment.n_rows, np.bool_)
            places = np.unique(part.segment.places_of(np.asarray(query, np.int32)))
            for place in places[places >= 0].tolist():
                low, high = part.segment.pointers[place : place + 2].tolist()
                holds[part.segment.rows[low:high]] = True
            found.append(holds)
        return np.flatnonzero(np.concatenate(found))

    def _weigh(self, queries: Sequence[Query], statistics: Statistics) -> _Weighed:
        asked, bounds = join_queries(queries)
        is_known = (asked >= 0) & (asked < len(self._row_counts))
        is_known &= self._row_counts.take(asked, mode="clip") > 0
        terms = asked[is_known]
        kept = np.concatenate(([0], np.cumsum(is_known)))[bounds]
        return _Weighed(terms, statistics.idf[terms], kept)

    def _factors(self, part: WeightedSegment) -> Floats:
        if part.factors is None:
            lengths, frequencies = part.segment.pairs.astype(np.int64).T
            norms = self.okapi.norms(lengths, self.statistics.mean_length)
            part.factors = self.okapi.factors(frequencies, norms)
        return part.factors

    def _top_documents(self, queries: Sequence[Query], k: int) -> Ranking:
        sizes = self._sizes[self._sizes > 0]
        ranking = _empty_ranking(len(queries), min(k, len(sizes)))
        for number, query in enumerate(queries):
            scores = self.scores([query])[0]
            rows = _best_of_each(scores, sizes)
            ranking.rows[number] = rows = rows[best_rows(scores[rows], min(k, len(sizes)))]
            ranking.scores[number] = scores[rows]
        return ranking

    def _top_k_by_numba(self, queries: Sequence[Query], k: int, statistics: Statistics) -> Ranking:
        from featpipe.lexical.score_numba import best_of

        terms, idf, bounds = self._weigh(queries, statistics)
        scores, rows = np.empty((len(queries), k)), np.zeros((len(queries), k), np.int64)
        n_kept, base = np.zeros(len(queries), np.int64), 0
        for part in self._parts:
            asked = (part.segment.places_of(terms), idf, bounds)
            best = (scores, rows, n_kept, base)
            best_of(_postings(part), asked, self._factors(part), part.segment.n_rows, best)
            base += part.segment.n_rows

        return Ranking(rows, scores)


def _empty_ranking(n_queries: int, k: int) -> Ranking:
    return Ranking(np.zeros((n_queries, k), np.int64), np.zeros((n_queries, k)))


def _postings(part: WeightedSegment) -> tuple[NDArray[np.int64], NDArray[np.int32], Codes]:
    return part.segment.pointers, part.segment.rows, part.segment.codes


def _best_of_each(scores: Floats, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the first best score in each of the runs that make up ``scores``."""
    if not len(sizes):
        return np.zeros(0, np.int64)
    starts = np.cumsum(sizes) - sizes
    reached = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts), sizes))
    owners = np.searchsorted(starts, reached, side="right")
    first: NDArray[np.int64] = reached[np.diff(owners, prepend=0) > 0]
    return first
