"""What is to be extracted again, and why: templates and documents against the stored results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from featpipe.extraction.choose import find_unmatched, is_meant
from featpipe.extraction.field_facts import FieldChange, explain_changes, values_key
from featpipe.extraction.results_table import ResultsReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.engine import ExtractionEngine

#: Documents that a plan names for each reason.
_NAMED = 5


class HasEngine(Protocol):
    """An extractor, or whatever else holds an engine."""

    @property
    def engine(self) -> ExtractionEngine:
        """Of templates and cache."""


@dataclass(frozen=True, slots=True)
class Work:
    """One document under one template.

    Attributes:
        template: its name.
        document: of the cache.
        keys: of the values of each field; none where the template is meant for it no longer.
        missing: the fields to find.
        is_logged: whether the log names these keys.
        content: key of the document (hex).
        missing_inputs: hash of the vectors and entities that it lacks, "" for none.
        reason: how the document changed since its last extraction, "" for not at all.

    """

    template: str
    document: CachedDocument
    keys: Mapping[str, bytes]
    missing: tuple[str, ...]
    is_logged: bool
    content: str = ""
    missing_inputs: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReprocessPlan:
    """The work of a run, and its reasons."""

    works: tuple[Work, ...]
    changes: Mapping[str, tuple[FieldChange, ...]]
    unmatched: tuple[str, ...] = ()
    """What is said of each template that is meant for no document."""

    @property
    def n_fields(self) -> int:
        """Fields of documents to find."""
        return sum(len(work.missing) for work in self.works)

    @property
    def n_meant(self) -> int:
        """Documents that any template is meant for."""
        return len({work.document.path for work in self.works if work.keys})

    def lines(self) -> Iterator[str]:
        """Every reason, then the amount of work, as text."""
        yield from self.unmatched
        for template, changes in self.changes.items():
            for change in changes:
                yield f"{template}: {change}"
            yield from self._about_documents(template)
        touched = len({work.document.path for work in self.works if work.missing})
        yield (
            f"{self.n_fields} fields in {touched} of {self.n_meant} documents to extract, "
            "0 texts to encode"
        )

    def _about_documents(self, template: str) -> Iterator[str]:
        """Each reason of changed documents, with the first of them."""
        by_reason: dict[str, list[str]] = {}
        for work in self.works:
            if work.template == template and work.reason and (work.missing or not work.keys):
                by_reason.setdefault(work.reason, []).append(work.document.id)
        for reason, names in by_reason.items():
            named = ", ".join([*names[:_NAMED], *["..."] * (len(names) > _NAMED)])
            yield f"{template}: {_count(len(names), 'document')} {reason}: {named}"


def plan_reprocess(extractor: HasEngine) -> ReprocessPlan:
    """Compare templates and documents with the stored results; nothing is extracted."""
    engine = extractor.engine
    engine.cache.refresh()
    results = ResultsReader(engine.cache.reader)
    logged, kept = results.last_rows(), results.last_facts()
    works: list[Work] = []
    changes: dict[str, tuple[FieldChange, ...]] = {}
    states = document_states(engine)
    for name, fitted in engine.templates.items():
        changes[name] = tuple(explain_changes(kept.get(name), fitted.facts))
        prints = {field: facts.fingerprint for field, facts in fitted.facts.items()}
        for state in states:
            row = logged.get((name, state[0].path))
            if not is_meant(fitted, state[0].id):
                works += [_end_of_work(name, state)] if row is not None and row["fields"] else []
            else:
                work = _plan_work(name, prints, state, results, row)
                # For a new template, the changes of its fields are the reason.
                works.append(work if name in kept else replace(work, reason=""))
    names = [document.id for document, *_ in states]
    unmatched = find_unmatched(engine.templates.values(), names)
    return ReprocessPlan(tuple(works), changes, tuple(unmatched))


#: A document, its key, and the hash of the vectors and entities that it lacks.
DocumentState = tuple["CachedDocument", bytes, str]


def document_states(engine: ExtractionEngine) -> list[DocumentState]:
    """Every document with its key and the hash of its missing inputs."""
    engine.cache.refresh()
    documents = list(engine.cache.documents())
    keys = [document.key for document in documents]
    missing = engine.pages.missing_inputs_of_documents(documents)
    return list(zip(documents, keys, missing, strict=True))


def _plan_work(
    template: str,
    prints: Mapping[str, str],
    state: DocumentState,
    results: ResultsReader,
    row: Mapping[str, object] | None,
) -> Work:
    document, content, missing_inputs = state
    keys = {field: values_key(print_, content, missing_inputs) for field, print_ in prints.items()}
    known = results.known(list(keys.values()))
    return Work(
        template=template,
        document=document,
        keys=keys,
        missing=tuple(field for field, is_known in zip(keys, known, strict=True) if not is_known),
        is_logged=row is not None and row["fields"] == {f: k.hex() for f, k in keys.items()},
        content=content.hex(),
        missing_inputs=missing_inputs,
        reason=explain_document(row, content.hex(), missing_inputs),
    )


def _end_of_work(template: str, state: DocumentState) -> Work:
    """Of a document that has results under a template which is meant for it no longer."""
    document, content, missing_inputs = state
    return Work(
        template, document, {}, (), is_logged=False, content=content.hex(),
        missing_inputs=missing_inputs, reason="no longer matched by the `documents` patterns",
    )  # fmt: skip


def explain_document(row: Mapping[str, object] | None, content: str, missing: str) -> str:
    """How a document changed since its last extraction under a template, "" for not at all.

    Args:
        row: of the log of results; None without an earlier extraction.
        content: key of the document now.
        missing: hash of the vectors and entities that it lacks now.

    """
    if row is None:
        return "new"
    # The first caches logged neither.
    if row.get("content", content) != content:
        return "changed"
    if row.get("gaps", missing) != missing:
        return "with vectors or entities that came later"
    return ""


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
