"""A folder cache by Dask: ``python with_dask.py SCHEDULER FOLDER``, after ``featpipe shard plan``.

A job may be run again, or twice at once, so that Dask's retries are safe.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dask.distributed import Client, as_completed

from featpipe.build.jobs import Seat, list_jobs, run_job

if TYPE_CHECKING:
    from featpipe.build.jobs import Kind


def main(scheduler: str, folder: str) -> None:
    """All jobs of one kind, then those of the other."""
    kinds: tuple[tuple[Kind, Seat], ...] = (
        ("prepare", Seat(("cpu",), scratch="/tmp")),  # noqa: S108  # of each worker
        ("encode", Seat(scratch="/tmp")),  # noqa: S108
    )
    with Client(scheduler) as client:
        for kind, seat in kinds:
            jobs = list_jobs(folder, kind)
            futures = [
                client.submit(run_job, folder, j, seat, pure=False, retries=10) for j in jobs
            ]
            for future in as_completed(futures):
                report = future.result()
                print(report.job, report.run.summary(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
