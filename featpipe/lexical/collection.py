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
    #: Names, or in a collection without names the next numbers.
    Documents = Sequence[str] | range


class Collection:
    """Documents and their rows: the part of :class:`~featpipe.lexical.index.Index` below scoring.

    A *row* is a sentence; rows are numbered through the documents in the order in which they were
    added. Term ids are the caller's: numbers from 0 on, the same number for the same term.
    Documents have names, or all of them are numbered.
    """

    def __init__(self, okapi: Okapi | None, backend: Backend) -> None:
        self.okapi = okapi or Okapi()
        self._backend = choose_backend(backend)
        self._parts: list[WeightedSegment] = []
        self._names: dict[str, None] = {}
        self._sizes = np.zeros(0, np.int64)
        self._ends: NDArray[np.int64] | None = None
        self._row_counts = np.zeros(0, np.int64)
        self._n_rows = 0
        self._n_tokens = 0
        self._statistics: Statistics | None = None

    @property
    def documents(self) -> list[str]:
        """Names of the documents, in the order of their rows; none where they are numbered."""
        return list(self._names)

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
        numbers, sentences = (found.tolist() for found in self.locate_numbers(rows))
        return [(names[at], sentence) for at, sentence in zip(numbers, sentences, strict=True)]

    def locate_numbers(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of the document and of the sentence in it, for each row: (n,) both."""
        if self._ends is None:
            self._ends = np.cumsum(self._sizes)
        numbers = np.searchsorted(self._ends, rows, side="right").astype(np.int64)
        return numbers, rows - (self._ends - self._sizes)[numbers]

    def add(self, document: str, ids: Ids, lengths: Lengths) -> None:
        """Add a document's sentences: term ids end to end, and the number of terms of each.

        Raises:
            UsageError: the document is there already, or the lengths do not add up.
        """
        self.add_many([document], ids, lengths, [len(lengths)])

    def add_many(
        self, documents: Documents, ids: Ids, lengths: Lengths, n_sentences: Sizes
    ) -> None:
        """Add documents as one segment; ``n_sentences`` holds the number of rows of each document.

        Raises:
            UsageError: as for :meth:`add`.
        """
        _check_rows(ids, lengths, n_sentences)
        self.add_segment(
            documents, Segment.from_ids(ids, lengths, backend=self._backend), n_sentences
        )

    def add_segment(self, documents: Documents, segment: Segment, n_sentences: Sizes) -> None:
        """Add documents whose postings are mapped, or derived already.

        Raises:
            UsageError: as for :meth:`add`.
        """
        self._check_new(documents, n_sentences)
        if not len(documents):
            return
        self._parts.append(WeightedSegment(segment))
        if not isinstance(documents, range):
            self._names.update(dict.fromkeys(documents))
        self._sizes = np.concatenate([self._sizes, np.asarray(n_sentences, np.int64)])
        self._ends = None
        self._count_terms(segment)
        self._n_rows += segment.n_rows
        self._n_tokens += segment.n_tokens
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

    def _check_new(self, documents: Documents, n_sentences: Sizes) -> None:
        known: list[str] = []
        if isinstance(documents, range):
            n = len(self._sizes)
            is_new = documents == range(n, n + len(documents)) and not self._names
        else:
            known = [name for name in documents if name in self._names]
            is_new = len(set(documents)) == len(documents) and len(self._names) == len(self._sizes)
        if known or not is_new or len(documents) != len(n_sentences):
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
