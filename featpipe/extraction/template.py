"""Templates: fields and reference samples, checked and frozen.

Unknown is not none: a sample counts only for the fields that it was read for. These are the fields
that it names; one named with an empty list (``"保证人" = []``, in JSON also ``null``) has no
value in the document. A field that it does not name is unknown there, so that correcting one field
of a document teaches nothing about the others. ``complete = true`` in a sample states that it was
read for every field, and that those it does not name have no value.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from featpipe.extraction.values.values import FieldType

Level = Literal["entity", "word", "sentence", "paragraph"]
Cardinality = Literal["one", "many", "records"]

#: Key of an error's context: the way to the part that is wrong.
PLACE = "place"


_key = re.compile("[0-9a-f]{32}")


class FieldSpec(BaseModel):
    """One field to extract. Settings left out are inferred from the samples.

    Attributes:
        name: of the field, unique in its template.
        aliases: other names that documents use for it, such as the words before a colon.
        type: of its values; None to infer it.
        level: ``sentence`` and ``paragraph`` give whole units, the others spans inside them.
        cardinality: one value per document, many, or one per record; None to infer it.
        pattern: regular expression of ``pattern`` fields.
        choices: values of ``enum`` fields.
        hint: for annotators; extraction does not read it.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    type: FieldType | None = None
    level: Level | None = None
    cardinality: Cardinality | None = None
    pattern: str | None = None
    choices: tuple[str, ...] = ()
    hint: str = ""

    def __repr__(self) -> str:
        return f"FieldSpec({self.name!r}, type={self.type!r})"

    @field_validator("aliases", "choices", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
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

    Attributes:
        document: a path beside the template, or the id or path of a cached document.
        text: the document itself, instead of ``document``.
        fields: values by field name; an empty list for a field without a value in the document.
        records: values that belong together, such as those of one table row; by field name.
        spans: character spans (start, end) of the values by field name, where known; the values of
            other fields are located by meaning.
        complete: whether it was read for every field of the template: those it does not name have
            no value. By default they are unknown, and the sample does not count for them.
        key: of the version of ``document`` that was read, 32 hex digits. The sample counts only
            where the cache holds that version, and wins over other samples of the same text.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    document: str | None = None
    text: str | None = None
    fields: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    records: tuple[dict[str, str], ...] = ()
    spans: dict[str, tuple[tuple[int, int], ...]] = Field(default_factory=dict)
    complete: bool = False
    key: str | None = None

    def __repr__(self) -> str:
        source = f"text of {len(self.text or '')} characters" if self.text else repr(self.document)
        return f"SampleSpec({source}, {len(self.fields)} fields)"

    @field_validator("fields", mode="before")
    @classmethod
    def _as_lists(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: _as_values(given) for name, given in value.items()}

    @field_validator("records", mode="before")
    @classmethod
    def _as_records(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("spans", mode="before")
    @classmethod
    def _as_spans(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: _as_tuples(spans) for name, spans in value.items()}

    @model_validator(mode="after")
    def _has_one_source(self) -> SampleSpec:
        if (self.document is None) == (self.text is None):
            raise ValueError("a sample names a document or holds a text, one of the two")
        if self.key is not None and (self.document is None or not _key.fullmatch(self.key)):
            raise ValueError("a key is of a document, and has 32 hex digits")
        return self

    def is_read_for(self, field: str) -> bool:
        """Whether the sample tells anything about a field: its values, or that there are none."""
        named = [*self.fields, *self.spans, *(name for one in self.records for name in one)]
        return self.complete or field in named

    def values_of(self, field: str) -> tuple[str, ...]:
        """Distinct values of one field, listed or in records."""
        listed = self.fields.get(field, ())
        inside = tuple(record[field] for record in self.records if field in record)
        return tuple(dict.fromkeys((*listed, *inside)))


def _as_values(given: object) -> object:
    """The values of a field as a tuple; null for a field that has none."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    return tuple(given) if isinstance(given, list) else given


def _as_tuples(given: object) -> object:
    return tuple(_as_tuples(one) for one in given) if isinstance(given, list) else given


class Template(BaseModel):
    """The fields to extract from one kind of document, with reference samples.

    Attributes:
        name: unique among the templates used together.
        fields: at least one.
        samples: reference documents with their values.
        version: free text of its authors; it has no effect on the fingerprint.
        documents: glob patterns of the ids of documents that it is meant for; empty for all.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    fields: tuple[FieldSpec, ...] = Field(min_length=1)
    samples: tuple[SampleSpec, ...] = ()
    version: str = ""
    documents: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {len(self.fields)} fields, {len(self.samples)} samples)"

    @field_validator("fields", "samples", "documents", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _names_agree(self) -> Template:
        names: set[str] = set()
        for number, field in enumerate(self.fields):
            if field.name in names:
                where = ("fields", number, "name")
                raise _fault("field {field} is defined twice", field.name, where)
            names.add(field.name)
        for number, sample in enumerate(self.samples):
            for place in _unknown_in(sample, names):
                message = f"sample {number + 1} has a value for {{field}}, which is no field"
                raise _fault(message, place[-1], ("samples", number, *place))
        return self

    def unknown_in(self, sample: SampleSpec) -> list[tuple[str | int, ...]]:
        """Places of a sample's values whose name, the last step, is not a field here."""
        return _unknown_in(sample, {field.name for field in self.fields})

    def values_of(self, field: str) -> list[str]:
        """The values of a field in all samples."""
        return [value for sample in self.samples for value in sample.values_of(field)]

    def field(self, name: str) -> FieldSpec:
        """One field by name."""
        return next(field for field in self.fields if field.name == name)


def _unknown_in(sample: SampleSpec, names: set[str]) -> list[tuple[str | int, ...]]:
    places: list[tuple[str | int, ...]] = [("fields", name) for name in sample.fields]
    places += [("spans", name) for name in sample.spans]
    places += [
        ("records", number, name) for number, record in enumerate(sample.records) for name in record
    ]
    return [place for place in places if place[-1] not in names]


def _fault(message: str, field: str | int, place: tuple[int | str, ...]) -> PydanticCustomError:
    """A fault at ``place`` of a template; ``{field}`` in the message is the field's name."""
    return PydanticCustomError("template", message, {"field": repr(field), PLACE: place})
