"""Records: values of several fields that belong together, such as those of one table row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.extraction.results import ExtractedValue, FieldResult
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import Template

#: Two values of one record are nearer to each other than so many characters.
_FARTHEST = 400
#: Share of the fields of several values that must have one more for one more record. Chosen on the
#: halves for development of announcements, event sentences and freezes.
_SHARE = 0.33


def record_fields(template: Template) -> list[str]:
    """Names of the fields declared as records, or else of those in the records of samples."""
    declared = [field.name for field in template.fields if field.cardinality == "records"]
    seen = {name for sample in template.samples for record in sample.records for name in record}
    return declared or [field.name for field in template.fields if field.name in seen]


def make_records(
    page: Page, fields: Mapping[str, FieldResult], names: Sequence[str]
) -> tuple[Mapping[str, ExtractedValue], ...]:
    """One record per value of a field of many, with the matching value of each other field.

    How many there are, see :func:`_anchors`. Fields with as many values match in the order of the
    document: contracts, lots and amounts are listed alike. Of other fields the nearest value
    matches: the same table row is nearer than the same sentence, and that nearer than the rest. A
    value may be in several records, such as a category above many rows; one that is nearest to none
    is in no record.
    """
    present = [name for name in names if name in fields and fields[name].values]
    if not present:
        return ()
    anchors = _anchors({name: fields[name].values for name in present})
    matches = {name: _matches(page, anchors, fields[name]) for name in present}
    return tuple(
        {name: match for name in present if (match := matches[name][number]) is not None}
        for number in range(len(anchors))
    )


def _anchors(fields: Mapping[str, Sequence[ExtractedValue]]) -> list[ExtractedValue]:
    """One value for each record, in the order of the document.

    There is one more record as long as enough fields of several values have one more, each counted
    by how likely it is: what a single field has beside the others may be wrong. They are values of
    the field that has the likeliest ones.
    """
    likely = {
        name: sorted(values, key=lambda value: -value.probability)
        for name, values in fields.items()
    }
    several = [values for values in likely.values() if len(values) > 1]
    whole = sum(sum(one.probability for one in values) / len(values) for values in several)
    n = 1
    while any(len(values) > n for values in several):
        if sum(one.probability for values in several for one in values[n : n + 1]) < _SHARE * whole:
            break
        n += 1
    able = [values[:n] for values in likely.values() if len(values) >= n]
    best = max(able, key=lambda values: sum(one.probability for one in values))
    return _in_order(best)


def _in_order(values: Sequence[ExtractedValue]) -> list[ExtractedValue]:
    return sorted(values, key=lambda value: value.start)


def _matches(
    page: Page, anchors: Sequence[ExtractedValue], result: FieldResult
) -> list[ExtractedValue | None]:
    """The value of a field that belongs to each anchor, None where all are too far away."""
    if len(result.values) == len(anchors):
        return list(_in_order(result.values))
    return [_nearest(page, anchor, result.values) for anchor in anchors]


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
    """Characters in between, weighted down on the same line and in the same sentence."""
    low, high = min(anchor.end, end), max(anchor.start, start)
    distance = float(max(high - low, 0))
    if "\n" not in page.text[min(low, high) : max(low, high)]:
        return distance * 0.1
    return distance * (0.5 if page.sentence_of(start) == page.sentence_of(anchor.start) else 1.0)
