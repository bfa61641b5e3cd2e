"""Ctrl-C in two steps: the first finishes what is in flight, the second stops at once."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Protocol

    class Stoppable(Protocol):
        """What can be asked to begin nothing new."""

        def stop_after_current(self) -> None:
            """Begin nothing new; safe in a signal handler."""


log = logging.getLogger("featpipe.pool")


@contextmanager
def stopping_in_two_steps(pool: Stoppable) -> Iterator[None]:
    """While this is open, the first SIGINT or SIGTERM calls ``pool.stop_after_current()``.

    The second raises KeyboardInterrupt in the main thread. Handlers are restored at the end. In
    another thread than the main one, where Python allows no handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    n_signals = 0

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal n_signals
        n_signals += 1
        if n_signals > 1:
            raise KeyboardInterrupt
        log.warning(
            "%s: finishing what is in flight; once more stops at once", signal.Signals(number).name
        )
        pool.stop_after_current()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: it was installed by something other than Python; there is no putting it back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
