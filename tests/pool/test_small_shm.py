"""The pool's own tests, once more where /dev/shm is tiny or cannot be written to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANG_S

HERE = Path(__file__).parent
#: What moves data: all of the pool's face, forks of a fork server, and a worker's death in between.
SUBSET = (
    "test_pool.py",
    "test_parts.py",
    "test_forkserver.py::test_arrays_and_logs_come_from_forks_as_from_others",
    "test_faults.py::test_results_too_big_for_the_socket_survive_a_death_while_sending",
    "test_faults.py::test_a_result_outlives_the_worker_that_made_it",
)


@pytest.mark.parametrize("options", ["size=16m", "ro"])
def test_the_pool_needs_no_room_in_dev_shm(options: str) -> None:
    if shutil.which("unshare") is None or os.geteuid():
        pytest.skip("needs a mount namespace of its own, which only root may make")
    mount = f"mount -t tmpfs -o {options} none /dev/shm"
    if subprocess.run(
        ["unshare", "-m", "sh", "-c", mount], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounting is not permitted here")
    tests = [str(HERE / name) for name in SUBSET]
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    ended = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{mount} && exec "$0" "$@"', *pytest_command, *tests],
        cwd=HERE.parents[1],
        text=True,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert " passed" in ended.stdout
    assert "failed" not in ended.stdout
