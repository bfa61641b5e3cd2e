"""Reviews of the service's templates: what may be said of their values, and what that changes.

Guarantees: a correction is on the disk before it is answered; nothing said is a part of a template
before it was accepted, and only what was shown as a change is accepted; fields are fitted and
values found by workers, never in this process; a document from which values cannot be extracted
costs itself alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from logging import getLogger
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, cast

from featpipe.atomic_write import check_writable
from featpipe.errors import DictionaryLocked, FeatpipeError, TemplateError, UsageError
from featpipe.extraction.corrections import Acceptance, Correction, Undo
from featpipe.extraction.corrections_fold import accepted, fold, last_id
from featpipe.extraction.corrections_log import CorrectionsLog
from featpipe.extraction.learn import CorrectionCheck, proposal
from featpipe.extraction.reprocess import reprocess
from featpipe.extraction.reprocess_plan import ReprocessPlan, document_states, plan_reprocess
from featpipe.extraction.review_queue import MOST_CANDIDATES
from featpipe.extraction.review_worker import ListCandidates, Proposal
from featpipe.extraction.suggest import Layouts
from featpipe.extraction.survey import KnownValues, Survey
from featpipe.extraction.template_file import (
    corrected,
    load_uncorrected,
    template_files,
    unusable,
)
from featpipe.service.errors import Failure
from featpipe.service.survey_job import TASK_S, SurveyJob

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.corrections import Record
    from featpipe.extraction.corrections_fold import Said, Subject
    from featpipe.extraction.corrections_log import BadLine
    from featpipe.extraction.engine import ExtractionEngine
    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.reprocess_plan import DocumentState
    from featpipe.extraction.results import FieldResult
    from featpipe.extraction.review_worker import Candidates, ReviewAnswer, ReviewTask
    from featpipe.extraction.template import Template
    from featpipe.service.batcher import Batcher
    from featpipe.service.template_watcher import TemplateWatcher

logger = getLogger("featpipe.service")

_MOST_FITTED = 4
#: Seconds until what failed is tried again: results while another process writes the cache, too.
_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class ReviewState:
    """A template and all that was said of it, at one moment.

    Attributes:
        bad: lines of the log that tell nothing.
        records: of the log, in order.
        said: what they amount to.
        through: id of the last record that can be accepted, "" for none.
        is_pending: whether something was said that is not accepted.
        current, proposed: the template as accepted, and as all that was said makes it.
        documents: of the cache, with their states.
        check: of further corrections.

    """

    bad: tuple[BadLine, ...]
    records: tuple[Record, ...]
    said: Mapping[Subject, Said]
    through: str
    is_pending: bool
    current: FittedTemplate
    proposed: FittedTemplate
    documents: list[DocumentState]
    check: CorrectionCheck

    @property
    def problem(self) -> str:
        """Which lines of the log are left out, "" for none."""
        if not self.bad:
            return ""
        lines = ", ".join(f"{one.line} ({one.reason})" for one in self.bad[:3])
        return f"{len(self.bad)} lines of the corrections are left out: {lines}"


class _Open(NamedTuple):
    engine: ExtractionEngine


class Reviews:
    """The reviews of all templates of a service.

    Args:
        watcher: of the templates.
        batcher: of the review workers, not opened.
        n_workers: of it.

    Raises:
        UsageError: corrections could not be kept beside a template.

    """

    def __init__(
        self,
        watcher: TemplateWatcher,
        batcher: Batcher[ReviewTask, ReviewAnswer],
        n_workers: int,
    ) -> None:
        self.watcher, self.batcher, self.n_workers = watcher, batcher, n_workers
        for file in template_files(watcher.publication.files).values():
            check_writable(CorrectionsLog(file).path)
        self.engine = watcher.publication.open_engine()
        self.known = KnownValues(self.engine)
        self.layouts = Layouts()
        self._open: dict[str, TemplateReview] = {}
        self._files: tuple[object, dict[str, Path]] = None, {}
        """The templates in use, and the file of each."""

    async def of(self, name: str) -> TemplateReview:
        """The review of one template.

        Raises:
            Failure: no such template.

        """
        templates = self.watcher.templates
        if name not in templates:
            raise Failure(404, "unknown_template", f"there is no template {name!r}")
        if self._files[0] is not templates:
            files = await asyncio.to_thread(template_files, self.watcher.publication.files)
            self._files = templates, files
        file = self._files[1].get(name)
        if file is None:
            raise Failure(404, "unknown_template", f"the template {name!r} is being changed")
        if name not in self._open or self._open[name].file != file:
            self._open[name] = TemplateReview(self, name, file)
        return self._open[name]

    def close(self) -> None:
        """End what runs in the background, and let go of the cache."""
        for review in self._open.values():
            review.close()
        self.engine.close()


class TemplateReview:
    """The review of one template, by any number of reviewers."""

    def __init__(self, reviews: Reviews, name: str, file: Path) -> None:
        self.name, self.file = name, file
        self.results_problem = ""
        """Why the results in the cache are not those of the template yet, "" if they are."""
        self._reviews, self._log = reviews, CorrectionsLog(file)
        self._lock = asyncio.Lock()
        self._fitted: dict[tuple[str, int], FittedTemplate] = {}
        self._jobs: dict[str, SurveyJob] = {}
        self._shown: dict[str, SurveyJob] = {}
        """Surveys of proposals, by the record that they reach to."""
        self._is_many: dict[str, bool] = {}
        self.layouts = reviews.layouts
        self._updating: asyncio.Task[None] | None = None

    async def look(self) -> ReviewState:
        """The template and its corrections as they are now.

        Raises:
            TemplateError, UsageError: its files cannot be used.

        """
        async with self._lock:
            return await asyncio.to_thread(self._look)

    async def survey(self, kind: str, fitted: FittedTemplate, state: ReviewState) -> SurveyJob:
        """The job that finds the values under a template; ``kind`` is current or proposed."""
        async with self._lock:
            job = self._jobs.get(kind)
            if job is None or not _is_of(job, fitted, state):
                if job is not None:
                    job.cancel()
                known = self._reviews.known
                survey = await asyncio.to_thread(Survey, fitted, state.documents, known)
                job = SurveyJob(survey, self._reviews.batcher, self._reviews.n_workers)
                self._jobs[kind] = job
            return job

    async def proposal(self, state: ReviewState) -> tuple[SurveyJob, SurveyJob]:
        """The surveys before and after all that was said."""
        before = await self.survey("current", state.current, state)
        after = await self.survey("proposed", state.proposed, state)
        self._shown = {state.through: after}
        return before, after

    async def candidates(self, document: CachedDocument, field: str) -> Candidates:
        """The likeliest values of a field in a document.

        Raises:
            Failure: there is no such field, or no worker answers.

        """
        state = await self.look()
        if field not in state.current.facts:
            raise Failure(404, "unknown_field", f"the template has no field {field!r}")
        task = ListCandidates(
            Proposal(state.current.template, state.current.fingerprint),
            document.path,
            field,
            MOST_CANDIDATES,
        )
        found = cast("Candidates", await self._reviews.batcher.submit(task, timeout_s=TASK_S))
        self._is_many[field] = found.is_many
        return found

    async def say(self, record: Correction) -> Correction:
        """Keep a correction, durably, with the texts at its places.

        Raises:
            Failure: it cannot be used, or not be kept.

        """
        state = await self.look()
        fault = state.check.fault(record)
        if fault:
            raise Failure(422, "bad_correction", fault)
        facts = state.current.facts[record.field]
        whole = state.check.completed(record).model_copy(
            update={
                "is_many": self._is_field_of_many(state, record),
                "model": facts.model_fingerprint,
                "version": state.current.template.version,
            }
        )
        await self._keep(whole)
        return whole

    async def undo(self, of: str, who: str) -> None:
        """Take a correction or an acceptance back, durably.

        Raises:
            Failure: there is no such record, or this one cannot be kept.

        """
        state = await self.look()
        target = next((record for record in state.records if record.id == of), None)
        if target is None or isinstance(target, Undo):
            raise Failure(404, "unknown_record", f"nothing was said under the id {of!r}")
        await self._keep(Undo(template=self.name, who=who, of=of))
        if isinstance(target, Acceptance):
            await self._publish()

    async def accept(self, through: str, who: str) -> str:
        """Make what was said a part of the template; returns its new version.

        Raises:
            Failure: what it changes was not shown, or it cannot be kept.

        """
        job = self._shown.get(through)
        if job is None or not job.is_complete:
            raise Failure(
                409, "not_shown", "what this changes has not been shown",
                hint="look at the changes first",
            )  # fmt: skip
        version = job.survey.fitted.template.version
        await self._keep(Acceptance(template=self.name, who=who, through=through, version=version))
        self._shown.clear()
        await self._publish()
        return version

    def close(self) -> None:
        """End what runs in the background."""
        for job in self._jobs.values():
            job.cancel()
        if self._updating is not None:
            self._updating.cancel()

    # ---- the files

    def _look(self) -> ReviewState:
        template, corrections = load_uncorrected(self.file), self._log.read()
        records = corrections.records
        engine = self._reviews.engine
        documents = document_states(engine)
        said, taken = fold(records), accepted(records)
        return ReviewState(
            bad=tuple(unusable(template, corrections)),
            records=records,
            said=said,
            through=last_id(records),
            is_pending=said != fold(taken),
            current=self._prepare(corrected(template, records), documents),
            proposed=self._prepare(proposal(template, records), documents),
            documents=documents,
            check=CorrectionCheck(template, engine.cache),
        )

    def _prepare(self, template: Template, documents: list[DocumentState]) -> FittedTemplate:
        """The last ones are kept: most looks find neither template nor documents changed."""
        key = template.model_dump_json(), hash(_identities(documents))
        if key not in self._fitted:
            if len(self._fitted) > _MOST_FITTED:
                self._fitted.clear()
            self._fitted[key] = self._reviews.engine.prepare(template)
        return self._fitted[key]

    async def _keep(self, record: Record) -> None:
        """Append a record, durably.

        Raises:
            Failure: it cannot be kept.

        """
        try:
            await asyncio.to_thread(self._log.append, [record])
        except UsageError as error:
            logger.warning("%s", error.message)
            why = error.message.rpartition(": ")[2]
            raise Failure(
                500, "not_kept", f"{self._log.path.name} cannot be written: {why}",
                hint="nothing was kept; the folder of the template must be writable, with room",
            ) from error  # fmt: skip

    def _is_field_of_many(self, state: ReviewState, record: Correction) -> bool:
        cardinality = state.current.template.field(record.field).cardinality
        if cardinality is not None:
            return cardinality != "one"
        return self._is_many.get(record.field, False) or len(record.shown) > 1

    # ---- after an acceptance

    async def _publish(self) -> None:
        """Bring the template to the extracting workers, then the cache's results up to date."""
        try:
            await self._reviews.watcher.publish()
        except TemplateError as error:  # another file of the folder: it is shown with /templates
            logger.warning("the templates are as they were: %s", error.message)
        if self._updating is not None:
            self._updating.cancel()
        self._updating = asyncio.create_task(self._update())

    async def _update(self) -> None:
        """Write the results; while another process writes the cache, try again."""
        state = await self.look()
        job = await self.survey("current", state.current, state)
        await job.wait()  # most often at once: all values were found to be shown
        values = await asyncio.to_thread(job.survey.values)
        while True:
            try:
                await asyncio.to_thread(self._write_results, values)
            except DictionaryLocked as error:
                self.results_problem = error.message
            except FeatpipeError as error:
                self.results_problem = error.message
                logger.warning("results are not brought up to date: %s", error.message)
                return
            else:
                self.results_problem = ""
                return
            await asyncio.sleep(_PAUSE_S)

    def _write_results(self, values: Mapping[bytes, FieldResult]) -> None:
        """Values that are known; `featpipe reprocess` finds those of documents left out here."""
        engine = self._reviews.watcher.publication.open_engine()
        try:
            plan = plan_reprocess(_Open(engine))
            works = tuple(
                work
                for work in plan.works
                if work.template == self.name
                and all(work.keys[name] in values for name in work.missing)
            )
            changes = {name: one for name, one in plan.changes.items() if name == self.name}
            report = reprocess(_Open(engine), ReprocessPlan(works, changes), known=values)
            logger.info("results of %s: %s", self.name, report.summary())
        finally:
            engine.close()


def _is_of(job: SurveyJob, fitted: FittedTemplate, state: ReviewState) -> bool:
    """Whether a job is of this template and these documents, and need not be tried again."""
    survey = job.survey
    if job.problem and job.ended is not None and monotonic() > job.ended + _PAUSE_S:
        return False
    meant = Survey.meant(fitted, state.documents)
    return (
        survey.fitted.fingerprint == fitted.fingerprint
        and survey.fitted.template.version == fitted.template.version
        and _identities(survey.documents) == _identities(meant)
    )


def _identities(documents: list[DocumentState]) -> tuple[tuple[str, bytes, str], ...]:
    return tuple((document.path, key, missing) for document, key, missing in documents)
