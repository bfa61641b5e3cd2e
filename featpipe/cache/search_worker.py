"""The search worker: answers queries over a cache's sentences, as they are now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from featpipe.cache.cache import Cache
from featpipe.errors import FeatpipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from featpipe.cache.search import Hit, SentenceSearch

    SearchReply = list[Hit] | NDArray[np.float64] | FeatpipeError


@dataclass(frozen=True, slots=True, eq=False)
class SearchQuery:
    """Parent -> search worker. With a ``vector`` (dim,) of the space, ranks by meaning as well."""

    text: str
    k: int = 10
    level: Literal["sentence", "document"] = "sentence"
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class ScoreQuery:
    """Parent -> search worker: score these texts for the query, by BM25 over the cache's figures.

    Answer: (n_texts,) float64.
    """

    text: str
    texts: tuple[str, ...]


class SearchRole:
    """Indexes at the start, and again when the cache has more to index.

    Args:
        cache: path of the file.
        space: whose vectors hybrid queries use; None: there are none.
        analyser: whose terms; None where the cache holds those of one.

    """

    def __init__(self, cache: str, space: str | None, analyser: str | None) -> None:
        self._cache = Cache.open(cache)
        self._dictionary = self._cache.dictionary(space) if space is not None else None
        self._analyser = analyser
        self._cache.sentence_search(analyser)

    def run(self, queries: Sequence[SearchQuery | ScoreQuery]) -> list[SearchReply]:
        """Hits of each query, best first; of a `ScoreQuery` its scores."""
        search = self._cache.sentence_search(self._analyser)
        return [self._answer(query, search) for query in queries]

    def close(self) -> None:
        """Close the cache."""
        self._cache.close()

    def _answer(self, query: SearchQuery | ScoreQuery, search: SentenceSearch) -> SearchReply:
        try:
            if isinstance(query, ScoreQuery):
                return search.score_texts(query.text, query.texts)
            is_blank = not query.text.strip()  # `SentenceSearch.search_encoded`
            if query.vector is None or self._dictionary is None or is_blank:
                return search.search(query.text, query.k, level=query.level)
            return search.search_hybrid(query.text, query.vector, self._dictionary, query.k)
        except FeatpipeError as error:
            return error
