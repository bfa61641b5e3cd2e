"""Looking at processes and descriptors from the tests."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from featpipe.pool import Pool


def open_descriptors() -> set[str]:
    return {
        f"{entry.name} {entry.readlink()}"
        for entry in Path("/proc/self/fd").iterdir()
        if entry.is_symlink()
    }


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def wait_for(is_true: Callable[[], object], seconds: float = 30.0) -> bool:
    """Poll a claim that must become true; the time is a guard against hanging, not a measure."""
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


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


@contextmanager
def killing_workers(pool: Pool, seed: int) -> Iterator[list[int]]:
    """SIGKILL for one worker that works, every 60 ms; the pids of those that were hit.

    None that is only starting: on a busy machine a start alone may take longer than a worker then
    has to live, and no scheduler could get anything done.
    """
    dice = random.Random(seed)  # noqa: S311  # a test's dice
    is_over = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while not is_over.wait(0.06):
            views = [view for view in pool.workers() if view.state in {"ready", "busy"}]
            pids = [view.pid for view in views if view.pid is not None]
            if pids:
                with suppress(ProcessLookupError):  # it ended since
                    os.kill(pid := dice.choice(pids), signal.SIGKILL)
                    killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        is_over.set()
        killer.join()
