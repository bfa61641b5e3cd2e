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
    from featpipe.service.engine import Engine

router = APIRouter(tags=["search"])


@router.post("/search", response_model=SearchAnswer, responses=failures(404, 429, 503, 504))
async def search(request: Request, body: SearchBody) -> dict[str, object]:
    """The best sentences of the cache's documents, by words or by words and meaning."""
    engine: Engine = request.app.state.engine
    if engine.search is None:
        raise Failure(
            404, "no_terms", "the cache holds no terms to search by",
            hint="run build-cache with the level sentence",
        )  # fmt: skip
    if body.hybrid and (body.level != "sentence" or engine.chosen.space is None):
        raise Failure(
            422, "no_hybrid", "a hybrid search ranks sentences by vectors that the cache must hold"
        )
    loop = asyncio.get_running_loop()
    settings = engine.settings
    until = loop.time() + min(body.deadline_s or settings.deadline_s, settings.deadline_s)
    vector = None
    if body.hybrid:
        embedded = await engine.embed.submit(
            EmbedQuery((body.query,)), weight=len(body.query), timeout_s=until - loop.time()
        )
        vector = embedded.vectors[0].copy()
    query = SearchQuery(body.query, body.k, body.level, vector)
    hits = await engine.search.submit(query, timeout_s=until - loop.time())
    names = ("document", "start", "end", "text", "score")
    return {"hits": [{name: getattr(hit, name) for name in names} for hit in hits]}
