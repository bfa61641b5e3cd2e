"""A run of extraction: which documents, under which templates, and into which file.

Guarantees: what one document gives is kept before the next is given out, so that a run that ends
early, in whatever way, leaves the results of its first documents; the next run goes on from there,
and its file has the bytes that an uninterrupted run gives it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.cache.places import make_preparation
from featpipe.documents import hash_bytes, hash_text
from featpipe.extraction.choose import is_meant
from featpipe.extraction.field_facts import hash_json
from featpipe.extraction.messages import (
    ALL,
    AUTO,
    FromSource,
    Inline,
    Loaded,
    OnDisk,
    Stored,
    Upload,
    name_of,
)
from featpipe.extraction.partial_results import PartialResults
from featpipe.extraction.results_file import write_extractions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.engine import AnyDocument, ExtractionEngine
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.messages import Done, Given
    from featpipe.extraction.results import Extraction
    from featpipe.report import Quarantined


@dataclass(frozen=True, slots=True)
class Asked:
    """A document that a user asked for.

    Attributes:
        document: as an extractor takes it.
        is_named: itself, and not by a folder or as all of the cache.
        id: its path below that folder, compared with patterns besides its name.

    """

    document: AnyDocument
    is_named: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents of a run, and those that no template is meant for.

    Attributes:
        template: as for `ExtractTask`.
        documents: to extract, in order.
        left_out: names of the documents that match the patterns of no template.
        n_matching: documents that match the patterns of each template that has some.
        patterns: of these templates.

    """

    template: str
    documents: tuple[Given, ...]
    left_out: tuple[str, ...] = ()
    n_matching: Mapping[str, int] = field(default_factory=dict)
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """What is left out and why, and what to do about it; nothing where all are extracted."""
        if not self.left_out:
            return
        n = len(self.documents) + len(self.left_out)
        yield (
            f"{len(self.left_out)} of {n} documents are left out, such as {self.left_out[0]}: they "
            "match the `documents` patterns of no template"
        )
        is_short = len(self.patterns) == 1 or not self.documents
        for name, patterns in self.patterns.items():
            if is_short or not self.n_matching[name]:
                yield f"  {name}: {self.n_matching[name]} of {n} match {', '.join(patterns)}"
        yield (
            "  a file that is named together with a template (--template NAME) is extracted "
            "whatever the patterns are; they stand in the template's file"
        )


def select_documents(
    engine: ExtractionEngine,
    asked: Sequence[Asked],
    template: str | None = None,
    *,
    is_template_named: bool | None = None,
) -> Selection:
    """Choose the documents that templates are meant for.

    A named document is extracted under a named template in any case. Any other is extracted only
    where it matches the template's patterns; "auto" takes every document.

    Args:
        engine: its templates.
        asked: in order.
        template: its name, "auto", or None for all.
        is_template_named: whether the only template of ``engine`` was named by its file; by default
            whether ``template`` is the name of one.

    Raises:
        UsageError: no such template.

    """
    templates = engine.templates
    if template == AUTO and AUTO not in templates:
        return Selection(AUTO, tuple(engine.given_of(one.document) for one in asked))
    chosen = templates
    if template not in {None, ALL} or template in templates:
        fitted = engine.template_set.choose(template)
        chosen, is_template_named = {fitted.template.name: fitted}, True
    is_one = bool(is_template_named) and len(chosen) == 1
    documents, left_out = [], []
    n_matching = {name: 0 for name, one in chosen.items() if one.template.documents}
    for one in asked:
        given = engine.given_of(one.document)
        names = (engine.pages.label_of_given(given), *([one.id] if one.id else []))
        meant = [n for n, fitted in chosen.items() if any(is_meant(fitted, name) for name in names)]
        for name in meant:
            if name in n_matching:
                n_matching[name] += 1
        if meant or (is_one and one.is_named):
            documents.append(given)
        else:
            left_out.append(names[0])
    patterns = {name: chosen[name].template.documents for name in n_matching}
    name = next(iter(chosen)) if is_one else ALL
    return Selection(name, tuple(documents), tuple(left_out), n_matching, patterns)


@dataclass(frozen=True, slots=True)
class ExtractProgress:
    """A snapshot of a run."""

    n_documents: int
    n_done: int
    n_kept: int
    """Of these, by an interrupted run before."""
    n_quarantined: int


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """One run.

    Attributes:
        n_documents: selected.
        n_done: extracted or quarantined, by this run or by the one that it went on from.
        n_extractions: in the output.
        quarantined: of all documents done.
        notes: what the output's format could not hold.

    """

    n_documents: int
    n_done: int
    n_extractions: int
    quarantined: tuple[Quarantined, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def was_interrupted(self) -> bool:
        """Whether documents are left to do."""
        return self.n_done < self.n_documents


class ExtractRun:
    """Extracts a selection. One thread calls `finish` or `extractions`; any may call `stop`.

    Args:
        extractor: its templates and cache.
        selection: of its documents.
        workers, deadline_s: as for ``Extractor.extract_many``.

    """

    def __init__(
        self,
        extractor: Extractor,
        selection: Selection,
        *,
        workers: int = 0,
        deadline_s: float | None = 120.0,
    ) -> None:
        self._extractor, self._engine = extractor, extractor.engine
        self._selection = selection
        self._workers, self._deadline_s = workers, deadline_s
        self._is_stopping = False
        self.n_done = 0
        """Documents whose outcome is kept or handed out."""
        self._n_new = 0
        self.quarantined: list[Quarantined] = []
        """Of the documents done."""
        self.changed = ""
        """The document from which on an interrupted run could not be gone on from, "" for none."""

    def stop(self) -> bool:
        """Give out no further document. Safe in a signal handler; False: none is finished yet."""
        self._is_stopping = True
        return self._n_new > 0

    def extractions(self, listen: Callable[[ExtractProgress], None]) -> Iterator[Extraction]:
        """All extractions in order, for an output that cannot be gone on with."""
        for done in self._extract_from(0, listen):
            yield from done.extractions

    def finish(
        self, out: Path, listen: Callable[[ExtractProgress], None], *, is_new: bool = False
    ) -> ExtractReport:
        """Write the file; or keep what is finished beside it, and go on from there the next time.

        Args:
            out: as for `write_extractions`.
            listen: called after each document.
            is_new: drop what an interrupted run has kept.

        Raises:
            UsageError: that was under other conditions, or another run writes the same file.
            WriteFailed: what is finished cannot be kept.

        """
        n_documents = len(self._selection.documents)
        documents = list(_identities(self._engine, self._selection.documents))
        conditions = self._conditions()
        with PartialResults(out, conditions, documents, is_new=is_new) as partial:
            self.n_done, self.changed = partial.n_done, partial.changed
            self.quarantined = partial.quarantined()
            for done in self._extract_from(partial.n_done, listen):
                partial.append(done)
            if partial.n_done < n_documents:
                return ExtractReport(n_documents, partial.n_done, 0, tuple(self.quarantined))
            written = write_extractions(partial.extractions(), out)
            partial.remove()
        lost = tuple(self.quarantined)
        return ExtractReport(n_documents, n_documents, written.n_extractions, lost, written.notes)

    def _extract_from(
        self, start: int, listen: Callable[[ExtractProgress], None]
    ) -> Iterator[Done]:
        documents = self._selection.documents
        left = takewhile(lambda _: not self._is_stopping, islice(documents, start, None))
        listen(ExtractProgress(len(documents), start, start, len(self.quarantined)))
        found = self._engine.extract_each(
            left, self._selection.template, self._workers, self._deadline_s
        )
        for done in found:
            if done.is_new:
                self._extractor.warn_of_missing_models()
            if done.quarantined is not None:
                self.quarantined.append(done.quarantined)
            yield done
            self._n_new += 1
            self.n_done += 1
            listen(ExtractProgress(len(documents), self.n_done, start, len(self.quarantined)))

    def _conditions(self) -> dict[str, object]:
        """Everything but the documents that results depend on, as plain JSON."""
        engine, template = self._engine, self._selection.template
        chosen = {template} & engine.templates.keys() or engine.templates
        limits = engine.limits
        return {
            "cache": str(engine.cache.path.absolute()),
            "vectors and entities": engine.pages.name,
            "missing models": list(self._extractor.notes),
            "way of reading": make_preparation(use_ocr=limits.use_ocr).fingerprint,
            "limits": asdict(limits),
            "choice of templates": template,
            "templates": {
                name: hash_json(
                    [fitted.fingerprint, fitted.template.version, list(fitted.template.documents)]
                )
                for name, fitted in engine.templates.items()
                if name in chosen
            },
        }


def _identities(engine: ExtractionEngine, documents: Sequence[Given]) -> Iterator[str]:
    """Name and state of each document; equal ones have equal results under equal conditions."""
    known = [_stored(engine, given) for given in documents]
    stored = [document for document in known if document is not None]
    missing = iter(engine.pages.missing_inputs_of_documents(stored))
    for given, document in zip(documents, known, strict=True):
        state = [] if document is None else [document.key.hex(), next(missing)]
        yield json.dumps([name_of(given), *state, *_state_on_disk(given)], ensure_ascii=False)


def _stored(engine: ExtractionEngine, given: Given) -> CachedDocument | None:
    """What the cache has at the document's place."""
    if isinstance(given, Stored):
        return engine.cache.find_document(given.name)
    if isinstance(given, OnDisk):
        return engine.cache.find_document(given.path)
    return (
        engine.cache.find_document(given.source.address) if isinstance(given, FromSource) else None
    )


def _state_on_disk(given: Given) -> list[object]:
    """Changes with every change of the file; of what is no file, a hash."""
    match given:
        case Stored():
            return []
        case Inline():
            return [hash_text(given.text)]
        case Upload():
            return [hash_bytes(given.data)]
        case Loaded():
            return [given.document.text_hash]
    path = Path(given.path) if isinstance(given, OnDisk) else given.source.path
    try:
        status = path.stat()
    except OSError as error:
        return [str(error.errno)]
    return [str(path), status.st_size, status.st_mtime_ns]
