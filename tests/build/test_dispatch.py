"""Jobs are given out until each is reported; what seats do to them, time is told."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from featpipe.build.dispatch import PATIENCE_S, Dispatch
from featpipe.errors import WorkerDied, WriteFailed

FULL = WriteFailed("the disk is full")


def seated(n_jobs: int, n_seats: int) -> Dispatch[int]:
    dispatch = Dispatch(range(n_jobs), n_seats)
    for seat in range(n_seats):
        dispatch.has_come(seat)
    return dispatch


def test_jobs_are_given_out_in_their_order_and_each_once() -> None:
    dispatch = seated(3, 4)
    assert [dispatch.next_job(seat, 0) for seat in range(4)] == [0, 1, 2, None]
    assert dispatch.next_job(0, 0) is None  # it has one
    assert all(dispatch.has_ended(seat, 1) for seat in range(3))
    assert dispatch.is_finished
    assert dispatch.n_done == 3


def test_the_job_of_a_lost_seat_is_the_next_one() -> None:
    dispatch = seated(3, 2)
    assert dispatch.next_job(0, 0) == 0
    dispatch.has_gone(0)
    assert dispatch.next_job(1, 1) == 0
    dispatch.has_come(0)
    assert dispatch.next_job(0, 2) == 1


def test_a_job_that_stands_still_is_given_to_an_idle_seat_and_its_first_report_counts() -> None:
    dispatch = seated(3, 2)
    assert [dispatch.next_job(0, 0), dispatch.next_job(1, 0)] == [0, 1]
    dispatch.has_ended(1, 100)
    assert dispatch.next_job(1, 100) == 2  # what waits comes first, however long others take
    dispatch.has_ended(1, 100)
    assert dispatch.next_job(1, 300) is None  # three times the median is not slow
    assert dispatch.next_job(1, 301) == 0
    assert dispatch.has_ended(1, 100)
    assert dispatch.is_finished
    assert not dispatch.has_ended(0, 500)
    assert dispatch.n_done == 3


def test_short_jobs_are_given_time_to_start() -> None:
    dispatch = seated(2, 2)
    dispatch.next_job(0, 0)
    dispatch.next_job(1, 0)
    dispatch.has_ended(1, 0.1)
    assert dispatch.next_job(1, PATIENCE_S) is None
    assert dispatch.next_job(1, PATIENCE_S + 1) == 0


def test_a_copy_of_a_job_does_not_make_it_wait_when_one_of_two_seats_is_lost() -> None:
    dispatch = seated(2, 3)
    dispatch.next_job(0, 0)
    dispatch.next_job(1, 0)
    dispatch.has_ended(1, 1)
    assert dispatch.next_job(1, 100) == 0
    dispatch.has_gone(0)
    assert dispatch.next_job(2, 101) is None
    dispatch.has_gone(1)
    assert dispatch.next_job(2, 102) == 0


def test_a_seat_that_failed_with_what_another_did_gets_nothing_more() -> None:
    dispatch = seated(4, 2)
    dispatch.next_job(0, 0)
    dispatch.has_failed(0, FULL)
    assert dispatch.next_job(0, 0) is None
    assert dispatch.next_job(1, 0) == 0
    dispatch.has_ended(1, 1)
    assert dispatch.blamed == {0: FULL}
    assert dispatch.next_job(0, 1) is None
    assert dispatch.next_job(1, 1) == 1


def test_a_job_that_fails_on_three_seats_is_given_up_and_they_go_on() -> None:
    dispatch = seated(2, 4)
    for seat in range(3):
        assert dispatch.next_job(seat, 0) == 0
        dispatch.has_failed(seat, FULL)
    assert dispatch.given_up == {0: FULL}
    assert dispatch.next_job(0, 0) == 1
    dispatch.has_ended(0, 1)
    assert dispatch.is_finished


def test_with_one_seat_a_failure_ends_a_job_and_no_run_waits_for_ever() -> None:
    dispatch = seated(3, 1)
    for job in range(3):
        assert dispatch.next_job(0, 0) == job
        dispatch.has_failed(0, FULL)
    assert dispatch.is_finished
    assert set(dispatch.given_up) == {0, 1, 2}


def test_a_seat_that_moved_to_another_machine_begins_anew() -> None:
    dispatch = seated(3, 2)
    dispatch.next_job(0, 0)
    dispatch.has_failed(0, FULL)
    dispatch.next_job(1, 0)
    dispatch.has_ended(1, 1)
    dispatch.has_gone(0)
    dispatch.has_come(0)
    assert dispatch.next_job(0, 1) == 1


def test_when_no_able_seat_comes_the_others_go_on_without_what_failed() -> None:
    dispatch = seated(3, 4)
    dispatch.next_job(0, 0)
    dispatch.has_failed(0, FULL)  # blamed below
    dispatch.next_job(1, 0)
    dispatch.has_ended(1, 1)
    assert dispatch.next_job(1, 1) == 1
    dispatch.has_failed(1, FULL)
    dispatch.has_gone(2)
    assert not dispatch.is_stuck
    dispatch.has_gone(3)
    assert dispatch.is_stuck
    assert [dispatch.next_job(seat, 2) for seat in (0, 1)] == [None, None]
    dispatch.go_on_with_these()
    assert dispatch.given_up == {1: FULL}
    assert dispatch.next_job(0, 2) == 2
    dispatch.has_failed(0, FULL)
    assert dispatch.is_finished


def test_a_job_that_kills_its_seats_is_given_up() -> None:
    dispatch = seated(2, 1)
    for _ in range(20):
        assert dispatch.next_job(0, 0) == 0
        dispatch.has_gone(0)
        dispatch.has_come(0)
    assert isinstance(dispatch.given_up[0], WorkerDied)
    assert dispatch.next_job(0, 0) == 1


def test_when_nothing_more_is_to_begin_the_jobs_at_hand_end_the_run() -> None:
    dispatch = seated(4, 2)
    dispatch.next_job(0, 0)
    dispatch.next_job(1, 0)
    dispatch.begin_nothing()
    assert not dispatch.is_finished
    dispatch.has_ended(0, 1)
    dispatch.has_gone(1)
    assert dispatch.is_finished


class Seats(RuleBasedStateMachine):
    """Whatever seats do, a run with one sound seat ends, with each job reported once."""

    @initialize(n_jobs=st.integers(0, 6), n_seats=st.integers(1, 4))
    def begin(self, n_jobs: int, n_seats: int) -> None:
        self.n_jobs = n_jobs
        self.dispatch = seated(n_jobs, n_seats)
        self.n_seats = n_seats
        self.working: set[int] = set()
        self.present = set(range(n_seats))
        self.now = 0.0
        self.n_counted = 0

    def take(self, seat: int) -> None:
        if self.dispatch.next_job(seat, self.now) is not None:
            self.working.add(seat)

    @rule(data=st.data(), waited=st.floats(0, 200))
    @precondition(lambda self: self.present - self.working)
    def takes_a_job(self, data: st.DataObject, waited: float) -> None:
        self.now += waited
        self.take(data.draw(st.sampled_from(sorted(self.present - self.working))))

    @rule(data=st.data(), what=st.sampled_from(["end", "give back", "fail", "go"]))
    @precondition(lambda self: self.working)
    def does_something(self, data: st.DataObject, what: str) -> None:
        seat = data.draw(st.sampled_from(sorted(self.working)))
        self.working.discard(seat)
        if what == "end":
            self.n_counted += self.dispatch.has_ended(seat, 1.0)
        elif what == "give back":
            self.dispatch.gave_back(seat)
        elif what == "fail":
            self.dispatch.has_failed(seat, FULL)
        else:
            self.present.discard(seat)
            self.dispatch.has_gone(seat)

    @rule()
    def comes_back(self) -> None:
        for seat in set(range(self.n_seats)) - self.present:
            self.present.add(seat)
            self.dispatch.has_come(seat)

    def teardown(self) -> None:
        if not hasattr(self, "dispatch"):
            return
        for seat in self.working:
            self.dispatch.has_gone(seat)
        if self.dispatch.is_stuck:
            self.dispatch.go_on_with_these()
        sound = 99
        self.dispatch.has_come(sound)
        for _ in range(self.n_jobs + 1):
            if self.dispatch.next_job(sound, self.now) is not None:
                self.n_counted += self.dispatch.has_ended(sound, 1.0)
        assert self.dispatch.is_finished
        assert self.n_counted == self.dispatch.n_done
        assert self.n_counted + len(self.dispatch.given_up) == self.n_jobs


Seats.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_whatever_seats_do_each_job_is_reported_once_or_given_up = Seats.TestCase
