"""Ports of the loopback for servers of tests and benchmarks."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that a server may listen on and that nobody else is given for the next minute.

    One that was only bound may at once become the near end of somebody's connection; after a
    connection of its own it rests, and only a listener that names it (and may use such addresses
    again, as servers do) gets it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        # The accepted end is closed first, so that it is the one that rests.
        with socket.create_connection(address), listener.accept()[0]:
            port: int = address[1]
    return port
