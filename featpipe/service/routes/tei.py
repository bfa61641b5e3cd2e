"""``/embed`` and ``/info``, as clients of Hugging Face's text-embeddings-inference expect them."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from featpipe.encoders.spec import fingerprint_of
from featpipe.service.ranking_schemas import TeiEmbedBody, TeiInfo
from featpipe.service.routes.embeddings import check_inputs, encode, query_of, scale, shorten
from featpipe.service.schemas import failures

if TYPE_CHECKING:
    from featpipe.service.engine import Engine

router = APIRouter(tags=["embeddings"])


@router.post("/embed", response_model=list[list[float]], responses=failures(404, 429, 503, 504))
async def embed_texts(request: Request, body: TeiEmbedBody) -> Response:
    """Vectors of texts, in order, as lists of numbers; of length one unless ``normalize`` is false.

    Texts longer than the model's window are read in several windows, never truncated.
    """
    engine: Engine = request.app.state.engine
    check_inputs(engine, body.inputs, param="inputs")
    prompt = engine.query_prompt.text if body.prompt_name == "query" else None
    vectors = (await encode(engine, query_of(body.inputs), prompt)).vectors
    vectors = shorten(vectors, body.dimensions)
    rows = (scale(vectors) if body.normalize else vectors).tolist()
    return Response(json.dumps(rows, separators=(",", ":")), media_type="application/json")


@router.get("/info", response_model=TeiInfo, responses=failures())
async def info(request: Request) -> dict[str, object]:
    """The model, and how much may be asked of it at a time."""
    engine: Engine = request.app.state.engine
    settings, spec = engine.settings, engine.spec
    return {
        "model_id": engine.chosen.name,
        "model_sha": fingerprint_of(spec),
        "model_dtype": spec["dtype"],
        "model_type": {"embedding": {"pooling": spec["pooling"]}},
        "max_concurrent_requests": settings.max_waiting,
        "max_input_length": spec["max_length"],
        "max_batch_tokens": settings.max_waiting_bytes,
        "max_batch_requests": None,
        "max_client_batch_size": settings.max_texts,
        "auto_truncate": False,
        "tokenization_workers": 1,
        "version": version("featpipe"),
        "sha": None,
        "docker_label": None,
    }
