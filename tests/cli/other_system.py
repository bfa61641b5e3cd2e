"""``python other_system.py darwin|bare ARGUMENT...``: the command with what another system lacks.

``darwin`` lacks what only Linux has; ``bare`` also lacks what only POSIX systems have.
"""

from __future__ import annotations

import asyncio  # noqa: F401  # the standard library is loaded as it is here
import fcntl
import os
import select
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import zoneinfo  # noqa: F401

LINUX = {
    os: (
        *("pidfd_open", "memfd_create", "eventfd", "eventfd_read", "eventfd_write"),
        *("sched_getaffinity", "fdatasync", "posix_fallocate", "posix_fadvise"),
        *("getxattr", "setxattr", "listxattr", "copy_file_range"),
    ),
    select: ("epoll", "EPOLLIN", "EPOLLOUT"),
    fcntl: ("F_OFD_SETLK", "F_OFD_SETLKW", "F_OFD_GETLK", "F_SETSIG", "F_ADD_SEALS"),
}
POSIX = {
    os: (
        *("pread", "pwrite", "fchmod", "fchown", "getuid", "geteuid", "getgid", "getegid"),
        *("fork", "register_at_fork", "killpg", "getpgrp", "statvfs"),
    ),
    select: ("poll",),
}

if __name__ == "__main__":
    system, *sys.argv = sys.argv[1:]
    for lacks in (LINUX,) if system == "darwin" else (LINUX, POSIX):
        for module, names in lacks.items():
            for name in names:
                if hasattr(module, name):
                    delattr(module, name)
    if system == "bare":
        for name in ("fcntl", "resource", "pwd", "grp"):
            sys.modules[name] = None  # type: ignore[assignment]  # importing it then fails
    sys.platform = system
    from featpipe.cli.main import main

    sys.argv.insert(0, "featpipe")
    main()
