"""The lifeline: a child dies with its parent, whatever it is doing.

The parent holds the write end of a pipe and never writes. The child asks the kernel to send it
SIGKILL when the read end has something to say, which is when the parent is gone: no thread of the
child has to run for that, so it works while the interpreter lock is held, asleep or in a loop.
(A parent-death signal would fire when the parent's *thread* that started the child ends.)
"""

from __future__ import annotations

import fcntl
import os
import select
import signal


def arm(descriptor: int) -> None:
    """From here on this process does not outlive the holder of the pipe's write end."""
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
    else:
        _watch_in_a_thread(descriptor)
    # The signal comes with a change; a parent that died before we armed it is a state.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    if poll.poll(0):
        os._exit(0)


def _watch_in_a_thread(descriptor: int) -> None:
    import threading

    def wait() -> None:
        try:
            os.read(descriptor, 1)
        finally:
            os._exit(0)

    threading.Thread(target=wait, name="featpipe-lifeline", daemon=True).start()
