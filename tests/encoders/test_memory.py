"""Memory that is freed stays for the next pack."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_COUNT_FAULTS = """
import resource, sys
import numpy as np
from featpipe.encoders.memory import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(77)

def use() -> None:
    np.empty(20 << 20, np.uint8)[:] = 1

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _count_faults(how: str, **environment: str) -> int:
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_FAULTS, how],
        env={**plain, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 and not environment:
        pytest.skip("this C library has no such options")
    assert done.returncode in {0, 77}, done.stderr
    return int(done.stdout or -1)


def test_a_block_that_was_freed_is_used_again_without_faults() -> None:
    pages_of_one = (20 << 20) // os.sysconf("SC_PAGESIZE")
    assert _count_faults("keep") < pages_of_one


def test_what_the_user_set_in_the_environment_stays() -> None:
    assert _count_faults("keep", MALLOC_TRIM_THRESHOLD_="131072") == -1
