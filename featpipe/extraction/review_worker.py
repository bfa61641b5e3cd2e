"""Review worker: fits fields of proposed templates, finds values by them, and lists candidates.

A task carries the template itself, so that a proposal is nowhere a file. The worker opens the cache
once, and keeps the last templates and pages; fitted fields go to the folder that extraction workers
read, so that an accepted proposal is not fitted again. No document is encoded: documents are those
of the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachetools import LRUCache

from featpipe.errors import FeatpipeError, UsageError
from featpipe.extraction.engine import quarantine
from featpipe.extraction.messages import FieldsDone
from featpipe.extraction.worker import ExtractRole

if TYPE_CHECKING:
    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.results import ExtractedValue, FieldResult
    from featpipe.extraction.template import Template
    from featpipe.report import Quarantined

#: Templates with their samples found: the one in use and a few proposals.
_MOST_TEMPLATES = 8


@dataclass(frozen=True, slots=True)
class Proposal:
    """A template with the fingerprint that the caller has for it."""

    template: Template
    fingerprint: str


@dataclass(frozen=True, slots=True)
class FitProposal:
    """Caller -> worker: fit a field; the answer is the number of texts encoded for it."""

    proposal: Proposal
    field: str


@dataclass(frozen=True, slots=True)
class FindValues:
    """Caller -> worker: fields of cached documents, by path; the answer is a `FieldsDone`."""

    proposal: Proposal
    works: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class ListCandidates:
    """Caller -> worker: the likeliest values of a field in a cached document."""

    proposal: Proposal
    path: str
    field: str
    most: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Worker -> caller: ``is_many``: whether the field may have several values."""

    values: tuple[ExtractedValue, ...]
    is_many: bool


@dataclass(frozen=True, slots=True)
class Ping:
    """Caller -> worker: answered when the worker is ready."""


ReviewTask = FitProposal | FindValues | ListCandidates | Ping
ReviewAnswer = int | FieldsDone | Candidates


class ReviewRole:
    """The worker's side of :meth:`featpipe.extraction.deploy.Publication.review_role`.

    Args:
        options: as for :class:`featpipe.extraction.worker.ExtractRole`.
        device, threads: given by the pool.

    """

    def __init__(self, *, device: str = "cpu", threads: int = 1, **options: object) -> None:
        # The options come from `extract_role`, which has typed them.
        role = ExtractRole(**options, device=device, threads=threads)  # type: ignore[arg-type]
        self._engine = role.engine
        self._prepared: LRUCache[str, FittedTemplate] = LRUCache(_MOST_TEMPLATES)

    def run(self, task: ReviewTask) -> ReviewAnswer:
        """One answer per kind of task.

        Raises:
            UsageError: the documents or samples are not what the caller saw.
            CheckpointError, DictionaryError: nothing can be found at all.

        """
        match task:
            case FitProposal():
                before = self._engine.pages.n_encoded
                self._fitted(task.proposal).model(task.field)
                return self._engine.pages.n_encoded - before
            case FindValues():
                return self._find(task)
            case ListCandidates():
                fitted = self._fitted(task.proposal)
                features, _ = self._engine.page_of(self._engine.cache.document(task.path))
                return Candidates(*fitted.candidates(task.field, features, task.most))
            case Ping():
                return 0

    def close(self) -> None:
        """Let go of the cache."""
        self._engine.close()

    def _find(self, task: FindValues) -> FieldsDone:
        before = self._engine.pages.n_encoded
        fitted = self._fitted(task.proposal)
        results: list[dict[str, FieldResult] | Quarantined] = []
        for path, fields in task.works:
            try:
                features, _ = self._engine.page_of(self._engine.cache.document(path))
                results.append(fitted.extract_fields(fields, features))
            except FeatpipeError:
                raise
            except Exception as error:  # one bad document costs one document
                results.append(quarantine(path, error))
        return FieldsDone(tuple(results), self._engine.pages.n_encoded - before)

    def _fitted(self, proposal: Proposal) -> FittedTemplate:
        fitted = self._prepared.get(proposal.fingerprint)
        if fitted is None:
            self._engine.cache.refresh()
            fitted = self._engine.prepare(proposal.template)
            if fitted.fingerprint != proposal.fingerprint:
                raise UsageError(
                    f"template {proposal.template.name}: its samples have changed meanwhile",
                    hint="look at the template again",
                )
            self._prepared[proposal.fingerprint] = fitted
        return fitted
