"""BM25 over the sentences of documents that come, change and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featpipe.errors import UsageError
from featpipe.lexical.bm25 import score_fields
from featpipe.lexical.collection import Collection, Held, Place
from featpipe.lexical.score_numpy import best_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from featpipe.lexical.backend import Backend
    from featpipe.lexical.bm25 import Columns, Floats, Statistics, Variant

Query = NDArray[np.int32]
Level = Literal["sentence", "document"]


class Ranking(NamedTuple):
    """The best rows of each query, best first; rows of equal score in order of position.

    ``rows`` (n_queries, n) int64 and ``scores`` (n_queries, n) float64, where n is k or the number
    of rows there are to choose from.
    """

    rows: NDArray[np.int64]
    scores: Floats


class Part(NamedTuple):
    """What one query term added to one row's score."""

    term: int
    frequency: int
    n_rows: int
    idf: float
    score: float


class _Stretches(NamedTuple):
    """Some documents: where each one's rows are, the rows' numbers, and how many each has."""

    places: list[Place]
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]


class Index(Collection):
    """Scores of sentences, equal to the last bit to a fresh rank-bm25 over the living ones.

    Readers may share an index between threads as long as nobody adds or removes.

    Args:
        variant: :class:`Okapi`, :class:`L` or :class:`Plus`.
        backend: whose kernels run; scores are the same.
        strict: raise ZeroDivisionError, as rank-bm25 does, where a corpus without rows or terms
            is asked for scores, instead of answering zeros.
    """

    def __init__(
        self, variant: Variant | None = None, *, backend: Backend = "auto", strict: bool = False
    ) -> None:
        super().__init__(variant, backend)
        self.is_strict = strict

    def scores(self, queries: Sequence[Query]) -> Floats:
        """Score every living row for every query: (n_queries, n_rows) float64.

        Terms may repeat, and count each time; ids no row holds add nothing.

        Raises:
            ZeroDivisionError: the index is strict and there are no rows or no terms.
        """
        statistics = self._telling()
        out = np.zeros((len(queries), self._n_rows))
        if not statistics.is_defined:
            return out
        for scores, query in zip(out, queries, strict=True):
            known, idf = self._weigh(query, statistics)
            at = 0
            for held in self._held:
                found = self._score(held, known, idf, 0, held.segment.n_rows)
                scores[at : at + held.n_alive] = found if held.alive.all() else found[held.alive]
                at += held.n_alive
        return out

    def top_k(
        self,
        queries: Sequence[Query],
        k: int,
        *,
        within: Iterable[str] | None = None,
        level: Level = "sentence",
    ) -> Ranking:
        """The best rows for every query, by score and then by position.

        Args:
            queries: term ids of each.
            k: how many rows, or how many documents.
            within: only rows of these documents; the statistics stay the whole corpus's.
            level: ``"document"`` ranks documents by their best sentence and answers its row.

        Raises:
            UsageError: k below 1, or a document that is not in the index.
            ZeroDivisionError: the index is strict and there are no rows or no terms.
        """
        if k < 1:
            raise UsageError(f"k must be at least 1, not {k}")
        if level == "document" or within is not None:
            return self._top_of_documents(queries, k, within, level)
        k = min(k, self._n_rows)
        statistics = self._telling()
        if self._backend == "numba" and statistics.is_defined and k:
            return self._best_compiled(queries, k, statistics)
        found = []
        for query in queries:
            scores = self.scores([query])[0]
            rows = best_rows(scores, k)
            found.append((rows, scores[rows]))
        return _as_ranking(found, k)

    def rows_with(self, query: Query) -> NDArray[np.int64]:
        """The living rows that hold any of the terms, ascending.

        A score does not tell: a term in exactly half of the rows adds nothing to any of them, and
        in a corpus of one or two rows known terms can count against the row that holds them.
        """
        found = [np.zeros(0, np.bool_)]
        for held in self._held:
            holds = np.zeros(held.segment.n_rows, np.bool_)
            places = np.unique(held.segment.places_of(np.asarray(query, np.int32)))
            for place in places[places >= 0].tolist():
                low, high = held.segment.pointers[place : place + 2].tolist()
                holds[held.segment.rows[low:high]] = True
            found.append(holds[held.alive])
        return np.flatnonzero(np.concatenate(found))

    def explain(self, query: Query, row: int) -> list[Part]:
        """What each term of the query adds to a row's score, in the order of the query.

        Added up one by one in this order, the parts' scores are the row's score, to the last bit.
        """
        statistics = self._telling()
        if not 0 <= row < self._n_rows:
            raise UsageError(f"there is no row {row} among {self._n_rows}")
        held, inner = self._held_row(row)
        low, high = held.bounds[inner : inner + 2].tolist()
        ids = held.segment.ids[low:high]
        parts = []
        for term in np.asarray(query).tolist():
            known, idf = self._weigh(np.array([term], np.int32), statistics)
            n_rows = int(self._row_counts[term]) if len(known) else 0
            alone = self._score(held, known, idf, inner, inner + 1) if len(known) else np.zeros(1)
            weight = float(idf[0]) if len(known) else 0.0
            parts.append(Part(term, int((ids == term).sum()), n_rows, weight, float(alone[0])))
        return parts

    def fields(
        self,
        document: str,
        queries: Sequence[Query],
        *,
        statistics: Literal["document", "corpus"] = "document",
    ) -> Floats:
        """Score one document's sentences for all field queries: (n_queries, n_sentences).

        With the document's own statistics the scores are a fresh rank-bm25's over its sentences;
        with the corpus's they are the rows of :meth:`scores`.

        Raises:
            UsageError: there is no such document.
        """
        ids, lengths = self.rows_of(*self.place_of(document))
        whose = self.statistics if statistics == "corpus" else None
        return score_fields(
            ids, lengths, queries, self.variant, statistics=whose, backend=self._backend
        )

    def _top_of_documents(
        self, queries: Sequence[Query], k: int, within: Iterable[str] | None, level: Level
    ) -> Ranking:
        stretches = self._stretches_of(within)
        k = min(k, len(stretches.places) if level == "document" else len(stretches.rows))
        found = []
        for query in queries:
            if within is None:
                scores = self.scores([query])[0]
            else:
                scores = self._score_stretches(query, stretches)
            chosen = np.arange(len(scores))
            if level == "document":
                chosen = _best_of_each(scores, stretches.sizes)
            best = chosen[best_rows(scores[chosen], k)]
            found.append((stretches.rows[best], scores[best]))
        return _as_ranking(found, k)

    def _stretches_of(self, within: Iterable[str] | None) -> _Stretches:
        """Where the rows of some documents are, or of all; documents without rows left out."""
        wanted = self._documents.keys() if within is None else set(within)
        for name in wanted:
            self.place_of(name)
        places, firsts, first = [], [], 0
        for name, place in self._documents.items():
            if name in wanted and place.end > place.begin:
                places.append(place)
                firsts.append(first)
            first += place.end - place.begin
        sizes = np.array([place.end - place.begin for place in places], np.int64)
        offsets = np.repeat(np.array(firsts, np.int64) - (np.cumsum(sizes) - sizes), sizes)
        return _Stretches(places, np.arange(len(offsets)) + offsets, sizes)

    def _score_stretches(self, query: Query, stretches: _Stretches) -> Floats:
        statistics = self._telling()
        if not statistics.is_defined or not stretches.places:
            return np.zeros(len(stretches.rows))
        known, idf = self._weigh(query, statistics)
        return np.concatenate(
            [
                self._score(place.held, known, idf, place.begin, place.end)
                for place in stretches.places
            ]
        )

    def _best_compiled(self, queries: Sequence[Query], k: int, statistics: Statistics) -> Ranking:
        from featpipe.lexical.score_numba import best_of

        known, idf, bounds = self._weigh_many(queries, statistics)
        scores, rows = np.empty((len(queries), k)), np.zeros((len(queries), k), np.int64)
        n_kept, base = np.zeros(len(queries), np.int64), 0
        for held in self._held:
            everyone = held.n_alive == held.segment.n_rows
            best_of(
                held.segment,
                (held.segment.places_of(known), idf, bounds),
                self._columns(held),
                (self.variant.background, self.variant.scale),
                held.alive[:0] if everyone else held.alive,
                (scores, rows, n_kept, base),
            )
            base += held.segment.n_rows
        if base > self._n_rows:  # rows were removed: number the living ones
            living = np.cumsum(np.concatenate([held.alive for held in self._held])) - 1
            rows = living[rows]
        return Ranking(rows, scores)

    def _weigh_many(
        self, queries: Sequence[Query], statistics: Statistics
    ) -> tuple[NDArray[np.int32], Floats, NDArray[np.int64]]:
        """As :meth:`_weigh` for queries laid end to end, and where each begins."""
        asked = np.concatenate([*queries, np.zeros(0, np.int32)]).astype(np.int32, copy=False)
        bounds = np.cumsum([0, *map(len, queries)])
        is_known = (asked >= 0) & (asked < len(self._row_counts))
        is_known &= self._row_counts.take(asked, mode="clip") > 0
        known = asked[is_known]
        return known, statistics.idf[known], np.concatenate(([0], np.cumsum(is_known)))[bounds]

    def _score(
        self, held: Held, known: NDArray[np.int32], idf: Floats, begin: int, end: int
    ) -> Floats:
        """Scores of the rows ``begin`` to ``end`` of a segment, dead ones included."""
        if self._backend == "numba":
            from featpipe.lexical.score_numba import add_scores
        else:
            from featpipe.lexical.score_numpy import add_scores
        scores = np.zeros(end - begin)
        query = (held.segment.places_of(known), idf)
        constants = (self.variant.background, self.variant.scale)
        add_scores(scores, held.segment, query, self._columns(held), constants, begin)
        return scores

    def _columns(self, held: Held) -> Columns:
        if held.columns is None:
            lengths, frequencies = held.segment.pairs.astype(np.int64).T
            norms = self.variant.norms(lengths, self.statistics.mean_length)
            held.columns = self.variant.columns(frequencies, norms)
        return held.columns

    def _weigh(self, query: Query, statistics: Statistics) -> tuple[NDArray[np.int32], Floats]:
        """The query's terms that some living row holds, in order, and their idf."""
        asked = np.asarray(query, np.int32)
        asked = asked[(asked >= 0) & (asked < len(self._row_counts))]
        known = asked[self._row_counts[asked] > 0]
        return known, statistics.idf[known]

    def _telling(self) -> Statistics:
        statistics = self.statistics
        if self.is_strict and not statistics.is_defined:
            raise ZeroDivisionError("BM25 of a corpus without rows or without terms")
        return statistics

    def _held_row(self, row: int) -> tuple[Held, int]:
        for held in self._held:
            if row < held.n_alive:
                return held, int(np.flatnonzero(held.alive)[row])
            row -= held.n_alive
        raise UsageError(f"there is no row {row}")


def _as_ranking(found: list[tuple[NDArray[np.int64], Floats]], k: int) -> Ranking:
    rows = np.array([each[0] for each in found], np.int64).reshape(len(found), k)
    scores = np.array([each[1] for each in found], np.float64).reshape(len(found), k)
    return Ranking(rows, scores)


def _best_of_each(scores: Floats, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the first best score in each of the runs that make up ``scores``."""
    if not len(sizes):
        return np.zeros(0, np.int64)
    starts = np.cumsum(sizes) - sizes
    reached = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts), sizes))
    owners = np.searchsorted(starts, reached, side="right")
    first: NDArray[np.int64] = reached[np.diff(owners, prepend=0) > 0]
    return first
