"""Joint choice: the values of a document's fields, each chosen beside those of the others.

Parties are told apart by what they name (:mod:`featpipe.extraction.parties`), dates and amounts by
where they stand: a place of a document is a value of one field. A list of freezes names the day of
each freeze and the day of its end in like places, so that either field takes all of these days for
its own; a place that several fields give goes to the one for which it is likeliest, in comparison
with the field's likeliest value, which is never taken away. Fields share places unless most samples
that have values of both show different ones.

A field's values depend on these fields, so that their fingerprints are part of its own
(:class:`featpipe.extraction.fitted.FieldFacts`), whichever fields are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.parties import choose_distinct, count_shared, rivals_of
from featpipe.extraction.values.values import is_readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.extraction.parties import Candidates, Chosen
    from featpipe.extraction.template import FieldSpec, Template
    from featpipe.extraction.values.values import FieldType

#: Types whose fields may give the same places, the one that reads values of all of them last.
_ALIKE: tuple[tuple[FieldType, ...], ...] = (
    ("period", "date"),
    ("percent",),
    ("money", "number"),
)


@dataclass(frozen=True, slots=True)
class Relations:
    """What the fields of a template have to do with each other."""

    rivals: Mapping[str, Mapping[str, float]]
    """Field -> other parties, each with the odds that the two are distinct."""
    apart: Mapping[str, tuple[str, ...]]
    """Field -> the fields that it shares no place with."""

    @classmethod
    def of(cls, template: Template) -> Relations:
        """By the types of the fields and the values of the samples."""
        alike = {spec.name: _types_like(template, spec) for spec in template.fields}
        apart: dict[str, tuple[str, ...]] = dict.fromkeys(alike, ())
        for one, other in combinations(alike, 2):
            if not alike[one] or alike[other] != alike[one]:
                continue
            kind = alike[one][-1]
            n_same, n_distinct = count_shared(template.samples, one, other, kind)
            if n_distinct > n_same:
                apart[one] += (other,)
                apart[other] += (one,)
        return cls(rivals_of(template), apart)

    def companions(self) -> dict[str, tuple[str, ...]]:
        """Field -> all fields that its values may depend on: related ones, theirs, and so on."""
        found: dict[str, tuple[str, ...]] = {}
        for name in self.apart:
            seen, ahead = {name}, [name]
            while ahead:
                own = ahead.pop()
                new = {*self.rivals[own], *self.apart[own]} - seen
                seen |= new
                ahead += sorted(new)
            found[name] = tuple(other for other in self.apart if other in seen - {name})
        return found


def _types_like(template: Template, spec: FieldSpec) -> tuple[FieldType, ...]:
    """Types like a field's, also where the values of the samples tell it; of other fields none."""
    if spec.level is not None or spec.type is not None:
        return next((types for types in _ALIKE if spec.type in types), ())
    values = [value for sample in template.samples for value in sample.values_of(spec.name)]
    for types in _ALIKE:
        n_read = sum(any(is_readable(value, kind) for kind in types) for value in values)
        if 2 * n_read > len(values):
            return types
    return ()


def choose_values(found: Candidates, relations: Relations) -> dict[str, Chosen]:
    """The values to report of each field.

    Args:
        found: fields with their models and the values of a document.
        relations: of the template that they are fields of.

    """
    chosen = choose_distinct(found, relations.rivals)
    taken: dict[str, set[int]] = {name: set() for name in found}
    for one, other in combinations(found, 2):
        if other not in relations.apart[one]:
            continue
        for number in chosen[one].numbers:
            for its in chosen[other].numbers:
                if not _overlap(found, (one, number), (other, its)):
                    continue
                odds = _odds(found, chosen, one, number), _odds(found, chosen, other, its)
                if min(odds) < np.inf:
                    loser, place = (one, number) if odds[0] < odds[1] else (other, its)
                    taken[loser].add(place)
    for name, numbers in taken.items():
        if numbers:
            model, scored = found[name]
            chosen[name].numbers = model.choose(scored, taken=numbers)
    return chosen


def _odds(found: Candidates, chosen: Mapping[str, Chosen], name: str, number: int) -> float:
    """Log odds of a value less those of its field's likeliest one, which are infinite."""
    first = chosen[name].numbers[0]
    p = np.clip(found[name][1].probabilities[[number, first]], 1e-4, 1 - 1e-4)
    own, most = np.log(p / (1 - p)).tolist()
    return np.inf if number == first else float(own - most)


def _overlap(found: Candidates, one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether the best mentions of two values have a place in common."""
    (start, end), (its_start, its_end) = (
        found[name][1].groups[number].spans[0] for name, number in (one, other)
    )
    return start < its_end and its_start < end
