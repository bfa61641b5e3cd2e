"""Does jobs on a folder cache in a process of its own: ``job_program.py FOLDER SCRATCH KILL``.

KILL is ``never``, or the kind of job in which it kills itself as soon as something was computed.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from featpipe.build import run
from featpipe.build.jobs import Seat, SeatJobs, list_jobs

if TYPE_CHECKING:
    from featpipe.build.progress import Progress


def main(folder: str, scratch: str, kill: str) -> None:
    def listen(progress: Progress) -> None:
        if {"prepare": progress.n_units, "encode": progress.n_encoded}.get(kill):
            os.kill(os.getpid(), signal.SIGKILL)

    run._TICK_S = 0.0
    seat = Seat(("cpu",), threads=1, scratch=None if scratch == "none" else scratch)
    with SeatJobs(folder, seat, listen) as jobs:
        for kind in ("prepare", "encode"):
            for job in list_jobs(folder, kind):
                jobs.run(job)


if __name__ == "__main__":
    main(*sys.argv[1:])
