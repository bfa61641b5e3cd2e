"""A terminal reaches the program alone: its workers are in groups of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from waiting import HANG_S, has_ended, wait_for

HERE = Path(__file__).parent


class InTerminal:
    """A running pool_program.py whose controlling terminal we hold."""

    def __init__(self, phase: str, report: Path) -> None:
        self.report = report
        self.terminal, its = os.openpty()
        self.process = subprocess.Popen(
            ["setsid", "-c", sys.executable, str(HERE / "pool_program.py"), phase, str(report)],
            env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
            stdin=its,
            stdout=its,
            stderr=its,
        )
        os.close(its)
        assert wait_for(lambda: "pids" in self.text, HANG_S)
        self.below = psutil.Process(self.process.pid).children(recursive=True)

    @property
    def text(self) -> str:
        return self.report.read_text() if self.report.exists() else ""

    def types(self, key: bytes) -> None:
        os.write(self.terminal, key)

    def close(self) -> None:
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InTerminal]:
    if shutil.which("setsid") is None:
        pytest.skip("needs setsid of util-linux")
    program = InTerminal(request.param, tmp_path / "report")
    yield program
    program.process.kill()
    program.process.wait()
    program.close()


@pytest.mark.parametrize("program", ["short tasks"], indirect=True)
def test_ctrl_c_finishes_what_is_in_flight(program: InTerminal) -> None:
    assert wait_for(lambda: "done" in program.text)
    program.types(b"\x03")
    assert program.process.wait(HANG_S) == 0
    assert program.text.splitlines()[-1] == "stopped"
    assert wait_for(lambda: all(map(has_ended, program.below)))


@pytest.mark.parametrize("program", ["in C", "forked"], indirect=True)
def test_a_terminal_that_closes_ends_the_program_and_all_its_workers(program: InTerminal) -> None:
    program.close()
    program.process.wait(HANG_S)
    assert wait_for(lambda: all(map(has_ended, program.below)))


@pytest.mark.parametrize("program", ["short tasks"], indirect=True)
def test_a_program_that_is_suspended_and_goes_on_loses_nothing(program: InTerminal) -> None:
    """As by Ctrl-Z, which needs a shell; its workers are not suspended with it."""
    program.process.send_signal(signal.SIGSTOP)
    whole = psutil.Process(program.process.pid)
    assert wait_for(lambda: whole.status() == psutil.STATUS_STOPPED)
    n_done = program.text.count("done")
    whole.resume()
    assert wait_for(lambda: program.text.count("done") > n_done)
    program.types(b"\x03")
    assert program.process.wait(HANG_S) == 0
