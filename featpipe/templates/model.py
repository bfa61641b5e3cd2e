"""What a template says: its fields and its reference samples, checked and frozen."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from featpipe.templates.values import FieldType  # noqa: TC001  # pydantic reads it

Level = Literal["entity", "word", "sentence", "paragraph"]
Cardinality = Literal["one", "many", "records"]

#: What an error about several parts together calls the place of the one to look at.
PLACE = "place"


class FieldSpec(BaseModel):
    """One thing to extract. Whatever is left out is inferred from the samples."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    """Other names that documents use for it, such as the words before a colon."""
    type: FieldType | None = None
    level: Level | None = None
    """``sentence`` and ``paragraph`` give whole units; the others spans inside them."""
    cardinality: Cardinality | None = None
    pattern: str | None = None
    """Regular expression of ``pattern`` fields."""
    choices: tuple[str, ...] = ()
    """Values of ``enum`` fields."""
    hint: str = ""
    """For people: what annotators should know. It is also read as an alias of last resort."""

    @field_validator("aliases", "choices", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        import re

        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"is no regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> FieldSpec:
        if self.type == "pattern" and not self.pattern:
            raise ValueError(f"field {self.name!r} has type pattern and no pattern")
        if self.type == "enum" and not self.choices:
            raise ValueError(f"field {self.name!r} has type enum and no choices")
        return self


class SampleSpec(BaseModel):
    """A reference document and its values.

    ``document`` is a path (beside the template, or the id or path of a cached document), or
    ``text`` holds the document itself. A field may have one value or a list; a document without a
    value of a field teaches that there may be none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    document: str | None = None
    text: str | None = None
    fields: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    records: tuple[dict[str, str], ...] = ()
    spans: dict[str, tuple[tuple[int, int], ...]] = Field(default_factory=dict)
    """Character spans of the values, where known; located by meaning where not."""

    @field_validator("fields", mode="before")
    @classmethod
    def _as_lists(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {
            name: (given,)
            if isinstance(given, str)
            else tuple(given)
            if isinstance(given, list)
            else given
            for name, given in value.items()
        }

    @field_validator("records", mode="before")
    @classmethod
    def _as_records(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("spans", mode="before")
    @classmethod
    def _as_spans(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: tuple(tuple(span) for span in spans) for name, spans in value.items()}

    @model_validator(mode="after")
    def _has_one_source(self) -> SampleSpec:
        if (self.document is None) == (self.text is None):
            raise ValueError("a sample names a document or holds a text, one of the two")
        return self

    def values_of(self, field: str) -> tuple[str, ...]:
        """Values of one field: as listed, or as they stand in the records."""
        listed = self.fields.get(field, ())
        inside = tuple(record[field] for record in self.records if field in record)
        return tuple(dict.fromkeys((*listed, *inside)))


class Template(BaseModel):
    """Fields and samples under one name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    fields: tuple[FieldSpec, ...] = Field(min_length=1)
    samples: tuple[SampleSpec, ...] = ()
    version: str = ""
    """Free text of its authors; what counts is the fingerprint."""
    documents: tuple[str, ...] = ()
    """Glob patterns of document ids it is meant for; all documents when empty."""

    @field_validator("fields", "samples", "documents", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _names_agree(self) -> Template:
        names = [field.name for field in self.fields]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise PydanticCustomError(
                    "template",
                    "field {field} is defined twice",
                    {"field": repr(name), PLACE: ("fields", number, "name")},
                )
        for number, sample in enumerate(self.samples):
            for place in self.unknown_in(sample):
                raise PydanticCustomError(
                    "template",
                    "sample {number} has a value for {field}, which is no field",
                    {
                        "number": number + 1,
                        "field": repr(place[-1]),
                        PLACE: ("samples", number, *place),
                    },
                )
        return self

    def unknown_in(self, sample: SampleSpec) -> list[tuple[str | int, ...]]:
        """Where in a sample there are values of what is no field; the last step is its name."""
        places = [("fields", name) for name in sample.fields]
        places += [("spans", name) for name in sample.spans]
        inside = [
            ("records", number, name)
            for number, record in enumerate(sample.records)
            for name in record
        ]
        names = {field.name for field in self.fields}
        return [place for place in (*places, *inside) if place[-1] not in names]

    def field(self, name: str) -> FieldSpec:
        """One field by name."""
        return next(field for field in self.fields if field.name == name)
