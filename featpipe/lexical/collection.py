"""Rows of documents that are added, and BM25's corpus figures over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UsageError
from featpipe.lexical.backend import Backend, choose_backend
from featpipe.lexical.bm25 import Floats, Okapi, Statistics, compute_statistics
from featpipe.lexical.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Lengths = NDArray[np.int64]
    Sizes = Sequence[int] | NDArray[np.int64]


class Collection:
    """Documents and their rows: the part of :class:`~featpipe.lexical.index.Index` below scoring.

    A *row* is a sentence; rows are numbered through the documents in the order in which they were
    added. Term ids are the caller's: numbers from 0 on, the same number for the same term.
    """

    def __init__(self, okapi: Okapi | None, backend: Backend) -> None:
        self.okapi = okapi or Okapi()
        self._backend = choose_backend(backend)
        self._parts: list[WeightedSegment] = []
        self._sizes: dict[str, int] = {}
        self._row_counts = np.zeros(0, np.int64)
        self._n_rows = 0
        self._n_tokens = 0
        self._statistics: Statistics | None = None

    @property
    def documents(self) -> list[str]:
        """Names of the documents, in the order of their rows."""
        return list(self._sizes)

    @property
    def segments(self) -> list[Segment]:
        """The segments, in the order of their rows."""
        return [part.segment for part in self._parts]

    @property
    def n_rows(self) -> int:
        """Sentences of the documents."""
        return self._n_rows

    @property
    def statistics(self) -> Statistics:
        """Corpus figures over the rows of the documents."""
        if self._statistics is None:
            self._statistics = compute_statistics(
                self.okapi, self._row_counts, self._n_rows, self._n_tokens, self._order()
            )
            for part in self._parts:
                part.factors = None
        return self._statistics

    def locate(self, rows: NDArray[np.int64]) -> list[tuple[str, int]]:
        """Document and number of the sentence in it, for each row."""
        names = self.documents
        ends = np.cumsum(list(self._sizes.values()))
        numbers = np.searchsorted(ends, rows, side="right")
        begins = np.concatenate(([0], ends))[numbers]
        return [
            (names[number], sentence)
            for number, sentence in zip(numbers.tolist(), (rows - begins).tolist(), strict=True)
        ]

    def add(self, document: str, ids: Ids, lengths: Lengths) -> None:
        """Add a document's sentences: term ids end to end, and the number of terms of each.

        Raises:
            UsageError: the document is there already, or the lengths do not add up.
        """
        self.add_many([document], ids, lengths, [len(lengths)])

    def add_many(
        self, documents: Sequence[str], ids: Ids, lengths: Lengths, n_sentences: Sizes
    ) -> None:
        """Add documents as one segment; ``n_sentences`` holds the number of rows of each document.

        Raises:
            UsageError: as for :meth:`add`.
        """
        _check_rows(ids, lengths, n_sentences)
        self.add_segment(
            documents, Segment.from_ids(ids, lengths, backend=self._backend), n_sentences
        )

    def add_segment(self, documents: Sequence[str], segment: Segment, n_sentences: Sizes) -> None:
        """Add documents whose postings are mapped, or derived already.

        Raises:
            UsageError: as for :meth:`add`.
        """
        self._check_new(documents, n_sentences)
        if not len(documents):
            return
        self._parts.append(WeightedSegment(segment))
        self._sizes.update(zip(documents, map(int, n_sentences), strict=True))
        self._count_terms(segment)
        self._n_rows += segment.n_rows
        self._n_tokens += len(segment.ids)
        self._statistics = None

    def _count_terms(self, segment: Segment) -> None:
        """Add the rows of each term."""
        counts = np.diff(segment.pointers)
        n_terms = int(segment.terms[-1]) + 1 if len(counts) else 0
        if not len(self._row_counts) and n_terms == len(counts):
            self._row_counts = counts  # the first segment, with every term there is
            return
        n_missing = max(0, n_terms - len(self._row_counts))
        self._row_counts = np.concatenate((self._row_counts, np.zeros(n_missing, np.int64)))
        self._row_counts[segment.terms] += counts

    def _check_new(self, documents: Sequence[str], n_sentences: Sizes) -> None:
        known = [name for name in documents if name in self._sizes]
        if known or len(set(documents)) < len(documents) or len(documents) != len(n_sentences):
            raise UsageError(
                f"document {known[0]!r} is in the index" if known else "documents do not add up"
            )

    def _order(self) -> Ids:
        """Terms by first appearance in the documents' rows, all segments together."""
        if len(self._parts) == 1:
            return self._parts[0].segment.order
        is_seen = np.zeros(len(self._row_counts), np.bool_)
        orders = [np.zeros(0, np.int32)]
        for segment in self.segments:
            orders.append(segment.order[~is_seen[segment.order]])
            is_seen[segment.order] = True
        return np.concatenate(orders)


@dataclass(slots=True, eq=False)
class WeightedSegment:
    """A segment; the factors of its scores by code, None until computed from the statistics."""

    segment: Segment
    factors: Floats | None = None


def _check_rows(ids: Ids, lengths: Lengths, n_sentences: Sizes) -> None:
    if int(np.sum(lengths)) != len(ids) or int(np.sum(n_sentences)) != len(lengths):
        raise UsageError("term ids, lengths and sentence counts do not add up")
    if len(ids) and int(ids.min()) < 0:
        raise UsageError("term ids are numbers from 0 on")
