"""A template with its samples located and its fields fitted when first needed.

A fitted template is a pure function of template, sample documents and their inputs; the same inputs
give the same models in any process, so results made at different times can be compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.field_facts import FieldFacts, facts_of, hash_json, sample_name
from featpipe.extraction.joint_choice import Relations, choose_values
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.field_model import FieldModel, Scored, score_fields
from featpipe.extraction.scoring.pretrained import kind_of_values, shipped_fields
from featpipe.extraction.scoring.stated_units import value_with_unit
from featpipe.extraction.twins import twins_of
from featpipe.extraction.values.values import remark_on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.model_cache import ModelCache
    from featpipe.extraction.parties import Candidates, Chosen
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.scoring.pretrained import PretrainedField
    from featpipe.extraction.template import FieldSpec, SampleSpec, Template
    from featpipe.extraction.values.values import FieldType

#: Parts of a score that are reported: the ones of largest size.
_MOST_PARTS = 8


@dataclass(eq=False)
class SampleDocument:
    """A sample's document: identified at once, read when a field is fitted."""

    identity: str
    """Hash of its text and of the vectors and entities that it lacks."""
    make: Callable[[], PageFeatures]
    key: bytes | None = None
    """Of the document in the cache, None if it does not hold it."""
    text_hash: str = ""

    @cached_property
    def features(self) -> PageFeatures:
        """The document as fitting needs it."""
        return self.make()


class FittedTemplate:
    """Any number of threads may use it; a field is fitted once, by the first that needs it.

    Args:
        template: checked.
        documents: the sample documents, one per sample, in order.
        space: name of the vectors and entities that are used.
        models: fitted fields by fingerprint, shared between templates and their versions, so that
            only what changed is fitted again.

    """

    def __init__(
        self,
        template: Template,
        documents: Sequence[SampleDocument],
        space: str,
        models: ModelCache,
    ) -> None:
        self.template = template
        self._documents = tuple(documents)
        identities = [document.identity for document in documents]
        self._relations = Relations.of(template)
        self.facts: Mapping[str, FieldFacts] = facts_of(
            template, identities, space, self._relations
        )
        self.space = space
        self._models = models

    def __repr__(self) -> str:
        return f"FittedTemplate({self.template.name!r}, {self.fingerprint})"

    @property
    def sample_pages(self) -> tuple[PageFeatures, ...]:
        """The sample documents, in order."""
        return tuple(document.features for document in self._documents)

    @property
    def sample_identities(self) -> tuple[str, ...]:
        """Of each sample: equal for samples of the same text with the same inputs."""
        return tuple(document.identity for document in self._documents)

    @property
    def sample_keys(self) -> tuple[bytes | None, ...]:
        """Of each sample: the key of its document in the cache, None if it does not hold it."""
        return tuple(document.key for document in self._documents)

    def with_samples(self, numbers: Sequence[int], models: ModelCache) -> FittedTemplate:
        """The template with some of its samples only, by number."""
        samples = tuple(self.template.samples[number] for number in numbers)
        kept = self.template.model_copy(update={"samples": samples})
        documents = [self._documents[number] for number in numbers]
        return FittedTemplate(kept, documents, self.space, models)

    def known_in(self, field: str) -> set[bytes]:
        """Keys of the cached documents of which a sample tells the values of a field."""
        keys = (self._documents[number].key for number, _ in self._read_for(field))
        return {key for key in keys if key is not None}

    @property
    def has_samples(self) -> bool:
        """Whether there is anything to learn from."""
        return bool(self._documents)

    @property
    def fingerprint(self) -> str:
        """32 hex digits over all fields."""
        return hash_json({name: facts.fingerprint for name, facts in self.facts.items()})

    def model(self, name: str) -> FieldModel:
        """The model of one field, fitted now if it is not yet."""
        key = self.facts[name].model_fingerprint
        return self._models.get(key, lambda: self._fit(self.template.field(name)))

    def kind(self, name: str) -> FieldType:
        """The type of a field: as given, by its level, of its samples' values, or as pretrained."""
        field = self.template.field(name)
        return field.type or _kind_of(field) or _infer_kind(field, self._documents_for(name))

    def unfitted(self) -> list[str]:
        """Fields without a model in memory or in the cache folder."""
        return [
            name
            for name, facts in self.facts.items()
            if not self._models.has(facts.model_fingerprint)
        ]

    def extract_fields(
        self, names: Sequence[str], features: PageFeatures
    ) -> dict[str, FieldResult]:
        """All values of some fields in one document, the same as of each field alone."""
        found, chosen = self._choose(names, features)
        return {
            name: self._result(name, *found[name], chosen[name], features.page) for name in names
        }

    def candidates(
        self, name: str, features: PageFeatures, most: int
    ) -> tuple[tuple[ExtractedValue, ...], bool]:
        """The likeliest values of a field, reported ones and others, and whether it has many.

        Reported ones are as likely as :meth:`extract_fields` says, and others as doubtful.
        """
        found, choices = self._choose([name], features)
        model, scored = found[name]
        chosen = choices[name]
        reported = self._result(name, model, scored, chosen, features.page).values
        others = [
            chosen.doubt(number, self._value(name, model, scored, features.page, number))
            for number in range(min(most, len(scored.groups)))
            if number not in chosen.numbers
        ]
        values = sorted((*reported, *others), key=lambda value: -value.probability)
        return tuple(values[:most]), model.is_many

    def _choose(
        self, names: Sequence[str], features: PageFeatures
    ) -> tuple[Candidates, dict[str, Chosen]]:
        """The fields, with all that their values depend on, and the values to report."""
        # In the order of the template, whatever is asked for: the result is the same.
        needed = {*names, *(other for name in names for other in self.facts[name].companions)}
        whole = [name for name in self.facts if name in needed]
        models = [self.model(name) for name in whole]
        scored = score_fields(models, features)
        found = dict(zip(whole, zip(models, scored, strict=True), strict=True))
        return found, choose_values(found, self._relations)

    def _result(
        self, name: str, model: FieldModel, scored: Scored, chosen: Chosen, page: Page
    ) -> FieldResult:
        values = []
        for number, p in chosen.probabilities(model, scored).items():
            value = self._value(name, model, scored, page, number)
            remark = chosen.remarks.get(number) or value.remark
            values.append(replace(value, probability=round(p, 6), remark=remark))
        return FieldResult(tuple(values))

    def _read_for(self, field: str) -> list[tuple[int, SampleSpec]]:
        """The samples that tell about a field, with their numbers."""
        numbered = enumerate(self.template.samples)
        return [(number, one) for number, one in numbered if one.is_read_for(field)]

    def _documents_for(self, field: str) -> list[tuple[PageFeatures, SampleSpec]]:
        return [(self._documents[number].features, one) for number, one in self._read_for(field)]

    def _fit(self, field: FieldSpec) -> FieldModel:
        documents = self._documents_for(field.name)
        kind = self.kind(field.name)
        samples = [
            sample_of(
                features,
                one.values_of(field.name),
                kind,
                one.spans.get(field.name, ()),
                is_selected=one.key is not None,
                names=_names_of(field),
                twins=twins_of(self.template, one, field),
            )
            for features, one in documents
        ]
        return fit_field(
            samples,
            kind,
            _names_of(field),
            is_many=None if field.cardinality is None else field.cardinality != "one",
            pattern=pattern_of(field),
            level=field.level,
            pretrained=pretrained_of(field, kind),
        )

    def _value(
        self, name: str, model: FieldModel, scored: Scored, page: Page, number: int
    ) -> ExtractedValue:
        group = scored.groups[number]
        start, end = group.spans[0]
        value = value_with_unit(page, group.value, start, end)
        return ExtractedValue(
            text=page.text[start:end],
            value=value.key,
            unit=value.unit,
            bound=value.bound,
            start=start,
            end=end,
            page=page.printed_page_at(start),
            probability=round(float(scored.confidences[number]), 6),
            parts=_parts(model, scored, number),
            nearest=self._nearest(name, model, scored.hashed[number], page),
            places=tuple(sorted(group.spans[1:])),
            remark=remark_on(value),
        )

    def _nearest(self, name: str, model: FieldModel, hashed: NDArray[np.int32], page: Page) -> str:
        """The sample with most words in common around a value, "" without another document."""
        read = self._read_for(name)
        own = hash_json([page.text])
        is_other = np.array([self._documents[at].text_hash != own for at, _ in read], bool)
        others = np.flatnonzero(is_other[model.owners]) if len(model.exemplars) else ()
        if not len(others):
            return ""
        n_equal = (model.exemplars[others] == hashed).sum(axis=1)
        owner, _ = read[int(model.owners[others[int(np.argmax(n_equal))]])]
        return sample_name(self.template.samples[owner], owner)


def _names_of(field: FieldSpec) -> tuple[str, ...]:
    return (field.name, *field.aliases)


def pretrained_of(field: FieldSpec, kind: FieldType) -> PretrainedField | None:
    """What a field of a type begins with, unless its samples are found worse by it."""
    return shipped_fields().find(_names_of(field), kind)


def _kind_of(field: FieldSpec) -> FieldType | None:
    """The type that follows from the field's level."""
    return "clause" if field.level in {"sentence", "paragraph"} else None


def pattern_of(field: FieldSpec) -> str | None:
    """The regular expression that all values of the field match, None if it has none."""
    if field.pattern:
        return field.pattern
    longest_first = sorted(field.choices, key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)) or None


def _parts(model: FieldModel, scored: Scored, number: int) -> dict[str, float]:
    """The largest parts of the mention's score, and the score of the value as a whole."""
    parts = model.mentions.parts(scored.hashed[number], scored.measured[number])
    largest = sorted(parts.items(), key=lambda part: -abs(part[1]))[:_MOST_PARTS]
    whole = float(model.values.model.logits(scored.rows[number : number + 1])[0])
    return {name: round(weight, 3) for name, weight in largest} | {"value": round(whole, 3)}


def _infer_kind(
    field: FieldSpec, documents: Sequence[tuple[PageFeatures, SampleSpec]]
) -> FieldType:
    values = [
        (features, value)
        for features, sample in documents
        for value in sample.values_of(field.name)
    ]
    return kind_of_values(values, _names_of(field), shipped_fields())
