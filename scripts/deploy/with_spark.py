"""A folder cache by Spark: ``spark-submit with_spark.py FOLDER``, after ``featpipe shard plan``.

A partition is a job, and carries no data: Spark's retries and speculation are safe.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from featpipe.build.jobs import Seat, list_jobs, run_job

if TYPE_CHECKING:
    from featpipe.build.jobs import Kind


def main(folder: str) -> None:
    """All jobs of one kind, then those of the other."""
    context = SparkSession.builder.appName("featpipe").getOrCreate().sparkContext
    kinds: tuple[tuple[Kind, Seat], ...] = (
        ("prepare", Seat(("cpu",), scratch="/tmp")),  # noqa: S108  # of each executor
        ("encode", Seat(scratch="/tmp")),  # noqa: S108
    )
    for kind, seat in kinds:
        jobs = list_jobs(folder, kind)
        done = context.parallelize(jobs, len(jobs)).map(
            lambda job, seat=seat: run_job(folder, job, seat).run.summary()
        )
        for summary in done.toLocalIterator():
            print(summary, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
