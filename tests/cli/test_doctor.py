"""``featpipe doctor``: each trouble is found, and its cure named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_checkpoints import save_encoder

from featpipe.cli import doctor
from featpipe.cli.doctor import Finding, examine, is_well


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "featpipe", "doctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


def test_this_machine_is_well(tmp_path: Path) -> None:
    ended = run("--cache", str(tmp_path / "c.h5"), "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    assert found["is_well"]
    checks = {finding["check"] for finding in found["findings"]}
    assert {
        "python",
        "packages",
        "cores",
        "devices",
        "memory",
        "locks",
        "model",
        "workers",
    } <= checks
    assert all(one["cure"] for one in found["findings"] if one["state"] != "ok")
    assert list(tmp_path.iterdir()) == []


def test_torch_is_not_imported_here() -> None:
    code = (
        "import sys; from featpipe.cli.doctor import examine; examine();"
        "sys.exit(len({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_torch_is_looked_at_in_a_child(tmp_path: Path) -> None:
    found = by_check(examine(tmp_path / "c.h5", with_torch=True))
    assert found["torch"].state == "ok"
    assert found["torch"].message.startswith("torch ")


def test_a_file_that_is_no_cache_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "c.h5"
    file.write_bytes(b"no HDF5")
    ended = run("--cache", str(file))
    assert ended.returncode == 1
    assert "BAD   cache" in ended.stdout
    assert "->" in ended.stdout


def test_a_folder_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    found = by_check(examine(tmp_path / "nowhere" / "c.h5"))
    assert found["file system"].state == "problem"
    assert found["file system"].cure == f"mkdir -p {tmp_path / 'nowhere'}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert not is_well(examine(tmp_path / "c.h5"))


def test_a_place_where_nothing_can_be_kept_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    (finding,) = (one for one in examine() if one.check == "kept files")
    assert finding.state == "ok"
    assert not (tmp_path / "kept").exists()
    (tmp_path / "file").touch()
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "file" / "kept"))
    (finding,) = (one for one in examine() if one.check == "kept files")
    assert finding.state == "warning"
    assert "FEATPIPE_CACHE_DIR" in finding.cure


def test_a_model_without_weights_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    found = by_check(examine(tmp_path / "c.h5", str(tmp_path)))
    assert found["model"].state == "problem"
    assert found["model"].cure


def test_a_model_that_a_build_would_refuse_is_a_problem_in_the_same_words(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    words = (folder / "vocab.txt").read_text("utf-8").split()
    (folder / "vocab.txt").write_text("\n".join(words[:40]), "utf-8")
    found = by_check(examine(tmp_path / "c.h5", str(folder)))["model"]
    assert found.state == "problem"
    assert "the tokenizer in" in found.message
    assert "has 40 tokens" in found.message
    (folder / "vocab.txt").unlink()
    found = by_check(examine(tmp_path / "c.h5", str(folder)))["model"]
    assert found.state == "problem"
    assert "vocab.txt" in found.message


def test_a_model_that_cannot_tell_texts_apart_is_a_warning(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    words = (folder / "vocab.txt").read_text("utf-8").split()
    strange = [word if word.isascii() else f"w{number}" for number, word in enumerate(words)]
    (folder / "vocab.txt").write_text("\n".join(strange), "utf-8")
    states = [one for one in examine(tmp_path / "c.h5", str(folder)) if one.check == "model"]
    assert [one.state for one in states] == ["ok", "warning"]
    assert "违约责任 and 合同金额 have the same vector" in states[1].message


def test_more_threads_than_cores_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4096")
    found = examine(tmp_path / "c.h5")
    assert by_check(found)["cores"].state == "warning"
    assert is_well(found)


def test_a_system_without_locks_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refuse(*_: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    found = by_check(examine(tmp_path / "c.h5"))
    assert found["locks"].state == "problem"
    assert "local disk" in found["locks"].cure


def test_workers_that_cannot_start_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    found = by_check(examine(tmp_path / "c.h5"))
    assert found["workers"].state == "problem"


def test_a_look_that_fails_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(doctor, "count_cards", fail)
    found = examine(tmp_path / "c.h5")
    assert by_check(found)["devices"].state == "problem"
    assert by_check(found)["workers"].state == "ok"
