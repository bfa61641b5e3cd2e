"""Schemas of ``/rerank``, and of the routes that clients of text-embeddings-inference call.

Fields of those servers that change nothing here are ignored: texts are never truncated.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from featpipe.service.schemas import Inputs, Name, Text, UsageBody

Query = Annotated[str, Field(min_length=1, max_length=10_000)]

#: As other servers do: fields that only they know are no mistake.
_LENIENT = ConfigDict(extra="ignore", strict=True)


class TextDocument(BaseModel):
    """A text as an object; other fields are ignored."""

    model_config = _LENIENT

    text: Text


class RerankBody(BaseModel):
    """As Cohere's and Jina's clients send it."""

    model_config = ConfigDict(
        **_LENIENT,
        json_schema_extra={
            "examples": [{"query": "违约责任", "documents": ["按日支付违约金。", "甲方"]}],
        },
    )

    query: Query
    documents: Annotated[list[Text | TextDocument], Field(min_length=1, max_length=2048)]
    model: Name | None = None
    """``bm25``, the model's name for its vectors, or ``bm25+NAME`` for both, the default."""
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False


class TeiRerankBody(BaseModel):
    """As clients of text-embeddings-inference send it."""

    model_config = ConfigDict(
        **_LENIENT,
        json_schema_extra={
            "examples": [{"query": "违约责任", "texts": ["逾期付款的，按日支付违约金。", "甲方"]}],
        },
    )

    query: Query
    texts: Annotated[list[Text], Field(min_length=1, max_length=2048)]
    model: Name | None = None
    raw_scores: bool = False
    """BM25's or the cosines' own values, not scaled to 0 ... 1."""
    return_text: bool = False


class RankedBody(BaseModel):
    """A document, by its place in the request."""

    index: int
    relevance_score: float
    document: TextDocument | None = None


class RerankAnswer(BaseModel):
    """Best first. ``model`` names what the scores are of; ``meta`` is Cohere's, ``usage`` Jina's.

    Scores are between 0 and 1 and compare the documents of one request.
    """

    id: str
    object: Literal["list"]
    model: str
    results: list[RankedBody]
    usage: UsageBody
    meta: dict[str, dict[str, str | int]]


class TeiRanked(BaseModel):
    """A text, by its place in the request."""

    index: int
    score: float
    text: str | None = None


class TeiEmbedBody(BaseModel):
    """``prompt_name`` ``query``: with the prompt that the model expects before questions."""

    model_config = ConfigDict(
        **_LENIENT, json_schema_extra={"examples": [{"inputs": ["合同金额", "违约责任"]}]}
    )

    inputs: Inputs
    normalize: bool = True
    prompt_name: Literal["query", "passage", "document"] | None = None
    dimensions: int | None = Field(None, ge=1)


class TeiInfo(BaseModel):
    """The model and the limits of this service. ``model_sha`` is the fingerprint of its vectors."""

    model_config = ConfigDict(protected_namespaces=())

    model_id: str
    model_sha: str | None
    model_dtype: str
    model_type: dict[str, dict[str, str]]
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int | None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    sha: str | None
    docker_label: str | None
