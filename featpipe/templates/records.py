"""Records: which values of a document belong together, by row, sentence and nearness."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.templates.extraction import ExtractedValue, FieldResult
    from featpipe.templates.model import Template
    from featpipe.templates.view import View

#: Farther apart than this many characters, two values are not of one record.
_FARTHEST = 400


def record_fields(template: Template) -> list[str]:
    """Fields that come in records: declared so, or seen in the records of samples."""
    declared = [field.name for field in template.fields if field.cardinality == "records"]
    seen = {name for sample in template.samples for record in sample.records for name in record}
    return declared or [field.name for field in template.fields if field.name in seen]


def make_records(
    view: View, fields: Mapping[str, FieldResult], names: Sequence[str]
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
                nearest = _nearest(view, value, fields[name].values)
                if nearest is not None:
                    record[name] = nearest
        records.append({name: record[name] for name in names if name in record})
    return tuple(records)


def _nearest(
    view: View, anchor: ExtractedValue, values: Sequence[ExtractedValue]
) -> ExtractedValue | None:
    if len(values) == 1:
        return values[0]
    best, best_distance = None, float(_FARTHEST)
    for value in values:
        for start, end in ((value.start, value.end), *value.places):
            distance = _distance(view, anchor, start, end)
            if distance < best_distance:
                best, best_distance = value, distance
    return best


def _distance(view: View, anchor: ExtractedValue, start: int, end: int) -> float:
    """Characters between, much less on the same line or in the same sentence."""
    low, high = min(anchor.end, end), max(anchor.start, start)
    gap = float(max(high - low, 0))
    if "\n" not in view.text[min(low, high) : max(low, high)]:
        return gap * 0.1
    return gap * (0.5 if view.sentence_of(start) == view.sentence_of(anchor.start) else 1.0)
