"""Roles for a batcher: they work, die or do not start, as they are told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


class Squares:
    """Squares what it is given, slowly enough to be killed in the middle of it.

    Args:
        marker: while this file exists no worker starts.

    """

    def __init__(self, marker: str) -> None:
        if Path(marker).exists():
            raise RuntimeError("the weights are missing")

    def run(self, numbers: tuple[int, ...]) -> list[int]:
        """Below zero it ends its own worker."""
        for number in numbers:
            time.sleep(0.004)
            if number < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return [number * number for number in numbers]
