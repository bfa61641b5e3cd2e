"""The server: listens, and on SIGTERM or Ctrl-C ends in order.

First readiness is denied (for ``notice_s``, so that balancers look elsewhere), then no connection
is accepted, then what is in flight is answered (for ``drain_s`` at most), then the workers end, and
the program exits with 0. A second signal does not wait.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from logging import getLogger
from typing import TYPE_CHECKING

import uvicorn

from featpipe.service.app import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from featpipe.service.engine import Engine

logger = getLogger("featpipe.service")


class Server(uvicorn.Server):
    """uvicorn's server with our way of ending. Args: ``engine``, ready to be started."""

    def __init__(self, engine: Engine) -> None:
        settings = engine.settings
        super().__init__(
            uvicorn.Config(
                create_app(engine),
                host=settings.host,
                port=settings.port,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                timeout_graceful_shutdown=max(1, round(settings.drain_s)),
            )
        )
        self._engine = engine

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """In the place of uvicorn's: it would end the process by the signal, not with 0."""
        loop = asyncio.get_running_loop()

        def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a handler's signature
            loop.call_soon_threadsafe(self._stop, number)

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
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


def serve(engine: Engine) -> bool:
    """Serve until a signal comes; whether the service could begin at all."""
    server = Server(engine)
    server.run()
    return server.started
