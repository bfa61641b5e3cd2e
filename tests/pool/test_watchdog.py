"""The watch over stopped workers and the clock that forgives, with time and processes told."""

from __future__ import annotations

import logging
import os

import pytest

from featpipe.pool.watchdog import CHECK_S, LONG_S, Clock, StallDetector, Watched, state_of_process


def watched(number: int = 1, task: int = 7, *, has_deadline: bool = False) -> Watched:
    return Watched(number, f"w-{number}", 1000 + number, 30.0, task, has_deadline)


class Bench:
    """A detector over processes whose states are told."""

    def __init__(self) -> None:
        self.states: dict[int, str] = {}
        self.detector = StallDetector(state_of=lambda pid: self.states.get(pid, "S"))

    def check(self, now: float, *workers: Watched) -> list[int]:
        return self.detector.check(workers or [watched()], now)


def test_there_is_nothing_to_wake_for_while_nobody_works() -> None:
    detector = StallDetector()
    assert detector.wake_at(0.0, is_busy=False) is None
    assert detector.wake_at(1.0, is_busy=True) == 1.0 + CHECK_S
    assert detector.wake_at(2.0, is_busy=True) == 1.0 + CHECK_S, "work in between puts nothing off"
    assert not detector.is_due(1.0)
    assert detector.is_due(1.0 + CHECK_S)
    assert detector.wake_at(3.0, is_busy=False) is None


def test_a_worker_is_given_up_after_it_was_stopped_for_its_time() -> None:
    bench = Bench()
    bench.states[1001] = "T"
    assert bench.check(0.0) == []
    assert bench.check(29.9) == []
    assert bench.check(30.0) == [1]


def test_one_that_went_on_in_between_starts_anew() -> None:
    bench = Bench()
    bench.states[1001] = "T"
    bench.check(0.0)
    bench.states[1001] = "R"
    bench.check(20.0)
    bench.states[1001] = "T"
    assert bench.check(40.0) == []
    assert bench.check(60.0) == []
    assert bench.check(70.0) == [1]


@pytest.mark.parametrize("state", ["R", "S", "D", "t", ""])
def test_no_other_state_costs_a_worker_its_life(state: str) -> None:
    bench = Bench()
    bench.states[1001] = state
    assert [bench.check(float(at)) for at in range(0, 4000, 5)] == [[]] * 800


def test_a_stop_is_told_once_and_names_the_process(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.states[1002] = "T"
    for at in range(3):
        bench.check(float(at), watched(1), watched(2))
    (text,) = caplog.messages
    assert "w-2 (pid 1002) is stopped" in text


def test_a_long_task_without_a_deadline_is_told_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.states[1001] = "D"
    told = []
    for at in range(0, int(LONG_S * 9), 5):
        caplog.clear()
        bench.check(float(at))
        if caplog.messages:
            told.append(at)
            assert "waiting in the kernel" in caplog.text
    assert told == [LONG_S, 2 * LONG_S, 4 * LONG_S, 8 * LONG_S]


def test_a_task_with_a_deadline_and_a_new_task_are_not_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    caplog.set_level(logging.WARNING)
    for at in range(0, 4000, 5):
        bench.check(float(at), watched(1, has_deadline=True), watched(2, task=at // 100))
    assert not caplog.messages


def test_the_state_of_a_real_process_is_read() -> None:
    assert state_of_process(os.getpid()) == "R"
    assert state_of_process(2**22 + 1) == ""


def test_a_suspension_does_not_use_up_deadlines() -> None:
    time = 100.0
    clock = Clock(lambda: time)
    began = clock.now()
    time += 605.0  # suspended for ten minutes in a wait of five seconds
    clock.forgive(began, 5.0)
    assert clock.now() == began + 5.0
    began = clock.now()
    time += 5.5  # merely late
    clock.forgive(began, 5.0)
    assert clock.now() == began + 5.5
