"""What a library call of a user's program looks like; run from every kind of host.

``call()`` is all a host does. It is not guarded, and neither are the hosts.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from featpipe.pool import Pool, Role

EXPECTED = [0, 1, 4, 9]


def call() -> list[object]:
    with Pool([Role("square", "pool_roles:Square", devices=("cpu", "cpu"))]) as pool:
        return [outcome.value for outcome in pool.map("square", range(4), ordered=True)]


def check(path: str) -> None:
    """Write down what the call gave, for the test to read."""
    Path(path).write_text(repr(call()), "utf-8")
