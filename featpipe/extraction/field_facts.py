"""Facts of a field: everything that its results depend on besides the document.

Their fingerprints decide what is to be found again, so that only affected fields are; the reasons
are for people.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from featpipe.extraction.twins import twins_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.extraction.joint_choice import Relations
    from featpipe.extraction.template import FieldSpec, SampleSpec, Template

#: Counted up when the same template and document would give other values than before.
TEMPLATES_VERSION = 50


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """Everything that one field's results depend on besides the document itself.

    ``samples`` maps a sample's document to a hash of its text and of this field's values in it;
    samples that were not read for the field have no part in it.
    """

    spec: str
    samples: Mapping[str, str]
    space: str
    version: int = TEMPLATES_VERSION
    companions: Mapping[str, str] = field(default_factory=dict)
    """Fields that the values are chosen beside -> their models' fingerprints."""

    @property
    def model_fingerprint(self) -> str:
        """32 hex digits: of what the field's model is fitted to."""
        return hash_json([self.spec, dict(self.samples), self.space, self.version])

    @property
    def fingerprint(self) -> str:
        """32 hex digits: of the model and of its companions' models."""
        own = self.model_fingerprint
        return hash_json([own, dict(self.companions)]) if self.companions else own

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types, as kept in the cache."""
        return asdict(self)


def hash_json(content: object) -> str:
    """32 hex digits over plain JSON types, independent of the order of keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def facts_of(
    template: Template, identities: Sequence[str], space: str, relations: Relations
) -> dict[str, FieldFacts]:
    """The facts of each field.

    Args:
        template: to extract by.
        identities: one per sample: a hash of the sample document's content.
        space: name of the vectors and entities that are used.
        relations: of the template.

    """
    alone = {
        spec.name: FieldFacts(_spec_of(spec), _samples_of(template, identities, spec), space)
        for spec in template.fields
    }
    prints = {name: facts.model_fingerprint for name, facts in alone.items()}
    companions = relations.companions()
    return {
        name: replace(facts, companions={other: prints[other] for other in companions[name]})
        for name, facts in alone.items()
    }


def _spec_of(field: FieldSpec) -> str:
    """JSON of the field's definition without the hint, which is for people only."""
    content = field.model_dump(mode="json", exclude={"hint"})
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def _samples_of(template: Template, identities: Sequence[str], field: FieldSpec) -> dict[str, str]:
    hashes: dict[str, str] = {}
    for index, (sample, identity) in enumerate(zip(template.samples, identities, strict=True)):
        if not sample.is_read_for(field.name):
            continue
        spans = [list(span) for span in sample.spans.get(field.name, ())]
        content: list[object] = [identity, [list(sample.values_of(field.name)), spans]]
        twins = twins_of(template, sample, field)
        if twins:
            content.append(list(twins))
        name = sample_name(sample, index)
        # A document may be in several samples: none of them hides the others.
        hashes[f"{name} ({index + 1})" if name in hashes else name] = hash_json(content)
    return hashes


def sample_name(sample: SampleSpec, index: int) -> str:
    """How reports name the sample at an index of its template."""
    return sample.document or f"text {index + 1}"


def values_key(field_fingerprint: str, document_key: bytes, missing_inputs: str = "") -> bytes:
    """Key (16 bytes) of the values of one field of one document.

    ``missing_inputs`` are the vectors and entities that the document lacked: once they are there,
    the values are found again under another key.
    """
    whole = bytes.fromhex(field_fingerprint) + document_key + missing_inputs.encode()
    return blake2b(whole, digest_size=16, person=b"featpipe-vals-v1").digest()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Reasons why the values of a field are to be found again."""

    field: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.field}: {'; '.join(self.reasons)}"


def explain_changes(
    old: Mapping[str, Mapping[str, object]] | None, new: Mapping[str, FieldFacts]
) -> list[FieldChange]:
    """The fields that changed since their facts were last kept.

    Args:
        old: the facts as kept (:meth:`FieldFacts.as_dict` by field), None for a new template.
        new: the facts now.

    """
    if old is None:
        return [FieldChange(name, ("new template",)) for name in new]
    changes = []
    for name, facts in new.items():
        before = old.get(name)
        reasons = ("field added",) if before is None else tuple(_reasons(before, facts))
        if reasons:
            changes.append(FieldChange(name, reasons))
    changes.extend(FieldChange(name, ("field removed",)) for name in old if name not in new)
    return changes


def _reasons(old: Mapping[str, object], new: FieldFacts) -> list[str]:
    reasons = []
    if old["version"] != new.version:
        reasons.append(f"extraction version {old['version']} -> {new.version}")
    if old["space"] != new.space:
        reasons.append(f"space {old['space']} -> {new.space}")
    if old["spec"] != new.spec:
        reasons.extend(_changed_keys(json.loads(str(old["spec"])), json.loads(new.spec)))
    beside, now = old.get("companions", {}), new.companions
    if not reasons and isinstance(beside, dict):
        changed = [name for name in sorted({*beside, *now}) if beside.get(name) != now.get(name)]
        reasons.extend(f"{name} changed, beside which its values are chosen" for name in changed)
    before = old["samples"]
    if isinstance(before, dict):
        reasons.extend(_changed_samples(before, new.samples))
        if not reasons and list(before) != list(new.samples):
            reasons.append("samples in another order")
    return reasons


def _changed_samples(old: Mapping[str, object], new: Mapping[str, str]) -> Iterator[str]:
    yield from (f"sample added: {name}" for name in new if name not in old)
    yield from (f"sample removed: {name}" for name in old if name not in new)
    yield from (
        f"sample changed: {name}"
        for name, hashed in new.items()
        if name in old and old[name] != hashed
    )


def _changed_keys(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    keys = sorted({*old, *new})
    return [
        f"{key} {_short(old.get(key))} -> {_short(new.get(key))}"
        for key in keys
        if old.get(key) != new.get(key)
    ]


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
