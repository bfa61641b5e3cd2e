"""The event loop of the hub: epoll, and an inbox for calls from other threads.

It never polls: without events, calls and alarms it uses no processor time at all.
"""

from __future__ import annotations

import operator
import os
import select
import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from featpipe.errors import PoolBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ItemT = TypeVar("ItemT")

#: 1 and 4 wherever there is an epoll; other systems may import this module.
IN: int = getattr(select, "EPOLLIN", 1)
OUT: int = getattr(select, "EPOLLOUT", 4)
_EDGE: int = getattr(select, "EPOLLET", 1 << 31)


class _WakeUp(int):
    """The number of an eventfd, which is closed when nobody refers to it any more.

    So a thread that is about to write to it keeps it open, whoever closes the loop meanwhile: the
    number cannot have become another file's. It is an int since a ``fileno`` would be code of
    Python's, which an interrupt may end.
    """

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self)


class EventLoop:
    """Calls the handlers of descriptors that are ready, in one thread, turn by turn."""

    def __init__(self) -> None:
        if not hasattr(select, "epoll") or not hasattr(os, "eventfd"):
            raise PoolBroken(
                f"worker processes need Linux (epoll, eventfd); this system is {sys.platform}",
                hint="run it on Linux, or in a Linux container; a finished cache is read anywhere",
            )
        self._epoll = select.epoll()
        try:
            wake_up = _WakeUp(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        except OSError as error:
            self._epoll.close()
            raise PoolBroken(
                f"the pool cannot wait for its workers: eventfd: {error.strerror}",
                hint="allow it in the sandbox (seccomp), or more open files (ulimit -n)",
            ) from error
        self._on_event: dict[int, Callable[[int], None]] = {}
        self._inbox: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        #: Holds something while the loop's thread waits, or is about to.
        self._asleep: list[bool] = []
        self._calls_that_wake: tuple[Callable[[], None], ...] = (
            self._asleep.clear,
            partial(os.eventfd_write, wake_up, 1),
        )
        self._events: list[tuple[int, int]] = []
        # By edges: every write to it ends a wait, and it need never be read.
        self._epoll.register(wake_up, IN | _EDGE)

    # for any thread

    def post(self, call: Callable[..., None], *arguments: object) -> None:
        """Have ``call`` called in the loop's thread, soon and in order."""
        self._inbox.append((call, arguments))
        self.wake()

    def post_noted(
        self, call: Callable[[ItemT], None], item: ItemT, lists: Sequence[deque[ItemT]]
    ) -> None:
        """The same for one item, which is appended to ``lists`` in the same instant.

        An interrupt (Ctrl-C) comes before all of it or after all of it: the interpreter looks for
        signals between its own instructions only, and this is a single call into C.
        """
        boxes = (self._inbox, *lists)
        items = ((call, (item,)), *[item] * len(lists))
        deque(map(deque.append, boxes, items), maxlen=0)  # type: ignore[arg-type]  # each box gets its own kind of item
        if self._asleep:
            deque(map(operator.call, self._calls_that_wake), maxlen=0)

    def wake(self) -> None:
        """End the wait of the loop's thread, if it waits."""
        # The loop notes its sleep before it reads the inbox a last time: one of the two threads
        # sees the other. One wake-up is enough, however many post before the next turn. Again a
        # single call: with an interrupt between the two, nobody would wake the loop any more.
        if self._asleep:
            deque(map(operator.call, self._calls_that_wake), maxlen=0)

    def post_quietly(self, call: Callable[..., None], *arguments: object) -> None:
        """The same without a wake-up: called at the next turn. Never blocks or raises."""
        self._inbox.append((call, arguments))

    # for its own thread

    def wait(self, patience_s: float | None) -> None:
        """Wait for events and calls, at most so long (None: for ever)."""
        self._asleep.append(True)
        if self._inbox:
            patience_s = 0.0
        self._events = self._epoll.poll(-1.0 if patience_s is None else patience_s)
        self._asleep.clear()

    def handle_events(self) -> None:
        """Make the calls that were posted, and handle the events."""
        inbox = self._inbox
        while inbox:
            call, arguments = inbox.popleft()
            call(*arguments)
        for descriptor, event in self._events:
            on_event = self._on_event.get(descriptor)
            if on_event is not None:  # else another handler of this turn ignored it
                on_event(event)
        if inbox:
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
        """Close its own descriptors; calls posted from now on stay in the inbox. Repeatable."""
        self._asleep.clear()
        self._epoll.close()
        # The eventfd closes here, or as soon as the thread is through that is writing to it.
        self._calls_that_wake = ()
