"""Where the kernel or a sandbox refuses system calls, the same promises hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pool_seccomp import NUMBERS
from waiting import HANG_S

HERE = Path(__file__).parent

CHAOS = """
import sys
sys.path[:0] = [{here!r}, {above!r}]
from pool_watch import killing_workers, until_killed
from waiting import descendants, wait_for
from featpipe.errors import TaskTimedOut, WorkerDied
from featpipe.pool import Pool, Role

def role(**options):
    options = {{"devices": ("cpu", "cpu"), "max_losses": 20, **options}}
    return Role("t", "pool_roles:Trouble", **options)

with Pool([role()]) as pool, killing_workers(pool, seed=4) as killed:
    tasks = until_killed(("sleeps", 0.004), 200, killed, 3)
    values = [outcome.value for outcome in pool.map("t", tasks, ordered=True)]
assert values == [0.004] * len(values)

with Pool([role(max_losses=1, preload=("decimal",))]) as pool:
    pool.submit("t", ("sleeps", 3600), deadline_s=0.3)
    pool.submit("t", ("exits", 9))
    pool.submit("t", ("fine", 1))
    errors = []
    while outcomes := pool.completed():
        errors += [outcome.error for outcome in outcomes if outcome.error]
assert sorted(map(str, map(type, errors))) == sorted(map(str, (TaskTimedOut, WorkerDied))), errors
assert "exited with code 9" in "".join(map(str, errors))

with Pool([
    Role("maker", "pool_array_roles:Maker"),
    Role("s", "pool_starting_roles:Starter", max_losses=1),
]) as pool:
    assert pool.call("maker", (1_000_000, 3.0)).sum() == 3_000_000.0
    for what in ("holds_the_socket_in_a_fork_and_dies", "holds_the_socket_in_a_session_and_dies"):
        pool.submit("s", (what, None))
        (outcome,) = pool.completed()
        assert isinstance(outcome.error, WorkerDied), outcome
pool = Pool([role()])
pool.submit("t", ("sleeps", 3600))
pool.close()
assert wait_for(lambda: not descendants())
print("fine")
"""


def run_filtered(
    code: str, calls: tuple[str, ...], program: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program for which these system calls fail with ``code``."""
    if not NUMBERS:
        pytest.skip("the numbers of system calls are not known for this processor")
    done = subprocess.run(
        [sys.executable, str(HERE / "pool_seccomp.py"), code, *calls, "--", "-c", program],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1]), "TMPDIR": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    if "cannot filter" in done.stderr:
        pytest.skip(done.stderr)
    return done


@pytest.mark.parametrize("code", ["ENOSYS", "EPERM"])
@pytest.mark.parametrize(
    "calls",
    [
        ("pidfd_open",),
        ("pidfd_send_signal",),
        ("memfd_create",),
        ("pidfd_open", "pidfd_send_signal", "memfd_create"),
    ],
    ids="+".join,
)
def test_a_refused_system_call_costs_speed_only(
    calls: tuple[str, ...], code: str, tmp_path: Path
) -> None:
    program = CHAOS.format(here=str(HERE), above=str(HERE.parent))
    done = run_filtered(code, calls, program, tmp_path)
    assert done.stdout == "fine\n", done.stderr
    assert not list(tmp_path.iterdir())


def test_a_refused_eventfd_is_named(tmp_path: Path) -> None:
    program = (
        "from featpipe.errors import PoolBroken\n"
        "from featpipe.pool import Pool, Role\n"
        "try:\n"
        "    Pool([Role('e', 'pool_roles:Echo')])\n"
        "except PoolBroken as error:\n"
        "    print(error)\n"
    )
    done = run_filtered("EPERM", ("eventfd2",), program, tmp_path)
    assert "eventfd: Operation not permitted" in done.stdout, done.stderr


def test_a_refused_start_gives_the_reason_and_speaks_of_no_limits(tmp_path: Path) -> None:
    program = (
        "from featpipe.errors import PoolBroken\n"
        "from featpipe.pool import Pool, Role\n"
        "with Pool([Role('e', 'pool_roles:Echo')]) as pool:\n"
        "    try:\n"
        "        pool.call('e', 1)\n"
        "    except PoolBroken as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])]),
            "FEATPIPE_PYTHON": str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert "Permission denied" in done.stdout, done.stderr
    assert "ulimit" not in done.stdout
