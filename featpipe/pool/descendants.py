"""What a worker's tasks have started: found, and killed with the worker.

A worker leads a process group of its own, which its children join by default. Those that made a
group or session of their own (``timeout``, ``setsid``) are found by their parents, as long as the
chain of parents leads to the worker: a daemon, whose parent has ended on purpose, is left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal

#: pidfd_send_signal(2), Linux 6.9 and later.
_WHOLE_GROUP = 1 << 2


def descendants_of(pid: int) -> list[int]:
    """Its children, their children ...; none where the kernel has no lists of children in /proc."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children_of(waiting.pop())
        found += children
        waiting += children
    return found


def kill_with_descendants(pid: int) -> None:
    """SIGKILL for a process that nobody has collected yet, its descendants and its group."""
    descendants = descendants_of(pid)
    kill_group(pid)
    for number in (pid, *descendants):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """SIGKILL for the group of a leader that nobody has collected yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_group_of(pidfd: int) -> None:
    """SIGKILL for the group of a leader whose number may be another's by now; Linux 6.9."""
    with contextlib.suppress(OSError):  # no pidfd either, on older kernels
        signal.pidfd_send_signal(pidfd, signal.SIGKILL, None, _WHOLE_GROUP)


def _children_of(pid: int) -> list[int]:
    folder = f"/proc/{pid}/task"
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found
