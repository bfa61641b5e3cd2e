"""The clock of a pool: seconds in which its process could run.

A program that is suspended (Ctrl-Z, a stopped container) does not use up the deadlines of its
tasks: its workers were most likely suspended with it, and would all be killed when it goes on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: To wake this much later than asked is the work of a busy machine; more is not.
_LATE_S = 1.0


class Clock:
    """Monotonic seconds, less those that are known to have been slept through.

    Args:
        read: the clock beneath; injected by tests.
    """

    def __init__(self, read: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._missed_s = 0.0

    def now(self) -> float:
        """Seconds since some beginning."""
        return self._read() - self._missed_s

    def forgive(self, began: float, patience_s: float) -> None:
        """A wait begun at ``began`` for at most ``patience_s`` is over: what it overran is missed.

        So a suspension is forgiven except for the wait it fell into.
        """
        late_s = self.now() - began - patience_s
        if late_s > _LATE_S:
            self._missed_s += late_s
