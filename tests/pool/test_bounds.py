"""Bytes that wait are bounded: results that nobody takes, and payloads that no worker has yet."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from waiting import wait_for

from featpipe.errors import PoolClosed, PoolFull
from featpipe.pool import Pool, Role, outcomes

MEBIBYTE = 1 << 20
MAKER = Role("maker", "pool_array_roles:Maker")
#: In float64.
SIZE = MEBIBYTE // 8


@pytest.fixture
def four_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST_WAITING_BYTES", 4 * MEBIBYTE)
    monkeypatch.setattr("featpipe.pool.pool.MOST_PAYLOAD_BYTES", 4 * MEBIBYTE)


@pytest.mark.usefixtures("four_mebibytes")
def test_untaken_results_are_bounded_and_all_come_once_they_are_taken() -> None:
    with Pool([MAKER]) as pool:
        for number in range(40):
            pool.submit("maker", (SIZE, float(number)), tag=number)
        # The one worker runs them in order: a task of another queue ends behind what it was given.
        for _ in range(3):
            assert pool.call("maker", (1, 7.0)) is not None
        assert pool._completions.n_bytes_waiting <= (4 + 1 + MAKER.prefetch) * MEBIBYTE
        found: list[object] = []
        while done := pool.completed():
            for outcome in done:
                assert isinstance(outcome.value, np.ndarray)
                assert (outcome.value == outcome.tag).all()
                found.append(outcome.tag)
    assert found == list(range(40))


@pytest.mark.usefixtures("four_mebibytes")
def test_a_close_ends_tasks_that_wait_for_room_too() -> None:
    with Pool([MAKER]) as pool:
        for number in range(40):
            pool.submit("maker", (SIZE, float(number)), tag=number)
        pool.call("maker", (1, 7.0))
    found = pool.completed()
    assert sorted(outcome.tag for outcome in found) == list(range(40))  # type: ignore[type-var]
    assert isinstance(found[-1].error, PoolClosed)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Tasks of `Gate` wait until it is opened for writing."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


@pytest.mark.usefixtures("four_mebibytes")
def test_what_goes_from_role_to_role_is_bounded_as_well(gate: Path) -> None:
    """The first role is held back while the second one holds its results up."""
    first = Role("first", "pool_array_roles:Maker", then="second")
    second = Role("second", "pool_array_roles:Gate", {"path": str(gate)})

    def first_is_idle() -> bool:
        states = {view.role: view.state for view in pool.workers()}
        return states.get("first") == "ready" and states.get("second") == "busy"

    with Pool([first, second]) as pool:
        for number in range(40):
            pool.submit("first", (SIZE, float(number)), tag=float(number))
        assert wait_for(first_is_idle)
        assert 0 < pool.n_unfinished("second") <= 4 + 1 + first.prefetch
        assert pool.n_unfinished("first") > 0
        gate.write_bytes(b"")
        found = [outcome for _ in range(40) for outcome in pool.completed()]
    assert sorted(outcome.value for outcome in found) == [float(n) for n in range(40)]  # type: ignore[type-var]
    assert all(outcome.value == outcome.tag for outcome in found)


@pytest.mark.usefixtures("four_mebibytes")
def test_a_payload_too_many_is_refused_until_others_have_ended(gate: Path) -> None:
    with Pool([Role("gate", "pool_array_roles:Gate", {"path": str(gate)})]) as pool:
        payload = np.full(2 * SIZE, 5.0)
        for _ in range(2):
            pool.submit("gate", payload)
        with pytest.raises(PoolFull, match="wait for workers") as caught:
            pool.submit("gate", payload)
        assert "completed()" in (caught.value.hint or "")
        assert pool.has_room("gate"), "which is about the number of tasks"
        assert pool.n_unfinished("gate") == 2
        gate.write_bytes(b"")
        assert sum(len(pool.completed()) for _ in range(2)) == 2
        pool.submit("gate", payload)
        assert pool.completed()[0].value == 5.0
