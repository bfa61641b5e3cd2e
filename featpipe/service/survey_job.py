"""A survey on review workers, in the background of the event loop."""

from __future__ import annotations

import asyncio
from logging import getLogger
from time import monotonic
from typing import TYPE_CHECKING, cast

from featpipe.extraction.review_worker import FindValues, FitProposal, Proposal
from featpipe.report import Quarantined
from featpipe.service.errors import Failure

if TYPE_CHECKING:
    from featpipe.extraction.messages import FieldsDone
    from featpipe.extraction.review_worker import ReviewAnswer, ReviewTask
    from featpipe.extraction.survey import Survey
    from featpipe.service.batcher import Batcher

    Work = tuple[str, tuple[str, ...]]

logger = getLogger("featpipe.service")

#: Documents of one task.
_PER_TASK = 8
#: Codes of failures that one document may cause.
_OF_A_DOCUMENT = frozenset({"worker_died", "document_deadline"})
#: Longest time of a task, the wait for a worker included.
TASK_S = 900.0


class SurveyJob:
    """Finds the missing values of a survey. It begins at once and ends by itself.

    Args:
        survey: to be completed.
        batcher: of the review workers.
        n_workers: of it.

    Attributes:
        problem: why the survey ended without all values, "" if it did not.
        ended: when it ended, by `monotonic`; None while it runs.

    """

    def __init__(
        self, survey: Survey, batcher: Batcher[ReviewTask, ReviewAnswer], n_workers: int
    ) -> None:
        self.survey = survey
        self.n_encoded, self.problem = 0, ""
        self.started, self.ended = monotonic(), cast("float | None", None)
        self._batcher, self._n_workers = batcher, n_workers
        self._proposal = Proposal(survey.fitted.template, survey.fitted.fingerprint)
        missing = list(survey.missing())
        self._chunks = iter(
            [missing[at : at + _PER_TASK] for at in range(0, len(missing), _PER_TASK)]
        )
        self.n_documents = len(survey.documents)
        self.n_done = self.n_documents - len(missing)
        self._task = asyncio.create_task(self._run())

    @property
    def is_complete(self) -> bool:
        """Whether it has ended and has all values."""
        return self._task.done() and not self._task.cancelled() and not self.problem

    @property
    def seconds(self) -> float:
        """How long it ran, or has been running."""
        return (self.ended or monotonic()) - self.started

    def cancel(self) -> None:
        """End it."""
        self._task.cancel()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return when it has ended, or after some time."""
        await asyncio.wait([self._task], timeout=timeout_s)

    async def _run(self) -> None:
        try:
            await self._fit()
            async with asyncio.TaskGroup() as group:
                for _ in range(self._n_workers * 2):  # the next task of each is on its way
                    group.create_task(self._work())
        except* Failure as failures:
            self.problem = str(failures.exceptions[0])
            logger.warning("review: %s", self.problem)
        except* Exception:  # a survey with gaps must not pass for a whole one
            self.problem = "an internal error; the log has it"
            logger.exception("review: the survey ended")
        finally:
            self.ended = monotonic()

    async def _fit(self) -> None:
        """One field is fitted by one worker, before all of them need it."""
        fields = self.survey.fitted.unfitted() if self.n_done < self.n_documents else []
        asked = [self._ask(FitProposal(self._proposal, field)) for field in fields]
        self.n_encoded += sum(cast("list[int]", await asyncio.gather(*asked)))

    async def _work(self) -> None:
        for chunk in self._chunks:
            try:
                await self._find(chunk)
            except Failure as failure:
                if failure.code not in _OF_A_DOCUMENT:
                    raise
                # One of them kills its worker or takes too long: which one is found alone.
                for work in chunk:
                    await self._find_alone(work)
            self.n_done += len(chunk)

    async def _find_alone(self, work: Work) -> None:
        try:
            await self._find([work])
        except Failure as failure:
            if failure.code not in _OF_A_DOCUMENT:
                raise
            path, _ = work
            self.survey.lost[path] = Quarantined(path, str(failure), failure.code)

    async def _find(self, works: list[Work]) -> None:
        done = cast("FieldsDone", await self._ask(FindValues(self._proposal, tuple(works))))
        self.n_encoded += done.n_encoded
        for (path, _), result in zip(works, done.results, strict=True):
            if isinstance(result, Quarantined):
                self.survey.lost[path] = result
            else:
                self.survey.add(path, result)

    async def _ask(self, task: ReviewTask) -> ReviewAnswer:
        return await self._batcher.submit(task, timeout_s=TASK_S)
