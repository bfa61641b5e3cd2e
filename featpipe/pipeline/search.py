"""Search: ranked sentences of a cache, by BM25 over its stored terms, or with vectors as well.

Nothing is read again and nothing is analysed again but the query. The scores are rank-bm25's Okapi
over all sentences of all documents, as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from featpipe.errors import UnknownSpace, UsageError
from featpipe.features.bm25 import Index, combine
from featpipe.features.terms import ANALYSERS, Analyser
from featpipe.store import keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.pipeline.corpus import CachedDocument
    from featpipe.pipeline.lookup import Cache, Dictionary

#: Share of BM25 in a hybrid score, where nothing was tuned.
BM25_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Hit:
    """``text == document.text[start:end]`` of the document called ``document``."""

    document: str
    path: str
    start: int
    end: int
    text: str
    score: float


class SentenceSearch:
    """An index over the sentences of a cache as it is now.

    Args:
        cache: open; its documents must have terms of ``analyser``.
        analyser: whose terms; may be left out when the cache holds those of one.

    Raises:
        UnknownSpace: no such terms, or several to choose from.

    """

    def __init__(self, cache: Cache, analyser: str | None = None) -> None:
        self._cache = cache
        self._group = _find_group(cache, analyser)
        self._analyser = _open_analyser(cache, self._group)
        self._documents = list(cache.documents())
        self._index = Index()
        self._fill()

    @property
    def n_sentences(self) -> int:
        """Sentences that can be found."""
        return self._index.n_rows

    def search(
        self, query: str, k: int = 10, *, level: Literal["sentence", "document"] = "sentence"
    ) -> list[Hit]:
        """The ``k`` best sentences, or the best sentence of the ``k`` best documents."""
        ids = self._ids(query)
        if not len(ids) or not self.n_sentences:
            return []
        found = self._index.top_k([ids], k, level=level)
        is_hit = found.scores[0] != 0  # a sentence without any of the terms
        return self._hits(found.rows[0][is_hit], found.scores[0][is_hit])

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
            vector: of the query (dim,), by the model of ``dictionary``.
            dictionary: vectors of the sentences; one without a vector has similarity 0.
            k: how many.
            weight: of BM25, in [0, 1].

        """
        if not self.n_sentences:
            return []
        words = self._index.scores([self._ids(query)])[0]
        likeness = self._similarities(vector, dictionary)
        scores = combine(words, likeness, weight)
        best = np.argsort(-scores, kind="stable")[:k]
        return self._hits(best, scores[best])

    def _fill(self) -> None:
        corpus = self._cache.corpus.table
        rows = np.array([document.row for document in self._documents], np.int64)
        keys, n_sentences = corpus.ragged_many("sentence_keys", rows)
        self._keys = np.asarray(keys).reshape(-1, 16)
        units = self._cache.reader.table(f"{self._group}/units")
        found = units.find(self._keys)
        if len(found) and found.min() < 0:
            raise UnknownSpace(
                f"{int((found < 0).sum())} sentences have no terms of {self._group[6:]}",
                hint="run build-cache again; it counts what is missing",
            )
        ids, lengths = units.ragged_many("ids", found)
        names = [document.path for document in self._documents]
        self._index.add_many(names, np.asarray(ids, np.int32), lengths, n_sentences)

    def _ids(self, query: str) -> NDArray[np.int32]:
        """Term ids of the query; a term that no document holds has none and adds nothing."""
        terms = self._analyser.terms(query)
        vocabulary = self._cache.reader.table(f"{self._group}/vocabulary")
        rows = vocabulary.find(keys_of(terms))
        return np.asarray(vocabulary.gather("id", rows[rows >= 0]), np.int32)

    def _similarities(
        self, vector: NDArray[np.floating], dictionary: Dictionary
    ) -> NDArray[np.float64]:
        distinct, inverse = np.unique(self._keys.view("V16").ravel(), return_inverse=True)
        stored, found = dictionary.lookup_keys(distinct.view(np.uint8).reshape(-1, 16))
        matrix = np.asarray(stored, np.float32)
        query = np.asarray(vector, np.float32)
        norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
        likeness = np.divide(matrix @ query, norms, out=np.zeros(len(matrix)), where=norms > 0)
        return np.where(found, likeness, 0.0)[inverse].astype(np.float64)

    def _hits(self, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> list[Hit]:
        by_path = {document.path: document for document in self._documents}
        return [
            _hit(by_path[path], number, float(score))
            for (path, number), score in zip(self._index.locate(rows), scores, strict=True)
        ]


def _hit(document: CachedDocument, number: int, score: float) -> Hit:
    start, end = document.spans("sentence")[number].tolist()
    return Hit(document.id, document.path, start, end, document.text[start:end], score)


def _find_group(cache: Cache, analyser: str | None) -> str:
    groups = [
        name.removesuffix("/units")
        for name in cache.reader.tables()
        if name.startswith("terms/") and name.endswith("/units")
    ]
    matching = [g for g in groups if analyser in (None, g[6:], g[6:].partition("@")[0])]
    if len(matching) == 1:
        return matching[0]
    held = ", ".join(group[6:] for group in groups) or "none"
    if len(matching) > 1:
        raise UnknownSpace(f"terms must be named: {cache.path} holds {held}")
    raise UnknownSpace(
        f"no terms {'of ' + analyser if analyser else ''} in {cache.path}: it holds {held}",
        hint="run build-cache with that analyser",
    )


def _open_analyser(cache: Cache, group: str) -> Analyser:
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
