"""Descriptors that tell the end of a child, also where the kernel or a sandbox refuses pidfds.

A system call that the C library knows may still be refused: by a kernel before Linux 5.3, a seccomp
profile, gVisor. So it is tried, once.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from functools import cache

#: These are about the moment, not about the system call.
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@cache
def has_pidfds() -> bool:
    """Whether process descriptors can be had and be sent signals by.

    Raises:
        OSError: descriptors or memory have run out.
    """
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        descriptor = os.pidfd_open(os.getpid())
    except OSError as error:
        if error.errno in _SCARCE:
            raise
        return False
    try:
        signal.pidfd_send_signal(descriptor, 0)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def end_descriptor(pid: int) -> int:
    """A descriptor that can be read once the child has ended; nothing is collected.

    Without pidfds a thread waits for the child, in place of the kernel.

    Raises:
        OSError: descriptors, or threads, have run out.
    """
    if has_pidfds():
        return os.pidfd_open(pid)
    readable, writable = os.pipe()
    thread = threading.Thread(target=_tell_end, args=(pid, writable), daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        os.close(readable)
        os.close(writable)
        raise OSError(errno.EAGAIN, str(error)) from error
    return readable


def _tell_end(pid: int, writable: int) -> None:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # it was collected by the system: the program ignores SIGCHLD
        pass
    finally:
        # Not by closing alone: a process that the program forked may hold a copy of this end.
        try:
            os.write(writable, b"x")
        except BrokenPipeError:  # nobody waits any more
            pass
        finally:
            os.close(writable)
