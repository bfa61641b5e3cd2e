"""``featpipe ... | head``: a reader that has enough is no failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANG_S

from featpipe import Cache, Pipeline

TEXT = "租赁合同\n甲方：北京天地有限公司\n乙方：张三\n每月租金为人民币5,000元。\n"
TEMPLATE = """name = "lease"
[[fields]]
name = "甲方"
[[samples]]
document = "a.txt"
fields = { "甲方" = "北京天地有限公司" }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipes")
    (folder / "a.txt").write_text(TEXT, "utf-8")
    (folder / "lease.toml").write_text(TEMPLATE, "utf-8")
    with Pipeline(folder / "c.h5", ner="none", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder / "a.txt").is_complete
    return folder


def run_unread(home: Path, *arguments: str, output: str = "stdout") -> tuple[int, bytes]:
    """Exit code, and the other output, of a command one of whose outputs nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    other = {"stdout": "stderr", "stderr": "stdout"}[output]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "featpipe", *arguments], cwd=home, check=False, timeout=HANG_S,
            **{output: writing, other: subprocess.PIPE},
        )  # fmt: skip
    finally:
        os.close(writing)
    return done.returncode, getattr(done, other)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["search", "--help"],
        ["search", "c.h5", "租金"],
        ["search", "c.h5", "租金", "--json"],
        ["inspect", "c.h5"],
        ["verify", "c.h5"],
        ["runs", "list", "c.h5"],
        ["runs", "show", "c.h5"],
        ["template", "new", "a.txt"],
        ["extract", "a.txt", "--cache", "c.h5", "--templates", "lease.toml"],
    ],
    ids=" ".join,
)
def test_a_command_whose_reader_has_enough_ends_well(home: Path, arguments: list[str]) -> None:
    code, errors = run_unread(home, *arguments)
    assert (code, errors) == (0, b"")


def test_an_error_is_still_an_error(home: Path) -> None:
    code, errors = run_unread(home, "search", "absent.h5", "x")
    assert (code, errors.startswith(b"error: ")) == (3, True)
    assert run_unread(home, "search", "absent.h5", "x", output="stderr")[0] == 3


def test_a_build_goes_on_and_its_exit_code_is_the_true_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT, "utf-8")
    (tmp_path / "empty.txt").write_bytes(b"")
    cache = tmp_path / "c.h5"
    assert run_unread(tmp_path, "build-cache", ".", "--cache", str(cache), "--json")[0] == 1
    with Cache.open(cache) as opened:
        assert len(opened.dictionary()) > 10


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_program_without_standard_streams_works_as_any(
    home: Path, tmp_path: Path, closed: str
) -> None:
    command = f'"{sys.executable}" -m featpipe'
    script = f"""
        {command} build-cache a.txt --cache {tmp_path}/c.h5 --ner none {closed} || exit
        {command} extract --cache c.h5 --templates lease.toml {closed} || exit
        {command} guide start {closed} || exit
    """
    done = subprocess.run(
        ["sh", "-c", script], cwd=home, check=False, timeout=HANG_S, capture_output=True
    )
    assert done.returncode == 0, done
    with Cache.open(tmp_path / "c.h5") as cache:
        assert [document.text for document in cache.documents()] == [TEXT.strip()]
