"""The outermost middleware: request ids, access, limits of bodies, metrics and the access log.

Guarantees, in this order: every answer carries a request id; a caller without a key, or whose key
lacks the right that the path needs, is refused before the body is read; a body is refused as soon
as it exceeds its limit, whatever its header announced, or when no piece of it comes within the
deadline of a request, as from a client whose machine has gone; a client that leaves before its body
is whole is no error of the service; an unexpected exception becomes a plain error with that id, and
is logged with its stack; HEAD is answered by the head of what GET answers. A browser's question
whether a page may ask (CORS) is answered before this, without an id.
"""

from __future__ import annotations

import asyncio
import re
from logging import DEBUG, INFO, getLogger
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from featpipe.service.errors import Failure, failure_of
from featpipe.service.keys import find_key, needed_right
from featpipe.service.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.trace import Span
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from featpipe.service.keys import ApiKey
    from featpipe.service.metrics import ServiceMetrics
    from featpipe.service.settings import ServiceSettings
    from featpipe.service.tracing import Tracer

logger = getLogger("featpipe.service")
access = getLogger("featpipe.access")

#: Answered without a key: load balancers have none.
_OPEN = frozenset({"/healthz", "/readyz"})
_PAGES = frozenset({"/", "/docs", "/favicon.ico"})
#: Polled every few seconds by machines: logged at DEBUG only.
_POLLED = frozenset({"/healthz", "/readyz", "/metrics"})
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestMiddleware:
    """ASGI middleware, the outermost.

    Args:
        app: the application inside.
        settings: limits and keys.
        metrics: requests are counted there.
        tracer: makes the span of each request.
        is_draining: whether the service is ending: each answer then ends its connection, so that
            no further request is sent on one that is about to be closed.

    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        metrics: ServiceMetrics,
        tracer: Tracer,
        is_draining: Callable[[], bool],
    ) -> None:
        self._app, self._settings, self._metrics, self._tracer = app, settings, metrics, tracer
        self._is_draining = is_draining
        self._allowed_hosts = frozenset(name.lower() for name in settings.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        exchange = _Exchange(scope, receive, send, request_id, self._settings.deadline_s)
        exchange.is_last = self._is_draining
        started = perf_counter()
        self._metrics.in_flight.inc()
        with self._tracer.serving(f"{scope['method']} {scope['path']}", headers) as span:
            try:
                await self._serve(scope, headers, exchange)
            finally:
                self._metrics.in_flight.dec()
                self._record(scope, exchange, perf_counter() - started, span)

    async def _serve(self, scope: Scope, headers: Headers, exchange: _Exchange) -> None:
        try:
            self._check_caller(scope, headers)
            exchange.limit_body(self._limit_of(scope), headers.get("content-length"))
            await self._pass_on(scope, exchange)
            await exchange.finish()
        except Failure as failure:
            await exchange.refuse(failure)
        except Exception as error:
            if exchange.refused is None and not exchange.is_gone:
                logger.exception("request failed", extra={"request_id": exchange.request_id})
            await exchange.refuse(exchange.refused or failure_of(error))

    async def _pass_on(self, scope: Scope, exchange: _Exchange) -> None:
        """FastAPI's routes know GET only; the server leaves out the body where HEAD was asked."""
        if scope["method"] != "HEAD":
            await self._app(scope, exchange.receive, exchange.send)
            return
        asked = {**scope, "method": "GET"}
        try:
            await self._app(asked, exchange.receive, exchange.send)
        finally:
            scope["route"] = asked.get("route")

    def _check_caller(self, scope: Scope, headers: Headers) -> None:
        """Refuse callers without a key that has the right; note whose key it is.

        Raises:
            Failure: no key, a wrong one, or one without the right. Where none is needed: a foreign
                name in ``Host``, by which a web page could make a browser read this machine's
                service (DNS rebinding).

        """
        path = scope["path"]
        if path in _OPEN:
            return
        if not self._settings.keys:
            self._check_host(headers)
            return
        if path in _PAGES:  # they hold nothing secret, and the first asks for the key
            return
        scope["state"]["caller"] = _find_caller(headers, self._settings.keys, path)

    def _check_host(self, headers: Headers) -> None:
        host = _host_of(headers.get("host", ""))
        if self._settings.is_local and not is_loopback(host) and host not in self._allowed_hosts:
            raise Failure(
                403, "forbidden_host", "this service is not called by that name",
                hint="use the address it prints, or start it with --allow-host NAME",
            )  # fmt: skip

    def _limit_of(self, scope: Scope) -> int:
        settings = self._settings
        is_batch = scope["path"] == "/extract/batch"
        return settings.max_batch_bytes if is_batch else settings.max_body_bytes

    def _record(self, scope: Scope, exchange: _Exchange, seconds: float, span: Span | None) -> None:
        route = getattr(scope.get("route"), "path", "other")
        status = exchange.status
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        fields = {
            "request_id": exchange.request_id, "method": scope["method"], "route": route,
            "status": status, "seconds": round(seconds, 4),
        }  # fmt: skip
        if "caller" in scope["state"]:
            fields["caller"] = scope["state"]["caller"]
        level = DEBUG if route in _POLLED else INFO
        access.log(level, "%s %s %d", scope["method"], route, status, extra=fields)
        if span is not None:
            _describe_in(span, scope["method"], route, exchange)


def _find_caller(headers: Headers, keys: Sequence[ApiKey], path: str) -> str:
    """Name of the caller's key.

    Raises:
        Failure: there is none, or it lacks the right that the path needs.

    """
    key = find_key(keys, headers.get("x-api-key") or _bearer(headers.get("authorization", "")))
    if key is None:
        raise Failure(
            401, "unauthorized", "a key is needed",
            hint="send it as Authorization: Bearer KEY, or as X-API-Key",
            headers={"WWW-Authenticate": "Bearer"},
        )  # fmt: skip
    needed = needed_right(path)
    if needed not in key.rights:
        raise Failure(
            403, "missing_right", f"this needs the right {needed}, which the key has not",
            hint=f"whoever runs the service can give it: {key.name}:RIGHTS,{needed}:KEY",
        )  # fmt: skip
    return key.name


def _describe_in(span: Span, method: str, route: str, exchange: _Exchange) -> None:
    span.update_name(f"{method} {route}")
    span.set_attribute("http.request.method", method)
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", exchange.status)
    span.set_attribute("featpipe.request_id", exchange.request_id)


class _Exchange:
    """One request and its answer: measures the body, and keeps the status that was sent.

    Args:
        scope, receive, send: of ASGI.
        request_id: sent with the answer.
        pause_s: the longest wait for a piece of the body.

    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, request_id: str, pause_s: float
    ) -> None:
        self.request_id = request_id
        self.status = 499
        """499 until an answer begins: the client left."""
        self.refused: Failure | None = None
        """Why the rest of the body was not read; None while it is."""
        self.is_gone = False
        """Whether the client left before its body was whole: nothing is sent any more."""
        self._scope, self._receive, self._send = scope, receive, send
        self._pause_s = pause_s
        self.is_last: Callable[[], bool] = bool
        """Whether the connection is to end with this answer."""
        self._is_begun = self._is_whole = False
        self._n_bytes, self._limit = 0, 0

    def limit_body(self, limit: int, announced: str | None) -> None:
        """Set the limit, and refuse a body whose ``Content-Length`` exceeds it.

        Raises:
            Failure: too long.

        """
        self._limit = limit
        if announced is not None and announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)

    async def receive(self) -> Message:
        """The next piece of the body."""
        try:
            async with asyncio.timeout(None if self._is_whole else self._pause_s):
                message = await self._receive()
        except TimeoutError:
            raise self._stop_reading(_too_slow(self._pause_s)) from None
        if message["type"] == "http.disconnect":
            self.is_gone = not self._is_whole
            return message
        self._is_whole = not message.get("more_body", False)
        self._n_bytes += len(message.get("body", b""))
        if self._n_bytes > self._limit:
            raise self._stop_reading(_too_large(self._limit))
        return message

    def _stop_reading(self, failure: Failure) -> Failure:
        # Frameworks answer an exception raised in `receive` on their own; `send` drops that answer.
        self.refused = failure
        return failure

    async def send(self, message: Message) -> None:
        """The next piece of the answer."""
        if self.refused is not None and not self._is_begun:
            return
        await self._pass(message)

    async def finish(self) -> None:
        """Refuse a body whose refusal the application handled itself."""
        if self.refused is not None:
            await self.refuse(self.refused)

    async def refuse(self, failure: Failure) -> None:
        """Answer with an error; when an answer has begun, raise, which closes the connection."""
        if self._is_begun:
            if failure is not self.refused:
                raise failure
            return
        content = failure.content(self.request_id)
        response = JSONResponse(content, failure.status, headers=failure.headers)
        await response(self._scope, self._receive, self._pass)

    async def _pass(self, message: Message) -> None:
        if self.is_gone:
            return
        if message["type"] == "http.response.start":
            self._begin(message)
        await self._send(message)

    def _begin(self, message: Message) -> None:
        self._is_begun = True
        self.status = message["status"]
        message["headers"] = [
            *message.get("headers", []),
            (b"x-request-id", self.request_id.encode("ascii")),
            (b"x-content-type-options", b"nosniff"),
            *([(b"connection", b"close")] if self.is_last() else []),
        ]


def _too_large(limit: int) -> Failure:
    return Failure(
        413, "body_too_large", f"the body is larger than {limit:,} bytes",
        hint="send less at a time, or raise --max-body",
    )  # fmt: skip


def _too_slow(pause_s: float) -> Failure:
    return Failure(
        408, "body_too_slow", f"nothing more of the body came within {pause_s:g} s",
        hint="send it without such pauses, or raise --deadline", headers={"Connection": "close"},
    )  # fmt: skip


def _bearer(value: str) -> str:
    scheme, _, rest = value.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""


def _host_of(value: str) -> str:
    """The name in a Host header, without its port."""
    if value.startswith("["):
        return value.partition("]")[0].strip("[")
    return value.partition(":")[0].lower()
