"""``/healthz``, ``/readyz``, ``/metrics`` and the page."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from featpipe.metrics import CONTENT_TYPE
from featpipe.service.engine import Engine  # noqa: TC001  # FastAPI reads annotations
from featpipe.service.schemas import HealthAnswer, ReadyAnswer, failures

router = APIRouter(tags=["operation"])

#: The page carries its own style and script, talks to this service, and to nobody else.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)


@router.get("/healthz", response_model=HealthAnswer)
async def healthz() -> dict[str, str]:
    """Whether the process answers at all."""
    return {"status": "ok", "version": version("featpipe")}


@router.get("/readyz", response_model=ReadyAnswer, responses={503: {"model": ReadyAnswer}})
async def readyz(request: Request) -> JSONResponse:
    """Whether requests should be sent here: 503 while starting, draining, or without workers."""
    engine: Engine = request.app.state.engine
    batchers: dict[str, Any] = {
        batcher.name: {
            "is_ready": batcher.is_ready,
            "n_open": batcher.n_open,
            "n_workers": len(batcher.workers()),
            "problem": "workers cannot be started; the log says why" if batcher.problem else "",
        }
        for batcher in engine.batchers
    }
    content = {"is_ready": engine.is_ready, "is_draining": engine.is_draining, "lanes": batchers}
    return JSONResponse(content, 200 if engine.is_ready else 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **failures()},
)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms for Prometheus."""
    engine: Engine = request.app.state.engine
    return Response(engine.metrics.registry.render(), headers={"content-type": CONTENT_TYPE})


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def page() -> HTMLResponse:
    """A page to paste a document into and see its values."""
    from featpipe.html_report import service_page

    headers = {"Content-Security-Policy": _PAGE_POLICY, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(service_page(), headers=headers)
