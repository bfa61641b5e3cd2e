"""Commands: exit codes, whole error texts, and output another program can read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import HANG_S

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "featpipe", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )

    return run


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("甲方与乙方签订合同。合同金额为三万元。", "utf-8")
    (tmp_path / "docs" / "b.md").write_text("# 公告\n\n甲方与乙方签订合同。", "utf-8")
    return tmp_path / "docs"


@pytest.mark.usefixtures("docs")
def test_a_good_run_ends_in_its_summary_and_exit_code_0(run: Run) -> None:
    done = run("build-cache", "docs", "--cache", "c.h5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("documents 2 loaded, 0 quarantined; units ")
    shown = run("inspect", "c.h5", "--json")
    facts = json.loads(shown.stdout)
    assert facts["documents"] == 2
    assert facts["units"] == sum(facts["units_by_level"].values())
    assert facts["spaces"][0]["name"].startswith("zh-small@")
    assert facts["spaces"][0]["n_vectors"] == facts["texts"]


def test_a_quarantined_document_is_named_and_gives_exit_code_1(run: Run, docs: Path) -> None:
    (docs / "bad.bin").write_bytes(bytes(range(256)) * 40)
    done = run("build-cache", "docs", "--cache", "c.h5")
    assert done.returncode == 1
    assert "quarantined docs/bad.bin: " in done.stderr
    assert "[UnsupportedDocument]" in done.stderr
    assert "documents 2 loaded, 1 quarantined" in done.stdout.splitlines()[-1]


def test_links_that_leave_the_folder_are_passed_over_and_said(
    run: Run, docs: Path, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "p.txt").write_text("工资表", "utf-8")
    (docs / "link").symlink_to(tmp_path / "private", target_is_directory=True)
    for further in (["--dry-run"], []):
        done = run("build-cache", "docs", "--cache", "c.h5", *further)
        assert done.returncode == 0, done.stderr
        assert "note passed over a link that leads out of docs: docs/link -> " in done.stderr
        assert done.stdout.startswith("documents 2 ")


@pytest.mark.usefixtures("docs")
def test_json_events_end_in_the_report(run: Run) -> None:
    done = run("build-cache", "docs", "--cache", "c.h5", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "report"
    assert events[-1]["summary"].startswith("documents 2 loaded")
    assert {event["event"] for event in events[:-1]} == {"progress"}


def test_a_missing_folder_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    done = run("build-cache", "absent", "--cache", "c.h5")
    assert done.returncode == 2
    assert done.stderr == (f"error: absent does not exist\n  it was looked for in {tmp_path}\n")


def test_a_relative_path_in_a_removed_folder_is_told_as_such(tmp_path: Path) -> None:
    command = "mkdir gone; cd gone; rmdir ../gone; $0 -m featpipe build-cache docs --cache c.h5"
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == (
        "error: the working folder was removed, so a relative path leads nowhere\n"
        "  go to a folder that exists, or give the whole path\n"
    )


@pytest.mark.usefixtures("docs")
def test_an_unknown_device_is_a_usage_error(run: Run) -> None:
    done = run("build-cache", "docs", "--cache", "c.h5", "--device", "cuda:7")
    assert done.returncode == 2
    assert done.stderr == (
        "error: device 'cuda:7' does not exist: this machine has none\n  use --device cpu\n"
    )


def test_an_error_without_a_next_step_names_the_page_that_has_it(run: Run, docs: Path) -> None:
    done = run("inspect", "docs")
    assert done.returncode == 3
    (docs / "text.h5").write_text("not HDF5", "utf-8")
    done = run("inspect", "docs/text.h5")
    assert done.stderr.endswith("\n  featpipe guide troubleshooting#unreadabledictionary\n")
    shown = run("guide", "troubleshooting#unreadabledictionary", "--lang", "en")
    assert shown.stdout.startswith("### UnreadableDictionary\n")


@pytest.mark.usefixtures("docs")
def test_a_model_folder_without_weights_is_fatal_and_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "bert"}', "utf-8")
    done = run("build-cache", "docs", "--cache", "c.h5", "--model", "model")
    assert done.returncode == 3
    assert "model" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "c.h5").exists()


@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize("data", [b"", b"hello", b"\x89HDF\r\n\x1a\n" + bytes(600)])
def test_a_file_that_is_no_cache_is_refused_and_untouched(
    run: Run, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "c.h5").write_bytes(data)
    for arguments in (["build-cache", "docs", "--cache", "c.h5"], ["inspect", "c.h5"]):
        done = run(*arguments)
        assert done.returncode == 3
        assert "c.h5" in done.stderr
        assert "Traceback" not in done.stderr
    assert (tmp_path / "c.h5").read_bytes() == data


def test_an_absent_cache_cannot_be_inspected(run: Run) -> None:
    done = run("inspect", "absent.h5")
    assert done.returncode == 3
    assert "absent.h5" in done.stderr
    assert "Traceback" not in done.stderr
