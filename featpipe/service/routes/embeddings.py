"""``/v1/embeddings`` and ``/v1/models``, as OpenAI's clients expect them."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from fastapi import APIRouter, Request, Response

from featpipe.on_demand.messages import Embedded, EmbedQuery
from featpipe.service.errors import Failure
from featpipe.service.schemas import EmbeddingsAnswer, EmbeddingsBody, ModelsAnswer, failures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.service.engine import Engine

router = APIRouter(tags=["embeddings"], prefix="/v1")

#: Most texts and characters of one item: a long request is cut, so that short ones run between.
_PIECE_TEXTS, _PIECE_CHARACTERS = 256, 16_384

#: Ids do not say whose they are: tiktoken's, which LangChain sends unless told otherwise, are in
#: range, and are other words to another tokenizer.
_IDS = (
    "input holds token ids, which mean other words to the tokenizer of {name} than to the one that"
    " made them; send texts (langchain: OpenAIEmbeddings(..., check_embedding_ctx_length=False))"
)
_IDS_HINT = "whoever runs the service can accept ids of its own tokenizer: serve --token-ids NAME"


@router.post("/embeddings", response_model=EmbeddingsAnswer, responses=failures(404, 429, 503, 504))
async def embed(request: Request, body: EmbeddingsBody) -> Response:
    """Vectors of texts, or of token ids where the service takes them, in the order of the input.

    They are vectors of the cache's space: texts that it holds are not encoded again.
    With ``input_type`` ``query`` they are those of questions, which have the prompt that the model
    expects before them; the answer names it. ``dimensions`` keeps the first numbers of each vector
    and scales them to length one.
    """
    engine: Engine = request.app.state.engine
    _check(engine, body)
    prompt = engine.query_prompt.text if body.input_type == "query" else None
    found = await _ask_all(engine, list(_cut(replace(_query_of(body), prompt=prompt))))
    vectors = shorten(np.concatenate([one.vectors for one in found]), body.dimensions)
    n_tokens = int(sum(one.n_tokens.sum() for one in found))
    engine.metrics.texts.inc(len(vectors))
    engine.metrics.tokens.inc(n_tokens)
    about = _about(engine.chosen.name, n_tokens, prompt)
    return Response(_render(vectors, body.encoding_format, about), media_type="application/json")


@router.get("/models", response_model=ModelsAnswer, responses=failures())
async def models(request: Request) -> dict[str, object]:
    """The one model of this service."""
    engine: Engine = request.app.state.engine
    model = {"id": engine.chosen.name, "object": "model", "created": 0, "owned_by": "featpipe"}
    return {"object": "list", "data": [model]}


def shorten(vectors: NDArray[np.float32], dimensions: int | None) -> NDArray[np.float32]:
    """The first ``dimensions`` numbers of each row (n, dim), scaled to length one; zeros stay.

    Raises:
        Failure: the vectors have fewer.

    """
    dim = vectors.shape[1]
    if dimensions is None or dimensions == dim:
        return vectors
    if dimensions > dim:
        raise Failure(
            422, "too_many_dimensions", f"the model's vectors have {dim} dimensions",
            hint=f"ask for {dim} or fewer",
        )  # fmt: skip
    kept = vectors[:, :dimensions].astype(np.float64)
    lengths = np.sqrt((kept**2).sum(axis=1, keepdims=True))
    shortened = np.divide(kept, lengths, out=np.zeros_like(kept), where=lengths > 0)
    return np.ascontiguousarray(shortened, np.float32)


def _check(engine: Engine, body: EmbeddingsBody) -> None:
    name = engine.chosen.name
    if body.model not in {name, engine.chosen.space}:
        raise Failure(
            404, "model_not_found", f"there is no model {body.model!r} here",
            hint=f"the model is called {name}",
        )  # fmt: skip
    if engine.settings.token_ids is None and _has_ids(body):
        raise Failure(
            400, "token_ids_refused", _IDS.format(name=name), hint=_IDS_HINT, param="input"
        )
    n_inputs = len(body.input) if isinstance(body.input, list) else 1
    if n_inputs > engine.settings.max_texts and not isinstance(body.input[0], int):
        raise Failure(
            413, "too_many_inputs", f"{n_inputs} inputs are more than {engine.settings.max_texts}"
        )
    if body.dimensions is not None and engine.dim is not None and body.dimensions > engine.dim:
        shorten(np.zeros((1, engine.dim), np.float32), body.dimensions)


def _has_ids(body: EmbeddingsBody) -> bool:
    return not isinstance(body.input, str) and not isinstance(body.input[0], str)


async def _ask_all(engine: Engine, queries: Sequence[EmbedQuery]) -> list[Embedded]:
    """One answer per query.

    Raises:
        Failure: the first, when all have been answered.

    """
    timeout_s = engine.settings.deadline_s
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_ask(engine, query, timeout_s)) for query in queries]
    answers = [task.result() for task in asked]
    failure = next((answer for answer in answers if isinstance(answer, Failure)), None)
    if failure is not None:
        raise failure
    return [answer for answer in answers if isinstance(answer, Embedded)]


def _query_of(body: EmbeddingsBody) -> EmbedQuery:
    if isinstance(body.input, str):
        return EmbedQuery(texts=(body.input,))
    # Checked: the list holds texts, token ids or lists of token ids, and only one of the three.
    texts = tuple(one for one in body.input if isinstance(one, str))
    lists = tuple(tuple(one) for one in body.input if isinstance(one, list))
    tokens = tuple(one for one in body.input if isinstance(one, int))
    return EmbedQuery(texts=texts) if texts else EmbedQuery(tokens=lists or (tokens,))


def _cut(query: EmbedQuery) -> Iterator[EmbedQuery]:
    """Pieces in order; one long input is a piece of its own."""
    inputs = query.texts or query.tokens
    start, size = 0, 0
    for at, one in enumerate(inputs):
        if at > start and (size + len(one) > _PIECE_CHARACTERS or at - start >= _PIECE_TEXTS):
            yield _part(query, start, at)
            start, size = at, 0
        size += len(one)
    yield _part(query, start, len(inputs))


def _part(query: EmbedQuery, start: int, end: int) -> EmbedQuery:
    return replace(query, texts=query.texts[start:end], tokens=query.tokens[start:end])


async def _ask(engine: Engine, query: EmbedQuery, timeout_s: float) -> Embedded | Failure:
    """The answer or the failure; raised, it would cancel the other pieces."""
    weight = sum(map(len, query.texts or query.tokens))
    try:
        answer = await engine.embed.submit(query, weight=weight, timeout_s=timeout_s)
    except Failure as failure:
        return failure
    return answer


def _about(model: str, n_tokens: int, query_prompt: str | None) -> dict[str, object]:
    """All of the answer but its vectors."""
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"model": model, "usage": usage, "query_prompt": query_prompt}


def _render(vectors: NDArray[np.float32], form: str, about: dict[str, object]) -> bytes:
    """The answer's JSON, written directly: pydantic would copy megabytes of numbers."""
    head = '{"object":"list","data":['
    tail = "]," + json.dumps(about, ensure_ascii=False, separators=(",", ":"))[1:]
    if form == "base64":
        little = np.ascontiguousarray(vectors, "<f4")
        texts = (f'"{base64.b64encode(row.tobytes()).decode("ascii")}"' for row in little)
    else:
        texts = (json.dumps(row, separators=(",", ":")) for row in vectors.tolist())
    data = ",".join(
        f'{{"object":"embedding","index":{index},"embedding":{text}}}'
        for index, text in enumerate(texts)
    )
    return (head + data + tail).encode()
