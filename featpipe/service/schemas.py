"""Schemas of requests and answers, for checking and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Text = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
TokenId = Annotated[int, Field(ge=0, lt=1 << 31, strict=True)]
Seconds = Annotated[float, Field(gt=0, le=3600, description="Ask for less time than allowed.")]

#: Texts, or token ids, to make vectors of.
_Texts = Annotated[list[Text], Field(min_length=1, max_length=2048)]
_Ids = Annotated[list[TokenId], Field(min_length=1, max_length=8192)]
Inputs = Text | _Texts | _Ids | Annotated[list[_Ids], Field(min_length=1, max_length=2048)]

_STRICT = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """An error."""

    code: str = Field(examples=["busy"])
    message: str
    type: str = Field(examples=["rate_limit_error"])
    """OpenAI's name for errors of this status."""
    param: str | None = None
    """The field of the request that is to blame, where it is one."""
    hint: str | None = None
    request_id: str


class ErrorBody(BaseModel):
    """Every answer with a status of 400 or more."""

    error: Problem


class ExtractBody(BaseModel):
    """Either a text, or the id of a document of the cache, to extract from."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {"text": "甲方：某某公司。合同金额为人民币1,200万元。", "template": "contract"},
                {"document": "contracts/lease_a.docx", "template": "auto"},
            ],
            "oneOf": [{"required": ["text"]}, {"required": ["document"]}],
        },
    )  # fmt: skip

    text: Text | None = Field(None, json_schema_extra={"type": "string"})
    document: Name | None = Field(None, json_schema_extra={"type": "string"})
    """Id of a document of the cache; never a path of this machine."""
    template: Name | None = None
    """Name, ``auto`` for the likeliest one, or ``*`` for all that are meant for it."""
    name: Name | None = None
    """Name of the text in the answer."""
    with_text: bool = False
    """Send back the text that offsets refer to."""
    deadline_s: Seconds | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> ExtractBody:
        if (self.text is None) == (self.document is None):
            raise ValueError("give a text or a document, one of the two")
        return self


class BatchLine(ExtractBody):
    """One line of a batch; ``id`` comes back with its answer."""

    id: Annotated[str, StringConstraints(max_length=256)] | int | None = None


class FoundValue(BaseModel):
    """A value; ``text`` is the document's text from ``start`` to ``end``."""

    text: str
    value: str
    unit: str
    bound: str
    start: int
    end: int
    page: int | None
    probability: float


class ValueBody(FoundValue):
    """One value, with what its probability rests on."""

    parts: dict[str, float]
    nearest: str
    places: list[list[int]]
    remark: str = ""


class ExtractionBody(BaseModel):
    """All fields of one document under one template; the likeliest value of each comes first."""

    document: str
    template: str
    fields: dict[str, list[ValueBody]]
    records: list[dict[str, str]]
    provenance: dict[str, str]


class ExtractAnswer(BaseModel):
    """Extractions of one document: one, or one per template for ``*``."""

    document: str
    extractions: list[ExtractionBody]
    text: str | None = None
    note: str | None = None
    """Why there is no extraction, where there is none."""
    seconds: float
    """Spent in the worker."""


class FieldBody(BaseModel):
    """A field of a template."""

    name: str
    aliases: list[str]
    type: str | None
    cardinality: str | None
    hint: str


class TemplateBody(BaseModel):
    """A template on offer. ``fingerprint`` changes when its answers may."""

    name: str
    version: str
    fingerprint: str
    n_samples: int
    fields: list[FieldBody]


class TemplateList(BaseModel):
    """Templates by name; ``problem``: why changed files are not in use."""

    templates: list[TemplateBody]
    problem: str = ""


class ValidateBody(BaseModel):
    """The content of a template file to check; it is not kept."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [{"content": 'name = "lease"\n[[fields]]\nname = "租金"\n'}],
        },
    )

    content: Annotated[str, StringConstraints(min_length=1, max_length=4_000_000)]
    format: Literal["toml", "json"] = "toml"


class ValidateAnswer(BaseModel):
    """Whether the template could be used, else its error; ``line`` counts from 1."""

    is_valid: bool
    name: str | None = None
    fields: list[FieldBody] = []
    message: str | None = None
    line: int | None = None


class ReloadAnswer(BaseModel):
    """Names of all templates, and of those changed and removed. Models stay loaded."""

    templates: list[str]
    changed: list[str]
    removed: list[str]


class SearchBody(BaseModel):
    """A query and its options."""

    model_config = ConfigDict(
        **_STRICT, json_schema_extra={"examples": [{"query": "违约责任", "k": 5}]}
    )

    query: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    k: int = Field(10, ge=1, le=1000)
    level: Literal["sentence", "document"] = "sentence"
    hybrid: bool = False
    """Rank by meaning as well as by words; sentences only."""
    deadline_s: Seconds | None = None


class HitBody(BaseModel):
    """A sentence; ``text`` is the document's text from ``start`` to ``end``."""

    document: str
    start: int
    end: int
    text: str
    score: float


class SearchAnswer(BaseModel):
    """Best first. ``query_prompt``: put before the query; null where it needed no vector."""

    hits: list[HitBody]
    query_prompt: str | None


class EmbeddingsBody(BaseModel):
    """Like OpenAI's. ``input``: a text, texts, token ids, or lists of token ids.

    Ids are refused unless the service was started for those of its model's tokenizer.
    """

    model_config = ConfigDict(
        extra="ignore",  # clients send fields of other servers
        strict=True,
        json_schema_extra={
            "examples": [{"model": "zh-small", "input": ["合同金额", "违约责任"]}],
        },
    )

    input: Inputs
    model: Name
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)
    input_type: Literal["query", "passage", "document"] | None = None
    """``query``: with the prompt that the model expects before questions; else as passages."""
    user: str | None = None


class EmbeddingBody(BaseModel):
    """One vector: numbers, or little-endian float32 in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class UsageBody(BaseModel):
    """Tokens read, special ones included."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """Vectors in the order of the input. ``query_prompt``: put before each; null for passages."""

    object: Literal["list"]
    data: list[EmbeddingBody]
    model: str
    usage: UsageBody
    query_prompt: str | None


class ModelBody(BaseModel):
    """A model that `/v1/embeddings` answers for."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsAnswer(BaseModel):
    """All models."""

    object: Literal["list"]
    data: list[ModelBody]


class HealthAnswer(BaseModel):
    """The process answers."""

    status: Literal["ok"]
    version: str


class LaneBody(BaseModel):
    """One kind of work."""

    is_ready: bool
    n_open: int
    n_workers: int
    problem: str


class ReadyAnswer(BaseModel):
    """Whether requests should be sent here."""

    is_ready: bool
    is_draining: bool
    lanes: dict[str, LaneBody]


def failures(*statuses: int) -> dict[int | str, dict[str, object]]:
    """A route's ``responses``: these statuses, and those of every route."""
    common = (400, 401, 403, 408, 413, 422, 500)
    return {status: {"model": ErrorBody} for status in sorted({*common, *statuses})}
