"""Corrections: what reviewers said about the values of one template, as records of one line each.

A :class:`Correction` tells of one field of one document; an :class:`Undo` takes one record back;
an :class:`Acceptance` makes everything said up to one record a part of the template. Records are
never changed: what holds now follows from all of them, in order (:mod:`corrections_fold`).

A record names the document by its key, which changes with the content and with the way it was read,
so that no correction is applied to another version of a text. Offsets count code points.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import uuid4

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Place = tuple[int, int]
Verdict = Literal["confirm", "correct", "none", "reject"]

#: Ids and names are short: a record is read back whole whatever wrote it.
Identity = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Person = Annotated[str, StringConstraints(max_length=100)]
Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]

_LONE = re.compile("[\ud800-\udfff]")


def new_id() -> str:
    """An id that no other record has."""
    return uuid4().hex


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    template: str = Field(min_length=1)
    id: Identity = Field(default_factory=new_id)
    when: str = Field(default_factory=now, max_length=40)
    who: Person = ""

    def as_line(self) -> str:
        """One line of JSON, without its line end, of characters that UTF-8 can hold."""
        return self.model_dump_json()


class Correction(_Record):
    """What a reviewer said of one field of one document.

    Attributes:
        verdict: ``confirm``: the value in question is right. ``correct``: the values at ``spans``
            take its place. ``none``: the document has no value of the field. ``reject``: the value
            in question is wrong; the right one is not known.
        document: id in the cache, for people; ``key`` decides.
        key: of the document's version, 32 hex digits.
        field: of the template.
        spans: where the right values stand; for ``none`` and ``reject`` empty.
        values: texts at ``spans``.
        about: place of the value in question; None where the field had none.
        shown: places of all values that the reviewer was shown for the field.
        is_many: whether the field may have several values in one document.
        model: fingerprint of the field's model that found the values, "" if unknown.
        version: of the template that the reviewer saw.

    """

    verdict: Verdict
    document: str = Field(min_length=1)
    key: Key
    field: str = Field(min_length=1)
    spans: tuple[Place, ...] = ()
    values: tuple[str, ...] = ()
    about: Place | None = None
    shown: tuple[Place, ...] = ()
    is_many: bool = False
    model: str = ""
    version: str = ""

    @field_validator("spans", "shown", "about", "values", mode="before")
    @classmethod
    def _from_lists(cls, given: object) -> object:
        return _as_tuples(given)

    @model_validator(mode="after")
    def _is_consistent(self) -> Correction:
        for start, end in (*self.spans, *self.shown, *([self.about] if self.about else [])):
            if not 0 <= start < end:
                raise ValueError(f"{start}:{end} is no place of a value")
        has_spans = self.verdict in {"confirm", "correct"}
        if has_spans != bool(self.spans):
            need = "needs the places of values" if has_spans else "has no places of values"
            raise ValueError(f"{self.verdict!r} {need}")
        if self.values and len(self.values) != len(self.spans):
            raise ValueError("there are not as many values as spans")
        if self.verdict == "reject" and self.about is None:
            raise ValueError("'reject' needs the place of the value in question")
        return self


class Undo(_Record):
    """Takes back the record with the id ``of``: a correction or an acceptance."""

    verdict: Literal["undo"] = "undo"
    of: Identity


class Acceptance(_Record):
    """Makes all that was said up to the record ``through`` a part of the template."""

    verdict: Literal["accept"] = "accept"
    through: Identity
    version: str = ""


Record = Correction | Undo | Acceptance
_ANY: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="verdict")])
#: Faults of a line as a whole, by the type of pydantic's error.
_NO_RECORD = {
    "dict_type": "is no JSON object",
    "union_tag_not_found": "has no verdict",
    "union_tag_invalid": "the verdict {tag!r} is none of {expected_tags}",
}


def read_record(line: bytes) -> Record:
    """The record in one line.

    Raises:
        ValueError: it is none; the message is the reason, for people.

    """
    try:
        return _ANY.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise ValueError(f"is not whole JSON: {first['msg'].partition(': ')[2]}") from error
        if first["type"] in _NO_RECORD:
            raise ValueError(_NO_RECORD[first["type"]].format(**first.get("ctx", {}))) from error
        # The first step names the kind of record, which its verdict tells as well.
        where = ".".join(str(step) for step in first["loc"][1:] or first["loc"])
        fault = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {fault}" if where else fault) from error


def texts_at(text: str, spans: Sequence[Place]) -> tuple[str, ...]:
    """The texts of some places, of characters that UTF-8 can hold."""
    return tuple(_LONE.sub("\ufffd", text[start:end]) for start, end in spans)


def _as_tuples(given: object) -> object:
    return tuple(_as_tuples(one) for one in given) if isinstance(given, list) else given
