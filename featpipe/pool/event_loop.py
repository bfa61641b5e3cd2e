"""The switchboard: one thread asleep in epoll, and a way for other threads to hand it something.

It never polls: without events, messages and alarms it uses no processor time at all.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

IN = select.EPOLLIN
OUT = select.EPOLLOUT


class Switchboard:
    """Descriptors and who is called when they have something to say. One thread takes turns."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._on_event: dict[int, Callable[[int], None]] = {}
        self._inbox: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._is_asleep = False
        self.is_closed = False
        self.listen(self._wake, lambda _: self._woken())

    # for any thread

    def post(self, what: Callable[..., None], *arguments: object) -> None:
        """Have ``what`` called in the thread of the switchboard, soon and in order."""
        self._inbox.append((what, arguments))
        # The thread says that it goes to sleep before it looks into the inbox a last time: one of
        # us two sees the other. One wake is enough, however many post before it takes its turn.
        if self._is_asleep:
            self._is_asleep = False
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(self._wake, 1)

    def post_quietly(self, what: Callable[..., None], *arguments: object) -> None:
        """The same without waking it: before it does anything else. Never blocks or raises."""
        self._inbox.append((what, arguments))

    # for its own thread

    def take_turn(self, patience_s: float | None) -> None:
        """Sleep until there is something, at most so long (None: for ever), and see to it."""
        self._is_asleep = True
        if self._inbox:
            patience_s = 0.0
        events = self._epoll.poll(-1.0 if patience_s is None else patience_s)
        self._is_asleep = False
        self.read_inbox()
        for descriptor, event in events:
            on_event = self._on_event.get(descriptor)
            if on_event is not None:  # given up by one of the others
                on_event(event)
        self.read_inbox()

    def read_inbox(self) -> None:
        """Do what was posted."""
        while self._inbox:
            what, arguments = self._inbox.popleft()
            what(*arguments)

    def listen(self, descriptor: int, on_event: Callable[[int], None]) -> None:
        """Call ``on_event(events)`` whenever the descriptor can be read."""
        self._on_event[descriptor] = on_event
        self._epoll.register(descriptor, IN)

    def listen_for_room(self, descriptor: int, *, is_wanted: bool) -> None:
        """Whether to call also when it can be written to."""
        self._epoll.modify(descriptor, IN | OUT if is_wanted else IN)

    def ignore(self, descriptor: int) -> None:
        """Listen no more; harmless when nobody did."""
        if self._on_event.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Give up its own descriptors; what is posted from now on stays in the inbox."""
        self._is_asleep = False
        self.is_closed = True
        self._epoll.close()
        os.close(self._wake)

    def _woken(self) -> None:
        os.eventfd_read(self._wake)
