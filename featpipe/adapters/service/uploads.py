"""Uploads: the three ways in which a document arrives, made into one order for a worker.

JSON holds a text or the id of a cached document; a form holds a file; any other body is the file
itself. No name that a client gives is ever opened: names label results, and their suffix may tell
how bytes are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from featpipe.adapters.service.bodies import ExtractBody
from featpipe.adapters.service.failures import Failure
from featpipe.templates.extract_role import Given, Inline, Stored, Upload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request
    from starlette.datastructures import FormData

_Body = TypeVar("_Body", bound=ExtractBody)

_LONGEST_NAME = 256
_FORM_FIELDS = frozenset({"file", "template", "name", "with_text", "deadline_s"})
#: How a form says yes and no.
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
#: The suffix that a nameless text is read by; whatever else it is, its bytes tell.
_SUFFIXES = {"text/markdown": ".md", "text/html": ".html", "text/csv": ".csv", "text/plain": ".txt"}


@dataclass(frozen=True, slots=True)
class Order:
    """One document and what is wanted of it."""

    given: Given
    template: str | None
    with_text: bool
    deadline_s: float | None
    n_bytes: int


async def read_order(request: Request) -> Order:
    """The order in a request.

    Raises:
        RequestValidationError: JSON or options that do not fit.
        Failure: a form without a file, or no body.

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return order_of(check_json(await request.body(), ExtractBody))
    if kind == "multipart/form-data":
        return await _read_form(request)
    data = await request.body()
    if not data:
        raise Failure(
            422, "empty_body", "there is no document in the request",
            hint='send JSON {"text": ...}, a form with a file, or the file itself as the body',
        )  # fmt: skip
    return _order_of_upload(data, dict(request.query_params), kind)


def order_of(body: ExtractBody) -> Order:
    """The order in a checked JSON body."""
    given: Given
    if body.text is not None:
        given = Inline(body.text, body.name or "text")
        size = len(body.text)
    else:
        given, size = Stored(str(body.document)), 1
    return Order(given, body.template, body.with_text, body.deadline_s, size)


def check_json(data: bytes, kind: type[_Body]) -> _Body:
    """Parsed and checked.

    Raises:
        RequestValidationError: no JSON, or not what is wanted.

    """
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error


async def _read_form(request: Request) -> Order:
    form = await request.form(max_files=1, max_fields=8)
    try:
        return await _order_of_form(form)
    finally:
        await form.close()


async def _order_of_form(form: FormData) -> Order:
    from starlette.datastructures import UploadFile

    unknown = set(form) - _FORM_FIELDS
    if unknown:
        raise Failure(422, "bad_form", f"the form has unknown parts: {', '.join(sorted(unknown))}")
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Failure(422, "bad_form", "the form has no part called file with a file name")
    data = await file.read()
    options = {name: value for name, value in form.items() if isinstance(value, str)}
    options.setdefault("name", file.filename or "")
    return _order_of_upload(data, options, file.content_type or "")


def _order_of_upload(data: bytes, options: Mapping[str, str], media_type: str) -> Order:
    """Options come as strings; they are checked as those of JSON are."""
    wanted: dict[str, Any] = {n: value for n, value in options.items() if n in _FORM_FIELDS}
    if not wanted.get("template"):
        wanted.pop("template", None)  # a field of a form that was left empty
    if "with_text" in wanted:
        wanted["with_text"] = _TRUTHS.get(wanted["with_text"].lower(), wanted["with_text"])
    if "deadline_s" in wanted:
        wanted["deadline_s"] = _number(wanted["deadline_s"])
    name = plain_name(wanted.pop("name", "") or "upload" + _SUFFIXES.get(media_type, ""))
    checked = check_json(json.dumps({**wanted, "text": "-"}).encode(), ExtractBody)
    return Order(
        Upload(data, name), checked.template, checked.with_text, checked.deadline_s, len(data)
    )


def plain_name(name: str) -> str:
    """The last part of a name, printable and not long: it labels a result and opens nothing."""
    last = PurePosixPath(name.replace("\\", "/")).name or "upload"
    return "".join(c if c.isprintable() else "_" for c in last)[-_LONGEST_NAME:]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
