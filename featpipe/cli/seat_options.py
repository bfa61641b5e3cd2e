"""Options that say what a job on a folder cache may use of a machine."""

from __future__ import annotations

import re
from tempfile import gettempdir
from typing import TYPE_CHECKING

import click

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from featpipe.build.jobs import Job

#: Stands for no scratch folder.
_IN_PLACE = "none"

scratch_option = click.option(
    "--scratch",
    metavar="DIR|none",
    help="Where files grow before they are published whole; none: in the cache's own folder.",
)
threads_option = click.option(
    "--cpus", type=click.IntRange(min=1), help="Cores of a job; by default those of the process."
)
also_option = click.option(
    "--also",
    multiple=True,
    metavar="CACHE",
    help="Another cache, file or folder: what it has is copied, not computed.",
)


def scratch_folder(scratch: str | None) -> str | None:
    """Where files grow, for `Seat.scratch`; by default the system's temporary folder."""
    return None if scratch == _IN_PLACE else scratch or gettempdir()


def read_share(text: str) -> tuple[int, int]:
    """``I/N``: jobs I, I + N, I + 2 N ..., counted from 0.

    Raises:
        UsageError: something else.

    """
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not int(match[1]) < int(match[2]):
        raise UsageError(
            f"--job {text!r} is no share of the jobs",
            hint="I/N with I from 0 to N - 1, such as --job $SLURM_ARRAY_TASK_ID/100",
        )
    return int(match[1]), int(match[2])


def take_share(jobs: list[Job], share: str | None) -> list[Job]:
    """The jobs of one process; all without a share."""
    if share is None:
        return jobs
    first, step = read_share(share)
    return jobs[first::step]
