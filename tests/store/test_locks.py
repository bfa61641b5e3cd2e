"""The writer's lock: file systems without locks, the lease file, and what killed writers leave."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from featpipe.errors import DictionaryLocked, UsageError, WriteFailed
from featpipe.settings import LOCK_VARIABLE
from featpipe.store import Reader, Writer, keys_of
from featpipe.store.lease import lease_of
from tests.store.samples import VECTORS, vectors_of

TEXTS = ["甲方", "乙方"]
NO_LOCKS = [errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS]

#: Opens the file, says so, and waits to be killed.
HOLD = """
import sys
from featpipe.store import Writer
writer = Writer.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def write_rows(path: Path) -> None:
    with Writer.open(path) as writer:
        rows = {"keys": keys_of(TEXTS), "vectors": vectors_of(TEXTS)}
        writer.table("embeddings/a", VECTORS).append(rows)


def n_rows(path: Path) -> int:
    with Reader(path) as reader:
        return reader.table("embeddings/a").n_rows


def start_holder(path: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    return holder


def kill(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Every lock of the kernel is answered by one error, as file systems without locks do."""

    def refuse(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "fcntl", refuse)


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_VARIABLE, "exclusive-file")


@pytest.mark.parametrize("without_locks", NO_LOCKS, indirect=True)
@pytest.mark.usefixtures("without_locks")
def test_a_file_system_without_locks_is_named_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="without locks") as raised:
        write_rows(tmp_path / "c.h5")
    assert "--lock exclusive-file" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("without_locks", NO_LOCKS, indirect=True)
@pytest.mark.usefixtures("without_locks", "leased")
def test_with_the_lease_it_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write_rows(path)
    with Writer.open(path), pytest.raises(DictionaryLocked, match=str(os.getpid())):
        Writer.open(path)
    assert n_rows(path) == len(TEXTS)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("leased")
def test_a_live_holder_is_respected_and_a_killed_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    holder = start_holder(path)
    try:
        with pytest.raises(DictionaryLocked, match=f"process {holder.pid} "):
            write_rows(path)
    finally:
        kill(holder)
    assert lease_of(path).exists()
    write_rows(path)
    assert n_rows(path) == len(TEXTS)
    assert not lease_of(path).exists()


def test_a_writer_with_kernel_locks_respects_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.h5"
    write_rows(path)
    _write_lease(path, host="another-host")
    with pytest.raises(DictionaryLocked, match="another-host"):
        write_rows(path)
    assert lease_of(path).exists()
    monkeypatch.setenv(LOCK_VARIABLE, "exclusive-file")
    with pytest.raises(DictionaryLocked, match="remove"):
        write_rows(path)


@pytest.mark.usefixtures("leased")
def test_a_torn_lease_is_never_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write_rows(path)
    lease_of(path).write_bytes(b'{"pid"')
    with pytest.raises(DictionaryLocked, match="names no process"):
        write_rows(path)


def _write_lease(path: Path, **other: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {LOCK_VARIABLE: "exclusive-file"},
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    record = json.loads(lease_of(path).read_bytes())
    kill(holder)
    lease_of(path).write_text(json.dumps(record | other))


def test_an_unknown_lock_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_VARIABLE, "hope")
    with pytest.raises(UsageError, match="'hope'"):
        write_rows(tmp_path / "c.h5")


def test_the_next_writer_removes_what_killed_ones_left(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write_rows(path)
    old, young = tmp_path / ".c.h5.123.abc.new", tmp_path / ".c.h5.124.abd.new"
    compaction = tmp_path / ".c.h5.compact"
    others = tmp_path / ".d.h5.123.abc.new"
    for file in (old, young, compaction, others):
        file.write_bytes(b"left")
    an_hour_ago = time.time() - 3600
    os.utime(old, (an_hour_ago, an_hour_ago))
    os.utime(others, (an_hour_ago, an_hour_ago))
    write_rows(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, young, others])
