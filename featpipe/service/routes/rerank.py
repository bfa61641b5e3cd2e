"""``/rerank``: texts in order of their relevance to a query, as Cohere, Jina and TEI answer.

Scores are BM25's over the figures of the cache, cosines of vectors, or both as a hybrid search
weighs them; the answer names which, in ``model`` and in the header ``X-Rerank-Model``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
from fastapi import APIRouter, Request, Response

from featpipe.cache.search import BM25_WEIGHT
from featpipe.cache.search_worker import ScoreQuery
from featpipe.lexical.fusion import combine, normalise
from featpipe.on_demand.messages import EmbedQuery
from featpipe.service.errors import Failure
from featpipe.service.ranking_schemas import RerankAnswer, RerankBody, TeiRanked, TeiRerankBody
from featpipe.service.routes.embeddings import check_number, encode
from featpipe.service.routes.search import search_batcher
from featpipe.service.schemas import failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.service.engine import Engine

router = APIRouter(tags=["search"])

_BM25 = "bm25"
#: In front of the model's name: BM25 and its vectors together.
_BOTH = "bm25+"
_STATUSES = failures(404, 429, 503, 504)


@router.post("/rerank", response_model=RerankAnswer | list[TeiRanked], responses=_STATUSES)
async def rerank(
    request: Request, response: Response, body: RerankBody | TeiRerankBody
) -> dict[str, object] | list[dict[str, object]]:
    """Texts by relevance; ``documents`` are answered as Cohere and Jina do, ``texts`` as TEI does.

    Scores are scaled to 0 ... 1 by the least and greatest of the request, unless TEI's
    ``raw_scores`` asks for BM25's or the cosines' own values; those of both together are always.
    """
    if isinstance(body, TeiRerankBody):
        model, raw, _ = await _score(request, body.query, body.texts, body.model)
        response.headers["X-Rerank-Model"] = model
        scores = raw if body.raw_scores else _scale(model, raw)
        texts = body.texts if body.return_text else [None] * len(body.texts)
        return [
            {"index": at, "score": float(scores[at]), "text": texts[at]}
            for at in _best_first(scores)
        ]
    return await _rerank_documents(request, response, body)


@router.post("/v1/rerank", response_model=RerankAnswer, responses=_STATUSES)
async def rerank_v1(request: Request, response: Response, body: RerankBody) -> dict[str, object]:
    """As `/rerank`: the path of Jina's clients, and of Cohere's first."""
    return await _rerank_documents(request, response, body)


@router.post("/v2/rerank", response_model=RerankAnswer, responses=_STATUSES)
async def rerank_v2(request: Request, response: Response, body: RerankBody) -> dict[str, object]:
    """As `/rerank`: the path of Cohere's clients."""
    return await _rerank_documents(request, response, body)


async def _rerank_documents(
    request: Request, response: Response, body: RerankBody
) -> dict[str, object]:
    texts = [one if isinstance(one, str) else one.text for one in body.documents]
    model, raw, n_tokens = await _score(request, body.query, texts, body.model)
    response.headers["X-Rerank-Model"] = model
    scores = _scale(model, raw)
    results = [
        {
            "index": at,
            "relevance_score": float(scores[at]),
            "document": {"text": texts[at]} if body.return_documents else None,
        }
        for at in _best_first(scores)[: body.top_n]
    ]
    return {
        "id": str(request.scope["state"]["request_id"]),
        "object": "list",
        "model": model,
        "results": results,
        "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }


async def _score(
    request: Request, query: str, texts: Sequence[str], model: str | None
) -> tuple[str, NDArray[np.float64], int]:
    """What the scores are of, the scores (n,), and the tokens read for them.

    Raises:
        Failure: there is no such model, or no score in time.

    """
    engine: Engine = request.app.state.engine
    check_number(engine, len(texts))
    model = _choose(engine, model)
    is_by_words, is_by_vectors = model.startswith(_BM25), model != _BM25
    words, (cosines, n_tokens) = await asyncio.gather(
        _score_words(engine, query, texts) if is_by_words else _nothing(),
        _score_vectors(engine, query, texts) if is_by_vectors else _no_vectors(),
    )
    if is_by_words and is_by_vectors:
        return model, combine(words, cosines, BM25_WEIGHT), n_tokens
    return model, words if is_by_words else cosines, n_tokens


def _choose(engine: Engine, asked: str | None) -> str:
    """What to score by: ``bm25``, the model's name, or both, the default where there are terms.

    Raises:
        Failure: another name, or BM25 of a cache without terms.

    """
    name = engine.chosen.name
    if asked is None:
        return name if engine.search is None else f"{_BOTH}{name}"
    names = {_BM25: _BM25, f"{_BOTH}{name}": f"{_BOTH}{name}", name: name}
    if engine.chosen.space is not None:
        names |= {engine.chosen.space: name, f"{_BOTH}{engine.chosen.space}": f"{_BOTH}{name}"}
    if asked not in names:
        raise Failure(
            404, "model_not_found", f"there is no model {asked!r} to rank by",
            hint=f"leave it out, or name {_BM25}, {name} or {_BOTH}{name}", param="model",
        )  # fmt: skip
    return names[asked]


def _scale(model: str, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of one request in 0 ... 1; those of both together are."""
    return scores if model.startswith(_BOTH) else normalise(scores)


async def _score_words(engine: Engine, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
    asked = ScoreQuery(query, tuple(texts))
    weight, timeout_s = sum(map(len, texts)), engine.settings.deadline_s
    scores = await search_batcher(engine).submit(asked, weight=weight, timeout_s=timeout_s)
    return np.array(scores, np.float64)


async def _score_vectors(
    engine: Engine, query: str, texts: Sequence[str]
) -> tuple[NDArray[np.float64], int]:
    """Cosines (n,) of the texts with the query, and the tokens of all."""
    asked, passages = await asyncio.gather(
        encode(engine, EmbedQuery((query,)), engine.query_prompt.text),
        encode(engine, EmbedQuery(tuple(texts)), None),
    )
    vector, rows = asked.vectors[0].astype(np.float64), passages.vectors.astype(np.float64)
    lengths = np.sqrt((rows**2).sum(axis=1)) * np.sqrt((vector**2).sum())
    cosines = np.divide(rows @ vector, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return cosines, int(asked.n_tokens.sum() + passages.n_tokens.sum())


async def _nothing() -> NDArray[np.float64]:
    return np.zeros(0)


async def _no_vectors() -> tuple[NDArray[np.float64], int]:
    return np.zeros(0), 0


def _best_first(scores: NDArray[np.float64]) -> list[int]:
    """Places of the texts, best first; equal ones in their order."""
    best: list[int] = np.argsort(-scores, kind="stable").tolist()
    return best
