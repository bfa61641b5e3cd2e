"""Search: ranked sentences of a cache, by BM25 over its stored terms, or with vectors as well.

Only the query is analysed. The scores are rank-bm25's Okapi over all sentences of all documents.
Sentences without terms, because a build is running or broke off, are left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from logging import getLogger
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

import numpy as np

from featpipe.cache import tables
from featpipe.cache.dictionary import Dictionary
from featpipe.cache.postings import Sentences, open_index
from featpipe.errors import UnknownSpace, UsageError
from featpipe.lexical.fusion import combine
from featpipe.lexical.score_numpy import best_rows
from featpipe.lexical.terms import ANALYSERS, Analyser
from featpipe.settings import check_n_hits
from featpipe.store import keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.cache.documents import State, States, StoredDocuments
    from featpipe.lexical.backend import Backend
    from featpipe.store import Reader

Level = Literal["sentence", "document"]

logger = getLogger(__name__)

#: Documents whose sentences are looked up at a time.
_DOCUMENTS = 4096

#: Share of BM25 in a hybrid score, where nothing was tuned. With a weak model 0.5 loses against
#: BM25 alone and 0.8 does not (``eval_retrieval`` scores both); a better model deserves less.
BM25_WEIGHT = 0.8


class OpenCache(Protocol):
    """The part of `featpipe.cache.cache.Cache` that is searched; `Cache` itself searches by it."""

    path: Path
    reader: Reader
    stored_documents: StoredDocuments


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked sentence: ``text == document.text[start:end]``.

    Attributes:
        document: readable id of its document.
        path: absolute path of its document.
        start, end: place of the sentence, in characters of the document's text.
        text: the sentence.
        score: larger is better.
        query_prompt: put before the query to make its vector, also ``""``; None without a vector.
    """

    document: str
    path: str
    start: int
    end: int
    text: str
    score: float
    query_prompt: str | None = None


class QueryEncoder(Protocol):
    """The part of `featpipe.TextEncoder` that a hybrid search needs."""

    dictionary: Dictionary

    @property
    def query_prompt(self) -> str:
        """Put before every query."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) that compare with those of the dictionary."""
        ...


class _VectorRows(NamedTuple):
    """The rows of a space that sentences have: ``distinct``, and of each sentence its ``number``.

    A number of -1 stands for no vector. ``state`` had the space then. ``lengths`` are those of
    the distinct vectors, None until they were read for the first time.
    """

    state: State
    distinct: NDArray[np.int64]
    number: NDArray[np.int32]
    lengths: NDArray[np.float32] | None = None


class SentenceSearch:
    """An index over the sentences of a cache as it is now; its postings are derived once.

    Args:
        cache: open; its documents must have terms of ``analyser``.
        analyser: whose terms; may be left out when the cache holds those of one.
        backend: whose kernels run. numba's take half a second to load and answer in half the time.

    Raises:
        UnknownSpace: no such terms, or several to choose from.
        UsageError: the terms were counted by another version of the analyser.

    """

    def __init__(
        self, cache: OpenCache, analyser: str | None = None, *, backend: Backend = "auto"
    ) -> None:
        self._cache = cache
        self._group = _find_group(cache, analyser)
        self._analyser = _open_analyser(cache, self._group)
        # Before anything is read: rows that another thread sees meanwhile make this one outdated.
        self._state = self._read_state()
        self._places, self._rows = cache.stored_documents.rows_present()
        self._vectors: dict[str, _VectorRows] = {}
        sentences = Sentences(
            documents=cache.stored_documents.table,
            units=cache.reader.table(self.terms_table),
            rows=self._rows,
        )
        self._index, self._has_terms = open_index(
            cache.path, self._group, sentences, backend=backend
        )
        if self.n_without_terms:
            logger.warning(
                "%d of %d sentences have no terms yet and cannot be found: a build is running, or"
                " broke off (then run build-cache again)",
                self.n_without_terms,
                len(self._has_terms),
            )

    def __repr__(self) -> str:
        terms = self._group.rpartition("/")[2]
        return f"<SentenceSearch {self._cache.path}: {self.n_sentences} sentences by {terms}>"

    @property
    def n_sentences(self) -> int:
        """Sentences that can be found."""
        return self._index.n_rows

    @property
    def n_without_terms(self) -> int:
        """Sentences that cannot be found yet: documents are written before their terms."""
        return len(self._has_terms) - self._index.n_rows

    @property
    def terms_table(self) -> str:
        """Name of the table that holds the terms of each distinct sentence."""
        return f"{self._group}/units"

    @property
    def is_current(self) -> bool:
        """Whether the cache, as last refreshed, holds nothing that a new index would add or lack.

        Compacted and written again, it may have as many rows as before, with other numbers.
        """
        now = self._read_state()
        if now[0] != self._state[0] or [t for t, _ in now] != [t for t, _ in self._state]:
            return False
        return not self.n_without_terms or now[1] == self._state[1]

    def search(self, query: str, k: int = 10, *, level: Level = "sentence") -> list[Hit]:
        """The ``k`` best sentences, or the best sentence of the ``k`` best documents.

        Only sentences that hold a term of the query are found, whatever their score: over a few
        sentences BM25's can be zero or negative.

        Args:
            query: words, in any order.
            k: how many hits.
            level: ``sentence`` or ``document``.

        Raises:
            UsageError: k is no whole number of 1 or more, or another level.

        """
        check_n_hits(k)
        if level not in get_args(Level):
            raise UsageError(f"unknown level {level!r}", hint="choose from sentence, document")
        ids = self._ids(query)
        if not len(ids) or not self.n_sentences:
            return []
        found = self._index.top_k([ids], k, level=level)
        rows, scores = found.rows[0], found.scores[0]
        if not (scores > 0).all():  # those without any of the terms have 0.0
            rows, scores = self._best_holding(ids, k, level)
        return self._hits(rows, scores)

    def _best_holding(
        self, ids: NDArray[np.int32], k: int, level: Level
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """As ``top_k``, among the sentences that hold a term."""
        rows = self._index.rows_with(ids)
        scores = self._index.scores([ids])[0][rows]
        order = np.argsort(-scores, kind="stable")
        if level == "document":
            documents, _ = self._index.locate_numbers(rows[order])
            order = order[np.sort(np.unique(documents, return_index=True)[1])]
        return rows[order[:k]], scores[order[:k]]

    def search_hybrid(
        self,
        query: str,
        vector: NDArray[np.floating],
        dictionary: Dictionary,
        k: int = 10,
        *,
        weight: float = BM25_WEIGHT,
    ) -> list[Hit]:
        """The ``k`` best by ``weight`` x BM25 + (1 - ``weight``) x cosine, each scaled to 0 ... 1.

        Args:
            query: its words.
            vector: of the query (dim,), by the model of ``dictionary`` and with its query prompt.
            dictionary: vectors of the sentences; one without a vector has similarity 0.
            k: how many.
            weight: of BM25, in [0, 1].

        Raises:
            UsageError: k is no whole number of 1 or more, or a weight outside its bounds.

        """
        check_n_hits(k)
        if not self.n_sentences:
            return []
        words = self._index.scores([self._ids(query)])[0]
        scores = combine(words, self._similarities(vector, dictionary), weight)
        best = best_rows(scores, min(k, len(scores)))
        return self._hits(best, scores[best])

    def search_encoded(
        self, query: str, encoder: QueryEncoder, k: int = 10, *, weight: float = BM25_WEIGHT
    ) -> list[Hit]:
        """As `search_hybrid`, with the query's vector by ``encoder``; hits name its prompt.

        The vectors of the sentences are those of this cache as it is searched: the encoder may have
        read it before they were written. A query of blanks alone finds nothing, as in `search`:
        its vector would be near to anything.

        Raises:
            EncodingError: a query that cannot be encoded.
            UnknownSpace: this cache has no vectors of the encoder's space.

        """
        check_n_hits(k)
        if not query.strip():
            return []
        vector = encoder.encode_queries([query])[0]
        table, cache = f"embeddings/{encoder.dictionary.name}", self._cache
        if table not in cache.reader:
            raise UnknownSpace(f"{cache.path} holds no vectors of {encoder.dictionary.name}",
                               hint="take a TextEncoder of this cache")  # fmt: skip
        own = Dictionary(cache.reader, cache.stored_documents, table, None)
        hits = self.search_hybrid(query, vector, own, k, weight=weight)
        return [replace(hit, query_prompt=encoder.query_prompt) for hit in hits]

    def score_texts(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """BM25 of any texts for a query, (n_texts,), by the corpus figures of the cache.

        A sentence of the cache has the score that `search` gives it. A term that no sentence of the
        cache holds weighs as BM25 weighs one that is in none of so many sentences.
        """
        statistics, okapi = self._index.statistics, self._index.okapi
        scores = np.zeros(len(texts))
        if not statistics.is_defined:
            return scores
        terms = self._analyser.terms(query)
        batch = self._analyser.count(texts)
        norms = okapi.norms(batch.lengths, statistics.mean_length)
        rows = np.repeat(np.arange(len(texts)), batch.lengths)
        numbers = {term: number for number, term in enumerate(batch.vocabulary)}
        for term, idf in zip(terms, self._idf(terms, statistics.idf), strict=True):
            counts = np.bincount(rows[batch.ids == numbers.get(term, -1)], minlength=len(texts))
            scores += idf * okapi.factors(counts, norms)  # rank-bm25's order: term after term
        return scores

    def _idf(self, terms: Sequence[str], known: NDArray[np.float64]) -> list[float]:
        vocabulary = self._cache.reader.table(f"{self._group}/vocabulary")
        rows = vocabulary.find(keys_of(terms))
        ids = np.full(len(rows), -1, np.int32)
        ids[rows >= 0] = vocabulary.gather("id", rows[rows >= 0])
        (unseen,) = self._index.okapi.idf([0], self.n_sentences)
        is_held = [len(self._index.rows_with(ids[at : at + 1])) > 0 for at in range(len(ids))]
        return [
            float(known[each]) if held else unseen
            for each, held in zip(ids.tolist(), is_held, strict=True)
        ]

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """Of every row of the index, which sentence of its document it is: (n,)."""
        _, sizes = self._cache.stored_documents.table.ragged_many("sentence_keys", self._rows)
        numbers = np.arange(len(self._has_terms)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return numbers[self._has_terms]

    def _ids(self, query: str) -> NDArray[np.int32]:
        """Term ids of the query; a term that no document holds has none and adds nothing."""
        terms = self._analyser.terms(query)
        vocabulary = self._cache.reader.table(f"{self._group}/vocabulary")
        rows = vocabulary.find(keys_of(terms))
        return np.asarray(vocabulary.gather("id", rows[rows >= 0]), np.int32)

    def _similarities(
        self, vector: NDArray[np.floating], dictionary: Dictionary
    ) -> NDArray[np.float64]:
        """Cosines (n,) of all rows of the index; of one without a vector 0.

        Each is a function of two vectors alone, to the last bit. Memory for pieces of vectors.
        """
        rows = self._vector_rows(dictionary)
        query = np.asarray(vector, np.float32)
        products = np.empty(len(rows.distinct), np.float32)
        has_lengths = rows.lengths is not None
        lengths = np.empty_like(products) if rows.lengths is None else rows.lengths

        def take(at: slice, vectors: NDArray[np.float32]) -> None:
            products[at] = np.einsum("ij,j->i", vectors, query)
            if not has_lengths:
                lengths[at] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))

        dictionary.for_each_piece(rows.distinct, take)
        self._vectors = {dictionary.name: rows._replace(lengths=lengths)}
        norms = lengths * np.linalg.norm(query)
        cosines = np.zeros(len(products) + 1)  # the last stands for no vector
        np.divide(products, norms, out=cosines[:-1], where=norms > 0)
        return cosines[rows.number]

    def _vector_rows(self, dictionary: Dictionary) -> _VectorRows:
        """The rows of the sentences in a dictionary, kept for further queries."""
        known, state = self._vectors.get(dictionary.name), dictionary.state
        if known is None or known.state != state:
            found = [np.zeros(0, np.int64)]
            for documents in np.array_split(self._rows, len(self._rows) // _DOCUMENTS + 1):
                keys, _ = self._cache.stored_documents.table.ragged_many("sentence_keys", documents)
                found.append(dictionary.find_keys(np.asarray(keys, np.uint8).reshape(-1, 16)))
            rows = np.concatenate(found)[self._has_terms]
            distinct, number = np.unique(rows, return_inverse=True)
            if len(distinct) and distinct[0] < 0:  # no vector
                distinct, number = distinct[1:], number - 1
            known = _VectorRows(state, distinct, number.astype(np.int32))
            self._vectors = {dictionary.name: known}
        return known

    def _read_state(self) -> States:
        """Of the tables that the index is made of, those that grow with it first."""
        ids = (tables.DOCUMENTS, f"{self._group}/vocabulary")
        return self._cache.stored_documents.states(tables.SOURCES, self.terms_table, *ids)

    def _hits(self, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> list[Hit]:
        documents, numbers = self._index.locate_numbers(rows)
        if self.n_without_terms:  # the index counts only the sentences it has
            numbers = self._numbers[rows]
        found = zip(documents.tolist(), numbers.tolist(), scores.tolist(), strict=True)
        return [self._hit(document, number, score) for document, number, score in found]

    def _hit(self, at: int, number: int, score: float) -> Hit:
        stored = self._cache.stored_documents
        document = stored.document_at(int(self._places[at]), int(self._rows[at]))
        start, end = document.spans("sentence")[number].tolist()
        return Hit(document.id, document.path, start, end, document.text[start:end], score)


def _find_group(cache: OpenCache, analyser: str | None) -> str:
    names = [
        name.removeprefix("terms/").removesuffix("/units")
        for name in cache.reader.tables()
        if name.startswith("terms/") and name.endswith("/units")
    ]
    matching = tables.find_named(names, analyser)
    if len(matching) == 1:
        return f"terms/{matching[0]}"
    held = ", ".join(names) or "none"
    if len(matching) > 1:
        raise UnknownSpace(f"terms must be named: {cache.path} holds {held}")
    raise UnknownSpace(
        f"no terms{' of ' + analyser if analyser else ''} in {cache.path}: it holds {held}",
        hint="run build-cache, with that analyser (in a program: BuildSettings(analyser=...))",
    )


def _open_analyser(cache: OpenCache, group: str) -> Analyser:
    """The analyser that counted these terms.

    Raises:
        UsageError: this version of featpipe, jieba or Unicode would count others.

    """
    name = group[6:].partition("@")[0]
    if name not in ANALYSERS:
        raise UsageError(f"the terms {group[6:]} are by an analyser that needs more than its name")
    analyser = Analyser(name)
    stored = cache.reader.table(f"{group}/units").attributes["fingerprint"]
    if analyser.fingerprint != stored:
        raise UsageError(
            f"the terms {group[6:]} were counted by another version of the analyser {name}",
            hint="run build-cache again; it counts them anew",
        )
    return analyser
