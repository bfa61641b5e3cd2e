"""A backup is whole, whatever is written meanwhile; a plain copy of a live file is not."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from featpipe.errors import DictionaryError
from featpipe.store import Reader, Writer, keys_of
from featpipe.store import backup as engine
from featpipe.store.backup import back_up_dictionary
from featpipe.store.verify import verify_dictionary
from tests.store.samples import TEXTS, VECTORS, ragged_text, vectors_of

#: Appends rows of one number to two tables per commit, and prints the number once it is durable.
WRITE_ON = """
import sys
from featpipe.store import Writer, keys_of
from tests.store.samples import TEXTS, VECTORS, ragged_text, vectors_of
with Writer.open(sys.argv[1]) as writer:
    for i in range(1_000_000):
        some = [f"{i}-{j}" for j in range(20)]
        keys = keys_of(some)
        writer.table("embeddings/a", VECTORS).append({"keys": keys, "vectors": vectors_of(some)})
        writer.table("texts", TEXTS).append({"keys": keys, "text": ragged_text(some)})
        writer.commit()
        print(i, flush=True)
"""


def write(path: Path, texts: list[str]) -> None:
    with Writer.open(path) as writer:
        keys = keys_of(texts)
        rows = {"keys": keys, "vectors": vectors_of(texts)}
        writer.table("embeddings/a", VECTORS).append(rows)
        writer.table("texts", TEXTS).append({"keys": keys, "text": ragged_text(texts)})


def texts_of(path: Path) -> list[str]:
    with Reader(path) as reader:
        table = reader.table("texts")
        texts = [bytes(table.ragged("text", row)).decode() for row in range(table.n_rows)]
        vectors = reader.table("embeddings/a")
        assert (vectors.find(keys_of(texts)) >= 0).all()
        for text in texts[-3:]:
            row = vectors.find(keys_of([text]))
            assert (vectors.gather("vectors", row) == vectors_of([text])).all()
        assert vectors.n_rows == table.n_rows or vectors.n_rows == table.n_rows + 20
        return texts


@pytest.fixture
def live(tmp_path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITE_ON, str(tmp_path / "live.h5")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    yield child
    child.kill()
    child.communicate()


def read_acknowledged(child: subprocess.Popen[str]) -> int:
    assert child.stdout is not None
    return int(child.stdout.readline())


def test_a_backup_of_a_file_that_is_written_is_whole(
    tmp_path: Path, live: subprocess.Popen[str]
) -> None:
    for _ in range(5):
        acknowledged = read_acknowledged(live)
        made = back_up_dictionary(tmp_path / "live.h5", tmp_path / "copy.h5")
        texts = texts_of(tmp_path / "copy.h5")
        assert texts == [f"{i}-{j}" for i in range(len(texts) // 20) for j in range(20)]
        assert len(texts) >= 20 * (acknowledged + 1)
        assert made.n_damaged == 0
    assert verify_dictionary(tmp_path / "copy.h5", is_deep=True).is_good


def test_a_clone_of_one_instant_is_closed_by_recovery(
    tmp_path: Path, live: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file system here may share no blocks: a stopped writer's bytes stand for a clone."""

    def clone(target: int, request: int, source: int) -> None:
        assert request == 0x40049409
        size = os.fstat(source).st_size
        os.ftruncate(target, size)
        done = 0
        while done < size:
            done += os.sendfile(target, source, done, size - done)

    for _ in range(20):
        acknowledged = read_acknowledged(live)
    live.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, live.pid, os.WSTOPPED)
    monkeypatch.setattr(fcntl, "ioctl", clone)
    made = back_up_dictionary(tmp_path / "live.h5", tmp_path / "copy.h5")
    assert made.is_clone
    assert len(texts_of(tmp_path / "copy.h5")) >= 20 * (acknowledged + 1)
    assert verify_dictionary(tmp_path / "copy.h5", is_deep=True).is_good


def test_an_earlier_backup_is_replaced_and_keeps_confidential(tmp_path: Path) -> None:
    source, target = tmp_path / "c.h5", tmp_path / "copy.h5"
    write(source, ["甲方"])
    source.chmod(0o600)
    back_up_dictionary(source, target)
    write(source, ["乙方"])
    with Reader(target) as reader:
        back_up_dictionary(source, target)
        assert reader.refresh()
        assert reader.table("texts").find(keys_of(["乙方"])) >= 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_another_file_is_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "c.h5"
    write(source, ["甲方"])
    other = tmp_path / "letter.txt"
    other.write_text("no dictionary")
    with pytest.raises(DictionaryError, match="is not a backup"):
        back_up_dictionary(source, other)
    assert other.read_text() == "no dictionary"
    with pytest.raises(DictionaryError, match="the file to back up"):
        back_up_dictionary(source, source)


def test_a_backup_that_fails_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "c.h5", tmp_path / "copy.h5"
    write(source, ["甲方"])
    back_up_dictionary(source, target)
    write(source, ["乙方"])

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "copy_table", fail)
    monkeypatch.setattr(engine, "_clone", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        back_up_dictionary(source, target)
    assert texts_of(target) == ["甲方"]
    assert verify_dictionary(target, is_deep=True).is_good
    assert sorted(tmp_path.iterdir()) == [source, target]
