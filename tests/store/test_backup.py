"""A backup is whole, whatever is written meanwhile; a plain copy of a live file is not."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flipped_bits import damage

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
        # An instant may lie within a commit: of its rows, which come by table, any number is there.
        assert table.n_rows <= vectors.n_rows <= table.n_rows + 20
        return texts


def running_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITE_ON, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    yield from running_writer(tmp_path / "live.h5")


def read_acknowledged(child: subprocess.Popen[str]) -> int:
    assert child.stdout is not None
    return int(child.stdout.readline())


def test_a_backup_of_a_file_that_is_written_is_whole(
    tmp_path: Path, live: subprocess.Popen[str]
) -> None:
    for _ in range(5):
        acknowledged = read_acknowledged(live)
        back_up_dictionary(tmp_path / "live.h5", tmp_path / "copy.h5")
        texts = texts_of(tmp_path / "copy.h5")
        assert texts == [f"{n // 20}-{n % 20}" for n in range(len(texts))]
        assert len(texts) >= 20 * (acknowledged + 1)
    assert verify_dictionary(tmp_path / "copy.h5", is_deep=True).is_good


@pytest.fixture(params=["btrfs", "xfs"])
def reflinking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that shares blocks, where one may be made and mounted."""
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    make = shutil.which(f"mkfs.{request.param}")
    if make is None or os.geteuid():
        pytest.skip(f"needs mkfs.{request.param}, and the right to mount")
    with image.open("wb") as file:
        file.truncate(320 << 20)
    subprocess.run([make, "-q", image], check=True, capture_output=True)
    mount = ["mount", "-o", "loop", image, folder]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("file systems may not be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_clone_by_the_file_system_is_whole_while_the_original_is_written(
    reflinking: Path,
) -> None:
    for live in running_writer(reflinking / "live.h5"):
        for _ in range(5):
            acknowledged = read_acknowledged(live)
            made = back_up_dictionary(reflinking / "live.h5", reflinking / "copy.h5")
            assert made.is_clone
            assert len(texts_of(reflinking / "copy.h5")) >= 20 * (acknowledged + 1)
        assert verify_dictionary(reflinking / "copy.h5", is_deep=True).is_good


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


def test_a_damaged_file_does_not_replace_its_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy without the damaged rows would verify as good, and lack what others need."""
    source, target = tmp_path / "c.h5", tmp_path / "copy.h5"
    monkeypatch.setattr(engine, "_clone", lambda *_: None)
    write(source, ["甲方", "乙方"])
    back_up_dictionary(source, target)
    damage(source, "texts", "text")
    with pytest.raises(DictionaryError, match=r"c\.h5 has a row[\s\S]*featpipe repair \S*c\.h5\Z"):
        back_up_dictionary(source, target)
    assert texts_of(target) == ["甲方", "乙方"]
    assert sorted(tmp_path.iterdir()) == [source, target]


@pytest.fixture
def instants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bytes of a file after each commit of a writer that is still at work."""
    monkeypatch.setattr("featpipe.store.allocator.STEP", 1 << 16)
    path, found = tmp_path / "live.h5", []
    writer = Writer.open(path)
    for number in range(6):
        texts = [f"{number}-{i}" for i in range(50)]
        rows = {"keys": keys_of(texts), "vectors": vectors_of(texts)}
        writer.table("embeddings/a", VECTORS).append(rows)
        writer.table("texts", TEXTS).append({"keys": keys_of(texts), "text": ragged_text(texts)})
        writer.commit()
        found.append(path.read_bytes())
    writer.abandon()
    return found


def test_a_torn_copy_is_named_as_one(tmp_path: Path, instants: list[bytes]) -> None:
    """Of two instants, as cp makes it: what comes first in the file is the older part."""
    copy, n_torn = tmp_path / "copy.h5", 0
    for at in range(0, len(instants[-1]), 4096):
        copy.write_bytes(instants[3][:at] + instants[-1][at:])
        found = verify_dictionary(copy, is_deep=True, asks_libhdf5=False)
        assert found.is_good or found.is_torn, found
        n_torn += found.is_torn
        if found.is_torn:
            assert "A TORN COPY" in str(found)
            assert "featpipe backup" in str(found)
    assert n_torn > 3


def test_plain_damage_of_a_file_that_was_not_closed_is_no_torn_copy(
    tmp_path: Path, instants: list[bytes]
) -> None:
    with Reader(tmp_path / "live.h5") as reader:
        view = reader.table("texts").now.view
        places = [view.values["text"].offset_of(0), view.fixed["text_end"].offset_of(299)]
        places += [view.fixed["keys"].offset_of(299), view.fixed["checks"].offset_of(150)]
    for place in places:
        damaged = bytearray(instants[-1])
        damaged[place] ^= 1
        (tmp_path / "copy.h5").write_bytes(damaged)
        found = verify_dictionary(tmp_path / "copy.h5", is_deep=True, asks_libhdf5=False)
        assert not found.is_good
        assert not found.is_torn
        assert "DAMAGED" in str(found)
