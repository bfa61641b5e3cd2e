"""Reprocess: bring the values of all cached documents up to date with changed templates.

Guarantees: values that no change affects are read back, not found again; no document is encoded,
only samples that the cache does not hold, when a field is fitted to them; the result equals that of
a full run over an empty ``/results``; after a run that was killed, the next one does only the rest.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from os import getpid
from time import monotonic
from typing import TYPE_CHECKING

from featpipe.errors import FeatpipeError
from featpipe.extraction.engine import ExtractionEngine, quarantine
from featpipe.extraction.on_workers import find_fields_on_workers
from featpipe.extraction.reprocess_plan import HasEngine, ReprocessPlan, Work, plan_reprocess
from featpipe.extraction.results import Extraction, FieldResult, change_of
from featpipe.extraction.results_table import ResultsReader, ResultsWriter
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.messages import FieldsWork
    from featpipe.extraction.results import Change
    from featpipe.extraction.scoring.features import PageFeatures

#: Documents whose results are made durable together.
_BATCH = 64


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


def _spell(result: FieldResult) -> str:
    if not result.values:
        return "nothing"
    return ", ".join(map(str, result.values))
