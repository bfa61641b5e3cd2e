"""The pool does what it is asked: values come back, arrays travel, roles work side by side."""

from __future__ import annotations

import logging
import os
import resource
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from waiting import wait_for

from featpipe.errors import PoolBroken, PoolClosed, TaskFailed, UsageError
from featpipe.pool import Pool, Role

HERE = "pool_roles"


def role(target: str, **options: object) -> Role:
    module = "pool_array_roles" if target in {"Maker", "Sum", "Keeper"} else HERE
    return Role(target.lower(), f"{module}:{target}", **options)  # type: ignore[arg-type]


def test_every_task_has_one_outcome_with_its_tag() -> None:
    with Pool([role("Square", devices=("cpu", "cpu"))]) as pool:
        for number in range(100):
            pool.submit("square", number, tag=number)
        values = {}
        while outcomes := pool.completed():
            values.update({outcome.tag: outcome.value for outcome in outcomes})
    assert values == {number: number * number for number in range(100)}


def test_several_roles_are_driven_by_one_loop() -> None:
    roles = [role("Maker", devices=("cpu", "cpu")), role("Sum"), role("Echo")]
    sums = []
    with Pool(roles) as pool:
        for number in range(8):
            pool.submit("maker", (50_000, float(number)))
        while outcomes := pool.completed():
            for outcome in outcomes:
                if outcome.role == "maker":
                    pool.submit("sum", {"array": outcome.value})
                elif outcome.role == "sum":
                    pool.submit("echo", outcome.value)
                else:
                    sums.append(outcome.value)
    assert sorted(sums) == [50_000.0 * number for number in range(8)]


def test_a_map_keeps_the_order_when_asked() -> None:
    with Pool([role("Square", devices=("cpu", "cpu"))]) as pool:
        outcomes = list(pool.map("square", range(200), ordered=True))
    assert [outcome.value for outcome in outcomes] == [number**2 for number in range(200)]


@pytest.mark.parametrize("size", [0, 1, 1_000, 20_000, 3_000_000])
def test_arrays_of_any_size_come_back_equal_and_read_only(size: int) -> None:
    array = np.arange(size, dtype=np.float32)
    with Pool([role("Echo")]) as pool:
        value = pool.call("echo", {"a": array, "b": [array[::2], "text", array[:10]]})
    assert isinstance(value, dict)
    np.testing.assert_array_equal(value["a"], array)
    np.testing.assert_array_equal(value["b"][0], array[::2])
    np.testing.assert_array_equal(value["b"][2], array[:10])
    assert not value["a"].flags.writeable


def test_a_result_is_the_callers_after_the_pool_is_closed() -> None:
    with Pool([role("Maker")]) as pool:
        value = pool.call("maker", (1_000_000, 7.0))
    assert isinstance(value, np.ndarray)
    assert value.sum() == 7_000_000


def test_an_array_that_somebody_looks_at_is_never_written_over() -> None:
    with Pool([role("Maker")]) as pool:
        kept = [pool.call("maker", (40_000, float(number))) for number in range(30)]
        for number, array in enumerate(kept):
            assert isinstance(array, np.ndarray)
            assert (array == number).all()


def test_large_texts_need_no_arrays_to_travel() -> None:
    texts = ["正文" * 1_000] * 1_000
    with Pool([role("Echo"), role("About")]) as pool:
        assert pool.call("echo", texts) == texts
        pool.call("about", "x" * 10_000_000)
        modules = pool.call("about", "modules")
    assert isinstance(modules, list)
    assert "numpy" not in modules


def test_more_results_than_descriptors_can_be_looked_at() -> None:
    with Pool([role("Maker", devices=("cpu", "cpu"))]) as pool:
        outcomes = list(pool.map("maker", [(40_000, float(n)) for n in range(600)], ordered=True))
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome.value, np.ndarray)
        assert (outcome.value == number).all()


@pytest.fixture(params=[0, 200], ids=["few open", "many open"])
def few_descriptors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forty more than there are, which is what a low ulimit -n leaves."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(request.param)]
    highest = max(int(link.name) for link in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for descriptor in others:
        os.close(descriptor)


@pytest.mark.usefixtures("few_descriptors")
def test_results_may_be_held_where_few_descriptors_are_allowed() -> None:
    with Pool([role("Maker")]) as pool:
        outcomes = list(pool.map("maker", [(40_000, float(n)) for n in range(80)], ordered=True))
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome.value, np.ndarray)
        assert (outcome.value == number).all()


def test_descriptors_that_run_out_fail_the_task_with_the_cure_and_not_the_pool() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Pool([role("Maker")]) as pool:
        held = [pool.call("maker", (40_000, 0.0))]
        n_open = len(list(Path("/proc/self/fd").iterdir()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_open, before[1]))
        try:
            with pytest.raises(TaskFailed, match="Too many open files") as caught:
                held.extend(pool.call("maker", (40_000, 1.0)) for _ in range(80))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        held.append(pool.call("maker", (40_000, 2.0)))
    assert "ulimit -v -n" in (caught.value.hint or "")


def test_there_is_no_room_while_many_bytes_of_results_are_not_taken() -> None:
    with Pool([role("Maker")]) as pool:
        n = 0
        while pool.has_room("maker"):
            pool.submit("maker", (1_000_000, float(n)))
            n += 1
            assert n < 100, "8 MB each"
            assert wait_for(lambda: not pool.n_unfinished("maker"))
        while outcomes := pool.completed():
            assert all(outcome.has_value for outcome in outcomes)
        assert pool.has_room("maker")
        assert n > 20


def test_a_role_may_keep_its_payload_and_never_sees_it_change() -> None:
    with Pool([role("Keeper"), role("Maker")]) as pool:
        for number in range(20):
            array = pool.call("maker", (40_000, float(number)))
            pool.call("keeper", array)
            del array
        assert pool.call("keeper", "tell") == [float(number) for number in range(20)]
        assert pool.call("keeper", "forget") == []
        for number in range(20):
            assert pool.call("keeper", np.full(40_000, float(number))) is not None
        assert pool.call("keeper", "tell") == [float(number) for number in range(20)]


def test_a_child_knows_its_device_threads_and_name_and_sees_only_its_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    plain = Role("plain", f"{HERE}:About", {"more": "x"}, threads=3)
    card = Role("card", f"{HERE}:About", devices=("cuda:1",))
    with Pool([plain, card]) as pool:
        told, environment = pool.call("plain", ""), pool.call("plain", "environment")
        assert told == {"device": "cpu", "threads": 3, "worker_name": "plain-0", "more": "x"}
        assert isinstance(environment, dict)
        assert environment["CUDA_VISIBLE_DEVICES"] == ""
        assert environment["OMP_NUM_THREADS"] == "3"
        told, environment = pool.call("card", ""), pool.call("card", "environment")
        assert isinstance(told, dict)
        assert isinstance(environment, dict)
        assert told["device"] == "cuda:0"
        assert environment["CUDA_VISIBLE_DEVICES"] == "7"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}),
        ({"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": None}),
    ],
)
def test_threads_of_a_child_spin_briefly_and_then_sleep_unless_the_user_chose_otherwise(
    given: dict[str, str], expected: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in expected:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with Pool([Role("plain", f"{HERE}:About")]) as pool:
        environment = pool.call("plain", "environment")
    assert isinstance(environment, dict)
    assert {name: environment.get(name) for name in expected} == expected


def test_an_error_keeps_its_traceback_and_its_cause() -> None:
    with Pool([role("Trouble")]) as pool:
        with pytest.raises(TaskFailed, match="this one is bad") as caught:
            pool.call("trouble", "raises")
        assert isinstance(caught.value.__cause__, ValueError)
        assert 'raise ValueError("this one is bad")' in str(caught.value)
        assert pool.call("trouble", ("fine", 3)) == 3


def test_logs_warnings_and_prints_of_children_reach_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with Pool([role("Trouble")]) as pool:
        pool.call("trouble", ("logs", "hello"))
    found = {(record.name, record.processName): record.getMessage() for record in caplog.records}
    assert found["some.library", "trouble-0"] == "hello"
    assert "old hello" in found["py.warnings", "trouble-0"]
    assert any("trouble-0: printed hello" in record.getMessage() for record in caplog.records)


def test_an_instance_is_closed_at_the_stop(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with Pool([role("Closer", arguments={"note": str(note)})]) as pool:
        pool.call("closer", 1)
    assert note.read_text() == "closed"


def test_a_closed_pool_says_so() -> None:
    with Pool([role("Echo")]) as pool:
        pass
    with pytest.raises(PoolClosed):
        pool.submit("echo", 1)
    pool.close()


def test_a_process_that_may_start_no_thread_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(PoolBroken, match="interpreter shutdown") as caught:
        Pool([role("Echo")])
    assert "exit handlers" in (caught.value.hint or "")


def test_an_unknown_role_is_named() -> None:
    with Pool([role("Echo")]) as pool, pytest.raises(UsageError, match="'ecko'"):
        pool.submit("ecko", 1)


def test_completed_returns_at_once_when_nothing_is_open() -> None:
    with Pool([role("Echo")]) as pool:
        assert pool.completed() == []
        pool.submit("echo", 1)
        assert len(pool.completed()) == 1
        assert pool.completed() == []


def test_a_round_trip_makes_few_python_calls() -> None:
    """In the caller's thread and in the hub's; 115 before they were counted. Half of them now."""
    n_calls: Counter[str] = Counter()

    def count(_: object, event: str, __: object) -> None:
        n_calls[threading.current_thread().name] += event == "call"

    threading.setprofile(count)
    try:
        with Pool([Role("square", "pool_roles:Square")]) as pool:
            for _ in range(10):
                pool.call("square", 3)
            n_calls.clear()
            sys.setprofile(count)
            for _ in range(100):
                pool.call("square", 3)
            sys.setprofile(None)
            hub = n_calls["featpipe-hub"]
            here = n_calls[threading.current_thread().name]
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]  # none, as at the beginning
    assert 0 < hub + here < 100 * 64
