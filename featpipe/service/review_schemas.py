"""Schemas of the review's requests and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from featpipe.extraction.corrections import Identity, Key, Person, new_id
from featpipe.service.schemas import FoundValue, Name

_STRICT = ConfigDict(extra="forbid", strict=True)

Offset = Annotated[int, Field(ge=0, lt=1 << 31)]
Span = Annotated[list[Offset], Field(min_length=2, max_length=2)]
Spans = Annotated[list[Span], Field(max_length=1000)]


class CorrectionBody(BaseModel):
    """What a reviewer says of a field of a document, or ``undo`` of what was said before."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {
                    "template": "lease", "verdict": "correct", "document": "docs/a.txt",
                    "key": "00112233445566778899aabbccddeeff", "field": "租金",
                    "spans": [[30, 37]], "about": [12, 18], "shown": [[12, 18]], "who": "Anna",
                },
                {"template": "lease", "verdict": "undo", "of": "4f1a", "who": "Anna"},
            ]
        },
    )  # fmt: skip

    template: Name
    verdict: Literal["confirm", "correct", "none", "reject", "undo"]
    id: Identity = Field(default_factory=new_id)
    """Chosen by the client, so that a request that is sent twice counts once."""
    who: Person = ""
    document: str = ""
    key: Key | None = None
    field: str = ""
    spans: Spans = []
    """Places of the right values, in code points."""
    about: Span | None = None
    """Place of the value in question."""
    shown: Spans = []
    """Places of all values that the reviewer saw for the field."""
    of: Identity | None = None
    """For ``undo``: the id of what is taken back."""

    @model_validator(mode="after")
    def _has_a_subject(self) -> CorrectionBody:
        if self.verdict == "undo":
            if self.of is None:
                raise ValueError("undo needs the id of what is taken back, as of")
        elif not (self.document and self.key and self.field):
            raise ValueError("document, key and field are needed")
        return self


class SaidBody(BaseModel):
    """A correction or an acceptance in effect."""

    id: str
    when: str
    who: str
    verdict: str
    document: str = ""
    key: str = ""
    field: str = ""
    values: list[str] = []
    is_accepted: bool
    version: str = ""


class ReviewedValue(FoundValue):
    """A value as found; ``is_right``: what was said of it, null for nothing."""

    nearest: str
    remark: str
    is_right: bool | None = None


class QueueItemBody(BaseModel):
    """A field of a document to look at; ``doubt`` in [0, 1] is what the order goes by."""

    document: str
    key: str
    field: str
    doubt: float
    values: list[ReviewedValue]


class QueueAnswer(BaseModel):
    """The queue of a template, the most useful item first."""

    template: str
    version: str
    fields: list[str]
    n_left: int
    """Items in the queue; ``items`` are the first of them."""
    items: list[QueueItemBody]
    n_documents: int
    n_done: int
    """Documents whose values are known; the queue grows until it is ``n_documents``."""
    is_pending: bool
    """Whether something was said that is not a part of the template yet."""
    said: list[SaidBody]
    """The latest first."""
    problem: str = ""


class DocumentAnswer(BaseModel):
    """A document's text and structure. Offsets count code points."""

    document: str
    key: str
    title: str
    n_characters: int
    text: str
    """Its first 400,000 characters."""
    headings: list[list[int]]
    tables: list[list[object]]
    pages: list[list[int]]


class CandidatesAnswer(BaseModel):
    """The likeliest values of a field, reported or not."""

    values: list[ReviewedValue]
    is_many: bool
    """Whether the field may have several values in one document."""


class SayAnswer(BaseModel):
    """What was said is durable."""

    id: str
    values: list[str] = []


class ChangedValue(BaseModel):
    """A value before or after."""

    text: str
    probability: float


class ChangeBody(BaseModel):
    """A field of a document that changes; ``is_said``: a reviewer told its value."""

    document: str
    key: str
    field: str
    kind: Literal["up", "down", "new", "other", "gone"]
    old: list[ChangedValue]
    new: list[ChangedValue]
    is_said: bool


class SummaryBody(BaseModel):
    """Numbers of fields that change, and of the documents they are of."""

    n_values: int
    n_documents: int
    up: int
    down: int
    new: int
    other: int
    gone: int


class ChangesAnswer(BaseModel):
    """What all that was said does to the values of the cache's documents."""

    template: str
    version: str
    """Of the template once it is accepted."""
    through: str
    """What to accept, "" for nothing."""
    is_pending: bool
    is_complete: bool
    """Whether all values are found; until then there is no change listed."""
    n_documents: int
    n_done: int
    summary: SummaryBody | None
    changes: list[ChangeBody]
    """Values that become others first; 1,000 at most."""
    lost: list[str]
    """Documents from which the values could not be extracted."""
    n_encoded: int
    seconds: float
    problem: str = ""


class AcceptBody(BaseModel):
    """Which changes are accepted: ``through`` as it was shown."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={"examples": [{"template": "lease", "through": "4f1a", "who": "Anna"}]},
    )

    template: Name
    through: Identity
    who: Person = ""


class AcceptAnswer(BaseModel):
    """The template's new version; its results in the cache follow."""

    template: str
    version: str
