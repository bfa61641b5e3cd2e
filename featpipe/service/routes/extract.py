"""``/extract`` and ``/extract/batch``.

A document arrives in three ways: JSON holds a text or the id of a cached document, a form holds a
file, any other body is the file itself. No name from a client is ever opened: names label results,
and a name's suffix may choose the loader.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from featpipe.errors import UnreadableDocument
from featpipe.extraction.messages import ALL, AUTO, Given, Inline, Stored, Upload
from featpipe.extraction.results import json_line
from featpipe.service.errors import Failure, failure_named, failure_of, log_failure
from featpipe.service.schemas import BatchLine, ExtractAnswer, ExtractBody, failures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from starlette.datastructures import FormData

    from featpipe.extraction.messages import Done
    from featpipe.extraction.results import Extraction
    from featpipe.service.batcher import Batcher
    from featpipe.service.engine import Engine

router = APIRouter(tags=["extraction"])

NDJSON = "application/x-ndjson"

_Body = TypeVar("_Body", bound=ExtractBody)

_LONGEST_NAME = 256
_OPTION_NAMES = frozenset({"template", "name", "with_text", "deadline_s"})
_FORM_FIELDS = _OPTION_NAMES | {"file"}
#: Suffixes for texts without a name; other media types are recognised by their bytes.
_SUFFIXES = {"text/markdown": ".md", "text/html": ".html", "text/csv": ".csv", "text/plain": ".txt"}

_OPTIONS = {
    "template": {"type": "string", "maxLength": 256, "description": "Empty: as if left out."},
    "name": {"type": "string", "description": "Of the file; 256 characters of it are kept."},
    "with_text": {"type": "boolean", "default": False},
    "deadline_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
}
_FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {"file": {"type": "string", "format": "binary"}, **_OPTIONS},
}
_EXTRACT_DOCS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": ExtractBody.model_json_schema(),
                "examples": {
                    "text": {"value": ExtractBody.model_json_schema()["examples"][0]},
                    "cached": {"value": ExtractBody.model_json_schema()["examples"][1]},
                },
            },
            "multipart/form-data": {"schema": _FORM},
        },
    }
}
_BATCH_DOCS = {
    "requestBody": {
        "required": True,
        "description": "One JSON object per line, as for /extract, with an optional id.",
        "content": {
            NDJSON: {
                "schema": {"type": "string"},
                "example": '{"id": 1, "text": "甲方：某某公司。", "template": "contract"}\n',
            }
        },
    }
}


@router.post(
    "/extract",
    response_model=ExtractAnswer,
    responses=failures(404, 415, 429, 503, 504),
    openapi_extra=_EXTRACT_DOCS,
)
async def extract(request: Request) -> Response:
    """Extract the fields of a template from one document: a text, an upload, a cached one.

    Any body that is neither JSON nor a form is taken as the file itself; its options are then
    given in the query.
    """
    engine: Engine = request.app.state.engine
    job = await read_job(request)
    return _json(await extract_one(engine, job, _time_of(engine, job)))


@router.post(
    "/extract/batch",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "One line per line sent, in the order in which they end, each with the "
            "index of its line and its id; then a line that says that this was all.",
            "content": {NDJSON: {"schema": {"type": "string"}}},
        },
        **failures(404, 415, 429, 503, 504),
    },
    openapi_extra=_BATCH_DOCS,
)
async def extract_batch(request: Request) -> Response:
    """Extract from many documents; each line fails or succeeds on its own."""
    engine: Engine = request.app.state.engine
    extract_batcher(engine)
    _refuse_options_beside(request)
    lines = [item for item in enumerate((await request.body()).splitlines()) if item[1].strip()]
    if not lines:
        raise Failure(422, "empty_body", "there is no line in the request")
    request_id = str(request.scope["state"]["request_id"])
    return StreamingResponse(_answer_lines(engine, lines, request_id), media_type=NDJSON)


async def extract_one(engine: Engine, job: Job, timeout_s: float) -> dict[str, object]:
    """The answer to one job, as JSON.

    Raises:
        Failure: there is none.

    """
    template = _template_of(engine, job.template)
    done = await extract_batcher(engine).submit(
        job.given, group=(template, job.with_text), weight=job.n_bytes, timeout_s=timeout_s
    )
    if done.quarantined is not None:
        engine.metrics.documents.labels(done.quarantined.error).inc()
        is_unreadable = done.quarantined.error == UnreadableDocument.__name__
        if isinstance(job.given, Stored) and is_unreadable:  # none of this name
            raise Failure(404, "unknown_document", done.quarantined.reason)
        raise failure_named(done.quarantined.error, done.quarantined.reason)
    engine.metrics.documents.labels("extracted").inc()
    return _as_dict(done)


def _as_dict(done: Done) -> dict[str, object]:
    answer: dict[str, object] = {
        "document": done.document,
        "extractions": [_without_path(extraction) for extraction in done.extractions],
        "seconds": round(done.seconds, 6),
    }
    if done.text is not None:
        answer["text"] = done.text
    if not done.extractions:
        answer["note"] = (
            f"the name {done.document!r} matches the `documents` patterns of no template; a "
            "template that is named is applied to any document"
        )
    return answer


def extract_batcher(engine: Engine) -> Batcher[Given, Done]:
    """The batcher of extraction.

    Raises:
        Failure: this service has no templates.

    """
    if engine.extract is None:
        raise no_templates()
    return engine.extract


def no_templates() -> Failure:
    """For a service that was started without templates."""
    return Failure(404, "no_templates", "this service was started without templates")


def _template_of(engine: Engine, name: str | None) -> str:
    """The named template; without a name the only one, or `AUTO`.

    Raises:
        Failure: no such template.

    """
    names = list(engine.watcher.templates) if engine.watcher is not None else []
    if name is None:
        return names[0] if len(names) == 1 else AUTO
    if names and name not in {*names, AUTO, ALL}:
        raise Failure(
            404, "unknown_template", f"there is no template {name!r}",
            hint=f"{AUTO}, {ALL}, or one of {', '.join(names)}",
        )  # fmt: skip
    return name


async def _answer_lines(
    engine: Engine, lines: list[tuple[int, bytes]], request_id: str
) -> AsyncIterator[bytes]:
    """Answers in the order in which they end; a quarter of the queue at most is used at a time."""
    source = iter(lines)
    ended: asyncio.Queue[dict[str, object]] = asyncio.Queue()

    async def work() -> None:
        for index, line in source:
            ended.put_nowait(await _answer_line(engine, index, line, request_id))

    width = max(1, min(engine.settings.max_waiting // 4, len(lines)))
    workers = [asyncio.create_task(work()) for _ in range(width)]
    n_failed = 0
    try:
        for _ in lines:
            found = await ended.get()
            n_failed += "error" in found
            yield _line(found)
        yield _line({"is_complete": True, "n_lines": len(lines), "n_failed": n_failed})
    finally:  # also when the client left
        for worker in workers:
            worker.cancel()


async def _answer_line(
    engine: Engine, index: int, line: bytes, request_id: str
) -> dict[str, object]:
    found: dict[str, object] = {"index": index}
    try:
        body = check_json(line, BatchLine)
        if body.id is not None:
            found["id"] = body.id
        job = job_of(body)
        found["result"] = await _ask_patiently(engine, job)
    except RequestValidationError as error:
        found["error"] = {"code": "invalid_line", "message": describe_invalid(error), "hint": None}
    except Exception as error:  # one line fails, not the batch
        failure = failure_of(error)
        log_failure(failure, request_id)
        found["error"] = {"code": failure.code, "message": failure.message, "hint": failure.hint}
    return found


async def _ask_patiently(engine: Engine, job: Job) -> dict[str, object]:
    """Try again while the queue is full, which refuses a single request."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _time_of(engine, job)
    while True:
        try:
            return await extract_one(engine, job, until - loop.time())
        except Failure as failure:
            if failure.status != 429 or loop.time() + 0.1 > until:
                raise
        await asyncio.sleep(0.1)


def _time_of(engine: Engine, job: Job) -> float:
    return min(job.deadline_s or engine.settings.deadline_s, engine.settings.deadline_s)


def _without_path(extraction: Extraction) -> dict[str, object]:
    """As JSON, without the cache's path on this machine."""
    provenance = asdict(extraction.provenance)
    del provenance["cache"]
    return extraction.as_dict() | {"provenance": provenance}


@dataclass(frozen=True, slots=True)
class Job:
    """One document, and the options of its extraction."""

    given: Given
    template: str | None
    with_text: bool
    deadline_s: float | None
    n_bytes: int


async def read_job(request: Request) -> Job:
    """The job in a request.

    Raises:
        RequestValidationError: JSON or options of another form.
        Failure: a form without a file, no body, or options that would not be read.

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in {"application/json", "multipart/form-data"}:
        _refuse_options_beside(request)
    if kind == "application/json":
        return job_of(check_json(await request.body(), ExtractBody))
    if kind == "multipart/form-data":
        return await _read_form(request)
    data = await request.body()
    if not data:
        raise Failure(
            422, "empty_body", "there is no document in the request",
            hint='send JSON {"text": ...}, a form with a file, or the file itself as the body',
        )  # fmt: skip
    query = request.query_params
    _refuse("invalid_request", set(query) - _OPTION_NAMES, "the query has unknown options")
    _refuse("invalid_request", _repeated(query.multi_items()), "the query has options twice")
    return _job_of_upload(data, dict(query), kind)


def _refuse_options_beside(request: Request) -> None:
    """Refuse options in the query of a body that has its own."""
    found = _OPTION_NAMES & set(request.query_params)
    _refuse("invalid_request", found, "the query is not read; options that belong into the body")


def _refuse(code: str, names: AbstractSet[str], what: str) -> None:
    if names:
        raise Failure(422, code, f"{what}: {', '.join(sorted(names))}")


def _repeated(items: Sequence[tuple[str, object]]) -> AbstractSet[str]:
    return {name for name, count in Counter(name for name, _ in items).items() if count > 1}


def job_of(body: ExtractBody) -> Job:
    """The job in a checked JSON body."""
    given: Given
    if body.text is not None:
        given = Inline(body.text, body.name or "text")
        size = len(body.text)
    else:
        given, size = Stored(str(body.document)), 1
    return Job(given, body.template, body.with_text, body.deadline_s, size)


def check_json(data: bytes, kind: type[_Body]) -> _Body:
    """Parse and check a body. A byte order mark before it is passed over, as FastAPI does.

    Raises:
        RequestValidationError: no JSON, or of another form.

    """
    try:
        return kind.model_validate_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body",), "msg": describe_unreadable(error)}
        raise RequestValidationError([found]) from error
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error


async def _read_form(request: Request) -> Job:
    form = await request.form(max_files=1, max_fields=8)
    try:
        return await _job_of_form(form)
    finally:
        await form.close()


async def _job_of_form(form: FormData) -> Job:
    from starlette.datastructures import UploadFile

    _refuse("bad_form", set(form) - _FORM_FIELDS, "the form has unknown parts")
    _refuse("bad_form", _repeated(form.multi_items()), "the form has parts twice")
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Failure(422, "bad_form", "the form has no part called file with a file name")
    data = await file.read()
    options = {name: value for name, value in form.items() if isinstance(value, str)}
    options.setdefault("name", file.filename or "")
    return _job_of_upload(data, options, file.content_type or "")


def _job_of_upload(data: bytes, options: Mapping[str, str], media_type: str) -> Job:
    """Options are strings, with the same checks as in JSON."""
    wanted = {
        name: value
        for name, value in options.items()
        # An empty template is a field of a form that was left empty.
        if name != "name" and (name, value) != ("template", "")
    }
    name = plain_name(options.get("name") or "upload" + _SUFFIXES.get(media_type, ""))
    try:
        checked = ExtractBody.model_validate_strings({**wanted, "text": "-"})
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error
    return Job(
        Upload(data, name), checked.template, checked.with_text, checked.deadline_s, len(data)
    )


def plain_name(name: str) -> str:
    """The last part of a path, printable and short: it labels a result and opens nothing."""
    last = PurePosixPath(name.replace("\\", "/")).name or "upload"
    return "".join(c if c.isprintable() else "_" for c in last)[-_LONGEST_NAME:]


def describe_invalid(error: RequestValidationError) -> str:
    """The errors of a body, at most five, in one line."""
    parts = []
    for one in error.errors():
        where = ".".join(str(step) for step in one["loc"] if step != "body")
        if one["type"] == "json_invalid" and where:  # FastAPI's, whose place is one in the text
            parts.append(f"Invalid JSON: {one['ctx']['error']} at character {where}")
            continue
        parts.append(f"{where}: {one['msg']}" if where else str(one["msg"]))
    return "; ".join(parts[:5])


def describe_unreadable(error: ValueError | RecursionError) -> str:
    """Why bytes are no JSON."""
    if isinstance(error, UnicodeDecodeError):
        return (
            f"Invalid JSON: the body is not UTF-8, at byte {error.start}: {error.reason}; a shell"
            " or an editor may have written it in another encoding, such as GBK"
        )
    what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"Invalid JSON: {what}"


def _json(content: dict[str, object]) -> Response:
    return Response(_line(content), media_type="application/json")


def _line(content: dict[str, object]) -> bytes:
    return json_line(content).encode() + b"\n"
