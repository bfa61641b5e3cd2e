"""Jobs that compute nothing, for the tests of the engine: what they do, their names say."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import WriteFailed

if TYPE_CHECKING:
    from featpipe.build.jobs import Seat


@dataclass(frozen=True, slots=True)
class StubJob:
    number: int
    what: str = ""
    kind: str = "prepare"

    def __str__(self) -> str:
        return f"job {self.number}"


@dataclass(frozen=True, slots=True)
class StubReport:
    job: StubJob
    facts: dict[str, object]
    is_done: bool = True


class StubWorker:
    """Keeps a log, with a line for each job begun, in the folder it was given."""

    def __init__(self, folder: str, seat: Seat) -> None:
        self._folder, self._seat = Path(folder), seat
        self._is_stopped = False
        self._n_done = 0

    def run(self, job: StubJob) -> StubReport:
        self._n_done += 1
        if job.what:
            getattr(self, job.what)(job)
        facts = {
            "pid": os.getpid(),
            "cores": os.sched_getaffinity(0),
            "seat": self._seat,
            "n_done": self._n_done,
        }
        return StubReport(job, facts, not self._is_stopped)

    def stop_after_current(self) -> None:
        self._is_stopped = True

    def close(self) -> None:
        pass

    # ---- what jobs may do

    def is_killed_once(self, job: StubJob) -> None:
        if self._is_first(job):
            os.kill(os.getpid(), signal.SIGKILL)

    def is_told_to_end_once(self, job: StubJob) -> None:
        if self._is_first(job):
            os.kill(os.getpid(), signal.SIGTERM)

    def fails_once(self, job: StubJob) -> None:
        if self._is_first(job):
            raise WriteFailed(f"{self._folder}: the disk is full")

    def fails(self, _: StubJob) -> None:
        raise WriteFailed(f"{self._folder}: the disk is full")

    def meets_another_seat(self, _: StubJob) -> None:
        (self._folder / f"{os.getpid()}.here").touch()
        while len(list(self._folder.glob("*.here"))) < 2:
            time.sleep(0.01)

    def is_frozen_once(self, job: StubJob) -> None:
        if self._is_first(job):
            while True:
                time.sleep(0.01)

    def waits_for_the_signal_to_stop(self, job: StubJob) -> None:
        self._is_first(job)
        while not self._is_stopped:
            time.sleep(0.01)  # a signal just before a pause would not end it

    def _is_first(self, job: StubJob) -> bool:
        try:
            with (self._folder / f"{job.number}.begun").open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            return False
        return True


class Opening:
    """Makes the workers; one that a seat can unpickle."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __call__(self, seat: Seat) -> StubWorker:
        return StubWorker(self._folder, seat)
