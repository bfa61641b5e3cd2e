"""``/review``: look at values, say what is right, see what that changes, accept it.

The routes exist only where the service allows reviews. Writes are taken as JSON from pages of the
service alone, so that no other page can make a browser send one.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ValidationError

from featpipe.extraction.corrections import Acceptance, Correction
from featpipe.extraction.corrections_fold import accepted, standing
from featpipe.extraction.learn import kind_of, summarise
from featpipe.extraction.review_queue import doubt, list_items, order_queue
from featpipe.extraction.suggest import MOST_RANKED, rank_documents
from featpipe.extraction.survey import changes_between
from featpipe.service.errors import Failure
from featpipe.service.review_schemas import (
    AcceptAnswer,
    AcceptBody,
    CandidatesAnswer,
    ChangesAnswer,
    CorrectionBody,
    DocumentAnswer,
    QueueAnswer,
    SayAnswer,
)
from featpipe.service.schemas import Name, failures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.corrections_fold import Said, Subject
    from featpipe.extraction.reprocess import ValueChange
    from featpipe.extraction.results import ExtractedValue
    from featpipe.extraction.review_queue import QueueItem
    from featpipe.service.review import ReviewState, TemplateReview
    from featpipe.service.survey_job import SurveyJob

#: Characters of a document's text that are sent.
_MOST_CHARACTERS = 400_000
_MOST_SAID = 100
_MOST_CHANGES = 1000
#: How long a request for changes waits for them before it tells how far they are.
_PATIENCE_S = 1.0


def refuse_other_pages(request: Request) -> None:
    """Refuse what a page of another site could have made a browser send.

    Raises:
        Failure: no JSON, which a form cannot send; or another origin.

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Failure(
            415, "not_json", "the body must be JSON", hint="Content-Type: application/json"
        )
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise Failure(403, "foreign_origin", "only pages of this service may say so")


router = APIRouter(prefix="/review", tags=["review"])
_WRITES = [Depends(refuse_other_pages)]

Template = Annotated[str, Query(min_length=1, max_length=256)]
DocumentKey = Annotated[str, Query(pattern="^[0-9a-f]{32}$")]


@router.get("/queue", response_model=QueueAnswer, responses=failures(404, 429, 503, 504))
async def queue(
    request: Request,
    template: Template,
    field: Annotated[Name | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, object]:
    """What to look at, the most useful first, and what was said already.

    Values are found in the background: the queue grows until all documents are done.
    """
    review = await _review_of(request, template)
    state = await review.look()
    job = await review.survey("current", state.current, state)
    await job.wait(_PATIENCE_S)
    return await asyncio.to_thread(_answer_queue, review, state, job, (field, limit))


@router.get("/document", response_model=DocumentAnswer, responses=failures(404))
async def document(request: Request, template: Template, key: DocumentKey) -> dict[str, object]:
    """The text of a document, to read a value in its place."""
    review = await _review_of(request, template)
    found = _document_of(await review.look(), key)
    text, meta = found.text, found.meta
    title = str(meta.get("title") or text.lstrip().partition("\n")[0][:80])
    return {
        "document": found.id,
        "key": key,
        "title": title.encode("utf-8", "replace").decode(),
        "n_characters": len(text),
        "text": text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode(),
        **{name: meta.get(name) or [] for name in ("headings", "tables", "pages")},
    }


@router.get("/candidates", response_model=CandidatesAnswer, responses=failures(404, 429, 503, 504))
async def candidates(
    request: Request, template: Template, key: DocumentKey, field: Annotated[Name, Query()]
) -> dict[str, object]:
    """What else the value of a field may be."""
    review = await _review_of(request, template)
    found = await review.candidates(_document_of(await review.look(), key), field)
    return {"values": [_describe_value(v) for v in found.values], "is_many": found.is_many}


@router.post(
    "/corrections",
    response_model=SayAnswer,
    responses=failures(404, 415),
    dependencies=_WRITES,
)
async def say(request: Request, body: CorrectionBody) -> dict[str, object]:
    """Keep what a reviewer says. It is durable when the answer comes."""
    review = await _review_of(request, body.template)
    if body.verdict == "undo":
        await review.undo(str(body.of), body.who)
        return {"id": body.id}
    kept = await review.say(_correction_of(body))
    return {"id": kept.id, "values": list(kept.values)}


@router.get("/changes", response_model=ChangesAnswer, responses=failures(404, 429, 503, 504))
async def changes(request: Request, template: Template) -> dict[str, object]:
    """What all that was said changes; it is found in the background, so ask again until complete.

    Nothing is changed by looking.
    """
    review = await _review_of(request, template)
    state = await review.look()
    before, after = await review.proposal(state)
    for job in (before, after):
        await job.wait(_PATIENCE_S)
    summary, listed = await asyncio.to_thread(_find_changes, state, before, after)
    lost = {*before.survey.lost, *after.survey.lost}
    return {
        "template": template,
        "version": state.proposed.template.version,
        "through": state.through,
        "is_pending": state.is_pending,
        "is_complete": summary is not None,
        "n_documents": after.n_documents,
        "n_done": min(before.n_done, after.n_done),
        "summary": summary,
        "changes": listed,
        "lost": sorted(d.id for d, *_ in state.documents if d.path in lost),
        "n_encoded": before.n_encoded + after.n_encoded,
        "seconds": round(after.seconds, 3),
        "problem": before.problem or after.problem,
    }


@router.post(
    "/accept",
    response_model=AcceptAnswer,
    responses=failures(404, 409, 415),
    dependencies=_WRITES,
)
async def accept(request: Request, body: AcceptBody) -> dict[str, object]:
    """Make what was said a part of the template, as far as its changes were shown."""
    review = await _review_of(request, body.template)
    return {"template": body.template, "version": await review.accept(body.through, body.who)}


def _answer_queue(
    review: TemplateReview, state: ReviewState, job: SurveyJob, asked: tuple[str | None, int]
) -> dict[str, object]:
    field, limit = asked
    ranked = rank_documents(job.survey, state.said, review.layouts, MOST_RANKED)
    first = [one.document.path for one in ranked]
    items = order_queue(list_items(job.survey, state.said), first)
    chosen = [item for item in items if field in {None, item.field}]
    return {
        "template": review.name,
        "version": state.current.template.version,
        "fields": list(state.current.facts),
        "n_left": len(chosen),
        "items": [_describe_item(item) for item in chosen[:limit]],
        "n_documents": job.n_documents,
        "n_done": job.n_done,
        "is_pending": state.is_pending,
        "said": _describe_said(state),
        "problem": job.problem or review.results_problem or state.problem,
    }


def _find_changes(
    state: ReviewState, before: SurveyJob, after: SurveyJob
) -> tuple[dict[str, int] | None, list[dict[str, object]]]:
    """Their summary and the changes, none while not all values are found."""
    if not (before.is_complete and after.is_complete):
        return None, []
    found = changes_between(before.survey, after.survey)
    return asdict(summarise(found)), _describe_changes(found, state)


async def _review_of(request: Request, template: str) -> TemplateReview:
    found: TemplateReview = await request.app.state.engine.reviews.of(template)
    return found


def _document_of(state: ReviewState, key: str) -> CachedDocument:
    found = state.check.document(key)
    if found is None:
        raise Failure(
            404, "unknown_document", "the cache does not hold this version of the document",
            hint="it was changed or left the cache; look at the queue again",
        )  # fmt: skip
    return found


def _correction_of(body: CorrectionBody) -> Correction:
    try:
        return Correction.model_validate(body.model_dump(exclude={"of"}))
    except ValidationError as error:
        fault = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise Failure(422, "bad_correction", fault) from error


def _describe_item(item: QueueItem) -> dict[str, object]:
    right = item.said.right if item.said else {}
    wrong = item.said.wrong if item.said else frozenset()
    return {
        "document": item.document.id,
        "key": item.document.key.hex(),
        "field": item.field,
        "doubt": round(doubt(item), 4),
        "values": [
            _describe_value(v)
            | {"is_right": True if (v.start, v.end) in right
               else False if (v.start, v.end) in wrong else None}
            for v in item.values
        ],
    }  # fmt: skip


def _describe_value(value: ExtractedValue) -> dict[str, object]:
    names = ("text", "value", "unit", "bound", "nearest", "remark")
    texts = {n: str(getattr(value, n)).encode("utf-8", "replace").decode() for n in names}
    return texts | {
        "start": value.start,
        "end": value.end,
        "page": value.page,
        "probability": value.probability,
    }


def _describe_said(state: ReviewState) -> list[dict[str, object]]:
    in_template = {record.id for record in accepted(state.records)}
    listed = [r for r in standing(state.records) if isinstance(r, Correction | Acceptance)]
    return [
        record.model_dump(include=_TOLD)
        | {"is_accepted": record.id in in_template or isinstance(record, Acceptance)}
        for record in reversed(listed[-_MOST_SAID:])
    ]


_TOLD = {"id", "when", "who", "verdict", "document", "key", "field", "values", "version"}
#: Values that become others are looked at before those that only become surer.
_ORDER = {"gone": 0, "other": 1, "new": 2, "down": 3, "up": 4}


def _describe_changes(found: list[ValueChange], state: ReviewState) -> list[dict[str, object]]:
    keys = {document.id: document.key.hex() for document, *_ in state.documents}
    ordered = sorted(found, key=lambda change: _ORDER[kind_of(change)])
    return [_describe_change(one, keys, state.said) for one in ordered[:_MOST_CHANGES]]


def _describe_change(
    change: ValueChange, keys: Mapping[str, str], said: Mapping[Subject, Said]
) -> dict[str, object]:
    key = keys[change.document]
    return {
        "document": change.document,
        "key": key,
        "field": change.field,
        "kind": kind_of(change),
        "old": [_describe_value(value) for value in change.old.values],
        "new": [_describe_value(value) for value in change.new.values],
        "is_said": (key, change.field) in said,
    }
