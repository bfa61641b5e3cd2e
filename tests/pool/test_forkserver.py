"""Workers forked by a fork server behave like any other, and only safe fork servers fork."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import psutil
import pytest
from pool_watch import killing_workers, pass_time, until_killed
from waiting import HANG_S, descendants, wait_for

from featpipe.errors import TaskTimedOut, WorkerDied
from featpipe.pool import Pool, Role


def forked(target: str = "Trouble", **options: object) -> Role:
    options = {"devices": ("cpu", "cpu"), "preload": ("decimal", "fractions"), **options}
    return Role("forked", f"pool_roles:{target}", **options)  # type: ignore[arg-type]


def test_workers_are_forked_from_one_fork_server_that_has_imported_for_them() -> None:
    with Pool([forked("About", is_lazy=False, threads=3)]) as pool:
        parents = {pool.call("forked", "parent") for _ in range(8)}
        modules, environment = pool.call("forked", "modules"), pool.call("forked", "environment")
        (server,) = descendants()[:1]
    assert parents == {server.pid}
    assert isinstance(modules, list)
    assert "fractions" in modules
    assert isinstance(environment, dict)
    assert environment["OMP_NUM_THREADS"] == "3"
    assert pool_is_empty()


def pool_is_empty() -> bool:
    return wait_for(lambda: not descendants())


def test_a_role_without_modules_to_share_starts_fresh() -> None:
    with Pool([forked("About", preload=())]) as pool:
        assert pool.call("forked", "parent") == os.getpid()


def test_a_card_is_never_given_to_a_fork() -> None:
    with Pool([forked("About", devices=("cuda:0",))]) as pool:
        assert pool.call("forked", "parent") == os.getpid()


def test_fork_servers_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATPIPE_START", "fresh")
    with Pool([forked("About")]) as pool:
        assert pool.call("forked", "parent") == os.getpid()


@pytest.mark.parametrize("preload", [("decimal",), ()])
def test_workers_leave_a_working_folder_that_was_removed(
    preload: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    with Pool([forked("About", preload=preload, devices=("cpu",))]) as pool:
        assert pool.call("forked", "folder") == str(tmp_path / "gone")
        (worker,) = (child for child in descendants() if not child.children())
        (tmp_path / "gone").rmdir()
        worker.kill()  # the next is of the same fork server
        assert pool.call("forked", "folder") == "/"
    with Pool([forked("About", preload=preload)]) as pool:
        assert pool.call("forked", "folder") == "/"


@pytest.mark.parametrize(
    ("module", "says"),
    [("pool_starts_a_thread", "started 1 threads"), ("no_such_module", "no_such_module")],
)
def test_a_fork_server_that_is_not_safe_is_a_warning_and_workers_start_fresh(
    module: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with Pool([forked("About", preload=(module,))]) as pool:
        assert pool.call("forked", "parent") == os.getpid()
    (record,) = caplog.records
    assert says in record.getMessage()


@pytest.mark.parametrize(
    ("bad", "says"), [("dies", "SIGKILL"), ("segfaults", "in segfaults"), (("exits", 9), "code 9")]
)
def test_the_death_of_a_fork_is_told_with_its_reason(bad: object, says: str) -> None:
    with Pool([forked(max_losses=1)]) as pool:
        pool.submit("forked", bad)
        (outcome,) = pool.completed()
        assert pool.call("forked", ("fine", 1)) == 1
    assert isinstance(outcome.error, WorkerDied)
    assert says in str(outcome.error)


@pytest.mark.usefixtures("time_may_leap")
def test_a_fork_that_hangs_shows_where(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with Pool([forked(deadline_s=1000.0)]) as pool:
        pool.submit("forked", ("notes_and_hangs_in_c", str(note)))
        assert wait_for(note.exists)
        pass_time(pool, 1000.0)
        (outcome,) = pool.completed(HANG_S)
    assert isinstance(outcome.error, TaskTimedOut)
    assert "in notes_and_hangs_in_c" in str(outcome.error)


def test_arrays_and_logs_come_from_forks_as_from_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    role = Role("sum", "pool_array_roles:Sum", preload=("numpy",))
    maker = Role("maker", "pool_array_roles:Maker", preload=("numpy",))
    with Pool([role, maker, forked()]) as pool:
        array = pool.call("maker", (1_000_000, 2.0))
        assert pool.call("sum", {"array": array}) == 2_000_000.0
        pool.call("forked", ("logs", "hello"))
        del array
    assert any(record.processName == "forked-0" for record in caplog.records)


def test_forks_do_not_share_their_random_numbers() -> None:
    role = Role(
        "random", "pool_array_roles:Random", devices=("cpu",) * 3, preload=("numpy",), is_lazy=False
    )
    with Pool([role]) as pool:
        assert wait_for(lambda: [view.state for view in pool.workers()] == ["ready"] * 3)
        for _ in range(3):
            pool.submit("random", None)
        values = []
        while outcomes := pool.completed():
            values += [outcome.value for outcome in outcomes]
    assert len(set(values)) == 3


def test_workers_outlive_their_fork_server_and_the_next_gets_another() -> None:
    with Pool([forked(devices=("cpu",), max_losses=2)]) as pool:
        first = pool.call("forked", ("pid", None))
        assert isinstance(first, int)
        server = psutil.Process(first).parent()
        assert server is not None
        server.kill()
        assert wait_for(lambda: not server.is_running())
        assert pool.call("forked", ("pid", None)) == first
        os.kill(first, signal.SIGKILL)
        second = pool.call("forked", ("pid", None))
        assert isinstance(second, int)
        assert second != first
        parent = psutil.Process(second).parent()
        assert parent is not None
        assert parent.pid not in {server.pid, os.getpid()}


SLOW_TO_IMPORT = "pool_waits_to_be_imported"


@pytest.fixture
def may_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Until this file exists no fork server that imports the module above is ready."""
    monkeypatch.setenv("POOL_MAY_IMPORT", str(tmp_path / "may"))
    return tmp_path / "may"


def test_a_fork_server_killed_before_it_forks_costs_nothing(may_import: Path) -> None:
    with Pool([forked(preload=(SLOW_TO_IMPORT,))]) as pool:
        for number in range(5):
            pool.submit("forked", ("fine", number))
        assert wait_for(descendants)
        (server,) = descendants()
        server.kill()
        may_import.touch()
        values = []
        while outcomes := pool.completed():
            values += [outcome.value for outcome in outcomes]
    assert sorted(values) == list(range(5))  # type: ignore[type-var]


@pytest.mark.usefixtures("may_import")
def test_a_close_while_a_fork_server_imports_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with Pool([forked(preload=(SLOW_TO_IMPORT,))]) as pool:
        pool.submit("forked", ("fine", 1))
        assert wait_for(descendants)
    assert pool_is_empty()
    assert not caplog.records


def has_ended(process: psutil.Process) -> bool:
    return wait_for(lambda: not process.is_running())


def kill_fork_servers_before_they_are_ready(pool: Pool, n_times: int) -> None:
    killed: set[int] = set()
    for _ in range(n_times):
        pool.submit("forked", ("fine", 1))
        assert wait_for(lambda: {child.pid for child in descendants()} - killed)
        (server,) = (child for child in descendants() if child.pid not in killed)
        server.kill()
        killed.add(server.pid)
        assert has_ended(server)


@pytest.mark.parametrize(("n_killed", "is_forked"), [(2, True), (3, False)])
def test_a_fork_server_killed_while_it_imports_is_made_again_but_not_for_ever(
    n_killed: int, is_forked: bool, caplog: pytest.LogCaptureFixture, may_import: Path
) -> None:
    caplog.set_level(logging.WARNING)
    with Pool([forked("About", preload=(SLOW_TO_IMPORT,), devices=("cpu",))]) as pool:
        kill_fork_servers_before_they_are_ready(pool, n_killed)
        may_import.touch()
        assert (pool.call("forked", "parent") != os.getpid()) is is_forked
        values = []
        while outcomes := pool.completed():
            values += [outcome.error for outcome in outcomes]
    assert values == [None] * n_killed
    assert len(caplog.records) == (not is_forked)


def test_idle_workers_killed_with_their_fork_servers_are_no_failed_starts() -> None:
    with Pool([forked(devices=("cpu",), is_lazy=False)]) as pool:
        seen: set[int | None] = {None}
        for _ in range(5):
            assert wait_for(lambda: [v for v in pool.workers() if v.state == "ready"])
            (view,) = pool.workers()
            assert view.pid not in seen
            seen.add(view.pid)
            assert view.pid is not None
            server = psutil.Process(view.pid).parent()
            assert server is not None
            server.kill()
            assert has_ended(server)
            os.kill(view.pid, signal.SIGKILL)
            assert wait_for(lambda: [v for v in pool.workers() if v.pid not in seen])
        assert pool.call("forked", ("fine", 1)) == 1


def test_a_lost_worker_is_told_apart_from_a_task_that_ends_its_worker() -> None:
    with Pool([forked(devices=("cpu",), max_losses=1)]) as pool:
        found = {}
        for bad in ("dies", "segfaults", ("exits", 9), "raises"):
            pool.submit("forked", bad)
            (outcome,) = pool.completed()
            assert outcome.error is not None
            found[bad] = outcome.is_foreign
    assert list(found.values()) == [True, False, False, False]


@pytest.mark.parametrize("grace_s", [None, 0.2])
def test_a_stopped_fork_server_costs_nothing(grace_s: float | None) -> None:
    role = Role(
        "trouble", "pool_roles:Trouble", preload=("decimal",), stopped_deadline_s=grace_s or 60.0
    )
    with Pool([role]) as pool:
        worker = pool.call("trouble", ("pid", None))
        assert isinstance(worker, int)
        server = psutil.Process(worker).parent()
        assert server is not None
        server.suspend()
        os.kill(worker, signal.SIGKILL)
        pool.submit("trouble", ("fine", 1))
        if grace_s is None:
            return  # the close must not wait for a fork that never comes
        assert [outcome.value for outcome in pool.completed()] == [1]


def test_hundreds_of_tasks_survive_random_kills_of_forks() -> None:
    with Pool([forked(max_losses=20)]) as pool, killing_workers(pool, seed=5) as killed:
        tasks = until_killed(("sleeps", 0.004), 400, killed, 6)
        values = [outcome.value for outcome in pool.map("forked", tasks, ordered=True)]
    assert values == [0.004] * len(values)
    assert len(values) >= 400
