"""The fault list, each with real processes: what goes wrong costs its own task and nothing else."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from pool_watch import (
    killing_workers,
    open_descriptors,
    pass_time,
    until_killed,
)
from waiting import HANG_S, descendants, wait_for

from featpipe.errors import (
    CannotTravel,
    CheckpointError,
    PoolBroken,
    PoolClosed,
    TaskFailed,
    TaskTimedOut,
    WorkerDied,
)
from featpipe.pool import Outcome, Pool, Role

TROUBLE = "pool_roles:Trouble"


def trouble(**options: object) -> Role:
    return Role("trouble", TROUBLE, **{"devices": ("cpu", "cpu"), **options})  # type: ignore[arg-type]


def run_with(
    pool: Pool, bad: object, n_good: int = 8, *, deadline_s: float | None = None
) -> Outcome:
    """One bad task among good ones: every good one must come back; the bad one's outcome.

    The deadline is the bad one's alone: how long the good ones take is the machine's affair.
    """
    for number in range(n_good):
        if number == n_good // 2:
            pool.submit("trouble", bad, tag="bad", deadline_s=deadline_s)
        pool.submit("trouble", ("fine", number), tag=number)
    ended: dict[object, Outcome] = {}
    while outcomes := pool.completed(timeout=HANG_S):
        ended.update({outcome.tag: outcome for outcome in outcomes})
    assert {tag: o.value for tag, o in ended.items() if tag != "bad"} == {
        number: number for number in range(n_good)
    }
    return ended["bad"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("dies", "SIGKILL"),
        ("segfaults", "SIGSEGV"),
        (("exits", 0), "exited with code 0"),
        (("exits", 9), "exited with code 9"),
    ],
)
def test_a_task_that_kills_its_workers_is_quarantined_with_the_reason(
    bad: object, says: str
) -> None:
    with Pool([trouble(max_losses=2)]) as pool:
        outcome = run_with(pool, bad)
    assert isinstance(outcome.error, WorkerDied)
    assert says in str(outcome.error)
    assert outcome.attempts == 2


def test_a_segfault_shows_the_python_stack() -> None:
    with Pool([trouble(max_losses=1)]) as pool:
        outcome = run_with(pool, "segfaults")
    assert "Segmentation fault" in str(outcome.error)
    assert "in segfaults" in str(outcome.error)


def test_a_dead_workers_last_words_are_in_the_error() -> None:
    with Pool([trouble(max_losses=1)]) as pool:
        outcome = run_with(pool, ("writes_and_exits", "disk on fire\n"))
    assert "disk on fire" in str(outcome.error)
    assert "exited with code 9" in str(outcome.error)


def test_a_worker_killed_once_costs_no_task(tmp_path: Path) -> None:
    with Pool([trouble()]) as pool:
        outcome = run_with(pool, ("dies_once", str(tmp_path / "marker")))
    assert outcome.value == "second try"
    assert outcome.attempts == 2


@pytest.mark.parametrize("bad", ["sleeps", "hangs_in_c", "stops"])
def test_a_task_that_hangs_is_killed_and_the_others_go_on(bad: str) -> None:
    with Pool([trouble(max_losses=1)]) as pool:
        outcome = run_with(pool, (bad, None), deadline_s=1.0)
    assert isinstance(outcome.error, TaskTimedOut)


def test_a_task_that_closes_its_workers_socket_is_ended_without_any_deadline() -> None:
    with Pool([trouble(max_losses=1)]) as pool:
        outcome = run_with(pool, ("closes_everything", None))
    assert isinstance(outcome.error, WorkerDied)


def test_a_stopped_worker_is_named_and_replaced_without_any_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Pool([trouble(max_losses=2, stopped_deadline_s=0.2)]) as pool:
        outcome = run_with(pool, "stops")
    assert isinstance(outcome.error, WorkerDied)
    assert "was stopped (SIGSTOP)" in str(outcome.error)
    assert outcome.attempts == 2
    named = [r.getMessage() for r in caplog.records if "is stopped" in r.getMessage()]
    assert any("trouble-0 (pid " in text or "trouble-1 (pid " in text for text in named)


def test_a_worker_killed_from_outside_costs_no_task_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Pool([trouble(devices=("cpu",))]) as pool:
        first = pool.call("trouble", ("pid", None))
        assert isinstance(first, int)
        os.kill(first, signal.SIGKILL)
        assert pool.call("trouble", ("fine", 1)) == 1
    assert wait_for(lambda: caplog.records)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert f"trouble-0 is lost: (trouble-0, pid {first}) was ended by SIGKILL" in record.message


def test_a_worker_stopped_from_outside_costs_no_task() -> None:
    with Pool([trouble(devices=("cpu",), stopped_deadline_s=0.2)]) as pool:
        first = pool.call("trouble", ("pid", None))
        assert isinstance(first, int)
        os.kill(first, signal.SIGSTOP)
        assert pool.call("trouble", ("fine", 1)) == 1
        assert pool.call("trouble", ("pid", None)) != first


def test_a_worker_that_goes_on_in_time_is_not_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    marker = tmp_path / "marker"
    with Pool([trouble(devices=("cpu",), stopped_deadline_s=60.0)]) as pool:
        pool.submit("trouble", ("stops_once", str(marker)))
        assert wait_for(lambda: "is stopped" in caplog.text)
        os.kill(int(marker.read_text()), signal.SIGCONT)
        (outcome,) = pool.completed()
    assert outcome.value == "went on"
    assert outcome.attempts == 1


@pytest.mark.usefixtures("time_may_leap")
@pytest.mark.parametrize("bad", ["notes_and_sleeps", "notes_and_hangs_in_c"])
def test_a_timed_out_task_shows_where_it_hung(bad: str, tmp_path: Path) -> None:
    """Also while the interpreter lock is held in C."""
    note = tmp_path / "note"
    with Pool([trouble()]) as pool:
        pool.submit("trouble", (bad, str(note)), deadline_s=1000.0)
        assert wait_for(note.exists)
        pass_time(pool, 1000.0)
        (outcome,) = pool.completed(HANG_S)
    assert isinstance(outcome.error, TaskTimedOut)
    assert f"in {bad}" in str(outcome.error)


def test_a_roles_deadline_is_that_of_each_of_its_tasks() -> None:
    with Pool([trouble(deadline_s=0.2)]) as pool:
        pool.submit("trouble", ("sleeps", 3600))
        (outcome,) = pool.completed()
    assert isinstance(outcome.error, TaskTimedOut)


def test_a_deadline_can_be_given_with_the_task() -> None:
    with Pool([trouble()]) as pool:
        pool.submit("trouble", ("sleeps", 3600), deadline_s=0.2)
        (outcome,) = pool.completed()
    assert isinstance(outcome.error, TaskTimedOut)


@pytest.mark.usefixtures("time_may_leap")
def test_a_task_that_waits_behind_a_slow_one_is_not_timed_out(tmp_path: Path) -> None:
    words = [tmp_path / str(number) for number in range(6)]
    with Pool([trouble(devices=("cpu",), deadline_s=1000.0)]) as pool:
        pool.call("trouble", ("fine", 1))
        for word in words:
            pool.submit("trouble", ("waits_for", str(word)))
        for word in words:  # twice the deadline in all
            pass_time(pool, 400.0)
            word.touch()
            (outcome,) = pool.completed(HANG_S)
            assert outcome.value == "it came"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("raises", "this one is bad"),
        ("raises_oddly", "1 and 2"),
        ("raises_unpicklable", "holds a lock"),
        ("exits_with_system_exit", "SystemExit"),
    ],
)
def test_an_exception_of_any_kind_fails_its_own_task(bad: str, says: str) -> None:
    with Pool([trouble()]) as pool:
        pids = {pool.call("trouble", ("pid", None))}
        outcome = run_with(pool, (bad, None))
        assert isinstance(outcome.error, TaskFailed)
        assert says in str(outcome.error)
        assert f"in {bad}" in str(outcome.error)
        assert pids <= {view.pid for view in pool.workers()}, "no worker was lost to it"


def test_a_result_that_cannot_travel_says_where_it_is_stuck() -> None:
    with Pool([trouble()]) as pool:
        outcome = run_with(pool, ("gives_a_lock", None))
    assert isinstance(outcome.error, CannotTravel)
    assert "result['deep'][0]" in str(outcome.error)


def test_a_payload_that_cannot_travel_is_refused_at_the_submit() -> None:
    with Pool([trouble()]) as pool:
        with pytest.raises(CannotTravel, match=r"payload\[1\]"):
            pool.submit("trouble", ("fine", threading.Lock()))
        assert run_with(pool, ("fine", 1)).value == 1


@pytest.mark.parametrize(
    ("target", "says"),
    [("NeverStarts", "the weights are missing"), ("DiesAtStart", "exited with code 5")],
)
def test_workers_that_cannot_start_end_the_run_with_the_cause(target: str, says: str) -> None:
    with Pool([Role("broken", f"pool_roles:{target}"), trouble()]) as pool:
        pool.submit("broken", 1)
        pool.submit("trouble", ("sleeps", 3600))
        with pytest.raises(PoolBroken, match=says):
            pool.completed()
        with pytest.raises(PoolBroken):
            pool.submit("trouble", ("fine", 1))
        assert wait_for(lambda: not descendants())


def test_a_role_that_refuses_to_start_ends_the_run_at_its_first_word(tmp_path: Path) -> None:
    role = Role("broken", "pool_roles:Refuses", {"marks": str(tmp_path)})
    with Pool([role]) as pool:
        pool.submit("broken", 1)
        with pytest.raises(PoolBroken, match="no model at this path") as found:
            pool.completed()
    assert isinstance(found.value.__cause__, CheckpointError)
    assert found.value.__cause__.hint == "name another"
    assert len(list(tmp_path.iterdir())) == 1, "it was not asked again"


def test_a_start_that_hangs_ends_the_run() -> None:
    role = Role("hanging", "pool_roles:HangsAtStart", start_deadline_s=0.3)
    with Pool([role]) as pool:
        pool.submit("hanging", 1)
        with pytest.raises(PoolBroken, match="took too long"):
            pool.completed()


def test_a_role_that_does_not_exist_is_named() -> None:
    with Pool([Role("nowhere", "pool_roles:Nowhere")]) as pool:
        pool.submit("nowhere", 1)
        with pytest.raises(PoolBroken, match="Nowhere"):
            pool.completed()


def test_a_batch_is_halved_until_the_poison_is_alone() -> None:
    role = Role(
        "batch",
        "pool_roles:BatchTrouble",
        devices=("cpu", "cpu"),
        bisect="featpipe.pool.role:halve_sequence",
        max_losses=2,
    )
    batch: list[object] = [*range(7), "poison", *range(8, 13)]
    with Pool([role]) as pool:
        pool.submit("batch", batch, tag="poisoned")
        pool.submit("batch", [100], tag="clean")
        ended = {}
        while outcomes := pool.completed():
            ended.update({outcome.tag: outcome for outcome in outcomes})
    assert ended["clean"].value == [10_000]
    outcome = ended["poisoned"]
    assert isinstance(outcome.error, WorkerDied)
    assert [part.payload for part in outcome.parts if part.error] == [["poison"]]
    won = {
        number: value
        for part in outcome.parts
        if part.has_value
        for number, value in zip(part.payload, part.value, strict=True)  # type: ignore[call-overload]
    }
    assert won == {n: n * n for n in batch if isinstance(n, int)}
    assert [unit for part in outcome.parts for unit in part.payload] == batch  # type: ignore[attr-defined]


@pytest.mark.usefixtures("time_may_leap")
def test_a_batch_that_hangs_is_halved_too(tmp_path: Path) -> None:
    role = Role(
        "batch",
        "pool_roles:BatchTrouble",
        {"hung": str(tmp_path)},
        bisect="featpipe.pool.role:halve_sequence",
        deadline_s=1000.0,
    )
    with Pool([role]) as pool:
        pool.submit("batch", [1, 2, None, 4])
        for n_hung in (1, 2, 3):  # of four members, of two and of one
            assert wait_for(lambda n=n_hung: len(list(tmp_path.iterdir())) == n)
            pass_time(pool, 1000.0)
        (outcome,) = pool.completed(HANG_S)
    assert [part.payload for part in outcome.parts] == [[1, 2], [None], [4]]
    assert isinstance(outcome.parts[1].error, TaskTimedOut)
    assert [part.value for part in outcome.parts] == [[1, 4], None, [16]]


def test_a_worker_killed_from_outside_while_idle_is_replaced() -> None:
    with Pool([trouble(devices=("cpu",))]) as pool:
        first = pool.call("trouble", ("pid", None))
        assert isinstance(first, int)
        os.kill(first, signal.SIGKILL)
        second = pool.call("trouble", ("pid", None))
    assert second != first


def test_a_result_outlives_the_worker_that_made_it() -> None:
    with Pool(
        [Role("maker", "pool_array_roles:Maker"), Role("sum", "pool_array_roles:Sum")]
    ) as pool:
        array = pool.call("maker", (1_000_000, 3.0))
        (maker,) = (view for view in pool.workers() if view.role == "maker")
        assert maker.pid is not None
        os.kill(maker.pid, signal.SIGKILL)
        assert wait_for(lambda: maker.pid not in {view.pid for view in pool.workers()})
        assert pool.call("sum", {"array": array}) == 3_000_000.0
        assert isinstance(array, np.ndarray)
        assert array.sum() == 3_000_000.0


def test_hundreds_of_tasks_survive_kill_after_kill() -> None:
    with Pool([trouble(max_losses=20)]) as pool, killing_workers(pool, seed=4) as killed:
        tasks = until_killed(("sleeps", 0.004), 400, killed, 6)
        values = [outcome.value for outcome in pool.map("trouble", tasks, ordered=True)]
    assert values == [0.004] * len(values)
    assert len(values) >= 400


def test_thirty_deaths_leak_nothing() -> None:
    with Pool([trouble(devices=("cpu",), max_losses=1)]) as pool:
        pool.call("trouble", ("fine", 1))
        before = len(open_descriptors())
        for _ in range(30):
            pool.submit("trouble", ("exits", 1))
            assert isinstance(pool.completed()[0].error, WorkerDied)
        pool.call("trouble", ("fine", 1))
        assert wait_for(lambda: len(open_descriptors()) <= before)
        assert wait_for(lambda: len(descendants()) == 1)


def test_results_too_big_for_the_socket_survive_a_death_while_sending() -> None:
    """The answer is a descriptor: there is no long send to be killed in."""
    role = Role("maker", "pool_array_roles:Maker", devices=("cpu", "cpu"), max_losses=20)
    with Pool([role]) as pool:
        for number in range(40):
            pool.submit("maker", (200_000, float(number)), tag=number)
        ended = {}
        while outcomes := pool.completed():
            for outcome in outcomes:
                ended[outcome.tag] = outcome
            pid = next((view.pid for view in pool.workers() if view.pid is not None), None)
            if pid is not None and len(ended) % 7 == 0:
                with suppress(ProcessLookupError):  # it was killed in the last round
                    os.kill(pid, signal.SIGKILL)
    for number in range(40):
        value = ended[number].value
        assert isinstance(value, np.ndarray)
        assert (value == number).all()


def test_memory_beyond_the_ceiling_fails_the_task_and_not_the_run() -> None:
    role = trouble(max_memory_bytes=400 << 20, max_losses=2)
    with Pool([role]) as pool:
        outcome = run_with(pool, ("eats_memory", 4 << 30))
    assert isinstance(outcome.error, WorkerDied)
    assert "out of memory" in str(outcome.error)


def test_a_flood_of_small_tasks_is_answered_in_full() -> None:
    with Pool([Role("square", "pool_roles:Square", devices=("cpu", "cpu"))]) as pool:
        for number in range(100_000):
            pool.submit("square", number, tag=number)
        total = n_seen = 0
        while outcomes := pool.completed():
            n_seen += len(outcomes)
            total += sum(outcome.value for outcome in outcomes)  # type: ignore[misc]
    assert n_seen == 100_000
    assert total == sum(number * number for number in range(100_000))


@pytest.mark.parametrize("ordered", [True, False])
def test_the_input_is_pulled_no_further_than_the_window(ordered: bool) -> None:
    """Also behind a straggler whose turn it is."""
    n_pulled = 0

    def source() -> object:
        nonlocal n_pulled
        for number in range(300):
            n_pulled += 1
            yield ("sleeps", 0.6) if number == 0 else ("fine", number)

    with Pool([trouble()]) as pool:
        n_taken = 0
        for _ in pool.map("trouble", source(), ordered=ordered, window=10):  # type: ignore[arg-type]
            assert n_pulled <= n_taken + 10
            n_taken += 1
    assert n_taken == 300


def test_a_close_in_the_middle_leaves_no_task_without_an_answer() -> None:
    pool = Pool([trouble()])
    for number in range(20):
        pool.submit("trouble", ("sleeps", 3600), tag=number)
    pool.close()
    outcomes = pool.completed()
    assert {outcome.tag for outcome in outcomes} == set(range(20))
    assert all(isinstance(outcome.error, PoolClosed) for outcome in outcomes)


def test_a_stop_pulls_no_more_and_finishes_what_was_begun() -> None:
    with Pool([trouble()]) as pool:
        outcomes = []
        for outcome in pool.map("trouble", (("fine", n) for n in range(10_000)), ordered=True):
            outcomes.append(outcome)
            if len(outcomes) == 5:
                pool.stop_after_current()
        assert pool.is_stopping
    assert 5 <= len(outcomes) <= 5 + 8
    assert [outcome.value for outcome in outcomes] == list(range(len(outcomes)))


def test_a_forgotten_pool_is_closed() -> None:
    pool = Pool([trouble()])
    pool.call("trouble", ("fine", 1))
    del pool
    assert wait_for(lambda: not descendants())


def test_threads_that_share_a_pool_get_their_own_outcomes() -> None:
    wrong: list[object] = []
    with Pool([Role("square", "pool_roles:Square", devices=("cpu", "cpu"))]) as pool:

        def use(first: int) -> None:
            numbers = range(first, first + 200)
            values = [outcome.value for outcome in pool.map("square", numbers, ordered=True)]
            if values != [number * number for number in numbers]:
                wrong.append(values)

        threads = [threading.Thread(target=use, args=(1000 * n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
