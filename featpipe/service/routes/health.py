"""``/healthz``, ``/readyz``, ``/metrics``, and the pages at ``/`` and ``/docs``."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from featpipe.service.api_page import render_api
from featpipe.service.schemas import HealthAnswer, LaneBody, ReadyAnswer, failures

if TYPE_CHECKING:
    from featpipe.service.engine import Engine

router = APIRouter(tags=["operation"])

#: The page has its style and script inline, and sends requests to this service only.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)

#: The page of the API has a style and nothing else.
_API_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'"
)


@router.get("/healthz", response_model=HealthAnswer)
async def healthz() -> HealthAnswer:
    """Whether the process answers at all."""
    return HealthAnswer(status="ok", version=version("featpipe"))


@router.get("/readyz", response_model=ReadyAnswer, responses={503: {"model": ReadyAnswer}})
async def readyz(request: Request) -> JSONResponse:
    """Whether requests should be sent here: 503 while starting, draining, or without workers."""
    engine: Engine = request.app.state.engine
    batchers = {
        batcher.name: LaneBody(
            is_ready=batcher.is_ready,
            n_open=batcher.n_open,
            n_workers=len(batcher.workers()),
            problem="workers cannot be started; the log says why" if batcher.problem else "",
        )
        for batcher in engine.batchers
    }
    answer = ReadyAnswer(is_ready=engine.is_ready, is_draining=engine.is_draining, lanes=batchers)
    return JSONResponse(answer.model_dump(), 200 if engine.is_ready else 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **failures()},
)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms for Prometheus."""
    engine: Engine = request.app.state.engine
    text = generate_latest(engine.metrics.registry)
    return Response(text, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def page(request: Request) -> HTMLResponse:
    """A page to paste a document into and see its values."""
    html: str = request.app.state.page
    if not html:
        raise HTTPException(404)
    headers = {"Content-Security-Policy": _PAGE_POLICY, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(html, headers=headers)


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
async def api_page(request: Request) -> HTMLResponse:
    """Every route with its fields and an example, without a script; it works offline."""
    headers = {"Content-Security-Policy": _API_POLICY, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(render_api(request.app.public_schema()), headers=headers)
