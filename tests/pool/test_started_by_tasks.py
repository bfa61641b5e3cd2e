"""What tasks start can be ended by them, and ends with their worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pool_watch import pass_time
from waiting import HANG_S, has_ended, wait_for

from featpipe.errors import TaskTimedOut, WorkerDied
from featpipe.pool import Pool, Role

HERE = Path(__file__).parent


def starter(*, is_forked: bool = False, **options: object) -> Role:
    preload = ("decimal",) if is_forked else ()
    return Role("s", "pool_starting_roles:Starter", preload=preload, **options)  # type: ignore[arg-type]


@pytest.fixture(params=["fresh", "forked"])
def is_forked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "forked")


def processes_of(note: Path) -> list[psutil.Process]:
    """Those the task has started, and their children. The note is put there as a whole."""
    assert wait_for(note.exists)
    pids = note.read_text("utf-8").split()
    assert len(pids) == 4
    started = [psutil.Process(int(pid)) for pid in pids]
    assert wait_for(started[-1].children)
    return [*started, *started[-1].children()]


def is_gone(pid: int) -> bool:
    try:
        return has_ended(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


def all_end(processes: list[psutil.Process]) -> bool:
    return wait_for(lambda: all(map(has_ended, processes)))


@pytest.mark.parametrize(
    ("what", "argument", "expected"),
    [
        ("uses_a_pool", "fork", [1, 2, 3]),
        ("uses_a_pool", "spawn", [1, 2, 3]),
        ("limits_a_sleep", None, 124),
        ("ends_a_process", "terminate", -signal.SIGTERM),
        ("ends_a_process", "interrupt", -signal.SIGINT),
        ("ends_a_fork", None, -signal.SIGTERM),
        ("exit_code_of_a_program", 7, 7),
        ("signals_itself", None, "went on"),
    ],
)
def test_a_task_can_end_what_it_starts(
    what: str, argument: object, expected: object, *, is_forked: bool
) -> None:
    with Pool([starter(is_forked=is_forked, deadline_s=HANG_S)]) as pool:
        assert pool.call("s", (what, argument)) == expected


def test_programs_start_with_no_signal_blocked_or_ignored(*, is_forked: bool) -> None:
    with Pool([starter(is_forked=is_forked)]) as pool:
        shown = str(pool.call("s", ("shows_signals", None)))
    masks = {k: int(v, 16) for k, v in (line.split(":\t") for line in shown.splitlines())}
    # What these tests were started under, as nohup or behind a shell's &, is handed on.
    for inherited in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(inherited) == signal.SIG_IGN:
            masks["SigIgn"] &= ~(1 << (inherited - 1))
    assert masks == {"SigBlk": 0, "SigIgn": 0}


def test_a_program_that_ignores_its_childrens_ends_does_not_hide_exit_codes_from_tasks(
    tmp_path: Path,
) -> None:
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from featpipe.pool import Pool, Role\n"
        "with Pool([Role('s', 'pool_starting_roles:Starter')]) as pool:\n"
        "    print(pool.call('s', ('exit_code_of_a_program', 7)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("7\n", "")


def test_a_close_leaves_nothing(tmp_path: Path, *, is_forked: bool) -> None:
    note = tmp_path / "note"
    with Pool([starter(is_forked=is_forked)]) as pool:
        assert pool.call("s", ("leaves_children", str(note))) == 4
        started = processes_of(note)
    assert all_end(started)


def test_a_close_in_the_middle_of_a_task_leaves_nothing(tmp_path: Path, *, is_forked: bool) -> None:
    note = tmp_path / "note"
    with Pool([starter(is_forked=is_forked)]) as pool:
        pool.submit("s", ("leaves_children_and_hangs", str(note)))
        started = processes_of(note)
    assert all_end(started)


@pytest.mark.usefixtures("time_may_leap")
def test_a_deadline_leaves_nothing(tmp_path: Path, *, is_forked: bool) -> None:
    note = tmp_path / "note"
    with Pool([starter(is_forked=is_forked, max_losses=1)]) as pool:
        pool.submit("s", ("leaves_children_and_hangs", str(note)), deadline_s=1000.0)
        started = processes_of(note)
        pass_time(pool, 1000.0)
        (outcome,) = pool.completed(HANG_S)
        assert isinstance(outcome.error, TaskTimedOut)
        assert all_end(started)


def test_of_a_worker_that_dies_its_group_ends(tmp_path: Path, *, is_forked: bool) -> None:
    """What made a group of its own may be out of reach by then."""
    note = tmp_path / "note"
    with Pool([starter(is_forked=is_forked, max_losses=1)]) as pool:
        pool.submit("s", ("leaves_children_and_dies", str(note)))
        (outcome,) = pool.completed()
        assert isinstance(outcome.error, WorkerDied)
        in_group, *others = [int(pid) for pid in note.read_text("utf-8").split()]
        assert wait_for(lambda: is_gone(in_group))
    for pid in others:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


PROGRAM = """
import sys
sys.path.insert(0, {here!r})
from featpipe.pool import Pool, Role
pool = Pool([Role("s", "pool_starting_roles:Starter", preload={preload!r})])
pool.submit("s", ({what!r}, {note!r}))
pool.completed()
sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["leaves_children", "leaves_children_and_hangs"])
def test_the_parents_sigkill_leaves_nothing_of_a_workers_group(
    tmp_path: Path, what: str, *, is_forked: bool
) -> None:
    note = tmp_path / "note"
    preload = ("decimal",) if is_forked else ()
    program = PROGRAM.format(here=str(HERE), what=what, note=str(note), preload=preload)
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        stdin=subprocess.PIPE,
    )
    assert parent.stdin is not None
    try:
        started = processes_of(note)
        below = psutil.Process(parent.pid).children(recursive=True)
        in_group = [one for one in below if os.getpgid(one.pid) not in {p.pid for p in started[1:]}]
        assert started[0] in in_group
    finally:
        parent.kill()
        parent.wait()
        parent.stdin.close()
    assert all_end(in_group)
    for process in started[1:4]:  # in sessions and groups of their own: nobody is left to know
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_a_task_that_forks_and_returns_twice_is_answered_once() -> None:
    with Pool([starter()]) as pool:
        pids = {pool.call("s", ("returns_twice", None)) for _ in range(3)}
        assert pids == {view.pid for view in pool.workers()}


def test_what_a_fork_logs_does_not_mix_with_what_the_worker_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Pool([starter()]) as pool:
        assert pool.call("s", ("logs_in_a_fork", 300)) == 0
    records = [record for record in caplog.records if record.name == "both"]
    assert [int(record.getMessage().split()[0]) for record in records] == list(range(300))


def test_a_worker_is_in_a_group_of_its_own(*, is_forked: bool) -> None:
    """A terminal's Ctrl-C reaches the program alone, which decides for all."""
    with Pool([starter(is_forked=is_forked, is_lazy=False, devices=("cpu", "cpu"))]) as pool:
        list(pool.map("s", [("exit_code_of_a_program", 0)] * 4))
        pids = [view.pid for view in pool.workers()]
        assert [os.getpgid(pid or 0) for pid in pids] == pids
        assert {os.getsid(pid or 0) for pid in pids} == {os.getsid(0)}
