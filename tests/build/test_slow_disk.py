"""A disk slower than the workers holds the run back: what waits for the writer is bounded."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.build import pipeline
from featpipe.cache.write import WriteRole, WriteTask, write_role
from tests.building import build, contents

if TYPE_CHECKING:
    import pytest

    from featpipe.build.progress import Progress
    from featpipe.pool.role import Role

_GATE = "FEATPIPE_TEST_GATE"


class StuckWriteRole(WriteRole):
    """Its disk answers nothing until the gate, a file, is there."""

    def run(self, task: WriteTask) -> None:
        while task.rows and not Path(os.environ[_GATE]).exists():
            time.sleep(0.01)
        super().run(task)


def stuck_write_role(*args: object, **options: object) -> Role:
    role = write_role(*args, **options)  # type: ignore[arg-type]  # passed through
    return replace(role, target="tests.build.test_slow_disk:StuckWriteRole")


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_what_waits_for_a_stuck_disk_is_bounded(
    tmp_path: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    body = "本合同一式两份，双方各执一份。" * 80  # a batch of 16 is more than fits into a message
    for i in range(480):
        (docs / f"{i}.txt").write_text(f"第{i}号合同。{body}", "utf-8")
    gate = tmp_path / "gate"
    monkeypatch.setenv(_GATE, str(gate))
    monkeypatch.setattr(pipeline, "write_role", stuck_write_role)
    n_before = count_descriptors()
    n_open: list[int] = []

    def listen(_: Progress) -> None:
        n_open.append(count_descriptors() - n_before)
        if len(n_open) > 8 and len(set(n_open[-8:])) == 1:  # for two seconds: held back
            gate.touch()

    with pipeline.Pipeline(tmp_path / "stuck.h5", encoder_folder, "none", devices=["cpu"]) as stuck:
        report = stuck.build(docs, listen=listen)
    monkeypatch.undo()
    assert report.is_complete
    build(tmp_path / "plain.h5", docs, encoder_folder)
    assert contents(tmp_path / "stuck.h5") == contents(tmp_path / "plain.h5")
    assert max(n_open) < 90, n_open
