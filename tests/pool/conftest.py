"""Every test of the pool leaves no process, no descriptor and no hub thread behind."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pool_watch import open_descriptors
from waiting import descendants, wait_for

from featpipe.pool import hub
from featpipe.pool import spawn as spawn_module

if TYPE_CHECKING:
    import psutil


@pytest.fixture(autouse=True)
def leaves_no_descriptor_behind() -> Iterator[None]:
    before = len(open_descriptors())
    yield
    if descendants() or has_hub() or len(open_descriptors()) > before:
        gc.collect()
    # What was told to end may need a moment for it; what stays is a leak.
    assert wait_for(lambda: not living_children(), 60), f"orphans or zombies: {descendants()}"
    assert wait_for(lambda: not has_hub(), 60)
    assert wait_for(lambda: len(open_descriptors()) <= before, 60), sorted(open_descriptors())


def has_hub() -> bool:
    return "featpipe-hub" in {thread.name for thread in threading.enumerate()}


def living_children() -> list[psutil.Process]:
    """Zombies too, but for those whose end took longer than the pool waits: a later start does."""
    spawn_module._abandoned[:] = [p for p in spawn_module._abandoned if p.poll() is None]
    return descendants()


@pytest.fixture
def time_may_leap(monkeypatch: pytest.MonkeyPatch) -> None:
    """For `pool_watch.pass_time`: a leap is no suspension of this process, and is not forgiven."""
    monkeypatch.setattr(hub, "LATE_S", math.inf)
