"""The smallest web applications that make a library call."""

from __future__ import annotations

import json
from typing import Any

import pool_host


def wsgi(_: dict[str, Any], start_response: Any) -> list[bytes]:  # noqa: ANN401  # WSGI's own
    body = json.dumps(pool_host.call()).encode()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401  # ASGI's own
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body = json.dumps(pool_host.call()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
