"""Parties: fields that name different parties of one document, such as 甲方 and 乙方.

Two fields of organisations, or of persons, are rivals unless a sample has one value for both. Where
the likeliest value of two rivals is the same, the pair of distinct values is preferred if one of
the fields has another value that is likely enough; otherwise the less likely of the two becomes
less likely still. Either way both values carry a remark. The likeliest value of a rival is none of
a field's further values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from featpipe.extraction.scoring.locate import are_organisations
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.extraction.results import ExtractedValue
    from featpipe.extraction.scoring.field_model import FieldModel, Scored
    from featpipe.extraction.scoring.parallel import ExpectedNumber
    from featpipe.extraction.template import FieldSpec, SampleSpec, Template
    from featpipe.extraction.values.values import FieldType

    #: Field -> its model and the values of a document.
    Candidates = Mapping[str, tuple[FieldModel, Scored]]

_KINDS: tuple[FieldType, ...] = ("organisation", "person")
#: Odds that two rivals are distinct parties, before any sample has shown it; each sample adds one.
ODDS = 3.0
#: Least probability of a second choice.
_LEAST_SECOND = 0.23


def rivals_of(template: Template) -> dict[str, dict[str, float]]:
    """Field -> its rivals, each with the odds that the two are distinct parties."""
    kinds = {spec.name: _party_kind(template, spec) for spec in template.fields}
    found: dict[str, dict[str, float]] = {name: {} for name in kinds}
    for one, kind in kinds.items():
        for other, its_kind in kinds.items():
            if kind and one != other and its_kind == kind:
                n_same, n_distinct = count_shared(template.samples, one, other, kind)
                if not n_same:
                    found[one][other] = ODDS + n_distinct
    return found


def _party_kind(template: Template, spec: FieldSpec) -> FieldType | None:
    """Organisation or person, also where the values of the samples tell it; None for others."""
    if spec.level is not None or spec.cardinality == "records":
        return None
    if spec.type is None:
        return "organisation" if are_organisations(template.values_of(spec.name)) else None
    return spec.type if spec.type in _KINDS else None


def count_shared(
    samples: Sequence[SampleSpec], one: str, other: str, kind: FieldType
) -> tuple[int, int]:
    """Samples in which both fields have a value: the same one, and distinct ones."""
    n_same = n_distinct = 0
    for sample in samples:
        first, second = (
            {read_value(value, kind).key for value in sample.values_of(name)}
            for name in (one, other)
        )
        if first and second:
            n_same += bool(first & second)
            n_distinct += not first & second
    return n_same, n_distinct


@dataclass(slots=True)
class Chosen:
    """The values of one field, by number in its scored values."""

    numbers: list[int]
    remarks: dict[int, str] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    """Odds against a value, as another field has it too; also of one that is not reported."""
    expected: ExpectedNumber | None = None
    """How many there should be, where other fields tell."""

    def probabilities(self, model: FieldModel, scored: Scored) -> dict[int, float]:
        """How likely each value is, by number, as it is reported: doubts included."""
        return {
            number: doubted(p, self.weights.get(number, 1.0))
            for number, p in model.probabilities(scored, self.numbers, self.expected).items()
        }

    def doubt(self, number: int, value: ExtractedValue) -> ExtractedValue:
        """A value that is not reported, with the doubts about it."""
        odds = self.weights.get(number, 1.0)
        return replace(value, probability=round(doubted(value.probability, odds), 6))


def choose_distinct(
    found: Candidates,
    rivals: Mapping[str, Mapping[str, float]],
    expected: Mapping[str, ExpectedNumber] | None = None,
) -> dict[str, Chosen]:
    """The values to report of each field, distinct between rivals where that is likely.

    Args:
        found: fields with their models and the values of a document.
        rivals: of each field, with the odds that the two are distinct parties.
        expected: how many values a field should have, where other fields tell.

    """
    numbers = expected or {}
    chosen = {
        name: Chosen(model.choose(scored, expected=numbers.get(name)), expected=numbers.get(name))
        for name, (model, scored) in found.items()
    }
    _drop_firsts_of_rivals(found, chosen, rivals)
    pairs = [
        (one, other, odds)
        for at, one in enumerate(found)
        for other, odds in rivals[one].items()
        if other in list(found)[at + 1 :]
    ]
    for one, other, odds in pairs:
        for first, second in _same(found, chosen, one, other):
            _part(found, chosen, ((one, first), (other, second)), odds)
    return chosen


def _drop_firsts_of_rivals(
    found: Candidates, chosen: Mapping[str, Chosen], rivals: Mapping[str, Mapping[str, float]]
) -> None:
    """Take from each field's further values those that are the likeliest one of a rival."""
    firsts = {
        name: _key(found, (name, own.numbers[0])) for name, own in chosen.items() if own.numbers
    }
    for name, own in chosen.items():
        taken = {firsts[other] for other in rivals[name] if other in firsts}
        own.numbers[1:] = [n for n in own.numbers[1:] if _key(found, (name, n)) not in taken]


#: A field and the number of one of its values.
Place = tuple[str, int]


def _same(
    found: Candidates, chosen: Mapping[str, Chosen], one: str, other: str
) -> list[tuple[int, int]]:
    """Pairs of reported values of two fields that are the same."""
    return [
        (first, second)
        for first in chosen[one].numbers
        for second in chosen[other].numbers
        if _key(found, (one, first)) == _key(found, (other, second))
    ]


def _key(found: Candidates, place: Place) -> str:
    return found[place[0]][1].groups[place[1]].value.key


def _probability(found: Candidates, place: Place) -> float:
    return float(found[place[0]][1].probabilities[place[1]])


def _part(
    found: Candidates, chosen: dict[str, Chosen], same: tuple[Place, Place], odds: float
) -> None:
    """Give one of two fields with the same value another one, or remark that they are the same."""
    best: tuple[float, Place, Place, int] | None = None
    for keeps, moves in (same, same[::-1]):
        second = _second_choice(found, chosen, moves)
        if second is not None:
            p = _probability(found, keeps) * _probability(found, (moves[0], second))
            best = max(best or (0.0, keeps, moves, second), (p, keeps, moves, second))
    together = _probability(found, same[0]) * _probability(found, same[1])
    if best is not None and best[0] * odds >= together:
        _, (keeper, _), (name, number), second = best
        text = _key(found, (name, number))
        chosen[name].numbers[chosen[name].numbers.index(number)] = second
        chosen[name].remarks[second] = f"second choice: the likelier {text} is {keeper}"
        return
    (one, first), (other, last) = same
    chosen[one].remarks[first] = f"the same as {other}"
    chosen[other].remarks[last] = f"the same as {one}"
    name, number = min(same, key=lambda place: _probability(found, place))
    chosen[name].weights[number] = odds


def _second_choice(found: Candidates, chosen: Mapping[str, Chosen], place: Place) -> int | None:
    """The next likely value of a field with one value, no part of it and of no other field."""
    name, number = place
    model, scored = found[name]
    if model.is_many or len(chosen[name].numbers) > 1:
        return None
    taken = {_key(found, (other, n)) for other in chosen for n in chosen[other].numbers}
    given_up = scored.groups[number].spans
    for second in range(number + 1, len(scored.groups)):
        if scored.probabilities[second] < _LEAST_SECOND:
            return None
        is_part = any(overlap(scored.groups[second].spans[0], span) for span in given_up)
        if not is_part and _key(found, (name, second)) not in taken:
            return second
    return None


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans, half-open, have a place in common."""
    return one[0] < other[1] and other[0] < one[1]


def doubted(p: float, odds: float) -> float:
    """A probability after evidence of such odds against it."""
    return p / (p + odds * (1.0 - p)) if p < 1.0 else p
