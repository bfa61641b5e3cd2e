"""Kept files: one place for every kind, written whole or not at all."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import pytest

from featpipe import user_cache
from featpipe.atomic_write import write_atomically
from featpipe.cache import postings
from featpipe.encoders import fingerprint, precision
from featpipe.encoders.checkpoint import list_hub_cache
from featpipe.extraction import model_cache
from featpipe.lexical.words import Words
from featpipe.user_cache import ArrayFile, KeptFiles, sweep


def test_the_folder_follows_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "own"))
    assert user_cache.folder("fitted") == tmp_path / "own" / "fitted"
    monkeypatch.delenv("FEATPIPE_CACHE_DIR")
    assert user_cache.folder("fitted") == tmp_path / "xdg" / "featpipe" / "fitted"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert user_cache.folder("fitted") == tmp_path / "home" / ".cache" / "featpipe" / "fitted"


def test_a_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME", "FEATPIPE_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # as of a container's user
    with pytest.raises(OSError, match="/dev/null/featpipe"):
        user_cache.keep(user_cache.folder("digests") / "name", b"")
    assert "合同" in Words(engine="numpy").cut("合同金额")
    assert precision.resolve_precision("auto")
    list_hub_cache()


def test_every_kind_of_kept_file_moves_with_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "own"))
    weights = tmp_path / "weights"
    weights.write_bytes(b"w")
    two_seconds_later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(fingerprint, "now_ns", lambda: two_seconds_later)
    monkeypatch.setattr(precision, "_lacks_bf16", lambda: False)
    monkeypatch.setattr(precision, "measure_bf16_gain", lambda: 1.0)
    fingerprint.digest_file(weights)
    precision.resolve_precision("auto")
    Words(engine="numpy").cut("合同金额")
    KeptFiles(model_cache.default_folder()).write("ab-0123456789ab", b"model")
    ArrayFile.write(postings.folder_of(tmp_path / "c.h5", "terms/chars") / "0.arrays", {}, {})
    kinds = {each.name.partition("-")[0] for each in (tmp_path / "own").iterdir()}
    assert kinds == {"digests", "precision", "words", "fitted", "postings"}
    assert not (tmp_path / "home").exists()


def test_a_failing_writer_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    write_atomically(file, b"before")

    def fail(opened: BinaryIO) -> NoReturn:
        opened.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, fail)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("kept", b"before")]


def test_processes_that_write_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    write_atomically(file, bytes(50_000))
    program = (
        "import pathlib, sys; from featpipe.user_cache import write_atomically\n"
        "for _ in range(200):\n"
        "    write_atomically(pathlib.Path(sys.argv[1]), sys.argv[2].encode() * 50_000)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, file, letter]) for letter in "ab"]
    while any(writer.poll() is None for writer in writers):
        data = file.read_bytes()
        assert (len(data), len(set(data))) == (50_000, 1)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        user_cache.keep(tmp_path / "file" / "digests" / "ab", b"digest")
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "absent" / "page.html", b"")  # only kept files make folders
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_sweep_removes_the_abandoned_the_old_and_the_least_recently_used(tmp_path: Path) -> None:
    ages_h = {"now": 0.5, "lately": 2, "before": 3, "old": 24 * 91,
              ".abandoned-17-0123abcd": 2, ".busy-17-0123abcd": 0.1}  # fmt: skip
    for name, age_h in ages_h.items():
        (tmp_path / name).write_bytes(b"x" * 60)
        os.utime(tmp_path / name, (time.time() - age_h * 3600,) * 2)
    assert sweep(tmp_path.iterdir(), most_bytes=200) == 3
    assert {each.name for each in tmp_path.iterdir()} == {"now", "lately", ".busy-17-0123abcd"}
    assert sweep([tmp_path / "gone"]) == 0


def test_arrays_are_mapped_as_they_were_written_and_changes_stay_private(tmp_path: Path) -> None:
    file = tmp_path / "made" / "0.arrays"
    arrays = {"rows": np.arange(5000), "none": np.empty((0, 3), np.float32), "flag": np.array(True)}
    ArrayFile.write(file, {"version": 3}, arrays)
    mapped = ArrayFile.map(file)
    assert mapped.about == {"version": 3}
    for name, array in arrays.items():
        assert np.array_equal(mapped.arrays[name], array)
        assert mapped.arrays[name].dtype == array.dtype
    mapped.arrays["rows"][0] = 7
    assert ArrayFile.map(file).arrays["rows"][0] == 0


@pytest.mark.parametrize("damage", ["empty", "foreign", "shortened", "header", "end of an array"])
def test_a_damaged_file_of_arrays_is_refused(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "0.arrays"
    ArrayFile.write(file, {}, {"rows": np.arange(5000)})
    data = bytearray(file.read_bytes())
    if damage == "header":
        data[40] ^= 1
    elif damage == "end of an array":
        data[-100] ^= 1
    whole = {"empty": b"", "foreign": b"x" * 99, "shortened": bytes(data[:-1])}
    file.write_bytes(whole.get(damage, bytes(data)))
    with pytest.raises(ValueError, match=r"0\.arrays"):
        ArrayFile.map(file)
