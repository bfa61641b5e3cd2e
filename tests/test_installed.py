"""The package as it is installed: the model comes along, and children can import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANG_S

from featpipe.encoders.builtin import find_builtin_model


def test_the_builtin_model_is_found() -> None:
    assert (find_builtin_model() / "config.json").is_file()


def test_the_command_builds_a_cache_with_the_builtin_model(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "notice.txt").write_text(
        "关于签订重大合同的公告\n北京某某科技有限公司与上海分公司签订合同，金额为1,200万元。",
        "utf-8",
    )
    command = [sys.executable, "-m", "featpipe"]
    build = [*command, "build-cache", "docs", "--cache", "c.h5"]
    for expected in ("hits 0, encoded", "encoded 0;"):
        done = subprocess.run(
            build, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout.splitlines()[-1]
    shown = subprocess.run(
        [*command, "inspect", "c.h5"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "space zh-small@" in shown.stdout


def test_the_guide_comes_along(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "featpipe", "guide", "--web", "site"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert "<h1" in (tmp_path / "site" / "zh" / "models.html").read_text("utf-8")
    assert (tmp_path / "site" / "guide.css").is_file()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["build-cache", "--help"]])
def test_help_works_everywhere(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "featpipe", *arguments], capture_output=True, text=True, check=True
    )
    assert "featpipe" in done.stdout
