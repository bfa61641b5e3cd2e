"""Connections whose clients do nothing: they are found, and closed by the server.

uvicorn ends a connection that is quiet after an answer. It has no limit for one that never sends a
request, or only the beginning of one, nor for one whose client takes nothing of its answer. Each
holds a file descriptor, and the last one the memory of the answer.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ConnectionT = TypeVar("ConnectionT")


class QuietConnections(Generic[ConnectionT]):
    """Finds connections, uvicorn's protocols, that are open without a request for ``quiet_s``."""

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._since: dict[ConnectionT, tuple[object, float]] = {}
        """Connection -> its last request, which was answered, and when that was first seen."""

    def find(self, connections: Collection[ConnectionT], now: float) -> list[ConnectionT]:
        """Those to close; call it every second or so with all that are open."""
        since: dict[ConnectionT, tuple[object, float]] = {}
        for one in connections:
            last = getattr(one, "cycle", None)  # None before the first whole head of a request
            if last is None or last.response_complete:
                known = self._since.get(one)
                since[one] = known if known is not None and known[0] is last else (last, now)
        self._since = since
        return [one for one, (_, first) in since.items() if now - first >= self._quiet_s]


def limit_unread(listening: Iterable[socket.socket], unread_s: float) -> None:
    """Have the kernel end connections whose client takes nothing that is sent for so long.

    Accepted connections inherit it. It covers what waits in the kernel and in the process, and
    clients whose machine has gone.
    """
    for one in listening:
        if one.family in {socket.AF_INET, socket.AF_INET6}:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(unread_s * 1000))
