"""Records: values of several fields that belong together, such as those of one table row."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby, product
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.values.text import line_starts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.extraction.results import ExtractedValue, FieldResult
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import Template

    #: Where a value is mentioned, and its number.
    _Mention = tuple["_Place", int]

#: Two values of one record are nearer to each other than so many characters.
_FARTHEST = 400
#: Anchors of one line that are matched by their order, at least; rows between cells of one record
#: in a table that has a column for each.
_LEAST_LISTED, _MOST_ROWS = 2, 12
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
    document: contracts, lots and amounts are listed alike, and so do the values of one line, as
    often as they are named there. Where each column of a table is a record, its cells match; what
    stands in one line with another value of the record, as what a holder has, matches that. Of
    other fields the nearest value matches: the same table row is nearer than the same sentence, and
    that nearer than the rest. A value may be in several records, such as a category above many
    rows; one that is nearest to none is in no record.
    """
    present = [name for name in names if name in fields and fields[name].values]
    if not present:
        return ()
    lines = _Lines.of(page.text)
    mentions = {name: lines.mentions(fields[name].values) for name in present}
    anchors = _anchors(lines, {name: fields[name].values for name in present}, mentions)
    matches = {
        name: _matches(page, lines, anchors, fields[name], mentions[name]) for name in present
    }
    for name in present:
        _match_by_others(lines, anchors, matches, name, (fields[name].values, mentions[name]))
    return tuple(
        {name: match for name in present if (match := matches[name][number]) is not None}
        for number in range(len(anchors))
    )


def _anchors(
    lines: _Lines,
    fields: Mapping[str, Sequence[ExtractedValue]],
    mentions: Mapping[str, Sequence[_Mention]],
) -> list[ExtractedValue]:
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
    both = [(own, mentions[name]) for name, own in likely.items() if len(own) > 1]
    n = 1
    while any(len(values) > n for values in several):
        further = [lines.place(values[n].start) for values in several if len(values) > n]
        if sum(_has_more(*one, n, further) for one in both) < _SHARE * whole:
            break
        n += 1
    able = [values[:n] for values in likely.values() if len(values) >= n]
    best = max(able, key=lambda values: sum(one.probability for one in values))
    return _in_order(best)


def _has_more(
    values: Sequence[ExtractedValue],
    mentions: Sequence[_Mention],
    n: int,
    further: Sequence[_Place],
) -> float:
    """How far a field, its values likeliest first, has more than n values, or one of them again.

    That is where the others' further ones stand.
    """
    if len(values) > n:
        return values[n].probability
    is_again = len(mentions) > n and any(
        own.line == other.line or own.is_in_column_of(other)
        for (own, _), other in product(mentions, further)
    )
    return values[-1].probability * is_again


def _in_order(values: Sequence[ExtractedValue]) -> list[ExtractedValue]:
    return sorted(values, key=lambda value: value.start)


class _Place(NamedTuple):
    """The number of a line, that of a cell in it, and how many cells it has."""

    line: int
    cell: int
    n_cells: int

    def is_in_column_of(self, other: _Place) -> bool:
        """Whether two cells stand one below the other in a table."""
        is_same = self[1:] == other[1:] and self.n_cells > 1
        return is_same and abs(self.line - other.line) <= _MOST_ROWS


@dataclass(frozen=True, slots=True)
class _Lines:
    """Where the lines of a text begin, and its cells."""

    text: str
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> _Lines:
        return cls(text, tuple(line_starts(text)))

    def line(self, at: int) -> int:
        """Number of the line that a place is in."""
        return bisect_right(self.starts, at) - 1

    def place(self, at: int) -> _Place:
        """The cell of a line that a character stands in."""
        number = self.line(at)
        start = self.starts[number]
        end = self.text.find("\n", at)
        n = self.text.count("\t", start, len(self.text) if end < 0 else end)
        return _Place(number, self.text.count("\t", start, at), n + 1)

    def mentions(self, values: Sequence[ExtractedValue]) -> list[_Mention]:
        """Where values are mentioned, in the order of the document, each with its number."""
        starts = sorted(
            (at, number) for number, value in enumerate(values) for at in _starts_of(value)
        )
        return [(self.place(at), number) for at, number in starts]


def _starts_of(value: ExtractedValue) -> Iterator[int]:
    """Where each of its mentions begins."""
    yield value.start
    yield from (start for start, _ in value.places)


def _matches(
    page: Page,
    lines: _Lines,
    anchors: Sequence[ExtractedValue],
    result: FieldResult,
    mentions: Sequence[_Mention],
) -> list[ExtractedValue | None]:
    """The value of a field that belongs to each anchor, None where all are too far away."""
    if len(result.values) == len(anchors):
        return list(_in_order(result.values))
    found = [_nearest(page, anchor, result.values) for anchor in anchors]
    if len(result.values) > 1:
        for number, value in _listed(lines, anchors, mentions):
            found[number] = result.values[value]
    return found


def _listed(
    lines: _Lines, anchors: Sequence[ExtractedValue], mentions: Sequence[_Mention]
) -> Iterator[tuple[int, int]]:
    """Numbers of anchors of a line that has several, and of their values: as many, or in columns.

    Where each column of a table is a record, the cells of a field stand in another line than those
    of the anchors.
    """
    by_line: dict[int, list[int]] = {}
    for place, value in mentions:
        by_line.setdefault(place.line, []).append(value)
    for line, group in groupby(range(len(anchors)), key=lambda n: lines.line(anchors[n].start)):
        numbers = list(group)
        if len(numbers) < _LEAST_LISTED:
            continue
        if len(by_line.get(line, ())) == len(numbers):
            yield from zip(numbers, by_line[line], strict=True)
            continue
        for number in numbers:
            own = lines.place(anchors[number].start)
            near = [one for one in mentions if one[0].is_in_column_of(own)]
            if near:
                yield number, min(near, key=lambda one: abs(one[0].line - line))[1]


def _match_by_others(
    lines: _Lines,
    anchors: Sequence[ExtractedValue],
    matches: Mapping[str, list[ExtractedValue | None]],
    name: str,
    field: tuple[Sequence[ExtractedValue], Sequence[_Mention]],
) -> None:
    """Values beside another value of the record, as what a holder has stands in the holder's line.

    Where one of them is in the line of the anchor itself, that stays.
    """
    values, mentions = field
    if len(values) in {1, len(anchors)}:
        return
    of_lines: dict[int, set[int]] = {}
    for place, number in mentions:
        of_lines.setdefault(place.line, set()).add(number)
    others = [own for other, own in matches.items() if other != name and _differ(own)]
    for number, anchor in enumerate(anchors):
        if lines.line(anchor.start) in of_lines:
            continue
        beside = [value for own in others if (value := own[number]) is not None]
        near = {
            one
            for value in beside
            for at in _starts_of(value)
            for one in of_lines.get(lines.line(at), ())
        }
        if len(near) == 1:
            matches[name][number] = values[near.pop()]


def _differ(own: Sequence[ExtractedValue | None]) -> bool:
    """Whether records have different values of a field."""
    return len({value.start for value in own if value is not None}) > 1


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
    between = page.text[min(low, high) : max(low, high)]
    if "\n" not in between:
        # The last cell of a row is no nearer to the next row than to its own.
        return distance * (0.01 if "\t" in between else 0.1)
    return distance * (0.5 if page.sentence_of(start) == page.sentence_of(anchor.start) else 1.0)
