"""Every submitted task has exactly one outcome, whatever is interrupted, frozen or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pool_watch import killing_workers, until_killed
from waiting import HANG_S, descendants, wait_for

from featpipe.errors import TaskTimedOut, WorkerDied
from featpipe.pool import Pool, Role, workers
from featpipe.pool import spawn as spawn_module
from featpipe.pool.kill_rate import KillRate
from featpipe.pool.spawn import FreshProcess
from featpipe.pool.task import Task

HERE = Path(__file__).parent


def trouble(**options: object) -> Role:
    return Role("trouble", "pool_roles:Trouble", **{"devices": ("cpu", "cpu"), **options})  # type: ignore[arg-type]


def test_no_outcome_is_lost_or_given_twice_under_a_storm_of_interrupts() -> None:
    ended = subprocess.run(
        [sys.executable, str(HERE / "pool_interrupted.py"), "2000", "11"],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        check=True,
        text=True,
        timeout=HANG_S,
    )
    counted = json.loads(ended.stdout)
    assert counted["interrupts"]["submit"] > 10
    assert counted["interrupts"]["completed"] > 10
    assert counted["acknowledged"] > 1000
    assert counted["lost"] == counted["twice"] == []
    assert counted["wrong"] == []


@pytest.fixture
def unkillable(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """Pids that SIGKILL does not reach, as in a frozen control group; they end with the test."""
    pids: set[int] = set()
    send = FreshProcess.signal

    def signal_if_it_can(process: FreshProcess, number: signal.Signals) -> None:
        if number is not signal.SIGKILL or process.pid not in pids:
            send(process, number)

    monkeypatch.setattr(FreshProcess, "signal", signal_if_it_can)
    monkeypatch.setattr(workers, "LOST_S", 0.3)
    yield pids
    for process in spawn_module._abandoned:
        process.kill()
        process.wait()
    spawn_module._abandoned.clear()


def test_a_worker_that_cannot_be_killed_is_given_up_and_collected_later(
    unkillable: set[int], caplog: pytest.LogCaptureFixture
) -> None:
    with Pool([trouble(devices=("cpu",))]) as pool:
        pid = pool.call("trouble", ("pid", None))
        assert isinstance(pid, int)
        unkillable.add(pid)
        pool.submit("trouble", ("sleeps", 3600), deadline_s=0.2)
        (outcome,) = pool.completed(60)
        assert isinstance(outcome.error, TaskTimedOut)
        assert pool.call("trouble", ("fine", 1), timeout=HANG_S) == 1
        # What it waited for is over (here, its lifeline was closed): a later start collects it.
        while psutil.pid_exists(pid):
            pool.submit("trouble", ("exits", 1), deadline_s=60.0)
            assert isinstance(pool.completed(60)[0].error, WorkerDied)
    assert f"pid {pid}) was killed" in caplog.text


def test_a_close_does_not_wait_for_a_worker_that_cannot_be_killed(unkillable: set[int]) -> None:
    pool = Pool([trouble(devices=("cpu",))])
    pid = pool.call("trouble", ("pid", None))
    assert isinstance(pid, int)
    unkillable.add(pid)
    os.kill(pid, signal.SIGSTOP)
    assert wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    pool.close()
    assert [child.pid for child in descendants()] == [pid]


def test_a_stopped_worker_does_not_get_the_grace_of_a_close(tmp_path: Path) -> None:
    note = tmp_path / "note"
    pool = Pool([Role("closer", "pool_roles:Closer", {"note": str(note)})])
    pool.call("closer", 1)
    pid = pool.workers()[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    pool.close(grace_s=10_000)
    assert not note.exists()


def test_hundreds_of_tasks_with_default_settings_survive_random_kills() -> None:
    with Pool([trouble()]) as pool, killing_workers(pool, seed=5) as killed:
        tasks = until_killed(("sleeps", 0.004), 400, killed, 6)
        outcomes = list(pool.map("trouble", tasks, ordered=True))
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)
    assert len(outcomes) >= 400


def test_a_task_that_kills_its_workers_is_blamed_among_random_kills_too() -> None:
    tasks: list[object] = [("sleeps", 0.004)] * 300
    tasks[100] = "dies"
    with Pool([trouble()]) as pool, killing_workers(pool, seed=6):
        outcomes = list(pool.map("trouble", tasks, ordered=True))
    assert isinstance(outcomes[100].error, WorkerDied)
    assert [o.error for o in outcomes if o.index != 100] == [None] * 299
    assert outcomes[100].attempts <= 30


def test_kills_of_one_task_alone_are_its_own_doing() -> None:
    rate = KillRate()
    for _ in range(5):
        rate.n_answers += 1
    for n in range(1, 4):
        rate.n_kills += 1
        assert not rate.explains(Task(1, "r", n_foreign=n))


@pytest.mark.parametrize(("n_kills", "n_explained"), [(10, 3), (60, 5), (300, 11)])
def test_as_many_kills_are_put_down_to_chance_as_the_other_tasks_show(
    n_kills: int, n_explained: int
) -> None:
    rate = KillRate()
    for _ in range(600):
        rate.n_answers += 1
    for _ in range(n_kills):
        rate.n_kills += 1
    explained = [n for n in range(1, 40) if rate.explains(Task(1, "r", n_foreign=n))]
    assert explained == list(range(1, n_explained + 1))
