"""Values that go from one role to the next without a way through the caller."""

from __future__ import annotations

import os

import pytest
from pool_watch import killing_workers, until_killed

from featpipe.errors import PoolClosed, TaskFailed, UsageError, WorkerDied
from featpipe.pool import Pool, Role

MAKER = Role("maker", "pool_array_roles:Maker", devices=("cpu", "cpu"), then="sum")
SUM = Role("sum", "pool_array_roles:Total", max_losses=2)


@pytest.mark.parametrize("size", [3, 5_000, 300_000])
def test_a_value_goes_on_to_the_next_role_and_the_outcome_is_the_last_ones(size: int) -> None:
    """In the frame, and in shared memory."""
    payloads = [(size, float(number)) for number in range(40)]
    with Pool([MAKER, SUM]) as pool:
        outcomes = list(pool.map("maker", payloads, ordered=True))
        assert pool.n_unfinished("maker") == pool.n_unfinished("sum") == 0
    assert [outcome.value for outcome in outcomes] == [size * number for _, number in payloads]
    assert [outcome.index for outcome in outcomes] == list(range(40))
    assert {outcome.role for outcome in outcomes} == {"sum"}


def test_the_tag_is_that_of_the_task_that_was_submitted() -> None:
    with Pool([MAKER, SUM]) as pool:
        pool.submit("maker", (10, 2.0), tag="mine")
        (outcome,) = pool.completed()
    assert (outcome.tag, outcome.value) == ("mine", 20.0)


def test_a_task_that_fails_on_its_way_has_the_outcome_of_that_role() -> None:
    first = Role("first", "pool_roles:Trouble", then="second")
    second = Role("second", "pool_roles:Trouble", max_losses=2)
    with Pool([first, second]) as pool:
        payloads: list[object] = ["raises", ("fine", "raises"), ("fine", "dies"), ("fine", "pid")]
        outcomes = list(pool.map("first", payloads, ordered=True))
    assert [outcome.role for outcome in outcomes] == ["first", "second", "second", "second"]
    kinds = [type(outcome.error) for outcome in outcomes]
    assert kinds == [TaskFailed, TaskFailed, WorkerDied, type(None)]
    assert outcomes[3].value not in {None, os.getpid()}


def test_handed_on_tasks_survive_random_kills_of_both_roles() -> None:
    with Pool([MAKER, SUM]) as pool, killing_workers(pool, seed=7) as killed:
        numbers = (n for n, _ in enumerate(until_killed(None, 40, killed, 1)))
        payloads = ((200_000, float(n % 40)) for n in numbers)
        outcomes = list(pool.map("maker", payloads, ordered=True))
    assert [outcome.value for outcome in outcomes] == [
        200_000.0 * (n % 40) for n in range(len(outcomes))
    ]


def test_a_close_ends_what_was_handed_on_too() -> None:
    first = Role("first", "pool_roles:Trouble", devices=("cpu", "cpu"), then="second")
    second = Role("second", "pool_roles:Trouble")
    with Pool([first, second]) as pool:
        for number in range(12):
            pool.submit("first", ("fine", ("sleeps", 3600)), tag=number)
        while not pool.n_unfinished("second"):
            pass
    outcomes = pool.completed()
    assert {outcome.tag for outcome in outcomes} == set(range(12))
    assert all(isinstance(outcome.error, PoolClosed) for outcome in outcomes)


def test_a_role_has_no_room_while_the_next_one_has_none() -> None:
    first = Role("first", "pool_roles:Trouble", then="second")
    second = Role("second", "pool_roles:Trouble")
    with Pool([first, second]) as pool:
        n = 0
        while pool.has_room("first") or pool.n_unfinished("first"):
            if pool.has_room("first"):
                pool.submit("first", ("fine", ("sleeps", 3600)))
                n += 1
        assert n <= first.window + second.window


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ([Role("a", "m:A", then="b")], "not in this pool"),
        ([Role("a", "m:A", then="b"), Role("b", "m:B", then="a")], "comes back to itself"),
        ([Role("a", "m:A", then="b", bisect="halves"), Role("b", "m:B")], "cannot be halved"),
    ],
)
def test_a_chain_that_cannot_work_is_refused(roles: list[Role], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Pool(roles)
