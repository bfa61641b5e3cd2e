"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from featpipe.build.progress import Progress
from featpipe.cli.progress import describe

AT_WORK = Progress(
    n_sources=20,
    n_sources_done=20,
    n_quarantined=1,
    n_units=5000,
    n_unique=900,
    n_hits=300,
    n_encoded=200,
    n_waiting=400,
    n_waiting_others=12,
    seconds=8.0,
    seconds_left=None,
)


def test_a_line_counts_everything_and_guesses_no_time() -> None:
    assert describe(AT_WORK) == (
        "documents 20/20, 1 quarantined; units 5000, unique 900, hits 300, encoded 200, "
        "waiting 400; entities and terms of 12 texts to come"
    )


@pytest.mark.parametrize(
    ("seconds", "said"), [(7.4, ", 7 s left"), (60.0, ", 1 min 0 s left"), (0.0, "waiting 400;")]
)
def test_time_left_is_said_once_it_is_known(seconds: float, said: str) -> None:
    assert said in describe(replace(AT_WORK, seconds_left=seconds))


def test_a_terminal_gets_bars_and_then_the_summary(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("甲方与乙方签订合同。合同金额为三万元。", "utf-8")
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "featpipe", "build-cache", "a.txt", "--cache", "c.h5"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "140", "NO_COLOR": "1"},
    )
    os.close(end)
    shown = bytearray()
    try:
        while piece := os.read(terminal, 1 << 16):
            shown += piece
    except OSError:  # how a terminal says that nobody writes to it any more
        pass
    finally:
        os.close(terminal)
    summary, _ = process.communicate(timeout=60)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "documents" in text
    assert "1/1" in text
    assert "Traceback" not in text
    assert summary.decode().splitlines()[-1].startswith("documents 1 loaded, 0 quarantined")
