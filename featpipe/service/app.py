"""The application: routes, error answers and life cycle around an `Engine`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from featpipe.service.errors import Failure
from featpipe.service.middleware import RequestMiddleware
from featpipe.service.routes import embeddings as embedding
from featpipe.service.routes import extract as extracting
from featpipe.service.routes import health
from featpipe.service.routes import search as searching
from featpipe.service.routes import templates as shelving
from featpipe.service.routes.extract import words_of
from featpipe.service.schemas import ErrorBody

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from featpipe.service.engine import Engine

_TEXT = """Extracts the fields of templates from business documents, searches the sentences of a
cache and turns texts into vectors. Every answer has an `X-Request-Id`; every error is
`{"error": {"code", "message", "hint", "request_id"}}`."""


def create_app(engine: Engine) -> FastAPI:
    """The ASGI application of one engine, whose workers live as long as it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.engine = engine
        engine.start()
        try:
            yield
        finally:
            await engine.stop()

    app = FastAPI(
        title="featpipe", version=version("featpipe"), description=_TEXT, lifespan=lifespan,
        docs_url=None, redoc_url=None,  # their pages load scripts from elsewhere
        # The guard's spans are the ones: newer versions would tell of each request a second time.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )  # fmt: skip
    for part in (extracting, embedding, searching, shelving, health):
        app.include_router(part.router)
    app.add_exception_handler(Failure, _answer_failure)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_middleware(
        RequestMiddleware,
        settings=engine.settings,
        metrics=engine.metrics,
        tracer=engine.tracer,
    )
    _complete_schema(app, engine)
    return app


def _complete_schema(app: FastAPI, engine: Engine) -> None:
    """Add the key, the model there is, and one form for what FastAPI says about invalid bodies."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        schema = make()
        parts = schema["components"]
        parts["schemas"].pop("HTTPValidationError", None)
        parts["schemas"].pop("ValidationError", None)
        parts["schemas"].setdefault("ErrorBody", ErrorBody.model_json_schema())
        chosen = engine.chosen
        named = [name for name in (chosen.name, chosen.space) if name is not None]
        parts["schemas"]["EmbeddingsBody"]["properties"]["model"]["enum"] = named
        if engine.settings.api_key is not None:
            parts["securitySchemes"] = {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            }
            schema["security"] = [{"bearer": []}, {"key": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend it


def _answer_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, Failure)  # noqa: S101  # registered for it
    return JSONResponse(error.content(_id_of(request)), error.status, headers=error.headers)


def _answer_http(request: Request, error: Exception) -> Response:
    """Unknown paths, wrong methods, forms that cannot be parsed."""
    assert isinstance(error, HTTPException)  # noqa: S101  # registered for it
    phrase = HTTPStatus(error.status_code).phrase
    code = phrase.lower().replace(" ", "_")
    failure = Failure(error.status_code, code, str(error.detail), headers=error.headers)
    return _answer_failure(request, failure)


def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  # registered for it
    hint = "/openapi.json says what is expected"
    return _answer_failure(request, Failure(422, "invalid_request", words_of(error), hint=hint))


def _id_of(request: Request) -> str:
    return str(request.scope["state"]["request_id"])
