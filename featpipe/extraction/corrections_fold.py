"""What corrections amount to: per document and field what is known, and samples made of it.

Unknown is not none: a field whose value was rejected, or of whose several values only some were
looked at, is unknown in its document, and no sample of it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.extraction.corrections import Acceptance, Correction, Undo
from featpipe.extraction.template import SampleSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from featpipe.extraction.corrections import Place, Record
    from featpipe.extraction.template import Template

#: (key of a document, field).
Subject = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of one field of one document, all in all.

    Attributes:
        last: the latest correction; it names the document.
        right: places of right values, with their texts.
        wrong: places of values that were rejected or replaced.
        is_none: whether the document has no value of the field.

    """

    last: Correction
    right: Mapping[Place, str] = field(default_factory=dict)
    wrong: frozenset[Place] = frozenset()
    is_none: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the values of the field in the document are known: all of them, or that none."""
        if self.is_none:
            return True
        return bool(self.right) and all(self._is_decided(place) for place in self.last.shown)

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to ask about what was shown."""
        return self.is_none or all(self._is_decided(place) for place in self.last.shown)

    def _is_decided(self, place: Place) -> bool:
        return place in self.right or place in self.wrong


def standing(records: Iterable[Record]) -> list[Record]:
    """The records that were neither taken back nor said before under the same id, in order.

    Undos themselves are left out.
    """
    by_id: dict[str, Record] = {}
    for record in records:
        by_id.setdefault(record.id, record)
    undone = {record.of for record in by_id.values() if isinstance(record, Undo)}
    return [r for r in by_id.values() if not isinstance(r, Undo) and r.id not in undone]


def fold(records: Iterable[Record]) -> dict[Subject, Said]:
    """What all corrections say of each subject, in the order in which subjects came up."""
    found: dict[Subject, Said] = {}
    for record in standing(records):
        if isinstance(record, Correction):
            subject = record.key, record.field
            found[subject] = _after(found.get(subject), record)
    return found


def _after(before: Said | None, record: Correction) -> Said:
    """What holds of a subject after one more correction."""
    if record.verdict == "none":
        wrong = {*record.shown, *(before.wrong if before else ())}
        return Said(record, {}, frozenset(wrong), is_none=True)
    right = dict(before.right) if before and record.is_many else {}
    wrong = {*(before.wrong if before else ())}
    if record.about is not None:
        right.pop(record.about, None)
        wrong.add(record.about)
    texts = record.values or ("",) * len(record.spans)
    right |= dict(zip(record.spans, texts, strict=True))
    if not record.is_many and record.spans:
        wrong |= {*record.shown}  # a field of one value has no other
    return Said(record, right, frozenset(wrong) - right.keys())


def acceptances(records: Sequence[Record]) -> list[Acceptance]:
    """Those in effect, in order."""
    return [record for record in standing(records) if isinstance(record, Acceptance)]


def accepted(records: Sequence[Record]) -> tuple[Record, ...]:
    """The records that the template consists of: up to where the last acceptance reaches."""
    in_effect = acceptances(records)
    if not in_effect:
        return ()
    last = in_effect[-1]
    # The acceptance itself, where the line of the record that it reaches to was damaged.
    ids = [record.id for record in records]
    return tuple(records[: ids.index(last.through if last.through in ids else last.id) + 1])


def last_id(records: Sequence[Record]) -> str:
    """Id of the last record that an acceptance can reach to, "" without one."""
    return next((r.id for r in reversed(records) if _is_about_values(r, records)), "")


def _is_about_values(record: Record, records: Sequence[Record]) -> bool:
    if isinstance(record, Undo):
        return not any(isinstance(r, Acceptance) and r.id == record.of for r in records)
    return isinstance(record, Correction)


def version_of(template: Template, n_accepted: int) -> str:
    """Version of a template after so many acceptances: ``2.1+3``, ``3`` where it has none."""
    if not n_accepted:
        return template.version
    return f"{template.version}+{n_accepted}" if template.version else str(n_accepted)


def with_said(template: Template, said: Mapping[Subject, Said], version: str) -> Template:
    """The template with a sample of each document of which fields are known.

    Corrections of fields that the template does not have are left out.
    """
    names = {spec.name for spec in template.fields}
    by_key: dict[str, list[Said]] = {}
    for (key, name), one in said.items():
        if name in names and one.is_known:
            by_key.setdefault(key, []).append(one)
    samples = tuple(_sample(key, known) for key, known in by_key.items())
    return template.model_copy(
        update={"samples": (*template.samples, *samples), "version": version}
    )


def _sample(key: str, known: Sequence[Said]) -> SampleSpec:
    return SampleSpec(
        document=known[-1].last.document,
        key=key,
        fields={one.last.field: tuple(dict.fromkeys(one.right.values())) for one in known},
        spans={one.last.field: tuple(sorted(one.right)) for one in known if one.right},
    )


def supersede(template: Template, identities: Sequence[str]) -> Template:
    """The template in which reviewed samples win over others of the same document.

    Args:
        template: with its samples.
        identities: one per sample: equal for samples of the same text.

    """
    reviewed: dict[str, set[str]] = {}
    for sample, identity in zip(template.samples, identities, strict=True):
        if sample.key is not None:
            reviewed.setdefault(identity, set()).update(sample.fields)
    names = [spec.name for spec in template.fields]
    samples = tuple(
        without(sample, reviewed.get(identity, set()), names) if sample.key is None else sample
        for sample, identity in zip(template.samples, identities, strict=True)
    )
    return template.model_copy(update={"samples": samples})


def without(sample: SampleSpec, fields: set[str], names: Sequence[str]) -> SampleSpec:
    """The sample without what it tells of some fields; ``names`` are all of its template."""
    if not any(sample.is_read_for(name) for name in fields):
        return sample
    none: dict[str, tuple[str, ...]] = dict.fromkeys(names, ()) if sample.complete else {}
    inside = {name for record in sample.records for name in record}
    listed = {n: v for n, v in (none | sample.fields).items() if n not in fields}
    return sample.model_copy(
        update={
            "fields": {n: v for n, v in listed.items() if v or n not in inside},
            "spans": {n: v for n, v in sample.spans.items() if n not in fields},
            "records": tuple(
                {n: v for n, v in record.items() if n not in fields} for record in sample.records
            ),
            "complete": False,
        }
    )
