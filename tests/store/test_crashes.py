"""Writers that die, and disks that lose power: nothing acknowledged is lost, nothing half is seen.

Reduced sweeps; ``scripts/soak_store.py`` does all of them.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from featpipe.store import Writer
from tests.store.other_readers import H5DUMP
from tests.store.power_loss import Image, TracingDisk, states
from tests.store.sweeps import check_after_kill, check_state, killed_at, points_of_the_workload
from tests.store.workload import BATCHES, check_featpipe, check_plain, finish, write_batches

pytestmark = pytest.mark.forks


@pytest.mark.parametrize("is_torn", [False, True], ids=["clean", "torn"])
def test_a_writer_killed_at_any_call_loses_nothing(folder: Path, is_torn: bool) -> None:
    n_points = points_of_the_workload(folder)
    assert n_points > 200
    for point in range(1 + is_torn, n_points + 1, 5):
        path = folder / f"{point}.h5"
        n_acknowledged, was_killed = killed_at(point, path, is_torn=is_torn)
        assert was_killed
        check_after_kill(path, n_acknowledged, with_h5dump=bool(H5DUMP) and point % 25 == 1)


def test_power_lost_at_any_instant_loses_nothing(folder: Path) -> None:
    source = random.Random(7)  # noqa: S311 - a draw that can be repeated
    disk = TracingDisk()
    write_batches(folder / "d.h5", disk, disk.acknowledge)
    for image, n_acknowledged in states(disk.calls, Image(), source, 150):
        check_state(image, n_acknowledged, folder / "state.h5")


def test_power_lost_during_recovery_loses_nothing(folder: Path) -> None:
    source = random.Random(8)  # noqa: S311 - a draw that can be repeated
    disk = TracingDisk()
    write_batches(folder / "d.h5", disk, disk.acknowledge)
    path = folder / "state.h5"
    for image, n_acknowledged in states(disk.calls, Image(), source, 12):
        image.save(path)
        again = TracingDisk()
        with Writer.open(path, disk=again):
            pass
        for second, _ in states(again.calls, image, source, 8):
            check_state(second, n_acknowledged, path)


def test_a_dead_writer_is_named_and_its_file_taken_over(folder: Path) -> None:
    path = folder / "d.h5"
    n_points = points_of_the_workload(folder)
    killed_at(n_points // 2, path, is_torn=False)
    with Writer.open(path) as writer:
        assert writer.previous is not None
        assert not writer.previous.is_closed
        assert writer.previous.pid != os.getpid()
        assert "which opened it at" in str(writer.previous)
    with Writer.open(path) as writer:
        assert writer.previous is None
        assert writer.recovery is None


def test_an_abandoned_writer_is_like_a_killed_one(folder: Path) -> None:
    path = folder / "d.h5"
    with pytest.raises(KeyboardInterrupt), Writer.open(path) as writer:
        raise KeyboardInterrupt
    with pytest.raises(Exception, match="closed"):
        writer.commit()
    finish(path)
    check_plain(path, 0)
    check_featpipe(path, len(BATCHES))


def test_the_script_of_the_whole_sweeps_runs() -> None:
    script = Path(__file__).parents[2] / "scripts/soak_store.py"
    command = [sys.executable, str(script), "--quick", "--part", "30/30", "power"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])["figures"]
    assert figures["power_states"] >= 10
    assert not figures["power_bad"]
