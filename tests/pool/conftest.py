"""Every test of the pool leaves no process, no descriptor and no hub thread behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import psutil
import pytest
from pool_watch import children, open_descriptors


@pytest.fixture(autouse=True)
def leaves_no_descriptor_behind() -> Iterator[None]:
    before = len(open_descriptors())
    yield
    gc.collect()
    assert not [child for child in children() if child.status() != psutil.STATUS_ZOMBIE], "orphans"
    assert not children(), "zombies"
    assert "featpipe-hub" not in {thread.name for thread in threading.enumerate()}
    assert len(open_descriptors()) <= before, sorted(open_descriptors())
