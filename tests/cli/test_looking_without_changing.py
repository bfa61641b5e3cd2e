"""Commands that only look: ``build-cache --dry-run`` and ``inspect``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from waiting import HANG_S

if TYPE_CHECKING:
    from pathlib import Path


def featpipe(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "featpipe", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def test_a_dry_run_counts_what_a_run_then_does_and_makes_no_file(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("甲方与乙方签订合同。合同金额为三万元。", "utf-8")
    (docs / "bad.bin").write_bytes(bytes(range(256)) * 40)
    said = featpipe(tmp_path, "build-cache", "docs", "--cache", "c.h5", "--dry-run", "--json")
    assert said.returncode == 1, said.stderr
    preview = json.loads(said.stdout)
    assert not (tmp_path / "c.h5").exists()
    assert [lost["source"] for lost in preview["quarantined"]] == ["docs/bad.bin"]

    done = featpipe(tmp_path, "build-cache", "docs", "--cache", "c.h5", "--json")
    report = json.loads(done.stdout.splitlines()[-1])
    before = (tmp_path / "c.h5").read_bytes()
    again = featpipe(tmp_path, "build-cache", "docs", "--cache", "c.h5", "--dry-run")
    assert again.returncode == 1
    assert "cannot be read: docs/bad.bin: " in again.stderr
    assert (tmp_path / "c.h5").read_bytes() == before
    assert preview["units_by_level"] == report["units_by_level"]
    assert preview["n_missing"] == report["n_encoded"]


def build_with_each(folder: Path, option: str, *values: str, others: tuple[str, ...] = ()) -> None:
    """One cache ``c.h5``, filled once with every value of an option, and with the same others."""
    (folder / "a.txt").write_text("甲方与乙方签订合同。", "utf-8")
    for value in values:
        done = featpipe(folder, "build-cache", "a.txt", "--cache", "c.h5", option, value, *others)
        assert done.returncode == 0, done.stderr


def test_two_spaces_are_told_apart_by_the_part_that_differs(tmp_path: Path) -> None:
    # Without it each of the two measures by the clock which precision is worthwhile.
    build_with_each(tmp_path, "--pooling", "mean", "cls", others=("--precision", "exact"))
    spaces = json.loads(featpipe(tmp_path, "inspect", "c.h5", "--json").stdout)["spaces"]
    first, second = (space["name"] for space in spaces)
    said = featpipe(tmp_path, "inspect", "c.h5", "--explain", first, second)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert len(lines) == 1
    assert "pooling" in lines[0]
    assert "mean" in lines[0]
    assert "cls" in lines[0]
    same = featpipe(tmp_path, "inspect", "c.h5", "--explain", first, first)
    assert same.stdout == "the same in every part\n"


def test_tables_of_entities_are_told_apart_too(tmp_path: Path) -> None:
    build_with_each(tmp_path, "--precision", "mixed", "exact")
    tables = json.loads(featpipe(tmp_path, "inspect", "c.h5", "--json").stdout)["entities"]
    said = featpipe(tmp_path, "inspect", "c.h5", "--explain", *tables)
    assert said.returncode == 0, said.stderr
    assert [line.split(":")[0] for line in said.stdout.splitlines()] == ["arithmetic", "precision"]


def test_an_unknown_space_is_refused_and_the_known_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("甲方与乙方签订合同。", "utf-8")
    assert featpipe(tmp_path, "build-cache", "a.txt", "--cache", "c.h5").returncode == 0
    said = featpipe(tmp_path, "inspect", "c.h5", "--explain", "nothing", "nothing")
    assert said.returncode == 3
    assert said.stderr.startswith("error: ")
    assert "zh-small@" in said.stderr
