"""The ASGI application: routes, error answers and life cycle around an `Engine`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from copy import deepcopy
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from featpipe.service.errors import Failure, failure_of, log_failure
from featpipe.service.middleware import RequestMiddleware
from featpipe.service.routes import (
    embeddings,
    extract,
    health,
    rerank,
    review,
    search,
    tei,
    templates,
)
from featpipe.service.schemas import ErrorBody

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from featpipe.service.engine import Engine

_TEXT = """Extracts the fields of templates from business documents, searches the sentences of a
cache and turns texts into vectors. Every answer has an `X-Request-Id`; every error is
`{"error": {"code", "message", "type", "param", "hint", "request_id"}}`."""

_IS_EXPECTED = "/openapi.json says what is expected"

_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def create_app(engine: Engine, page: str = "") -> FastAPI:
    """The application of one engine, whose workers live as long as the application runs.

    Args:
        engine: not started yet.
        page: HTML that ``/`` answers with; without one ``/`` is not found.

    """
    app = _App(engine, page)
    for module in (extract, embeddings, tei, search, rerank, templates, health):
        app.include_router(module.router)
    if engine.settings.is_review:
        app.include_router(review.router)
    for kind in (Failure, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)
    app.add_middleware(
        RequestMiddleware,
        settings=engine.settings,
        metrics=engine.metrics,
        tracer=engine.tracer,
        is_draining=lambda: engine.is_draining,
    )
    if engine.settings.cors_origins:  # outside: a browser asks first, without a key
        app.add_middleware(
            CORSMiddleware,
            allow_origins=engine.settings.cors_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type", "X-API-Key", "X-Request-Id"),
            expose_headers=("X-Request-Id", "X-Rerank-Model", "Retry-After"),
        )
    return app


class _App(FastAPI):
    def __init__(self, engine: Engine, page: str) -> None:
        super().__init__(
            title="featpipe", version=version("featpipe"), description=_TEXT, lifespan=_lifespan,
            docs_url=None, redoc_url=None,  # their pages load scripts from elsewhere
            # `RequestMiddleware` makes the spans; newer versions of FastAPI would make them twice.
            telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
        )  # fmt: skip
        self.state.engine, self.state.page = engine, page
        self._engine = engine

    def public_schema(self) -> dict[str, Any]:  # Any: as FastAPI declares it
        """FastAPI's schema with the API key and `ErrorBody` for errors; it names no model."""
        schema = super().openapi()
        parts = schema["components"]
        parts["schemas"].pop("HTTPValidationError", None)
        parts["schemas"].pop("ValidationError", None)
        parts["schemas"].setdefault("ErrorBody", ErrorBody.model_json_schema())
        if self._engine.settings.keys:
            parts["securitySchemes"] = _SECURITY_SCHEMES
            schema["security"] = [{name: []} for name in _SECURITY_SCHEMES]
        return schema

    def openapi(self) -> dict[str, Any]:  # Any: as FastAPI declares it
        """`public_schema` with the names of the model."""
        schema = deepcopy(self.public_schema())
        chosen = self._engine.chosen
        names = [name for name in (chosen.name, chosen.space) if name is not None]
        schema["components"]["schemas"]["EmbeddingsBody"]["properties"]["model"]["enum"] = names
        return schema


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    engine: Engine = app.state.engine
    engine.start()
    try:
        yield
    finally:
        await engine.stop()


def _answer_error(request: Request, error: Exception) -> Response:
    failure = _failure_of(error)
    request_id = str(request.scope["state"]["request_id"])
    log_failure(failure, request_id)
    content = failure.content(request_id)
    return JSONResponse(content, failure.status, headers=failure.headers)


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, RequestValidationError):
        message = extract.describe_invalid(error)
        return Failure(422, "invalid_request", message, hint=_IS_EXPECTED)
    if isinstance(error, HTTPException) and isinstance(
        error.__cause__, ValueError | RecursionError
    ):
        # Its own words are FastAPI's: that there is an error.
        message = extract.describe_unreadable(error.__cause__)
        return Failure(422, "invalid_request", message, hint=_IS_EXPECTED)
    if isinstance(error, HTTPException):  # unknown paths, wrong methods, broken forms
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
        return Failure(error.status_code, code, str(error.detail), headers=error.headers)
    return failure_of(error)
