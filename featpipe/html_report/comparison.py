"""What two sets of results say differently, value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.extraction.results import FieldResult
from featpipe.html_report.contents import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.html_report.results import Results

_NOTHING = FieldResult()


def compare(
    before: Results, now: Results, numbers: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, object]:
    """The changed fields of every document, as plain JSON.

    A change is another list of meanings (``value``), as in ``featpipe reprocess --diff``; another
    place or probability of the same meaning is none. What only one of the two sets has looked at
    is counted, not listed.

    Args:
        before: how it was.
        now: how it is.
        numbers: place of a document -> its number on the page.
        names: place of a document -> its readable name.

    """
    shared = sorted(before.fields.keys() & now.fields.keys())
    items = []
    for template, place in shared:
        for field, old, new in _changed(
            before.fields[template, place], now.fields[template, place]
        ):
            name = names.get(place, place)
            items.append(
                [template, field, numbers.get(place, -1), shown(name), _spell(old), _spell(new)]
            )
    return {
        "before": before.name,
        "now": now.name,
        "items": items,
        "compared": len(shared),
        "only_before": len(before.fields.keys() - now.fields.keys()),
        "only_now": len(now.fields.keys() - before.fields.keys()),
    }


def _changed(
    old: Mapping[str, FieldResult], new: Mapping[str, FieldResult]
) -> Iterator[tuple[str, FieldResult, FieldResult]]:
    for name in dict.fromkeys((*old, *new)):
        one, other = old.get(name, _NOTHING), new.get(name, _NOTHING)
        if [value.value for value in one.values] != [value.value for value in other.values]:
            yield name, one, other


def _spell(result: FieldResult) -> list[list[object]]:
    return [
        [shown(value.text), round(float(value.probability), 4), value.start, value.end]
        for value in result.values
    ]
