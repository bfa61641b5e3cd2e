"""Joint choice: the values of a document's fields, each chosen beside those of the others.

Parties are told apart by what they name (:mod:`featpipe.extraction.parties`), dates and amounts by
where they stand: a place of a document is a value of one field. A list of freezes names the day of
each freeze and the day of its end in like places, so that either field takes all of these days for
its own; a place that several fields give goes to the one for which it is likeliest, in comparison
with the field's likeliest value. Where one place is the likeliest of two fields, the less likely of
them gives its next value elsewhere, or is doubted, and gives none if it is no longer likely enough:
a contract that names no wage on probation has that of the time behind it alone. Fields share places
unless most samples that have values of both show different ones.

Fields of one table have as many values as each other. Where most samples with several values of
one of two fields have as many of the other, the values that each gives by itself tell how many the
other should have (:class:`featpipe.extraction.scoring.parallel.ExpectedNumber`).

A field's values depend on these fields, so that their fingerprints are part of its own
(:class:`featpipe.extraction.field_facts.FieldFacts`), whichever fields are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.parties import (
    ODDS,
    choose_distinct,
    count_shared,
    doubted,
    overlap,
    rivals_of,
)
from featpipe.extraction.scoring.field_model import LEAST_CONFIDENCE
from featpipe.extraction.scoring.logistic import log_odds
from featpipe.extraction.scoring.parallel import ExpectedNumber
from featpipe.extraction.values.values import has_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.extraction.parties import Candidates, Chosen, Place
    from featpipe.extraction.template import FieldSpec, Template
    from featpipe.extraction.values.values import FieldType

#: Types whose fields may give the same places, the one that reads values of all of them last. Names
#: are none: apart, they gave announcements for development .003 of F1, and took .008 of sentences.
_ALIKE: tuple[tuple[FieldType, ...], ...] = (
    ("period", "date"),
    ("percent",),
    ("money", "number"),
    ("phone", "id"),
)

#: How many further values samples show that have as many of two fields, at least.
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Relations:
    """What the fields of a template have to do with each other."""

    rivals: Mapping[str, Mapping[str, float]]
    """Field -> other parties, each with the odds that the two are distinct."""
    apart: Mapping[str, Mapping[str, float]]
    """Field -> the fields that it shares no place with, each with the odds of that."""
    as_many: Mapping[str, tuple[str, ...]]
    """Field -> the fields that have as many values."""

    @classmethod
    def of(cls, template: Template) -> Relations:
        """By the types of the fields and the values of the samples."""
        alike = {spec.name: _types_like(template, spec) for spec in template.fields}
        apart: dict[str, dict[str, float]] = {name: {} for name in alike}
        for one, other in combinations(alike, 2):
            if not alike[one] or alike[other] != alike[one]:
                continue
            kind = alike[one][-1]
            n_same, n_distinct = count_shared(template.samples, one, other, kind)
            if n_distinct > n_same:
                apart[one][other] = apart[other][one] = (ODDS + n_distinct) / (1 + n_same)
        return cls(rivals_of(template), apart, _as_many(template))

    def companions(self) -> dict[str, tuple[str, ...]]:
        """Field -> all fields that its values may depend on: related ones, theirs, and so on."""
        found: dict[str, tuple[str, ...]] = {}
        for name in self.apart:
            seen, ahead = {name}, [name]
            while ahead:
                own = ahead.pop()
                new = {*self.rivals[own], *self.apart[own], *self.as_many[own]} - seen
                seen |= new
                ahead += sorted(new)
            found[name] = tuple(other for other in self.apart if other in seen - {name})
        return found


def _as_many(template: Template) -> dict[str, tuple[str, ...]]:
    """Field -> others of as many values, in most samples in which one of the two has several.

    A few short lists tell nothing: twice two values stand in many a sentence.
    """
    found: dict[str, tuple[str, ...]] = {spec.name: () for spec in template.fields}
    able = [f.name for f in template.fields if f.cardinality != "one" and f.level is None]
    numbers = {
        name: [len(set(sample.values_of(name))) for sample in template.samples] for name in able
    }
    for one, other in combinations(able, 2):
        pairs = zip(numbers[one], numbers[other], strict=True)
        several = [(a, b) for a, b in pairs if min(a, b) > 0 and max(a, b) > 1]
        alike = [a for a, b in several if a == b]
        if sum(alike) - len(alike) >= _SHOWN and 2 * len(alike) > len(several):
            found[one] += (other,)
            found[other] += (one,)
    return found


def _types_like(template: Template, spec: FieldSpec) -> tuple[FieldType, ...]:
    """Types like a field's, also where the values of the samples tell it; of other fields none."""
    if spec.level is not None or spec.type is not None:
        return next((types for types in _ALIKE if spec.type in types), ())
    values = template.values_of(spec.name)
    for types in _ALIKE:
        n_read = sum(any(has_shape(value, kind) for kind in types) for value in values)
        if 2 * n_read > len(values):
            return types
    return ()


def choose_values(found: Candidates, relations: Relations) -> dict[str, Chosen]:
    """The values to report of each field.

    Args:
        found: fields with their models and the values of a document.
        relations: of the template that they are fields of.

    """
    chosen = _choose(found, relations, {})
    expected = dict(_expected_numbers(found, relations, chosen))
    return _choose(found, relations, expected) if expected else chosen


def _expected_numbers(
    found: Candidates, relations: Relations, chosen: Mapping[str, Chosen]
) -> Iterator[tuple[str, ExpectedNumber]]:
    """How many values fields should have, where they or those with as many have several."""
    given = {
        name: list(own.probabilities(*found[name]).values())
        for name, own in chosen.items()
        if own.numbers and relations.as_many[name]
    }
    for name in found:
        own = given.get(name, [])
        others = [given[other] for other in relations.as_many[name] if other in given]
        if others and max(map(len, (own, *others))) > 1:
            numbers, weights = zip(*((len(p), np.mean(p)) for p in others), strict=True)
            yield name, ExpectedNumber(np.array(numbers), np.array(weights))


def _choose(
    found: Candidates, relations: Relations, expected: Mapping[str, ExpectedNumber]
) -> dict[str, Chosen]:
    """The same, where other fields tell of some how many values they should have."""
    chosen = choose_distinct(found, relations.rivals, expected)
    taken: dict[str, set[int]] = {name: set() for name in found}
    while lost := {(n, one) for n, one in _lost(found, relations, chosen) if one not in taken[n]}:
        for name, number in lost:
            taken[name].add(number)
        for name in {name for name, _ in lost}:
            model, scored = found[name]
            chosen[name].numbers = model.choose(scored, taken[name], expected.get(name))
    _part_firsts(found, relations, chosen)
    return chosen


def _part_firsts(found: Candidates, relations: Relations, chosen: Mapping[str, Chosen]) -> None:
    """Give a place that is the likeliest of two fields to one of them."""
    for one, other in combinations(found, 2):
        firsts = [(name, chosen[name].numbers[0]) for name in (one, other) if chosen[name].numbers]
        odds = relations.apart[one].get(other)
        if odds is None or len(firsts) < 2:
            continue
        if overlap(_span(found, firsts[0]), _span(found, firsts[1])):
            (name, number), (keeper, _) = sorted(firsts, key=lambda one: _confidence(found, one))
            _move(found, relations, chosen, (name, number), (keeper, odds))


def _move(
    found: Candidates,
    relations: Relations,
    chosen: Mapping[str, Chosen],
    first: Place,
    lost_to: tuple[str, float],
) -> None:
    """Report the next value of a field instead of its first, whose place is another field's."""
    (name, number), (keeper, odds), own = first, lost_to, chosen[first[0]]
    taken = [
        _span(found, (other, n)) for other in relations.apart[name] for n in chosen[other].numbers
    ]
    own.weights[number] = odds
    for second in np.flatnonzero(found[name][1].confidences >= LEAST_CONFIDENCE).tolist():
        if not any(overlap(_span(found, (name, second)), span) for span in taken):
            own.numbers[:] = [second, *(n for n in own.numbers if n not in (number, second))]
            own.remarks[second] = f"second choice: the likelier place is of {keeper}"
            return
    if len(own.numbers) > 1:
        del own.numbers[0]
    elif doubted(_confidence(found, first), odds) < LEAST_CONFIDENCE:
        own.numbers.clear()
    else:
        own.remarks[number] = f"at the place of {keeper}"


def _confidence(found: Candidates, place: Place) -> float:
    return float(found[place[0]][1].confidences[place[1]])


def _lost(found: Candidates, relations: Relations, chosen: Mapping[str, Chosen]) -> list[Place]:
    """Reported values whose places are likelier to be of another field; never a likeliest one."""
    lost = []
    for one, other in combinations(found, 2):
        if other not in relations.apart[one]:
            continue
        for places in _shared(found, chosen, one, other):
            odds = [_odds(found, chosen, place) for place in places]
            if min(odds) < np.inf:
                lost.append(places[0] if odds[0] < odds[1] else places[1])
    return lost


def _shared(
    found: Candidates, chosen: Mapping[str, Chosen], one: str, other: str
) -> list[tuple[Place, Place]]:
    """Pairs of reported values of two fields whose best mentions have a place in common."""
    return [
        ((one, first), (other, second))
        for first in chosen[one].numbers
        for second in chosen[other].numbers
        if overlap(_span(found, (one, first)), _span(found, (other, second)))
    ]


def _odds(found: Candidates, chosen: Mapping[str, Chosen], place: Place) -> float:
    """Log odds of a value less those of its field's likeliest one, which are infinite."""
    name, number = place
    first = chosen[name].numbers[0]
    own, most = log_odds(found[name][1].probabilities[[number, first]]).tolist()
    return np.inf if number == first else float(own - most)


def _span(found: Candidates, place: Place) -> tuple[int, int]:
    return found[place[0]][1].groups[place[1]].spans[0]
