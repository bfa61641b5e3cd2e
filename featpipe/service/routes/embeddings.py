"""``/v1/embeddings`` and ``/v1/models``, as OpenAI's clients expect them.

`encode`, `query_of` and the checks are those of all routes that need vectors.
"""

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
from featpipe.service.schemas import (
    EmbeddingsAnswer,
    EmbeddingsBody,
    ModelBody,
    ModelsAnswer,
    failures,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.service.engine import Engine
    from featpipe.service.schemas import Inputs

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
    check_model(engine, body.model)
    check_inputs(engine, body.input)
    if body.dimensions is not None and engine.dim is not None and body.dimensions > engine.dim:
        shorten(np.zeros((1, engine.dim), np.float32), body.dimensions)
    prompt = engine.query_prompt.text if body.input_type == "query" else None
    found = await encode(engine, query_of(body.input), prompt)
    vectors, n_tokens = shorten(found.vectors, body.dimensions), int(found.n_tokens.sum())
    about = _about(engine.chosen.name, n_tokens, prompt)
    return Response(_render(vectors, body.encoding_format, about), media_type="application/json")


@router.get("/models", response_model=ModelsAnswer, responses=failures())
async def models(request: Request) -> dict[str, object]:
    """The one model of this service."""
    engine: Engine = request.app.state.engine
    return {"object": "list", "data": [_describe(engine)]}


@router.get("/models/{model:path}", response_model=ModelBody, responses=failures(404))
async def model_of(request: Request, model: str) -> dict[str, object]:
    """The model of this service, by its name or that of its space."""
    engine: Engine = request.app.state.engine
    check_model(engine, model)
    return _describe(engine)


def _describe(engine: Engine) -> dict[str, object]:
    return {"id": engine.chosen.name, "object": "model", "created": 0, "owned_by": "featpipe"}


async def encode(engine: Engine, query: EmbedQuery, prompt: str | None) -> Embedded:
    """Vectors and numbers of tokens of all inputs of a query, which is cut into pieces.

    Raises:
        Failure: an input cannot be encoded, or not in time.

    """
    found = await _ask_all(engine, list(_cut(replace(query, prompt=prompt))))
    vectors = np.concatenate([one.vectors for one in found])
    n_tokens = np.concatenate([one.n_tokens for one in found])
    engine.metrics.texts.inc(len(vectors))
    engine.metrics.tokens.inc(int(n_tokens.sum()))
    return Embedded(vectors, n_tokens)


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
    return scale(vectors[:, :dimensions])


def scale(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row (n, dim) scaled to length one; zeros stay."""
    rows = vectors.astype(np.float64)
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    scaled = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return np.ascontiguousarray(scaled, np.float32)


def check_model(engine: Engine, model: str) -> None:
    """Refuse a model that is not served here.

    Raises:
        Failure: another name than the model's or its space's.

    """
    name = engine.chosen.name
    if model not in {name, engine.chosen.space}:
        raise Failure(
            404, "model_not_found", f"there is no model {model!r} here",
            hint=f"the model is called {name}", param="model",
        )  # fmt: skip


def check_inputs(engine: Engine, given: Inputs, param: str = "input") -> None:
    """Refuse too many inputs, and token ids where the service does not take them.

    Raises:
        Failure: as above.

    """
    if engine.settings.token_ids is None and _has_ids(given):
        message = _IDS.format(name=engine.chosen.name)
        raise Failure(400, "token_ids_refused", message, hint=_IDS_HINT, param=param)
    check_number(engine, 1 if isinstance(given, str) or isinstance(given[0], int) else len(given))


def check_number(engine: Engine, n_inputs: int) -> None:
    """Refuse a request of too many texts.

    Raises:
        Failure: more than the service takes.

    """
    most = engine.settings.max_texts
    if n_inputs > most:
        raise Failure(413, "too_many_inputs", f"{n_inputs} inputs are more than {most}")


def _has_ids(given: Inputs) -> bool:
    return not isinstance(given, str) and not isinstance(given[0], str)


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


def query_of(given: Inputs) -> EmbedQuery:
    """The inputs of a request, as the worker takes them."""
    if isinstance(given, str):
        return EmbedQuery(texts=(given,))
    # Checked: the list holds texts, token ids or lists of token ids, and only one of the three.
    texts = tuple(one for one in given if isinstance(one, str))
    lists = tuple(tuple(one) for one in given if isinstance(one, list))
    tokens = tuple(one for one in given if isinstance(one, int))
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
