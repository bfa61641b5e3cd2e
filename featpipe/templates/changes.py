"""Changes: what differs between two states of a template or of a document, in words.

Pure: facts in, reasons out. Whether anything is to be done is decided by fingerprints alone; the
reasons only explain it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.templates.fingerprints import FieldFacts


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Why the values of a field are to be found again."""

    field: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.field}: {'; '.join(self.reasons)}"


def explain_changes(
    old: Mapping[str, Mapping[str, object]] | None, new: Mapping[str, FieldFacts]
) -> list[FieldChange]:
    """What changed since the facts were last kept; fields that are as they were are left out.

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


def explain_document(row: Mapping[str, object] | None, content: str, gaps: str) -> str:
    """What became of a document since a template last looked at it; "" when it is as it was.

    Args:
        row: of the log of results; None when the template never looked at it.
        content: key of the document now.
        gaps: what its evidence lacks now.

    """
    if row is None:
        return "new"
    # The first caches do not say what their rows were made from.
    if row.get("content", content) != content:
        return "changed"
    if row.get("gaps", gaps) != gaps:
        return "with vectors or entities that came later"
    return ""


def _reasons(old: Mapping[str, object], new: FieldFacts) -> list[str]:
    reasons = []
    if old["version"] != new.version:
        reasons.append(f"extraction version {old['version']} -> {new.version}")
    if old["space"] != new.space:
        reasons.append(f"evidence {old['space']} -> {new.space}")
    if old["spec"] != new.spec:
        reasons.extend(_changed_keys(json.loads(str(old["spec"])), json.loads(new.spec)))
    before = old["samples"]
    if isinstance(before, dict):
        reasons.extend(f"sample added: {name}" for name in new.samples if name not in before)
        reasons.extend(f"sample removed: {name}" for name in before if name not in new.samples)
        reasons.extend(
            f"sample changed: {name}"
            for name, hashed in new.samples.items()
            if name in before and before[name] != hashed
        )
        if not reasons and list(before) != list(new.samples):
            reasons.append("samples in another order")
    return reasons


def _changed_keys(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    keys = sorted({*old, *new})
    return [
        f"{key} {_short(old.get(key))} -> {_short(new.get(key))}"
        for key in keys
        if old.get(key) != new.get(key)
    ]


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
