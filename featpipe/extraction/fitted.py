"""A template made ready: its samples located, its fields fitted when first needed.

A fitted template is a pure function of template, sample documents and evidence; the same inputs
give the same models in any process, so results made at different times can stand side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.fingerprints import facts_of, hash_json
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.extraction.samples import infer_type
from featpipe.extraction.scoring.field_model import (
    FieldModel,
    Sample,
    Scored,
    fit_field,
    score_fields,
)
from featpipe.extraction.scoring.locate import locate_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from featpipe.extraction.fingerprints import FieldFacts
    from featpipe.extraction.model_cache import ModelCache
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import FieldSpec, Template
    from featpipe.extraction.values.values import FieldType

#: Parts of a score that are reported: those that matter.
_MOST_PARTS = 8


@dataclass(eq=False)
class SampleDocument:
    """A sample's document: known by its identity, made ready when something is to be fitted."""

    identity: str
    """Hash of its text and of the evidence there is for it."""
    make: Callable[[], Page]

    @cached_property
    def page(self) -> Page:
        """With everything that fitting looks at."""
        return self.make()


class FittedTemplate:
    """Serves any number of threads; a field is fitted once, by the first that needs it.

    Args:
        template: checked.
        documents: the sample documents, one per sample, in order.
        space: name of the evidence the pages are made with.
        models: where fitted fields are kept by fingerprint, shared between templates and their
            versions, so that only what changed is fitted again.

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
        self.facts: Mapping[str, FieldFacts] = facts_of(template, identities, space)
        self.space = space
        self._models = models

    @property
    def pages(self) -> tuple[Page, ...]:
        """The sample documents, made ready."""
        return tuple(document.page for document in self._documents)

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
        key = self.facts[name].fingerprint
        return self._models.get(key, lambda: self._fit(self.template.field(name)))

    def unfitted(self) -> list[str]:
        """Fields that nobody has fitted yet."""
        return [
            name for name, facts in self.facts.items() if not self._models.has(facts.fingerprint)
        ]

    def extract_field(self, name: str, page: Page) -> FieldResult:
        """All values of one field in one document."""
        return self.extract_fields([name], page)[name]

    def extract_fields(self, names: Sequence[str], page: Page) -> dict[str, FieldResult]:
        """All values of some fields in one document; each as if it were asked for alone."""
        models = [self.model(name) for name in names]
        scored = score_fields(models, page)
        return {
            name: FieldResult(
                tuple(self._value(model, found, page, n) for n in model.choose(found))
            )
            for name, model, found in zip(names, models, scored, strict=True)
        }

    def _fit(self, field: FieldSpec) -> FieldModel:
        pages = self.pages
        values = [
            (page, value)
            for page, sample in zip(pages, self.template.samples, strict=True)
            for value in sample.values_of(field.name)
        ]
        kind = field.type or _kind_of(field) or infer_type(values)
        samples = []
        for page, sample in zip(pages, self.template.samples, strict=True):
            given = sample.values_of(field.name)
            spans = sample.spans.get(field.name) or tuple(
                span for value in given for span in locate_value(page, value, kind)
            )
            samples.append(Sample(page, given, tuple(sorted(set(spans)))))
        is_many = None if field.cardinality is None else field.cardinality != "one"
        return fit_field(
            samples,
            kind,
            (field.name, *field.aliases),
            is_many=is_many,
            pattern=field.pattern or _choice_pattern(field),
            level=field.level,
        )

    def _value(self, model: FieldModel, scored: Scored, page: Page, number: int) -> ExtractedValue:
        group = scored.groups[number]
        start, end = group.spans[0]
        return ExtractedValue(
            text=page.text[start:end],
            value=group.value.key,
            unit=group.value.unit,
            bound=group.value.bound,
            start=start,
            end=end,
            page=page.printed_page_at(start),
            probability=round(float(scored.probabilities[number]), 6),
            parts=self._parts(model, scored, number),
            nearest=self._nearest(model, scored, number),
            places=tuple(sorted(group.spans[1:])),
        )

    @staticmethod
    def _parts(model: FieldModel, scored: Scored, number: int) -> dict[str, float]:
        """The heaviest parts of the mention's score, and what the value as a whole added."""
        parts = model.mentions.parts(scored.hashed[number], scored.measured[number])
        heavy = sorted(parts.items(), key=lambda part: -abs(part[1]))[:_MOST_PARTS]
        whole = float(model.values.model.logits(scored.rows[number : number + 1])[0])
        return {name: round(weight, 3) for name, weight in heavy} | {"value": round(whole, 3)}

    def _nearest(self, model: FieldModel, scored: Scored, number: int) -> str:
        """The sample with most words in common around a value."""
        if not len(model.exemplars):
            return ""
        alike = (model.exemplars == scored.hashed[number]).sum(axis=1)
        owner = int(model.owners[int(np.argmax(alike))])
        sample = self.template.samples[owner]
        return sample.document or f"text {owner + 1}"


def _kind_of(field: FieldSpec) -> FieldType | None:
    """What the level says where no type is given."""
    return "clause" if field.level in {"sentence", "paragraph"} else None


def _choice_pattern(field: FieldSpec) -> str | None:
    import re

    longest_first = sorted(field.choices, key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)) or None
