"""Samples: values that cannot be located in their documents or found there, fields not read for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.extraction.field_facts import sample_name
from featpipe.extraction.fitted import pattern_of, pretrained_of
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.values.text import fold
from featpipe.extraction.values.values import is_readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.template import FieldSpec, Template
    from featpipe.extraction.values.values import FieldType


@dataclass(frozen=True, slots=True)
class Unlocated:
    """A sample value that its document does not hold, or that extraction cannot find there."""

    template: str
    document: str
    field: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.template}: {self.document}, {self.field} = {self.value!r}: {self.why}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check. ``kinds`` are the types of the fields, given or inferred."""

    n_values: int
    kinds: dict[str, FieldType]
    unlocated: tuple[Unlocated, ...]
    without_samples: tuple[str, ...]
    """Fields of which no sample has a value."""
    pretrained: tuple[str, ...]
    """Those of them that are pretrained."""
    unread: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Samples with the fields that they do not name and therefore do not count for."""


def check_samples(fitted: FittedTemplate) -> Checked:
    """Locate every value of every sample."""
    template = fitted.template
    kinds: dict[str, FieldType] = {}
    lost: list[Unlocated] = []
    empty: list[str] = []
    pretrained: list[str] = []
    n_values = 0
    for field in template.fields:
        values = list(_values(fitted, field.name))
        n_values += len(values)
        kind = kinds[field.name] = fitted.kind(field.name)
        if not values:
            empty.append(field.name)
            pretrained += [field.name] if pretrained_of(field, kind) is not None else []
        lost.extend(_unlocated(template.name, field, kind, values))
    return Checked(
        n_values, kinds, tuple(lost), tuple(empty), tuple(pretrained), tuple(_unread(template))
    )


def _unread(template: Template) -> Iterator[tuple[str, tuple[str, ...]]]:
    for index, sample in enumerate(template.samples):
        names = [field.name for field in template.fields if not sample.is_read_for(field.name)]
        if names:
            yield sample_name(sample, index), tuple(names)


def _values(fitted: FittedTemplate, field: str) -> Iterator[tuple[str, PageFeatures, str]]:
    documents = zip(fitted.template.samples, fitted.sample_pages, strict=True)
    for index, (sample, features) in enumerate(documents):
        for value in sample.values_of(field):
            yield sample_name(sample, index), features, value


def _unlocated(
    template: str,
    field: FieldSpec,
    kind: FieldType,
    values: Sequence[tuple[str, PageFeatures, str]],
) -> Iterator[Unlocated]:
    pattern = pattern_of(field)
    for document, features, value in values:
        spans = locate_value(features, value, kind)
        if not spans:
            why = _why(features, value, kind)
        elif pattern is not None and not _are_matched(features, spans, pattern):
            choices = ", ".join(map(repr, field.choices))
            found_by = (
                "`pattern` does not match it" if field.pattern else f"`choices` are {choices}"
            )
            why = f"it is in the document, but the field's {found_by}: it is never found"
        else:
            continue
        yield Unlocated(template, document, field.name, value, why)


def _are_matched(features: PageFeatures, spans: Sequence[tuple[int, int]], pattern: str) -> bool:
    """Whether any of some places is one that extraction takes from the field's pattern."""
    matched = [match.span() for match in re.finditer(pattern, features.page.text)]
    places = zip(*features.tokens.spans(matched), strict=True)
    return not set(places).isdisjoint(zip(*features.tokens.spans(spans), strict=True))


def _why(features: PageFeatures, value: str, kind: FieldType) -> str:
    """The most specific reason that holds."""
    folded = fold(value)
    if not folded:
        return "the value is empty"
    part = _longest_part(features.compact.text, folded)
    shaped = [f.value.key for f in features.find(kind)]
    if shaped and is_readable(value, kind):
        return f"the document has no {kind} of this value, but {', '.join(_few(shaped))}"
    if part >= max(4, len(folded) // 2):
        return f"only {folded[:part]!r} of it is in the document: is the rest another spelling?"
    return "nothing like it is in the document: is the text of a table or image missing?"


def _longest_part(text: str, folded: str) -> int:
    """Number of its first characters that the text holds together."""
    low, high = 0, len(folded)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if folded[:middle] in text else (low, middle - 1)
    return low


def _few(keys: Sequence[str]) -> list[str]:
    distinct = list(dict.fromkeys(keys))
    return distinct[:5] + ["..."] * (len(distinct) > 5)
