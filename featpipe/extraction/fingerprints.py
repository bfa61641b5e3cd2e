"""Fingerprints: what a field's results depend on, so that only what a change touches is redone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.extraction.template import FieldSpec, SampleSpec, Template

#: Counted up when the same template and document would give other values than before.
TEMPLATES_VERSION = 5


def hash_json(content: object) -> str:
    """32 hex digits over plain JSON types, whatever the order of keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """Everything one field's results depend on besides the document itself.

    ``samples`` maps a sample's document to a hash of its text and of this field's values in it.
    """

    spec: str
    samples: Mapping[str, str]
    space: str
    version: int = TEMPLATES_VERSION

    @property
    def fingerprint(self) -> str:
        """32 hex digits."""
        return hash_json([self.spec, dict(self.samples), self.space, self.version])

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types, as kept in the cache."""
        return {
            "spec": self.spec,
            "samples": dict(self.samples),
            "space": self.space,
            "version": self.version,
        }


def facts_of(template: Template, identities: Sequence[str], space: str) -> dict[str, FieldFacts]:
    """The facts of each field.

    Args:
        template: what to extract.
        identities: one per sample: a hash of the sample document's content.
        space: name of the vectors and entities that serve as evidence.

    """
    return {
        field.name: FieldFacts(_spec_of(field), _samples_of(template, identities, field), space)
        for field in template.fields
    }


def _spec_of(field: FieldSpec) -> str:
    """JSON of what the author said about the field; the hint is for people only."""
    content = field.model_dump(mode="json", exclude={"hint"})
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def _samples_of(template: Template, identities: Sequence[str], field: FieldSpec) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, (sample, identity) in enumerate(zip(template.samples, identities, strict=True)):
        name = sample.document or f"text {number + 1}"
        found[name] = hash_json([identity, _about(sample, field.name)])
    return found


def _about(sample: SampleSpec, field: str) -> list[object]:
    return [list(sample.values_of(field)), [list(span) for span in sample.spans.get(field, ())]]


def unit_key(field_fingerprint: str, document_key: bytes, gaps: str = "") -> bytes:
    """16 bytes for one field of one document: where its values are kept.

    ``gaps`` is what the document lacked (:mod:`featpipe.extraction.page_source`): values found
    without a
    vector that came later are not those of the whole evidence.
    """
    whole = bytes.fromhex(field_fingerprint) + document_key + gaps.encode()
    return blake2b(whole, digest_size=16, person=b"featpipe-vals-v1").digest()
