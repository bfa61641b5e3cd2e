"""Ctrl-C in the real command, to the whole process group as a terminal sends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from building import with_waiting_loader
from waiting import HANG_S

from featpipe import Cache
from featpipe.store.verify import verify_dictionary


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """The last document is read when ``word`` is there: no machine is fast enough to end before."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(400):
        text = "".join(
            f"第{number}号文件第{line}条，金额为{number * line}元。\n" for line in range(40)
        )
        (folder / f"{number}.txt").write_text(text, "utf-8")
    (folder / "zz.waits").write_text(f"WAITS {tmp_path / 'word'}", "utf-8")
    return folder


@contextmanager
def running(docs: Path, cache: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, once its first vectors are in the file."""
    command = [sys.executable, "-m", "featpipe", "build-cache", str(docs), "--cache", str(cache)]
    with subprocess.Popen(
        [*command, "--workers", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=with_waiting_loader(docs.parent),
    ) as run:
        try:
            assert run.stdout is not None
            for line in run.stdout:
                if '"n_encoded": 0' not in line and '"n_encoded"' in line:
                    break
            assert run.poll() is None, "it ended before it could be interrupted"
            yield run
        finally:
            run.kill()


def n_vectors(cache: Path) -> int:
    with Cache.open(cache) as opened:
        return len(opened.dictionary())


def test_the_first_interrupt_finishes_what_is_in_flight_and_reports(
    docs: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "c.h5"
    with running(docs, cache) as run:
        assert run.stderr is not None
        os.killpg(run.pid, signal.SIGINT)
        assert any("once more to stop at once" in line for line in run.stderr)
        (tmp_path / "word").touch()
        output, errors = run.communicate(timeout=HANG_S)
    assert run.returncode == 130, errors
    assert '"was_interrupted": true' in output
    assert "Traceback" not in errors
    assert n_vectors(cache) > 0


def test_the_second_interrupt_stops_at_once_and_the_cache_is_good(
    docs: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "c.h5"
    with running(docs, cache) as run:
        assert run.stderr is not None
        os.killpg(run.pid, signal.SIGINT)
        assert any("once more to stop at once" in line for line in run.stderr)
        os.killpg(run.pid, signal.SIGINT)
        _, errors = run.communicate(timeout=HANG_S)
    assert run.returncode == 130, errors
    assert "Traceback" not in errors
    assert n_vectors(cache) > 0
    assert verify_dictionary(cache, is_deep=True).is_good
