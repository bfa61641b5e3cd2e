"""Records in an evaluation: values of a document that belong together, one record at a time.

Found records are matched with annotated ones, each with one at most, those with most values in
common first; a value is right where its record's match has it under the same field. Only documents
with several records count: of one record, grouping is no question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.extraction.records import make_records
from featpipe.extraction.results import ExtractedValue, FieldResult, meaning_of
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.ranking import Group
    from featpipe.extraction.values.values import FieldType, Value

    #: Field -> value, of one record.
    Record = Mapping[str, Value]


@dataclass
class Grouping:
    """Counts of values in records; ``grouped`` ones are of records made of annotated values."""

    n_gold: int = 0
    n_given: int = 0
    n_right: int = 0
    n_grouped: int = 0
    n_grouped_right: int = 0

    def add(self, other: Grouping) -> None:
        """Take another's counts in."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    @property
    def f1(self) -> float:
        """Of the values that extraction found, record by record."""
        return 2 * self.n_right / max(self.n_gold + self.n_given, 1)

    @property
    def grouping_f1(self) -> float:
        """Of records made of the annotated values: of grouping alone."""
        return 2 * self.n_grouped_right / max(self.n_gold + self.n_grouped, 1)


def value_of_group(features: PageFeatures, group: Group) -> ExtractedValue:
    """As extraction reports it."""
    start, end = group.spans[0]
    text = features.page.text[start:end]
    value = group.value
    return ExtractedValue(
        text, value.key, value.unit, value.bound, start, end, None, 1.0, places=group.spans[1:]
    )


def annotated(features: PageFeatures, given: Sequence[str], kind: FieldType) -> FieldResult:
    """Annotated values as if extraction had found each where it stands."""
    found = []
    for text in given:
        places = locate_value(features, text, kind)
        if places:
            (start, end), *others = places
            key = read_value(text, kind).key
            found.append(
                ExtractedValue(text, key, "", "", start, end, None, 1.0, places=tuple(others))
            )
    return FieldResult(tuple(found))


def judge_records(
    features: PageFeatures,
    row: Mapping,
    found: Mapping[str, FieldResult],
    kinds: Mapping[str, FieldType],
) -> Grouping:
    """Count the records of one document; nothing if it has one or none."""
    gold = [
        {name: read_value(value, kinds[name]) for name, value in record.items()}
        for record in row.get("records") or ()
        if all(name in kinds for name in record)
    ]
    if len(gold) < 2:
        return Grouping()
    exact = {n: annotated(features, row["fields"].get(n, ()), kind) for n, kind in kinds.items()}
    given, grouped = (
        [{n: meaning_of(value, kinds[n]) for n, value in record.items()} for record in records]
        for records in (
            make_records(features.page, results, list(kinds)) for results in (found, exact)
        )
    )
    return Grouping(
        sum(map(len, gold)),
        sum(map(len, given)),
        count_right(gold, given),
        sum(map(len, grouped)),
        count_right(gold, grouped),
    )


def count_right(gold: Sequence[Record], given: Sequence[Record]) -> int:
    """Values that matched records have in common."""
    pairs = sorted(
        ((n_common(one, other), i, j)
         for i, one in enumerate(gold) for j, other in enumerate(given)),
        key=lambda pair: (-pair[0], pair[1:]),
    )  # fmt: skip
    n_right, taken, used = 0, set(), set()
    for n, i, j in pairs:
        if i not in taken and j not in used:
            taken.add(i)
            used.add(j)
            n_right += n
    return n_right


def n_common(one: Record, other: Record) -> int:
    """Fields of which both records have a value that means the same."""
    return sum(name in other and value.means(other[name]) for name, value in one.items())
