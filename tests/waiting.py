"""Waiting for what other processes and threads do.

A wait ends when its claim holds. Its limit is a guard against hanging, no measure: it is far beyond
what a busy machine takes, and below the time after which pytest ends a test (`faulthandler_timeout`
in pyproject.toml).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from ports import free_port

__all__ = ["HANG_S", "descendants", "free_port", "has_ended", "wait_for"]

HANG_S = 400.0


def wait_for(holds: Callable[[], object], seconds: float = HANG_S) -> bool:
    """Poll a claim that must become true; False where it has not within the limit."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def descendants() -> list[psutil.Process]:
    """The children of this process, zombies too, and theirs; soon told where there are none."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return psutil.Process().children(recursive=True)


def has_ended(process: psutil.Process) -> bool:
    """Gone, or only waiting for its parent to take note."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
