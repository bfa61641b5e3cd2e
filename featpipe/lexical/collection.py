"""Rows of documents that come, change and go, and the figures BM25 needs about them."""

from __future__ import annotations

from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.errors import UsageError
from featpipe.lexical.backend import Backend, choose_backend
from featpipe.lexical.bm25 import Columns, Okapi, Statistics, Variant, compute_statistics
from featpipe.lexical.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Held:
    """A segment, which of its rows still live, and the tables that follow from the statistics."""

    def __init__(self, segment: Segment, n_documents: int) -> None:
        self.segment = segment
        self.n_documents = n_documents
        self.alive = np.ones(segment.n_rows, np.bool_)
        self.n_alive = segment.n_rows
        self.order = segment.order
        self.firsts = segment.firsts
        self.columns: Columns | None = None

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Where each row's terms begin in the segment's ids: (n_rows + 1,)."""
        return np.concatenate(([0], np.cumsum(self.segment.lengths)))

    def forget(self, begin: int, end: int) -> None:
        """Mark rows dead, and keep ``order`` that of the living rows' first appearances."""
        self.alive[begin:end] = False
        self.n_alive -= end - begin
        low, high = np.searchsorted(self.firsts, self.bounds[[begin, end]]).tolist()
        moved = [self._first_place(term, end) for term in self.order[low:high].tolist()]
        places = np.sort(np.array([place for place in moved if place >= 0], np.int64))
        kept = np.delete(self.firsts, slice(low, high))
        self.firsts = np.insert(kept, np.searchsorted(kept, places), places)
        self.order = self.segment.ids[self.firsts]

    def _first_place(self, term: int, begin: int) -> int:
        (place,) = self.segment.places_of(np.array([term], np.int32)).tolist()
        row = self.segment.next_living_row(place, begin, self.alive)
        if row < 0:
            return -1
        low, high = self.bounds[row : row + 2].tolist()
        return int(low + np.argmax(self.segment.ids[low:high] == term))


class Place(NamedTuple):
    """Where a document's rows are."""

    held: Held
    begin: int
    end: int


class Collection:
    """Documents and their rows: what :class:`~featpipe.features.bm25.Index` scores.

    A *row* is a sentence; rows are numbered through the living documents in the order in which
    they were added. Removing a document renumbers the rows behind it; a replaced one is last.
    Term ids are the caller's: any numbers from 0 on, the same term always the same number.
    """

    def __init__(self, variant: Variant | None, backend: Backend) -> None:
        self.variant = variant or Okapi()
        self._backend = choose_backend(backend)
        self._held: list[Held] = []
        self._documents: dict[str, Place] = {}
        self._row_counts = np.zeros(0, np.int64)
        self._n_rows = 0
        self._n_tokens = 0
        self._statistics: Statistics | None = None

    def add(self, document: str, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        """Add a document's sentences: term ids end to end, and how many belong to each.

        Raises:
            UsageError: the document is there already, or the lengths do not add up.
        """
        self.add_many([document], ids, lengths, [len(lengths)])

    def add_many(
        self,
        documents: Sequence[str],
        ids: NDArray[np.int32],
        lengths: NDArray[np.int64],
        n_sentences: Sequence[int] | NDArray[np.int64],
    ) -> None:
        """Add documents as one segment; ``n_sentences`` says how many of the rows are each one's.

        Raises:
            UsageError: as for :meth:`add`.
        """
        check_rows(ids, lengths, n_sentences)
        self.add_segment(
            documents, Segment.from_ids(ids, lengths, backend=self._backend), n_sentences
        )

    def add_segment(
        self,
        documents: Sequence[str],
        segment: Segment,
        n_sentences: Sequence[int] | NDArray[np.int64],
    ) -> None:
        """Add documents whose postings are there already, mapped or just derived.

        Raises:
            UsageError: as for :meth:`add`.
        """
        known = [name for name in documents if name in self._documents]
        if known or len(set(documents)) < len(documents) or len(documents) != len(n_sentences):
            raise UsageError(
                f"document {known[0]!r} is in the index" if known else "documents do not add up",
                hint="use replace, or remove it first",
            )
        if not len(documents):
            return
        held = Held(segment, len(documents))
        self._held.append(held)
        ends = np.cumsum(n_sentences, dtype=np.int64).tolist()
        begins = [0, *ends[:-1]]
        places = map(Place, repeat(held), begins, ends)
        self._documents.update(zip(documents, places, strict=True))
        counts = np.diff(segment.pointers)
        n_terms = int(segment.terms[-1]) + 1 if len(counts) else 0
        if not len(self._row_counts) and n_terms == len(counts):
            self._row_counts = counts  # the first segment, with every term there is
        else:
            self._grow(n_terms)
            self._row_counts[segment.terms] += counts
        self._count(segment.n_rows, len(segment.ids))

    def replace(self, document: str, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        """Put a document in the place of the one of that name, if any; its rows come last."""
        check_rows(ids, lengths, [len(lengths)])
        if document in self._documents:
            self.remove(document)
        self.add(document, ids, lengths)

    def remove(self, document: str) -> None:
        """Forget a document.

        Raises:
            UsageError: there is none of that name.
        """
        held, begin, end = self.place_of(document)
        ids, lengths = self.rows_of(held, begin, end)
        del self._documents[document]
        if len(ids):
            owners = np.repeat(np.arange(len(lengths)), lengths)
            pairs = np.sort(ids.astype(np.int64) << 32 | owners)
            pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # a row counts once for each term
            np.subtract.at(self._row_counts, pairs >> 32, 1)
        held.forget(begin, end)
        held.n_documents -= 1
        self._count(-(end - begin), -len(ids))
        if not held.n_documents:
            self._held = [each for each in self._held if each is not held]

    def compact(self) -> None:
        """Put all living rows into one segment. Scores, rows and documents stay as they are."""
        names = list(self._documents)
        parts = [self.rows_of(*self._documents[name]) for name in names]
        ids = np.concatenate([part[0] for part in parts] or [np.zeros(0, np.int32)])
        lengths = np.concatenate([part[1] for part in parts] or [np.zeros(0, np.int64)])
        self._held, self._documents = [], {}
        self._row_counts = np.zeros(0, np.int64)
        self._n_rows = self._n_tokens = 0
        self._statistics = None
        self.add_many(names, ids, lengths, [len(part[1]) for part in parts])

    @property
    def documents(self) -> list[str]:
        """Names of the living documents, in the order of their rows."""
        return list(self._documents)

    @property
    def segments(self) -> list[Segment]:
        """What there is to keep; a segment with removed rows still holds them."""
        return [held.segment for held in self._held]

    @property
    def n_rows(self) -> int:
        """Living sentences."""
        return self._n_rows

    @property
    def statistics(self) -> Statistics:
        """Corpus figures over the living rows."""
        if self._statistics is None:
            self._statistics = compute_statistics(
                self.variant, self._row_counts, self._n_rows, self._n_tokens, self._order()
            )
            for held in self._held:
                held.columns = None
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

    def _order(self) -> NDArray[np.int32]:
        """Terms by first appearance in the living rows, all segments together."""
        if len(self._held) == 1:
            return self._held[0].order
        is_seen = np.zeros(len(self._row_counts), np.bool_)
        parts = [np.zeros(0, np.int32)]
        for held in self._held:
            parts.append(held.order[~is_seen[held.order]])
            is_seen[held.order] = True
        return np.concatenate(parts)

    def place_of(self, document: str) -> Place:
        """Where a document's rows are; UsageError when it is not in the index."""
        try:
            return self._documents[document]
        except KeyError:
            raise UsageError(f"document {document!r} is not in the index") from None

    def rows_of(
        self, held: Held, begin: int, end: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Term ids and lengths of some rows of a segment."""
        low, high = held.bounds[[begin, end]].tolist()
        return held.segment.ids[low:high], held.segment.lengths[begin:end]

    def _grow(self, n_terms: int) -> None:
        missing = n_terms - len(self._row_counts)
        if missing > 0:
            self._row_counts = np.concatenate((self._row_counts, np.zeros(missing, np.int64)))

    def _count(self, n_rows: int, n_tokens: int) -> None:
        self._n_rows += n_rows
        self._n_tokens += n_tokens
        self._statistics = None


def check_rows(
    ids: NDArray[np.int32],
    lengths: NDArray[np.int64],
    n_sentences: Sequence[int] | NDArray[np.int64],
) -> None:
    """Raises UsageError when the numbers do not add up, or an id is negative."""
    if int(np.sum(lengths)) != len(ids) or int(np.sum(n_sentences)) != len(lengths):
        raise UsageError("term ids, lengths and sentence counts do not add up")
    if len(ids) and int(ids.min()) < 0:
        raise UsageError("term ids are numbers from 0 on")
