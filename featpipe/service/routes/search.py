"""``/search``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from featpipe.cache.search_worker import SearchQuery
from featpipe.on_demand.messages import EmbedQuery
from featpipe.service.errors import Failure
from featpipe.service.schemas import SearchAnswer, SearchBody, failures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from featpipe.cache.search import Hit
    from featpipe.cache.search_worker import ScoreQuery
    from featpipe.service.batcher import Batcher
    from featpipe.service.engine import Engine

router = APIRouter(tags=["search"])


@router.post("/search", response_model=SearchAnswer, responses=failures(404, 429, 503, 504))
async def search(request: Request, body: SearchBody) -> dict[str, object]:
    """The best sentences of the cache's documents, by words or by words and meaning."""
    engine: Engine = request.app.state.engine
    batcher = search_batcher(engine)
    _check_hybrid(engine, body)
    loop = asyncio.get_running_loop()
    settings = engine.settings
    until = loop.time() + min(body.deadline_s or settings.deadline_s, settings.deadline_s)
    vector = await _embed(engine, body.query, until - loop.time()) if body.hybrid else None
    query = SearchQuery(body.query, body.k, body.level, vector)
    hits = await batcher.submit(query, timeout_s=until - loop.time())
    names = ("document", "start", "end", "text", "score")
    return {
        "hits": [{name: getattr(hit, name) for name in names} for hit in hits],
        "query_prompt": engine.query_prompt.text if body.hybrid else None,
    }


async def _embed(engine: Engine, query: str, timeout_s: float) -> NDArray[np.float32]:
    asked = EmbedQuery((query,), prompt=engine.query_prompt.text)
    embedded = await engine.embed.submit(asked, weight=len(query), timeout_s=timeout_s)
    vector: NDArray[np.float32] = embedded.vectors[0].copy()
    return vector


def search_batcher(
    engine: Engine,
) -> Batcher[SearchQuery | ScoreQuery, list[Hit] | NDArray[np.float64]]:
    """The batcher of the search worker.

    Raises:
        Failure: the cache holds no terms.

    """
    if engine.search is None:
        raise Failure(
            404, "no_terms", "the cache holds no terms to search by",
            hint="run build-cache with the level sentence",
        )  # fmt: skip
    return engine.search


def _check_hybrid(engine: Engine, body: SearchBody) -> None:
    if body.hybrid and (body.level != "sentence" or engine.chosen.space is None):
        raise Failure(
            422, "no_hybrid", "a hybrid search ranks sentences by vectors that the cache must hold"
        )
