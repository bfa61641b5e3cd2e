"""The server: listens, and on SIGTERM or Ctrl-C ends in order.

Readiness is denied first (for ``notice_s``, so that load balancers use other servers), and each
answer from then on ends its connection; then no connection is accepted; then requests in flight
are answered (for ``drain_s`` at most); then the workers end, and the program exits with 0. A second
signal skips all waiting.

A connection is closed when its client sends no request for ``quiet_s``, or takes nothing of an
answer for ``unread_s``.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from logging import getLogger
from typing import TYPE_CHECKING, Any

import uvicorn

from featpipe.service.app import create_app
from featpipe.service.connections import QuietConnections, limit_unread

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from types import FrameType

    from featpipe.service.engine import Engine

logger = getLogger("featpipe.service")

#: Of uvicorn's loop, from one look at the connections to the next: half a second.
_TICKS = 5


def serve(engine: Engine, page: str = "") -> bool:
    """Serve until a signal comes; returns whether the server could start.

    Args:
        engine: ready to be started.
        page: HTML for ``/``.

    """
    server = Server(engine, page)
    server.run()
    return server.started


class Server(uvicorn.Server):
    """uvicorn's server, ending as the module's docstring describes."""

    def __init__(self, engine: Engine, page: str = "") -> None:
        settings = engine.settings
        super().__init__(
            uvicorn.Config(
                create_app(engine, page),
                host=settings.host,
                port=settings.port,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                timeout_graceful_shutdown=max(1, round(settings.drain_s)),
            )
        )
        self._engine = engine
        self._quiet: QuietConnections[Any] = QuietConnections(settings.quiet_s)
        """Any: one of uvicorn's protocols."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's; the listening sockets get the limit for unread answers."""
        await super().startup(sockets)
        listening = [one for server in self.servers for one in server.sockets]
        limit_unread(listening, self._engine.settings.unread_s)

    async def on_tick(self, counter: int) -> bool:
        """As uvicorn's, ten times a second; closes quiet connections."""
        if counter % _TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in self._quiet.find(self.server_state.connections, now):
                connection.transport.close()
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replaces uvicorn's, which would end the process by the signal and not with 0."""
        loop = asyncio.get_running_loop()

        def on_signal(number: int, _: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._stop, number)

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, on_signal) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int) -> None:
        if self._engine.is_draining:
            self.should_exit = self.force_exit = True
            return
        logger.info("%s: ending in order", signal.Signals(number).name)
        self._engine.is_draining = True
        notice_s = self._engine.settings.notice_s
        asyncio.get_running_loop().call_later(notice_s, self._refuse_connections)

    def _refuse_connections(self) -> None:
        self.should_exit = True
