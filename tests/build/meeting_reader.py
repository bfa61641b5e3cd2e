"""A prepare worker that begins no file before so many of its kind have one."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.build.workers import PrepareRole

if TYPE_CHECKING:
    from featpipe.build.messages import PreparedBatch, PrepareTask


class MeetingReader(PrepareRole):
    """Args: ``place``: a folder for a file of each worker; ``n``: how many are to meet."""

    def __init__(self, place: str, n: int, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]  # as the role gives them
        self._place, self._n = Path(place), n

    def run(self, task: PrepareTask) -> PreparedBatch:
        (self._place / str(os.getpid())).touch()
        while len(list(self._place.iterdir())) < self._n:
            time.sleep(0.005)
        return super().run(task)
