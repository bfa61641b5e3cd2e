"""The event loop of the hub: epoll, and an inbox for calls from other threads.

It never polls: without events, calls and alarms it uses no processor time at all.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections import deque
from typing import TYPE_CHECKING

from featpipe.errors import PoolBroken

if TYPE_CHECKING:
    from collections.abc import Callable

#: 1 and 4 wherever there is an epoll; other systems may import this module.
IN: int = getattr(select, "EPOLLIN", 1)
OUT: int = getattr(select, "EPOLLOUT", 4)


class EventLoop:
    """Calls the handlers of descriptors that are ready, in one thread, turn by turn."""

    def __init__(self) -> None:
        if not hasattr(select, "epoll") or not hasattr(os, "eventfd"):
            raise PoolBroken(
                f"worker processes need Linux (epoll, eventfd); this system is {sys.platform}",
                hint="run it on Linux, or in a Linux container; a finished cache is read anywhere",
            )
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._on_event: dict[int, Callable[[int], None]] = {}
        self._inbox: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._is_asleep = False
        self.is_closed = False
        self.listen(self._wake, lambda _: self._on_wake())

    # for any thread

    def post(self, call: Callable[..., None], *arguments: object) -> None:
        """Have ``call`` called in the loop's thread, soon and in order."""
        self._inbox.append((call, arguments))
        # The loop sets the flag before it reads the inbox a last time: one of the two threads sees
        # the other. One wake-up is enough, however many post before the next turn.
        if self._is_asleep:
            self._is_asleep = False
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(self._wake, 1)

    def post_quietly(self, call: Callable[..., None], *arguments: object) -> None:
        """The same without a wake-up: called at the next turn. Never blocks or raises."""
        self._inbox.append((call, arguments))

    # for its own thread

    def take_turn(self, patience_s: float | None) -> None:
        """Wait for events and calls, at most so long (None: for ever), and handle them."""
        self._is_asleep = True
        if self._inbox:
            patience_s = 0.0
        events = self._epoll.poll(-1.0 if patience_s is None else patience_s)
        self._is_asleep = False
        self.read_inbox()
        for descriptor, event in events:
            on_event = self._on_event.get(descriptor)
            if on_event is not None:  # else another handler of this turn ignored it
                on_event(event)
        self.read_inbox()

    def read_inbox(self) -> None:
        """Make the calls that were posted."""
        while self._inbox:
            call, arguments = self._inbox.popleft()
            call(*arguments)

    def listen(self, descriptor: int, on_event: Callable[[int], None]) -> None:
        """Call ``on_event(events)`` whenever the descriptor can be read."""
        self._on_event[descriptor] = on_event
        self._epoll.register(descriptor, IN)

    def listen_for_room(self, descriptor: int, *, is_wanted: bool) -> None:
        """Whether to call also when it can be written to."""
        self._epoll.modify(descriptor, IN | OUT if is_wanted else IN)

    def ignore(self, *descriptors: int) -> None:
        """Stop listening; harmless for a descriptor that was not listened to."""
        for descriptor in descriptors:
            if self._on_event.pop(descriptor, None) is not None:
                self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Close its own descriptors; calls posted from now on stay in the inbox."""
        self._is_asleep = False
        self.is_closed = True
        self._epoll.close()
        os.close(self._wake)

    def _on_wake(self) -> None:
        os.eventfd_read(self._wake)
