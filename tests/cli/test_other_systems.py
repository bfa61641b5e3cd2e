"""On another system than Linux: what needs no worker works, the rest says what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANG_S

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.txt").write_text("关于签订重大合同的公告。", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "featpipe", "build-cache", "docs", "--cache", "c.h5"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "c.h5"


def run(system: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HERE / "other_system.py"), system, *arguments],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "c.h5"),
        ("verify", "--deep", "c.h5"),
        ("runs", "list", "c.h5"),
        ("search", "c.h5", "合同"),
        ("export", "c.h5", "out"),
        ("compact", "c.h5"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_without_workers_work_on_a_mac(arguments: tuple[str, ...], cache: Path) -> None:
    done = run("darwin", *arguments, cwd=cache.parent)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("system", "missing"), [("darwin", "epoll"), ("bare", "fcntl")])
def test_a_build_says_what_is_missing(system: str, missing: str, cache: Path) -> None:
    done = run(system, "build-cache", "docs", "--cache", "new.h5", cwd=cache.parent)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "Linux" in done.stderr
    assert missing in done.stderr


@pytest.mark.parametrize("system", ["darwin", "bare"])
def test_doctor_looks_at_everything_and_names_linux(system: str, cache: Path) -> None:
    done = run(system, "doctor", "--json", cwd=cache.parent)
    assert done.returncode == 1, done.stderr
    found = {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["model"]["state"] == found["packages"]["state"] == "ok"
    assert found["workers"]["state"] == "problem"
    assert "Linux" in found["workers"]["message"]
    assert "Linux" in found["workers"]["cure"]


@pytest.mark.parametrize("system", ["darwin", "bare"])
def test_the_package_and_its_help_load_everywhere(system: str, tmp_path: Path) -> None:
    done = run(system, "build-cache", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
