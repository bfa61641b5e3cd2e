"""Twins: fields of a template that have the same value in a sample.

Who buys may be who builds, and a contract may come into force on the day of its signing: the value
stands behind the labels of both fields, and which place is whose, their names tell
(:func:`featpipe.extraction.scoring.field_names.places_of_own`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.values.text import fold
from featpipe.extraction.values.values import is_readable, read_value

if TYPE_CHECKING:
    from featpipe.extraction.template import FieldSpec, SampleSpec, Template
    from featpipe.extraction.values.values import FieldType

_KINDS: tuple[FieldType, ...] = ("date", "money")


def twins_of(template: Template, sample: SampleSpec, field: FieldSpec) -> tuple[str, ...]:
    """Names and aliases of the other fields that have a value of a field's in a sample."""
    own = _meanings(sample, field)
    if not own or field.level is not None:
        return ()
    others = (one for one in template.fields if one.name != field.name and one.level is None)
    twins = [one for one in others if own & _meanings(sample, one)]
    return tuple(name for one in twins for name in (one.name, *one.aliases))


def _meanings(sample: SampleSpec, field: FieldSpec) -> set[tuple[str, str]]:
    return {_meaning(value) for value in sample.values_of(field.name)}


@lru_cache(maxsize=1 << 16)
def _meaning(value: str) -> tuple[str, str]:
    """A day or a sum however it is written; of others the text. Each is met once for each field."""
    for kind in _KINDS:
        if is_readable(value, kind):
            return kind, read_value(value, kind).key
    return "", fold(value)
