"""Ctrl-C in two steps: the first finishes what is in flight, the second stops at once."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: Name of the log in which the first signal is announced.
STOPPING_LOG = "featpipe.pool.interrupt"
log = logging.getLogger(STOPPING_LOG)


@contextmanager
def stopping_in_two_steps(stop: Callable[[], bool | None]) -> Iterator[None]:
    """While this is open, the first SIGINT or SIGTERM calls ``stop()``.

    ``stop`` begins nothing new and must be safe in a signal handler. The second signal raises
    KeyboardInterrupt in the main thread; the first one does so, too, where ``stop`` returns False
    because nothing is in flight. Handlers are restored at the end. In another thread than the main
    one, where Python allows no handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    n_signals, is_announcing = 0, False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal n_signals, is_announcing
        n_signals += 1
        if is_announcing:  # raised below: an exception in here would tear the terminal's lines
            return
        if n_signals == 1 and stop() is not False:
            name = signal.Signals(number).name
            is_announcing = True
            log.warning("%s: finishing what is in flight; once more to stop at once", name)
            is_announcing = False
            if n_signals == 1:
                return
        raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: it was not installed from Python and cannot be restored.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
