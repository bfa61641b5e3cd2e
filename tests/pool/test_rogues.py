"""What one worker does ends that worker at most: others go on, deadlines fire, closes return."""

from __future__ import annotations

import errno
import logging
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import HANG_S, wait_for

from featpipe.errors import PoolBroken, PoolClosed, PoolError, TaskFailed, TaskTimedOut, WorkerDied
from featpipe.pool import Completions, Outcome, Pool, Role, scheduler
from featpipe.pool import spawn as spawn_module
from featpipe.pool.hub import Hub

HERE = Path(__file__).parent


def rogues(**options: object) -> Role:
    return Role("rogue", "pool_rogues:Rogue", **{"devices": ("cpu", "cpu"), **options})  # type: ignore[arg-type]


def outcomes_of(pool: Pool) -> Iterator[Outcome]:
    while outcomes := pool.completed(timeout=HANG_S):
        yield from outcomes


def run_with(pool: Pool, bad: tuple[str, object], *, deadline_s: float | None = None) -> Outcome:
    """One bad task among twelve good ones, all of which come back; the outcome of the bad one."""
    pool.submit("rogue", bad, tag="bad", deadline_s=deadline_s)
    for number in range(12):
        pool.submit("rogue", ("fine", number), tag=number)
    ended = {outcome.tag: outcome for outcome in outcomes_of(pool)}
    assert [ended[number].value for number in range(12)] == list(range(12))
    return ended["bad"]


@pytest.mark.parametrize("n_bytes", [2, 4 << 10, 64 << 10])
def test_output_without_an_end_keeps_nobody_from_working(n_bytes: int) -> None:
    """As with ``yes >&2``: the other tasks end, the deadline fires, and the close returns."""
    with Pool([rogues(is_lazy=False)]) as pool:
        outcome = run_with(pool, ("floods", n_bytes), deadline_s=1.0)
        assert isinstance(outcome.error, TaskTimedOut)
        assert wait_for(lambda: [view.state for view in pool.workers()] == ["ready"] * 2)
        pool.submit("rogue", ("floods", n_bytes))
        assert pool.call("rogue", ("fine", 1)) == 1


@pytest.mark.parametrize("is_logged", [True, False])
def test_a_flood_of_output_is_kept_in_bounds(
    is_logged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gigabytes without an end of line, too, while the level asks for them or does not."""
    logger = logging.getLogger("featpipe.pool")
    monkeypatch.setattr(logger, "propagate", False)  # pytest keeps every record
    monkeypatch.setattr(logger, "handlers", [logging.NullHandler()])
    logger.setLevel(logging.INFO if is_logged else logging.WARNING)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with Pool([rogues(devices=("cpu",))]) as pool:
            assert pool.call("rogue", ("floods_one_line", 512 << 20)) == 512 << 20
    finally:
        logger.setLevel(logging.NOTSET)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 256 << 10, "KiB"


def test_a_flood_of_log_records_keeps_nobody_from_working() -> None:
    with Pool([rogues()]) as pool:
        outcome = run_with(pool, ("floods_the_log", None), deadline_s=1.0)
    assert isinstance(outcome.error, TaskTimedOut)


def test_a_log_record_of_many_megabytes_is_shortened_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Pool([rogues(devices=("cpu",))]) as pool:
        assert pool.call("rogue", ("logs_one_long_record", 32 << 20)) == 32 << 20
    (text,) = [r.getMessage() for r in caplog.records if r.name == "some.library"]
    assert len(text) < 100_000
    assert "33,554,432 characters in all" in text


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("writes_junk", "what is no frame"),
        ("announces_too_much", "1152921504606846976 bytes"),
        ("answers_out_of_turn", "not its turn"),
        ("names_no_segment", "segment 77"),
        ("sends_a_wrong_error", "after it had started"),
    ],
)
def test_a_worker_that_breaks_the_protocol_is_ended_and_its_task_blamed(
    bad: str, says: str
) -> None:
    with Pool([rogues(max_losses=2)]) as pool:
        outcome = run_with(pool, (bad, 1))
        assert isinstance(outcome.error, WorkerDied)
        assert "broke the pool's protocol" in str(outcome.error)
        assert says in str(outcome.error)
        assert outcome.attempts == 2
        assert pool.call("rogue", ("fine", 1)) == 1


def test_a_role_that_forks_and_returns_twice_has_one_outcome_for_each_task() -> None:
    with Pool([rogues(max_losses=20)]) as pool:
        for number in range(20):
            pool.submit("rogue", ("forks_and_returns_twice", None), tag=number)
        tags = [outcome.tag for outcome in outcomes_of(pool)]
        assert sorted(tags) == list(range(20))  # type: ignore[type-var]
        assert pool.call("rogue", ("fine", 1)) == 1


#: In a process of its own: the limit stays with it.
TOO_BIG = """
import resource, sys
sys.path.insert(0, {here!r})
from featpipe.errors import TaskFailed
from featpipe.pool import Pool, Role
with Pool([Role("rogue", "pool_rogues:Rogue", devices=("cpu", "cpu"))]) as pool:
    assert pool.call("rogue", ("fine", 1)) == 1
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (300 << 20), resource.RLIM_INFINITY))
    try:
        pool.call("rogue", ("makes", 600 << 20))
    except TaskFailed as error:
        assert "cannot be mapped here" in str(error), error
        assert "Cannot allocate memory" in str(error), error
    assert len(pool.call("rogue", ("makes", 1 << 20))) == 1 << 20
    print("it lives")
"""


def test_a_result_that_the_parent_cannot_map_fails_its_task_and_not_the_pool() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TOO_BIG.format(here=str(HERE))],
        env={**os.environ, "PYTHONPATH": f"{HERE.parents[1]}:{HERE}"},
        capture_output=True,
        check=False,
        text=True,
        timeout=HANG_S,
    )
    assert ended.stdout == "it lives\n", ended.stderr


def test_a_refused_process_is_started_later_while_another_worker_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with ``ulimit -u``: four refusals in a row, and the work goes on."""
    popen, n_refused = subprocess.Popen, 0

    def refuse(*arguments: object, **options: object) -> object:
        nonlocal n_refused
        if n_refused < 4:
            n_refused += 1
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return popen(*arguments, **options)  # type: ignore[call-overload]

    with Pool([rogues(is_lazy=False)]) as pool:
        assert wait_for(lambda: [view.state for view in pool.workers()] == ["ready"] * 2)
        monkeypatch.setattr(spawn_module.subprocess, "Popen", refuse)
        victim = pool.workers()[0].pid
        assert victim is not None
        os.kill(victim, 9)
        assert wait_for(lambda: n_refused >= 1)
        assert pool.call("rogue", ("fine", 1)) == 1
        assert wait_for(lambda: [view.state for view in pool.workers()] == ["ready"] * 2)
        assert n_refused == 4


def test_a_machine_that_starts_no_process_at_all_ends_the_run_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(spawn_module.subprocess, "Popen", refuse)
    with Pool([rogues()]) as pool, pytest.raises(PoolBroken, match="temporarily unavailable"):
        pool.call("rogue", ("fine", 1))


class Handler(logging.Handler):
    """Does what ``emits`` says with each record of the pool and of workers."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Raising(Handler):
    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        raise RuntimeError("a handler that raises")


class Hanging(Handler):
    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        self.may_go_on.wait(HANG_S)


@pytest.fixture
def handler(request: pytest.FixtureRequest) -> Iterator[Handler]:
    made: Handler = request.param()
    logger = logging.getLogger("some.library")
    logger.addHandler(made)
    yield made
    logger.removeHandler(made)
    made.may_go_on.set()
    for thread in threading.enumerate():
        if thread.name == "featpipe-log":
            thread.join(HANG_S)


LOGS = Role("logs", "pool_roles:Trouble", devices=("cpu",))


@pytest.mark.parametrize("handler", [Raising, Hanging], indirect=True)
def test_a_log_handler_costs_no_outcome_and_no_close(
    handler: Handler, capfd: pytest.CaptureFixture[str]
) -> None:
    with Pool([LOGS]) as pool:
        for number in range(20):
            pool.submit("logs", ("logs", str(number)))
        assert [outcome.error for outcome in outcomes_of(pool)] == [None] * 20
    said = capfd.readouterr().err
    if isinstance(handler, Raising):
        assert handler.texts == [str(number) for number in range(20)]
        assert said.count("Traceback") == 1
    else:
        assert "a log handler has not returned" in said


@pytest.mark.parametrize("handler", [Handler], indirect=True)
def test_records_of_a_worker_keep_their_order_and_are_all_there_after_the_close(
    handler: Handler,
) -> None:
    with Pool([LOGS]) as pool:
        for number in range(300):
            pool.submit("logs", ("logs", str(number)))
        list(outcomes_of(pool))
    assert handler.texts == [str(number) for number in range(300)]


@pytest.mark.parametrize("handler", [Hanging], indirect=True)
def test_records_that_had_to_be_dropped_are_counted(
    handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    with Pool([rogues(devices=("cpu",))]) as pool:
        pool.submit("rogue", ("floods_the_log", None))
        assert wait_for(lambda: pool._hub.logs._n_dropped > 0)
        handler.may_go_on.set()
    assert wait_for(lambda: "were dropped" in caplog.text)


def batch(bisect: str) -> Role:
    return Role(
        "rogue",
        "pool_rogues:Batch",
        devices=("cpu", "cpu"),
        max_losses=2,
        bisect=f"pool_rogues:{bisect}",
    )


@pytest.mark.parametrize("how", ["halve_slowly", "halve_and_die", "halve_wrongly"])
def test_a_task_that_cannot_be_cut_fails_alone(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_CUT_DEADLINE_S", 0.5)
    with Pool([batch(how)]) as pool:
        pool.submit("rogue", [1, "poison"], tag="bad")
        for number in range(8):
            pool.submit("rogue", [number], tag=number)
        ended = {outcome.tag: outcome for outcome in outcomes_of(pool)}
    assert isinstance(ended.pop("bad").error, WorkerDied)
    assert [ended[number].value for number in range(8)] == [[number] for number in range(8)]


def test_a_task_is_cut_in_a_worker(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    with Pool([batch("pid_and_halves")]) as pool:
        pool.submit("rogue", [str(note), 1, "poison", 3])
        (outcome,) = outcomes_of(pool)
    assert [part.payload for part in outcome.parts] == [
        [str(note), part] for part in (1, "poison", 3)
    ]
    assert [part.has_value for part in outcome.parts] == [True, False, True]
    assert str(os.getpid()) not in note.read_text().split()


def test_a_close_does_not_wait_for_a_cut_that_hangs() -> None:
    with Pool([batch("halve_slowly")]) as pool:
        pool.submit("rogue", [1, "poison"])
        assert wait_for(
            lambda: any(task.cut_for for task in list(pool._hub.open_tasks._tasks.values()))
        )
    (outcome,) = outcomes_of(pool)
    assert isinstance(outcome.error, PoolClosed)


def count_ends(into: Completions, ends: list[object]) -> None:
    """Take every outcome, or what is raised in its place."""
    while into.n_open:
        try:
            ends += into.get()
        except PoolError as error:
            ends.append(error)


@pytest.mark.parametrize("is_closed_too", [False, True])
def test_a_pool_that_fails_hands_over_every_outcome(
    is_closed_too: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails, and also where another thread closes it in the same instant."""

    def fail(_: Hub) -> None:
        raise MemoryError("no memory for the hub")

    for _ in range(20):
        pool = Pool([rogues()])
        waits: list[tuple[Completions, list[object]]] = [(pool.completions(), []) for _ in range(4)]
        for number in range(40):
            pool.submit("rogue", ("sleeps", 3600), into=waits[number % 4][0])
        threads = [threading.Thread(target=count_ends, args=wait) for wait in waits]
        for thread in threads:
            thread.start()
        with monkeypatch.context() as patch:
            patch.setattr(Hub, "_take_turn", fail)
            if is_closed_too:
                threads.append(threading.Thread(target=pool.close))
                threads[-1].start()
            pool._hub.wake()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive(), "it waits for ever"
        assert [len(ends) for _, ends in waits] == [10] * 4
        pool.close()


def test_an_error_says_what_the_hub_failed_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Hub) -> None:
        raise MemoryError("no memory for the hub")

    monkeypatch.setattr(Hub, "_take_turn", fail)
    with Pool([rogues()]) as pool:
        pool._hub.thread.join(60)
        with pytest.raises(PoolBroken, match="no memory for the hub"):
            pool.submit("rogue", ("fine", 1))


def test_an_answer_that_cannot_be_read_fails_its_task() -> None:
    """An error frame whose body is no pickle, from a role that forged it."""
    with Pool([rogues(devices=("cpu",))]) as pool:
        task = pool.submit("rogue", ("forges_an_error", None))
        (outcome,) = outcomes_of(pool)
    assert task.number == 1
    assert isinstance(outcome.error, TaskFailed)
