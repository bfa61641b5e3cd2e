"""The collector: one thread that carries the ends of a pool's tasks into an event loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from featpipe.errors import PoolBroken

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.pool import Completions, Outcome


class Collector:
    """Calls ``post`` from a thread of its own with every end of a task, and with the pool's own.

    Args:
        into: where the tasks end.
        post: must not block; called with an outcome, or with PoolBroken as the last.
        name: of the thread.

    """

    def __init__(
        self, into: Completions, post: Callable[[Outcome | PoolBroken], None], name: str
    ) -> None:
        self._into, self._post = into, post
        self._has_open = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"collect-{name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """A task was submitted."""
        self._has_open.set()

    def stop(self) -> None:
        """End the thread when the tasks that are open have ended; returns at once."""
        self._over.set()
        self._has_open.set()

    def _run(self) -> None:
        while True:
            self._has_open.wait()
            try:
                outcomes = self._into.get()
            except PoolBroken as error:
                self._post(error)
                return
            for outcome in outcomes:
                self._post(outcome)
            if self._into.n_open > 0:
                continue
            if self._is_over():
                return
            # In this order: what is submitted after the look sets it again.
            self._has_open.clear()
            if self._into.n_open > 0 or self._is_over():
                self._has_open.set()

    def _is_over(self) -> bool:
        return self._over.is_set()
