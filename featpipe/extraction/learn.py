"""Learning from corrections: which of them can be used, and what they change.

Guarantees: each line of a file of corrections is taken, known already, or refused with its reason;
nothing is a part of the template before it is accepted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from featpipe.extraction.corrections import Acceptance, Correction, Undo, texts_at
from featpipe.extraction.corrections_fold import (
    acceptances,
    fold,
    last_id,
    version_of,
    with_said,
)
from featpipe.extraction.corrections_log import BadLine, CorrectionsLog
from featpipe.extraction.template_file import corrected, load_uncorrected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.corrections import Record
    from featpipe.extraction.corrections_log import Corrections
    from featpipe.extraction.reprocess import ValueChange
    from featpipe.extraction.template import Template


@dataclass(frozen=True, slots=True)
class SortedLines:
    """The lines of a file of corrections: taken, already known (a number), or refused."""

    taken: tuple[Record, ...]
    n_known: int
    refused: tuple[BadLine, ...]


class CorrectionCheck:
    """Checks corrections of one template against the documents of a cache.

    Args:
        template: whose fields count.
        cache: opened; its documents are those of this moment.

    """

    def __init__(self, template: Template, cache: Cache) -> None:
        self._template = template.name
        self._fields = {spec.name for spec in template.fields}
        cache.refresh()
        self._by_key: dict[str, CachedDocument] = {}
        self._ids: set[str] = set()
        for document in cache.documents():
            self._by_key.setdefault(document.key.hex(), document)
            self._ids.add(document.id)

    def document(self, key: str) -> CachedDocument | None:
        """The document of a key, None where the cache does not hold this version."""
        return self._by_key.get(key)

    def fault(self, record: Correction) -> str:
        """Why a correction cannot be used, "" if it can."""
        if record.template != self._template:
            return f"it is of the template {record.template!r}, not of {self._template!r}"
        if record.field not in self._fields:
            return f"the template has no field {record.field!r}"
        document = self._by_key.get(record.key)
        if document is None:
            return (
                f"it is of another version of {record.document} than the cache holds"
                if record.document in self._ids
                else f"the cache does not hold the document {record.document}"
            )
        return _fault_of_places(record, document.text)

    def sort(self, given: Corrections, known: Iterable[Record]) -> SortedLines:
        """Which lines can be used, beside the records that the template has already."""
        seen = {record.id for record in known}
        taken: list[Record] = []
        refused = list(given.bad)
        n_known = 0
        for line, record in zip(given.lines, given.records, strict=True):
            if record.id in seen:
                n_known += 1
                continue
            fault = self._fault_of(record, seen)
            if fault:
                refused.append(BadLine(line, fault))
                continue
            seen.add(record.id)
            taken.append(self.completed(record) if isinstance(record, Correction) else record)
        return SortedLines(tuple(taken), n_known, tuple(sorted(refused, key=lambda bad: bad.line)))

    def completed(self, record: Correction) -> Correction:
        """A usable correction with the texts at its places."""
        text = self._by_key[record.key].text
        return record.model_copy(update={"values": texts_at(text, record.spans)})

    def _fault_of(self, record: Record, seen: set[str]) -> str:
        if isinstance(record, Correction):
            return self.fault(record)
        if record.template != self._template:
            return f"it is of the template {record.template!r}, not of {self._template!r}"
        target = record.of if isinstance(record, Undo) else record.through
        return "" if target in seen else f"it is about the record {target}, which is not here"


def _fault_of_places(record: Correction, text: str) -> str:
    places = [*record.spans, *record.shown, *([record.about] if record.about else [])]
    for start, end in places:
        if end > len(text):
            return f"{start}:{end} is beyond the text, which has {len(text)} characters"
    there = texts_at(text, record.spans)
    for value, (start, end), found in zip(record.values, record.spans, there, strict=False):
        if value != found:
            return f"at {start}:{end} stands {found[:40]!r}, not {value[:40]!r}"
    return ""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A file of corrections for one template: the template without and with them.

    Attributes:
        file: of the template.
        lines: which of the corrections can be used.
        before: the template as it is.
        after: the template as it will be.
        known: records that the template has already.

    """

    file: Path
    lines: SortedLines
    before: Template
    after: Template
    known: tuple[Record, ...]

    @classmethod
    def of(cls, file: Path, given: Corrections, cache: Cache) -> Lesson:
        """Check corrections against a template and the documents of a cache.

        Raises:
            TemplateError: the template cannot be used.

        """
        template = load_uncorrected(file)
        known = CorrectionsLog(file).read().records
        lines = CorrectionCheck(template, cache).sort(given, known)
        after = proposal(template, [*known, *lines.taken])
        return cls(file, lines, corrected(template, known), after, known)

    def keep(self) -> None:
        """Keep and accept the corrections, durably; nothing is done where there is nothing new.

        Raises:
            UsageError: they cannot be written.

        """
        records = [*self.known, *self.lines.taken]
        through = last_id(records)
        is_new = bool(self.lines.taken) or self.before.samples != self.after.samples
        if not through or not is_new:
            return
        record = Acceptance(template=self.before.name, through=through, version=self.after.version)
        CorrectionsLog(self.file).append([*self.lines.taken, record])


def proposal(template: Template, records: Sequence[Record]) -> Template:
    """The template, as its authors wrote it, with all that was said, accepted or not."""
    version = version_of(template, len(acceptances(records)) + 1)
    return with_said(template, fold(records), version)


_KINDS = ("up", "down", "new", "other", "gone")


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """What a change of a template does to the values of documents, as numbers of fields.

    Attributes:
        n_values, n_documents: fields that change, and the documents they are of.
        up, down: the same values, surer or less sure.
        new: values where there were none.
        other: other values than before.
        gone: no values any more.

    """

    n_values: int = 0
    n_documents: int = 0
    up: int = 0
    down: int = 0
    new: int = 0
    other: int = 0
    gone: int = 0

    def __str__(self) -> str:
        if not self.n_values:
            return "no value changes"
        counts = asdict(self)
        parts = [f"{counts[kind]} {kind}" for kind in _KINDS if counts[kind]]
        one = self.n_values == 1
        return (
            f"{self.n_values} value{'' if one else 's'} change{'s' if one else ''} in "
            f"{self.n_documents} document{'s' * (self.n_documents != 1)}: {', '.join(parts)}"
        )


def summarise(changes: Sequence[ValueChange]) -> ChangeSummary:
    """Count changes."""
    kinds = Counter(map(kind_of, changes))
    n_documents = len({change.document for change in changes})
    return ChangeSummary(len(changes), n_documents, **kinds)


def kind_of(change: ValueChange) -> str:
    """The count of `ChangeSummary` that a change belongs to."""
    if change.what == "values":
        if not change.old.values:
            return "new"
        return "other" if change.new.values else "gone"
    pairs = zip(change.old.values, change.new.values, strict=True)
    shifts = [new.probability - old.probability for old, new in pairs]
    return "up" if max(shifts, key=abs) > 0 else "down"
