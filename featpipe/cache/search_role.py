"""Search: a worker that keeps the index over a cache's sentences, as they are now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from featpipe.cache import tables
from featpipe.cache.cache import Cache
from featpipe.cache.search import Hit, SentenceSearch
from featpipe.errors import FeatpipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SearchQuery:
    """Parent -> search worker. With a ``vector`` (dim,) of the space, ranks by meaning as well."""

    text: str
    k: int = 10
    level: Literal["sentence", "document"] = "sentence"
    vector: NDArray[np.float32] | None = None


class SearchRole:
    """Indexes at the start, and again when the cache has taken in documents, or terms that lacked.

    Args:
        cache: path of the file.
        space: whose vectors hybrid queries use; None: there are none.
        analyser: whose terms; None where the cache holds those of one.

    """

    def __init__(self, cache: str, space: str | None, analyser: str | None) -> None:
        self._cache = Cache.open(cache)
        self._dictionary = self._cache.dictionary(space) if space is not None else None
        self._analyser = analyser
        self._n_sightings = self._count_sightings()
        self._search = SentenceSearch(self._cache, analyser)
        self._n_counted = self._count_rows(self._search.terms_table)

    def run(self, queries: Sequence[SearchQuery]) -> list[list[Hit] | FeatpipeError]:
        """Hits of each query, best first."""
        n_sightings = self._count_sightings()
        n_counted = self._count_rows(self._search.terms_table)
        has_more = self._search.n_without_terms > 0 and n_counted != self._n_counted
        if n_sightings != self._n_sightings or has_more:
            self._search = SentenceSearch(self._cache, self._analyser)
            self._n_sightings, self._n_counted = n_sightings, n_counted
        return [self._answer(query) for query in queries]

    def close(self) -> None:
        """Let go of the cache."""
        self._cache.close()

    def _answer(self, query: SearchQuery) -> list[Hit] | FeatpipeError:
        try:
            if query.vector is None or self._dictionary is None:
                return self._search.search(query.text, query.k, level=query.level)
            return self._search.search_hybrid(query.text, query.vector, self._dictionary, query.k)
        except FeatpipeError as error:
            return error

    def _count_sightings(self) -> int:
        """Rows of the log of documents: no new row, nothing to index."""
        self._cache.refresh()
        return self._count_rows(tables.SOURCES)

    def _count_rows(self, table: str) -> int:
        reader = self._cache.reader
        return reader.table(table).n_rows if table in reader else 0
