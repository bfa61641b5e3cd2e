"""What is known of the fields of a report's templates besides their values.

These are their definitions, and which documents are samples of them. It is read from the template
files where they are given, else from the facts that ``featpipe reprocess`` keeps in the cache. Of
other templates nothing is known.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

from featpipe.extraction.field_facts import FieldFacts
from featpipe.extraction.named_documents import stored_sample
from featpipe.extraction.records import record_fields
from featpipe.extraction.results_table import ResultsReader
from featpipe.extraction.scoring.locate import are_organisations
from featpipe.extraction.template_file import load_templates
from featpipe.extraction.template_set import folder_of
from featpipe.extraction.values.values import is_readable, read_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.extraction.results import ExtractedValue
    from featpipe.extraction.template import Template
    from featpipe.extraction.values.values import FieldType

#: Of the second and later samples of one document, as `FieldFacts` tells them apart.
_nth = re.compile(r" \(\d+\)$")


@dataclass(frozen=True, slots=True)
class KnownField:
    """One field of a template.

    Attributes:
        kind: type of its values, "" if it is inferred from the samples.
        is_many: whether a document may have several values of it, None if that is inferred.
        is_of_records: whether its values belong together with those of other such fields.
        model: fingerprint of the model that finds its values, "" if unknown.
        samples: keys of the cached documents of which samples tell its values.

    """

    kind: str = ""
    is_many: bool | None = None
    is_of_records: bool = False
    model: str = ""
    samples: frozenset[bytes] = field(default_factory=frozenset)


#: Template -> field -> what is known of it.
KnownFields = dict[str, dict[str, KnownField]]


def read_known_fields(cache: Cache, templates: Path | None = None) -> KnownFields:
    """The fields of the templates that the cache has results of, or of those in files.

    Raises:
        TemplateError: ``templates`` cannot be used.

    """
    known: KnownFields = {}
    reader = ResultsReader(cache.reader)
    keys = reader.last_sample_keys()
    for name, fields in reader.last_facts().items():
        known[name] = {
            field: _of_facts(cache, facts, keys.get(name, {}).get(field, ()))
            for field, facts in fields.items()
        }
    if templates is not None:
        for template in load_templates(templates):
            known[template.name] = _of_template(cache, template, folder_of(templates))
    return known


#: In this order: each text of a date, say, may be read as a number as well.
_KINDS: tuple[FieldType, ...] = ("email", "date", "percent", "period", "money", "number")
_COMPARED = 20


def infer_kind(values: Iterable[ExtractedValue]) -> FieldType | Literal[""]:
    """The type under which some values have the meaning that they have, "" for none.

    Most of them: that of 3,000 in 3,000-5,000万元 needs what stands beside it.
    """
    some = list(islice(values, _COMPARED))
    for kind in _KINDS if some else ():
        is_readable_each = all(is_readable(value.text, kind) for value in some)
        if is_readable_each and 2 * sum(_is_of(kind, value) for value in some) > len(some):
            return kind
    return "organisation" if are_organisations([value.text for value in some]) else ""


def _is_of(kind: FieldType, value: ExtractedValue) -> bool:
    read = read_value(value.text, kind)
    if value.unit and not read.unit:
        # Its label or its header states the unit.
        read = read_value(f"{value.value}{value.unit}", kind)
    return (read.key, read.unit) == (value.value, value.unit) and not (
        kind == "money" and not read.unit
    )


def _of_facts(cache: Cache, content: Mapping[str, object], keys: Iterable[str]) -> KnownField:
    facts = FieldFacts(**content)  # type: ignore[arg-type]  # as `FieldFacts.as_dict` gave it
    spec = json.loads(facts.spec)
    return KnownField(
        kind=str(spec.get("type") or ""),
        is_many=_is_many(spec.get("cardinality")),
        is_of_records=spec.get("cardinality") == "records",
        model=facts.model_fingerprint,
        samples=_keys_of(cache, facts.samples) | set(map(bytes.fromhex, keys)),
    )


def _of_template(cache: Cache, template: Template, folder: Path) -> dict[str, KnownField]:
    together = record_fields(template)
    stored = [(sample, stored_sample(cache, sample, folder)) for sample in template.samples]
    return {
        spec.name: KnownField(
            kind=spec.type or "",
            is_many=_is_many(spec.cardinality),
            is_of_records=spec.name in together,
            samples=frozenset(
                document.key
                for sample, document in stored
                if document is not None and sample.is_read_for(spec.name)
            ),
        )
        for spec in template.fields
    }


def _is_many(cardinality: object) -> bool | None:
    return None if cardinality is None else cardinality != "one"


def _keys_of(cache: Cache, names: Iterable[str]) -> frozenset[bytes]:
    """Keys of the documents of some samples; those that are texts, or elsewhere, are left out."""
    found = (cache.find_document(name) or cache.find_document(_nth.sub("", name)) for name in names)
    return frozenset(document.key for document in found if document is not None)
