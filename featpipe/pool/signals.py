"""Signals in a child: which end it, which it leaves to its parent, which its tasks hand on."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

#: Sent to many processes at once by terminals and service managers.
_GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_with_parent(lifeline: int) -> None:
    """From here on this process does not outlive the holder of the pipe's write end.

    The parent never writes to the pipe. The kernel sends SIGKILL to this process and its group,
    which holds what its tasks have started, when the read end changes, which happens when the
    parent is gone: no thread has to run for that, so it works while the interpreter lock is held,
    asleep or in a loop. (A parent-death signal would come when the parent's *thread* that started
    the child ends.)
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    # The signal comes with a change: a parent that died earlier is found by looking.
    poll = select.poll()
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    if poll.poll(0):
        os._exit(0)


def ignore_group_signals() -> None:
    """Ctrl-C and service managers signal many processes at once; the parent decides for all.

    By handlers that do nothing: SIG_IGN, and signals that are blocked, would be inherited by the
    programs that tasks start.
    """
    for number in _GROUP_SIGNALS:
        signal.signal(number, _do_nothing)
        signal.siginterrupt(number, False)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    return


def restore_signals_in_forks() -> None:
    """Let what a task forks be ended by the task.

    A signal that comes in between waits until the fork has the default handlers.
    """
    masks: dict[int, set[signal.Signals | int]] = {}

    def block() -> None:
        masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _GROUP_SIGNALS)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop(threading.get_ident()))

    def restore() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        unblock()

    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=restore)
