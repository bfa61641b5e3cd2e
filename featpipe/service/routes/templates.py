"""``/templates``: list them, check a new one, reload changed files."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from featpipe.errors import TemplateError
from featpipe.extraction.template_file import check_template
from featpipe.service.errors import Failure
from featpipe.service.routes.extract import no_templates
from featpipe.service.schemas import (
    ReloadAnswer,
    TemplateBody,
    TemplateList,
    ValidateAnswer,
    ValidateBody,
    failures,
)

if TYPE_CHECKING:
    from featpipe.extraction.deploy import Change
    from featpipe.extraction.template import FieldSpec
    from featpipe.service.engine import Engine
    from featpipe.service.template_watcher import TemplateWatcher

router = APIRouter(tags=["templates"])

#: Name in messages of a template that was sent.
_SENT = Path("template")


@router.get("/templates", response_model=TemplateList, responses=failures())
async def list_templates(request: Request) -> dict[str, object]:
    """Every template in use."""
    watcher = request.app.state.engine.watcher
    if watcher is None:
        return {"templates": [], "problem": ""}
    return {
        "templates": [_describe(watcher, name) for name in watcher.templates],
        "problem": _without_folder(watcher.problem),
    }


@router.get("/templates/{name}", response_model=TemplateBody, responses=failures(404))
async def get_template(request: Request, name: str) -> dict[str, object]:
    """One template."""
    engine: Engine = request.app.state.engine
    if engine.watcher is None or name not in engine.watcher.templates:
        raise Failure(404, "unknown_template", f"there is no template {name!r}")
    return _describe(engine.watcher, name)


@router.post("/templates/validate", response_model=ValidateAnswer, responses=failures())
async def validate(body: ValidateBody) -> dict[str, object]:
    """Whether a template could be used; if not, its first error with its line."""
    return await asyncio.to_thread(_check, body)  # seconds, for one of megabytes


def _check(body: ValidateBody) -> dict[str, object]:
    text = body.content.removeprefix("\ufeff")  # as the files of templates are read
    try:
        content = json.loads(text) if body.format == "json" else tomllib.loads(text)
        if not isinstance(content, dict):
            return {"is_valid": False, "message": "it holds a list, not a template"}
        content.setdefault("name", "template")
        template = check_template(content, text, _SENT)
    except TemplateError as error:
        line = re.match(r"template:(\d+): ", error.message)
        return _invalid(re.sub(r"^template(:\d+)?: ", "", error.message), line)
    except (ValueError, RecursionError) as error:  # of the two parsers
        line = re.search(r"line (\d+)", str(error))
        return _invalid(f"it is not {body.format.upper()}: {error}", line)
    fields = [_describe_field(field) for field in template.fields]
    return {"is_valid": True, "name": template.name, "fields": fields}


def _invalid(message: str, line: re.Match[str] | None) -> dict[str, object]:
    return {"is_valid": False, "message": message, "line": int(line[1]) if line else None}


@router.post(
    "/templates/reload", response_model=ReloadAnswer, responses=failures(404, 409, 429, 503, 504)
)
async def reload(request: Request) -> dict[str, object]:
    """Use changed files now; models stay loaded. The service does so by itself within seconds.

    Files that cannot be used change nothing, and are answered with 409.
    """
    engine: Engine = request.app.state.engine
    if engine.watcher is None:
        raise no_templates()
    change = await _publish(engine.watcher, engine.settings.deadline_s)
    names = list(engine.watcher.templates)
    return {"templates": names, "changed": change.changed, "removed": change.removed}


async def _publish(watcher: TemplateWatcher, timeout_s: float) -> Change:
    try:
        async with asyncio.timeout(timeout_s):
            return await watcher.publish()
    except TemplateError as error:
        raise Failure(
            409, "template_unusable", _without_folder(error.message),
            hint="the templates are as they were",
        ) from error  # fmt: skip
    except TimeoutError:
        raise Failure(
            504, "deadline_exceeded", "the templates are still being fitted",
            hint="they are used as soon as they are; GET /templates shows it",
        ) from None  # fmt: skip


def _describe(watcher: TemplateWatcher, name: str) -> dict[str, object]:
    fitted = watcher.templates[name]
    template = fitted.template
    return {
        "name": template.name,
        "version": template.version,
        "fingerprint": fitted.fingerprint,
        "n_samples": len(template.samples),
        "fields": [_describe_field(field) for field in template.fields],
    }


def _describe_field(field: FieldSpec) -> dict[str, object]:
    return {
        "name": field.name,
        "aliases": list(field.aliases),
        "type": field.type,
        "cardinality": field.cardinality,
        "hint": field.hint,
    }


def _without_folder(message: str) -> str:
    """Paths on this machine are not sent: only the names of files are."""
    return re.sub(r"(?<![\w])/(?:[^\s/:]+/)+", "", message)
