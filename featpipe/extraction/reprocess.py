"""Reprocess: bring the values of all cached documents up to date with changed templates.

Guarantees: values that no change affects are read back, not found again; no document is encoded,
only samples that the cache does not hold, when a field is fitted to them; the result equals that of
a full run over an empty ``/results``; after a run that was killed, the next one does only the rest.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from os import getpid
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from featpipe.errors import FeatpipeError
from featpipe.extraction.choose import find_unmatched, is_meant
from featpipe.extraction.engine import ExtractionEngine, quarantine
from featpipe.extraction.fitted import FieldChange, explain_changes, values_key
from featpipe.extraction.on_workers import find_fields_on_workers
from featpipe.extraction.results import Extraction, FieldResult, change_of
from featpipe.extraction.results_table import ResultsReader, ResultsWriter
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.messages import FieldsWork
    from featpipe.extraction.results import Change
    from featpipe.extraction.scoring.features import PageFeatures

#: Documents whose results are made durable together.
_BATCH = 64
#: Documents that a plan names for each reason.
_NAMED = 5


class HasEngine(Protocol):
    """An extractor, or whatever else holds an engine."""

    @property
    def engine(self) -> ExtractionEngine:
        """Of templates and cache."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A field of a document with other values than before, or with surer or less sure ones."""

    template: str
    document: str
    field: str
    old: FieldResult
    new: FieldResult

    @property
    def what(self) -> Change:
        """Whether the values changed, or only their probability."""
        return change_of(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.document} {self.field}: {_spell(self.old)} -> {_spell(self.new)}"

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return {
            "template": self.template,
            "document": self.document,
            "field": self.field,
            "what": self.what,
            "old": [value.as_dict() for value in self.old.values],
            "new": [value.as_dict() for value in self.new.values],
        }


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


@dataclass(slots=True)
class ReprocessReport:
    """One run."""

    run: str
    n_documents: int = 0
    n_extracted: int = 0
    """Fields of documents that were found in this run."""
    n_unchanged: int = 0
    n_encoded: int = 0
    seconds: float = 0.0
    changed: list[ValueChange] = field(default_factory=list)
    """Fields with other values, or whose probability moved by 0.05 or more."""
    lost: list[Quarantined] = field(default_factory=list)
    """Documents that could not be extracted under a template; the next run tries them again."""

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return {
            "run": self.run,
            "documents": self.n_documents,
            "extracted": self.n_extracted,
            "unchanged": self.n_unchanged,
            "encoded": self.n_encoded,
            "seconds": self.seconds,
            "changed": [change.as_dict() for change in self.changed],
            "lost": [asdict(one) for one in self.lost],
        }

    def summary(self) -> str:
        """The last line of a run."""
        n_values = sum(change.what == "values" for change in self.changed)
        n_shifted = len(self.changed) - n_values
        return (
            f"documents {self.n_documents}; fields extracted {self.n_extracted}, unchanged "
            f"{self.n_unchanged}; values changed {n_values}; "
            f"{f'probabilities changed {n_shifted}; ' if n_shifted else ''}"
            f"encoded {self.n_encoded}; "
            f"{f'lost {len(self.lost)}; ' if self.lost else ''}"
            f"{self.seconds:.1f} s"
        )


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


def reprocess(
    extractor: HasEngine,
    plan: ReprocessPlan | None = None,
    *,
    wait_s: float = 0.0,
    workers: int = 0,
    deadline_s: float | None = 600.0,
    known: Mapping[bytes, FieldResult] | None = None,
) -> ReprocessReport:
    """Find the missing values, keep them in the cache, and report which values changed.

    Args:
        extractor: its templates and cache.
        plan: of an earlier call of :func:`plan_reprocess`; by default made now.
        wait_s: for another process that writes the cache.
        workers: processes to extract on; 0 for this one. The values are the same.
        deadline_s: of a batch of documents on a worker; a document that takes longer is lost.
        known: values that were found before, by key: they are kept and not found again.

    Raises:
        DictionaryLocked: another process writes the cache for longer than ``wait_s`` seconds.

    """
    engine = extractor.engine
    started = monotonic()
    plan = plan or plan_reprocess(extractor)
    run = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z-{getpid()}"
    report = ReprocessReport(run, n_documents=plan.n_meant)
    encoded_before = engine.pages.n_encoded
    # Document by document, so that each is read once for all its templates.
    to_do = sorted(
        (work for work in plan.works if work.missing or not work.is_logged),
        key=lambda work: work.document.path,
    )
    report.n_unchanged = sum(len(work.keys) - len(work.missing) for work in plan.works)
    changed_templates = [name for name, changes in plan.changes.items() if changes]
    if to_do or changed_templates:
        rows = ResultsReader(engine.cache.reader).last_rows()
        before = {place: row["fields"] for place, row in rows.items()}
        with ResultsWriter(engine.cache.path, wait_s) as writer:
            found = _find_unknown(engine, to_do, known or {}, (workers, deadline_s))
            while batch := list(islice(found, _BATCH)):
                _keep(engine, batch, before, writer, report)
            writer.settle()
            # Facts last: after a kill, the next run gives the same reasons and does only the rest.
            writer.write({}, facts=[_facts_of(engine, name) for name in changed_templates])
    report.n_encoded += engine.pages.n_encoded - encoded_before
    report.seconds = monotonic() - started
    engine.cache.refresh()
    return report


def read_results(extractor: Extractor) -> Iterator[Extraction]:
    """The stored results as extractions, without fields that are not extracted yet.

    Document by document, as `featpipe extract` lists them.
    """
    engine = extractor.engine
    engine.cache.refresh()
    results = ResultsReader(engine.cache.reader)
    places = {document.path: place for place, document in enumerate(engine.cache.documents())}
    works = plan_reprocess(extractor).works
    for work in sorted(works, key=lambda work: places.get(work.document.path, len(places))):
        if not work.keys:
            continue
        found = {name: results.field(key) for name, key in work.keys.items()}
        fields = {name: result for name, result in found.items() if result is not None}
        page = engine.page_of(work.document)[0].page
        yield engine.assemble(page, engine.templates[work.template], fields)


_Found = tuple[Work, dict[str, FieldResult] | Quarantined, int]


def _find_unknown(
    engine: ExtractionEngine,
    works: list[Work],
    known: Mapping[bytes, FieldResult],
    how: tuple[int, float | None],
) -> Iterator[_Found]:
    """As `_find_all`, without the works of which all values are known."""
    unknown = []
    for work in works:
        keys = {name: work.keys[name] for name in work.missing}
        if all(key in known for key in keys.values()):
            yield work, {name: known[key] for name, key in keys.items()}, 0
        else:
            unknown.append(work)
    yield from _find_all(engine, unknown, *how)


def _find_all(
    engine: ExtractionEngine, works: list[Work], workers: int, deadline_s: float | None
) -> Iterator[_Found]:
    """The missing fields of each work, and the number of texts encoded for them."""
    if workers and any(work.missing for work in works):
        yield from ((work, {}, 0) for work in works if not work.missing)
        todo = [work for work in works if work.missing]
        role = engine.role(workers, deadline_s)
        fits = engine.fit_tasks(sorted({work.template for work in todo}))
        found = find_fields_on_workers(role, fits, _travelling(engine, todo))
        yield from ((work, *one) for work, one in zip(todo, found, strict=True))
        return
    pages: dict[str, PageFeatures] = {}
    for work in works:
        yield work, _find_here(engine, work, pages), 0


def _travelling(engine: ExtractionEngine, works: list[Work]) -> list[FieldsWork]:
    """As data for workers, with the fingerprints that the values will be kept by."""
    prints = {
        name: {field: facts.fingerprint for field, facts in fitted.facts.items()}
        for name, fitted in engine.templates.items()
    }
    return [
        (w.document.path, w.template, tuple((f, prints[w.template][f]) for f in w.missing))
        for w in works
    ]


def _find_here(
    engine: ExtractionEngine, work: Work, pages: dict[str, PageFeatures]
) -> dict[str, FieldResult] | Quarantined:
    """``pages`` holds the last document by path: the next work often is of the same."""
    if not work.missing:
        return {}
    fitted = engine.templates[work.template]
    path = work.document.path
    try:
        if path not in pages:
            pages.clear()
            pages[path] = engine.page_of(work.document)[0]
        return fitted.extract_fields(work.missing, pages[path])
    except FeatpipeError:
        raise
    except Exception as error:  # one bad document costs one document
        return quarantine(work.document.id, error)


def _log_row(run: str, work: Work) -> dict[str, object]:
    return {
        "run": run,
        "template": work.template,
        "path": work.document.path,
        "document": work.document.id,
        "fields": {name: key.hex() for name, key in work.keys.items()},
        "content": work.content,
        "gaps": work.missing_inputs,
    }


def _keep(
    engine: ExtractionEngine,
    batch: list[_Found],
    before: Mapping[tuple[str, str], Mapping[str, str]],
    writer: ResultsWriter,
    report: ReprocessReport,
) -> None:
    results = ResultsReader(engine.cache.reader)
    values: dict[bytes, FieldResult] = {}
    log: list[dict[str, object]] = []
    for work, found, n_encoded in batch:
        report.n_encoded += n_encoded
        if isinstance(found, Quarantined):
            report.lost.append(found)
            continue
        values.update((work.keys[name], result) for name, result in found.items())
        report.n_extracted += len(found)
        log.append(_log_row(report.run, work))
        old = before.get((work.template, work.document.path))
        if old is not None:
            report.changed.extend(_compare(work, old, values, results))
    writer.write(values, log)


def _compare(
    work: Work,
    old: Mapping[str, str],
    values: Mapping[bytes, FieldResult],
    results: ResultsReader,
) -> Iterator[ValueChange]:
    none = FieldResult()
    for name in {**dict.fromkeys(old), **dict.fromkeys(work.keys)}:
        key = work.keys.get(name)
        if key is not None and old.get(name) == key.hex():
            continue
        after = none if key is None else values.get(key) or results.field(key) or none
        before = (results.field(bytes.fromhex(old[name])) if name in old else None) or none
        if change_of(before, after):
            yield ValueChange(work.template, work.document.id, name, before, after)


def _facts_of(engine: ExtractionEngine, name: str) -> dict[str, object]:
    fitted = engine.templates[name]
    return {
        "template": name,
        "facts": {field: facts.as_dict() for field, facts in fitted.facts.items()},
        # Their names in the template may be paths from its folder, which is nowhere in the cache.
        "keys": {
            field: sorted(key.hex() for key in fitted.known_in(field)) for field in fitted.facts
        },
    }


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _spell(result: FieldResult) -> str:
    if not result.values:
        return "nothing"
    return ", ".join(map(str, result.values))
