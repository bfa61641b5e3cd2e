"""Looking at processes and descriptors from the tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def open_descriptors() -> set[str]:
    return {
        f"{entry.name} {entry.readlink()}"
        for entry in Path("/proc/self/fd").iterdir()
        if entry.is_symlink()
    }


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def wait_for(is_true: Callable[[], object], seconds: float = 30.0) -> bool:
    """Poll a claim that must become true; the time is a guard against hanging, not a measure."""
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
