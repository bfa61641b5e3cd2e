"""Rows of documents that are added, replaced and removed, and BM25's corpus figures over them."""

from __future__ import annotations

from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

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
    added. Removing a document renumbers the rows behind it; a replaced one becomes the last.
    Term ids are the caller's: numbers from 0 on, the same number for the same term.
    """

    def __init__(self, okapi: Okapi | None, backend: Backend) -> None:
        self.okapi = okapi or Okapi()
        self._backend = choose_backend(backend)
        self._parts: list[LivingSegment] = []
        self._documents: dict[str, DocumentRows] = {}
        self._row_counts = np.zeros(0, np.int64)
        self._n_rows = 0
        self._n_tokens = 0
        self._statistics: Statistics | None = None

    @property
    def documents(self) -> list[str]:
        """Names of the documents, in the order of their rows."""
        return list(self._documents)

    @property
    def segments(self) -> list[Segment]:
        """The segments; rows of removed documents are still in them."""
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
        ends = np.cumsum([place.end - place.begin for place in self._documents.values()])
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
        part = LivingSegment(segment, len(documents))
        self._parts.append(part)
        ends = np.cumsum(n_sentences, dtype=np.int64).tolist()
        places = map(DocumentRows, repeat(part), [0, *ends[:-1]], ends)
        self._documents.update(zip(documents, places, strict=True))
        self._count_terms(segment)
        self._count(segment.n_rows, len(segment.ids))

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
        known = [name for name in documents if name in self._documents]
        if known or len(set(documents)) < len(documents) or len(documents) != len(n_sentences):
            raise UsageError(
                f"document {known[0]!r} is in the index" if known else "documents do not add up",
                hint="use replace, or remove it first",
            )

    def replace(self, document: str, ids: Ids, lengths: Lengths) -> None:
        """Add a document, removing the one of that name, if any, first."""
        _check_rows(ids, lengths, [len(lengths)])
        if document in self._documents:
            self.remove(document)
        self.add(document, ids, lengths)

    def remove(self, document: str) -> None:
        """Remove a document.

        Raises:
            UsageError: there is none of that name.
        """
        if document not in self._documents:
            raise UsageError(f"document {document!r} is not in the index")
        place = self._documents.pop(document)
        part, (ids, lengths) = place.part, place.read()
        if len(ids):
            owners = np.repeat(np.arange(len(lengths)), lengths)
            pairs = np.sort(ids.astype(np.int64) << 32 | owners)
            pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # a row counts once for each term
            np.subtract.at(self._row_counts, pairs >> 32, 1)
        part.remove_rows(place.begin, place.end)
        part.n_documents -= 1
        self._count(-len(lengths), -len(ids))
        if not part.n_documents:
            self._parts = [each for each in self._parts if each is not part]

    def compact(self) -> None:
        """Put the rows of all documents into one segment. Scores and row numbers stay the same."""
        names = list(self._documents)
        rows = [place.read() for place in self._documents.values()]
        ids = np.concatenate([each[0] for each in rows] or [np.zeros(0, np.int32)])
        lengths = np.concatenate([each[1] for each in rows] or [np.zeros(0, np.int64)])
        self._parts, self._documents = [], {}
        self._row_counts = np.zeros(0, np.int64)
        self._n_rows = self._n_tokens = 0
        self._statistics = None
        self.add_many(names, ids, lengths, [len(each[1]) for each in rows])

    def _order(self) -> Ids:
        """Terms by first appearance in the documents' rows, all segments together."""
        if len(self._parts) == 1:
            return self._parts[0].order
        is_seen = np.zeros(len(self._row_counts), np.bool_)
        orders = [np.zeros(0, np.int32)]
        for part in self._parts:
            orders.append(part.order[~is_seen[part.order]])
            is_seen[part.order] = True
        return np.concatenate(orders)

    def _count(self, n_rows: int, n_tokens: int) -> None:
        self._n_rows += n_rows
        self._n_tokens += n_tokens
        self._statistics = None


class LivingSegment:
    """A segment, which of its rows belong to documents still there, and the rows' score factors.

    ``alive`` (n_rows,) bool, ``n_alive`` of them; ``order`` and ``firsts`` as the segment's, over
    the living rows; ``factors`` by code, None until computed from the collection's statistics.
    """

    def __init__(self, segment: Segment, n_documents: int) -> None:
        self.segment = segment
        self.n_documents = n_documents
        self.alive = np.ones(segment.n_rows, np.bool_)
        self.n_alive = segment.n_rows
        self.order = segment.order
        self.firsts = segment.firsts
        self.factors: Floats | None = None

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Where each row's terms begin in the segment's ids: (n_rows + 1,)."""
        return np.concatenate(([0], np.cumsum(self.segment.lengths)))

    def remove_rows(self, begin: int, end: int) -> None:
        """Mark rows removed, and keep ``order`` that of first appearances in the living rows."""
        self.alive[begin:end] = False
        self.n_alive -= end - begin
        low, high = np.searchsorted(self.firsts, self.bounds[[begin, end]]).tolist()
        moved = [self._first_place(term, end) for term in self.order[low:high].tolist()]
        places = np.sort(np.array([place for place in moved if place >= 0], np.int64))
        kept = np.delete(self.firsts, slice(low, high))
        self.firsts = np.insert(kept, np.searchsorted(kept, places), places)
        self.order = self.segment.ids[self.firsts]

    def _first_place(self, term: int, begin: int) -> int:
        """Where in the ids the term first stands in a living row from ``begin`` on, or -1."""
        (place,) = self.segment.places_of(np.array([term], np.int32)).tolist()
        row = self.segment.next_living_row(place, begin, self.alive)
        if row < 0:
            return -1
        low, high = self.bounds[row : row + 2].tolist()
        return int(low + np.argmax(self.segment.ids[low:high] == term))


class DocumentRows(NamedTuple):
    """Where a document's rows are."""

    part: LivingSegment
    begin: int
    end: int

    def read(self) -> tuple[Ids, Lengths]:
        """Term ids and lengths of the rows."""
        low, high = self.part.bounds[[self.begin, self.end]].tolist()
        segment = self.part.segment
        return segment.ids[low:high], segment.lengths[self.begin : self.end]


def _check_rows(ids: Ids, lengths: Lengths, n_sentences: Sizes) -> None:
    if int(np.sum(lengths)) != len(ids) or int(np.sum(n_sentences)) != len(lengths):
        raise UsageError("term ids, lengths and sentence counts do not add up")
    if len(ids) and int(ids.min()) < 0:
        raise UsageError("term ids are numbers from 0 on")
