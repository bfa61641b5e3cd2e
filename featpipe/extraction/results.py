"""Results of extraction: values with their places, probabilities and reasons. Frozen, plain JSON.

Guarantee: ``document.text[value.start:value.end] == value.text``.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from featpipe.extraction.values.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from featpipe.extraction.values.values import FieldType


@dataclass(frozen=True, slots=True, repr=False)
class ExtractedValue:
    """One value of one field in one document.

    Attributes:
        text: as it is written in the document.
        value: canonical spelling of its meaning: a plain decimal, an ISO date, a folded name;
            compare these.
        unit: currency or unit, "" if none is written.
        bound: ``<=`` or ``>=`` (不超过, 不低于), else "".
        start, end: place in the document's text, in characters, half-open.
        page: number of the printed page, None without pages.
        probability: that the value is right, by what the samples and many other templates show.
        parts: terms of its score, by name; the largest in size.
        nearest: the sample document, other than its own, whose context is most similar.
        places: further places (start, end) of the same value.
        remark: what contradicts it: another party of the document has the same value, or had it
            first; or the calendar has no such day (2023-02-30); "" for nothing.

    """

    text: str
    value: str
    unit: str
    bound: str
    start: int
    end: int
    page: int | None
    probability: float
    parts: Mapping[str, float] = field(default_factory=dict)
    nearest: str = ""
    places: tuple[tuple[int, int], ...] = ()
    remark: str = ""

    def __str__(self) -> str:
        remark = f" ({self.remark})" if self.remark else ""
        return f"{self.text!r} [{self.start}:{self.end}] p={self.probability:.2f}{remark}"

    def __repr__(self) -> str:
        return f"ExtractedValue({self})"

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ExtractedValue:  # Any: values of JSON
        """The value that :meth:`as_dict` gave."""
        places = tuple((int(a), int(b)) for a, b in content.get("places", ()))
        return cls(**{**content, "places": places})

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self) | {"places": [list(place) for place in self.places]}


def meaning_of(value: ExtractedValue, kind: FieldType) -> Value:
    """What a reported value means under its field's type, to be compared with other values."""
    return Value(kind, value.value, value.unit, value.bound)


@dataclass(frozen=True, slots=True, repr=False)
class FieldResult:
    """All values of a field in one document.

    Attributes:
        values: the likeliest first; empty where the document has none.

    """

    values: tuple[ExtractedValue, ...] = ()

    def __repr__(self) -> str:
        return f"FieldResult({', '.join(map(str, self.values))})"

    @property
    def value(self) -> str | None:
        """Text of the likeliest value, or None."""
        return self.values[0].text if self.values else None

    @property
    def probability(self) -> float:
        """Probability of the likeliest value, 0 without one."""
        return self.values[0].probability if self.values else 0.0


#: A probability that moved by this much is a change that people are shown.
_NOTABLE = 0.05
Change = Literal["values", "probability", ""]


def change_of(old: FieldResult, new: FieldResult) -> Change:
    """What changed of a field: its list of values, or only how probable one of them is.

    Values are compared by all of their meaning: 3万美元 is another value than 3万元.
    """
    meant, means = (
        [(value.value, value.unit, value.bound) for value in result.values] for result in (old, new)
    )
    if meant != means:
        return "values"
    pairs = zip(old.values, new.values, strict=True)
    shift = max((abs(b.probability - a.probability) for a, b in pairs), default=0.0)
    # Rounded: a shift of exactly the limit counts.
    return "probability" if round(shift, 6) >= _NOTABLE else ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The inputs of a result: the same inputs give the same result.

    Attributes:
        template: its name.
        fingerprint: of the template, its samples and their inputs; 32 hex digits.
        version: of the template, as its authors wrote it.
        space: name of the vectors and entities that were used.
        cache: path of the HDF5 file.
        run: id of the run that found the values, "" outside a run.

    """

    template: str
    fingerprint: str
    version: str
    space: str
    cache: str
    run: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Extraction:
    """The fields of one document under one template.

    Attributes:
        document: its id in the cache, or the name it was given by.
        fields: results by name, for every field of the template.
        records: values that belong together, such as those of one table row; each by field name.
        provenance: template, vectors and cache.

    """

    document: str
    fields: Mapping[str, FieldResult]
    records: tuple[Mapping[str, ExtractedValue], ...]
    provenance: Provenance

    def __repr__(self) -> str:
        n_found = sum(bool(result.values) for result in self.fields.values())
        found = f"{n_found} of {len(self.fields)} fields"
        return f"Extraction({self.document!r}, {self.provenance.template!r}, {found})"

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types: one line of a JSONL file."""
        return {
            "document": self.document,
            "template": self.provenance.template,
            "fields": {
                name: [value.as_dict() for value in result.values]
                for name, result in self.fields.items()
            },
            "records": [
                {name: value.text for name, value in record.items()} for record in self.records
            ],
            "provenance": asdict(self.provenance),
        }

    def as_json(self) -> str:
        """One line, of characters that UTF-8 can hold."""
        return json_line(self.as_dict())


def json_line(content: object) -> str:
    """JSON without line breaks, of characters that UTF-8 can hold."""
    text = json.dumps(content, ensure_ascii=False)
    return _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


#: Half of a surrogate pair: no character of UTF-8, and as an escape good JSON.
_LONE = re.compile("[\ud800-\udfff]")
#: Of a row per value, as in CSV and Parquet.
COLUMNS = (
    "document", "template", "field", "text", "value", "unit", "bound", "start", "end", "page",
    "probability", "nearest", "remark", "fingerprint",
)  # fmt: skip


def table_rows(extractions: Iterable[Extraction]) -> Iterable[dict[str, object]]:
    """One flat row per value, as in CSV and Parquet."""
    for extraction in extractions:
        for name, result in extraction.fields.items():
            for value in result.values:
                row = _table_row(extraction, name, value)
                yield {
                    name: _LONE.sub("\ufffd", cell) if isinstance(cell, str) else cell
                    for name, cell in row.items()
                }


def _table_row(extraction: Extraction, field: str, value: ExtractedValue) -> dict[str, object]:
    return {
        "document": extraction.document,
        "template": extraction.provenance.template,
        "field": field,
        "text": value.text,
        "value": value.value,
        "unit": value.unit,
        "bound": value.bound,
        "start": value.start,
        "end": value.end,
        "page": value.page,
        "probability": round(value.probability, 6),
        "nearest": value.nearest,
        "remark": value.remark,
        "fingerprint": extraction.provenance.fingerprint,
    }
