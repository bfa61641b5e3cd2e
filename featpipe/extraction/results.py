"""What extraction gives: values with their places, probabilities and reasons. Frozen, plain JSON.

``document.text[value.start:value.end] == value.text`` always holds.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import Template


@dataclass(frozen=True, slots=True)
class ExtractedValue:
    """One value of one field.

    Attributes:
        text: as it is written in the document.
        value: what it means: a plain decimal, an ISO date, a folded name; compare these.
        unit: currency or unit, "" if none is written.
        bound: ``<=`` or ``>=`` (不超过, 不低于), else "".
        start, end: place in the document's text, half-open.
        page: its number, None without pages.
        probability: calibrated on the samples left out one by one.
        parts: what its score is made of, by name.
        nearest: the sample document whose context is most like this one's.
        places: further places of the same value.
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

    @classmethod
    def from_dict(cls, content: dict[str, object]) -> ExtractedValue:
        """Back from plain JSON types."""
        places = tuple((int(a), int(b)) for a, b in content.pop("places", ()))  # type: ignore[attr-defined]
        return cls(**content, places=places)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class FieldResult:
    """All values of a field, the likeliest first; empty where the document has none."""

    values: tuple[ExtractedValue, ...] = ()

    @property
    def value(self) -> str | None:
        """Text of the likeliest value, or None."""
        return self.values[0].text if self.values else None

    @property
    def probability(self) -> float:
        """Of the likeliest value, 0 without one."""
        return self.values[0].probability if self.values else 0.0


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a result comes from, so that it can be made again."""

    template: str
    fingerprint: str
    version: str
    space: str
    cache: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """One document under one template."""

    document: str
    fields: Mapping[str, FieldResult]
    records: tuple[Mapping[str, ExtractedValue], ...]
    provenance: Provenance

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types: one line of a JSONL file."""
        return {
            "document": self.document,
            "template": self.provenance.template,
            "fields": {
                name: [_plain(value) for value in result.values]
                for name, result in self.fields.items()
            },
            "records": [
                {name: value.text for name, value in record.items()} for record in self.records
            ],
            "provenance": asdict(self.provenance),
        }

    def as_json(self) -> str:
        """One line."""
        return json.dumps(self.as_dict(), ensure_ascii=False)


def _plain(value: ExtractedValue) -> dict[str, object]:
    return asdict(value) | {"places": [list(place) for place in value.places]}


plain_value = _plain

_COLUMNS = (
    "document", "template", "field", "text", "value", "unit", "bound", "start", "end", "page",
    "probability", "nearest", "fingerprint",
)  # fmt: skip


def table_rows(extractions: Iterable[Extraction]) -> Iterable[dict[str, object]]:
    """One flat row per value: what CSV and Parquet hold."""
    for extraction in extractions:
        for name, result in extraction.fields.items():
            for value in result.values:
                yield {
                    "document": extraction.document,
                    "template": extraction.provenance.template,
                    "field": name,
                    "text": value.text,
                    "value": value.value,
                    "unit": value.unit,
                    "bound": value.bound,
                    "start": value.start,
                    "end": value.end,
                    "page": value.page,
                    "probability": round(value.probability, 6),
                    "nearest": value.nearest,
                    "fingerprint": extraction.provenance.fingerprint,
                }


def write_extractions(extractions: Iterable[Extraction], path: Path) -> int:
    """Write by suffix: ``.jsonl``, ``.csv`` or ``.parquet``; returns the number of documents.

    Raises:
        MissingExtra: Parquet without pyarrow.

    """
    listed = list(extractions)
    if path.suffix == ".csv":
        out = io.StringIO()
        writer = csv.DictWriter(out, _COLUMNS)
        writer.writeheader()
        writer.writerows(table_rows(listed))
        # The mark lets spreadsheet programs know that this is UTF-8.
        path.write_text("\ufeff" + out.getvalue(), "utf-8")
    elif path.suffix == ".parquet":
        _write_parquet(listed, path)
    else:
        path.write_text("".join(e.as_json() + "\n" for e in listed), "utf-8")
    return len(listed)


def _write_parquet(extractions: list[Extraction], path: Path) -> None:
    from featpipe.errors import MissingExtra

    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra(
            f"{path}: Parquet needs pyarrow", hint="pip install 'featpipe[arrow]'"
        ) from error
    rows = list(table_rows(extractions))
    parquet.write_table(pa.table({name: [row[name] for row in rows] for name in _COLUMNS}), path)


# Records: which values of a document belong together, by row, sentence and nearness.


#: Farther apart than this many characters, two values are not of one record.
_FARTHEST = 400


def record_fields(template: Template) -> list[str]:
    """Fields that come in records: declared so, or seen in the records of samples."""
    declared = [field.name for field in template.fields if field.cardinality == "records"]
    seen = {name for sample in template.samples for record in sample.records for name in record}
    return declared or [field.name for field in template.fields if field.name in seen]


def make_records(
    page: Page, fields: Mapping[str, FieldResult], names: Sequence[str]
) -> tuple[Mapping[str, ExtractedValue], ...]:
    """One record per value of the field that has most of them, with what stands nearest to it.

    In a table that is the same row; in prose the same sentence, then the nearest place. A value
    may serve several records: one category often stands for many rows.
    """
    present = [name for name in names if name in fields and fields[name].values]
    if not present:
        return ()
    key = max(present, key=lambda name: len(fields[name].values))
    records = []
    for value in sorted(fields[key].values, key=lambda value: value.start):
        record = {key: value}
        for name in present:
            if name != key:
                nearest = _nearest(page, value, fields[name].values)
                if nearest is not None:
                    record[name] = nearest
        records.append({name: record[name] for name in names if name in record})
    return tuple(records)


def _nearest(
    page: Page, anchor: ExtractedValue, values: Sequence[ExtractedValue]
) -> ExtractedValue | None:
    if len(values) == 1:
        return values[0]
    best, best_distance = None, float(_FARTHEST)
    for value in values:
        for start, end in ((value.start, value.end), *value.places):
            distance = _distance(page, anchor, start, end)
            if distance < best_distance:
                best, best_distance = value, distance
    return best


def _distance(page: Page, anchor: ExtractedValue, start: int, end: int) -> float:
    """Characters between, much less on the same line or in the same sentence."""
    low, high = min(anchor.end, end), max(anchor.start, start)
    gap = float(max(high - low, 0))
    if "\n" not in page.text[min(low, high) : max(low, high)]:
        return gap * 0.1
    return gap * (0.5 if page.sentence_of(start) == page.sentence_of(anchor.start) else 1.0)
