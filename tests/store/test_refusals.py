"""Disks that refuse: the error says so, the file stays good, and the writer can go on."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featpipe.errors import UnreadableDictionary, WriteFailed
from featpipe.store import Reader, Writer, key_of, keys_of
from featpipe.store.verify import verify_dictionary
from tests.store.crashing_disk import CountingDisk, FailingDisk
from tests.store.samples import RUNS, VECTORS, ragged_text, vectors_of
from tests.store.workload import BATCHES, append_batch, check_featpipe

if TYPE_CHECKING:
    from featpipe.store.disk import Disk

N_FAILURES = 4


def insist(action: Callable[[], object]) -> int:
    """Do it again until it is done; how many times it was refused."""
    hints: list[str | None] = []
    for n_refused in range(N_FAILURES + 1):
        try:
            action()
        except WriteFailed as error:
            hints.append(error.hint)
        else:
            assert all(hints)
            return n_refused
    raise AssertionError("refused more often than the disk fails")


def write_insisting(path: Path, disk: Disk) -> int:
    """The workload, each batch repeated until it is acknowledged; how often the disk refused."""
    writers: list[Writer] = []
    n_refused = insist(lambda: writers.append(Writer.open(path, disk=disk)))
    writer = writers[0]

    def write(batch: int) -> None:
        append_batch(writer, batch)
        writer.table("runs", RUNS).append({"record": ragged_text([str(batch)])})
        writer.commit()

    for batch in range(len(BATCHES)):
        refused = insist(lambda batch=batch: write(batch))
        n_refused += refused
        if refused:
            check_featpipe(path, batch + 1)
    try:
        writer.close()
    except WriteFailed:
        n_refused += 1
    return n_refused


@pytest.mark.parametrize("n_times", [1, N_FAILURES])
def test_a_disk_that_refuses_at_any_call_loses_nothing(folder: Path, n_times: int) -> None:
    counting = CountingDisk()
    write_insisting(folder / "count.h5", counting)
    for point in range(1, counting.n_points + 1, 4):
        code = [errno.ENOSPC, errno.EIO, errno.EDQUOT][point % 3]
        path = folder / f"{point}.h5"
        assert write_insisting(path, FailingDisk(code, point, n_times))
        check_featpipe(path, len(BATCHES))
        check_runs_may_repeat(path)
        with Writer.open(path):
            pass
        check_featpipe(path, len(BATCHES))
        path.unlink()


def check_runs_may_repeat(path: Path) -> None:
    """A log has no keys to know a repeated row by: what was refused may be there all the same."""
    with Reader(path) as reader:
        runs = reader.table("runs")
        records = [int(runs.ragged("record", row).tobytes()) for row in range(runs.n_rows)]
    assert sorted(set(records)) == list(range(len(BATCHES)))
    assert records == sorted(records)


def test_what_was_refused_does_not_come_back_after_a_crash(path: Path) -> None:
    """A failed append leaves whole rows behind the last real one; they must not count."""
    disk = CountingDisk()
    texts = [f"t{i}" for i in range(10)]
    with Writer.open(path, disk=disk) as writer:
        runs = writer.table("runs", RUNS)
        runs.append({"record": ragged_text(["kept"])})
        writer.commit()
        runs.append({"record": ragged_text(texts)})
        writer._disk = FailingDisk(errno.EIO, 1)
        with pytest.raises(WriteFailed):
            writer.commit()
        writer._disk = disk
        assert runs.append({"record": ragged_text(["again"])})
        writer.commit()
        shutil.copy(path, path.with_suffix(".copy"))
    with Writer.open(path.with_suffix(".copy")) as writer:
        assert writer.recovery is not None
        assert not writer.recovery.regained
        assert writer.table("runs", RUNS).n_rows == 2


def test_a_file_removed_or_replaced_under_its_writer_is_noticed(path: Path) -> None:
    other = path.with_name("other.h5")
    with Writer.open(other):
        pass
    for harm in (path.unlink, lambda: other.replace(path)):
        writer = Writer.open(path)
        writer.table("a", VECTORS).append({"keys": keys_of(["a"]), "vectors": vectors_of(["a"])})
        harm()
        with pytest.raises(WriteFailed, match=r"removed|replaced"):
            writer.commit()
        with pytest.raises(WriteFailed):
            writer.close()


def test_a_directory_that_vanishes_under_the_writer_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "d.h5"
    path.parent.mkdir(parents=True)
    writer = Writer.open(path)
    writer.table("t", VECTORS)
    writer.commit()
    path.parent.rename(tmp_path / "elsewhere")
    writer.table("t", VECTORS).append({"keys": keys_of(["a"]), "vectors": vectors_of(["a"])})
    with pytest.raises(WriteFailed, match="removed"):
        writer.commit()
    (tmp_path / "elsewhere").rename(path.parent)  # it comes back: the run goes on
    writer.table("t", VECTORS).append({"keys": keys_of(["a"]), "vectors": vectors_of(["a"])})
    writer.close()
    with Reader(path) as reader:
        assert reader.table("t").find_one(key_of("a")) == 0


def test_a_missing_or_forbidden_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="absent"):
        Writer.open(tmp_path / "absent" / "d.h5")
    with pytest.raises(UnreadableDictionary, match="is a folder"):
        Writer.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_file_is_refused(path: Path) -> None:
    with Writer.open(path):
        pass
    path.chmod(0o444)
    with pytest.raises(WriteFailed):
        Writer.open(path)


def test_a_file_that_may_not_be_opened_is_not_called_damaged(path: Path) -> None:
    with Writer.open(path):
        pass
    loop = path.with_name("loop.h5")
    loop.symlink_to(loop)
    with pytest.raises(UnreadableDictionary, match="cannot be opened: Too many levels"):
        verify_dictionary(loop, is_deep=True)
    path.chmod(0)
    if os.geteuid():  # root may read anything
        with pytest.raises(UnreadableDictionary, match="cannot be opened: Permission"):
            verify_dictionary(path)


@pytest.mark.forks
def test_a_limit_on_file_sizes_is_reported_and_survived(path: Path) -> None:
    """A real refusal by the kernel: no disk of ours is in between."""
    child = os.fork()
    if not child:
        os._exit(write_under_a_limit(path))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Reader(path) as reader:
        assert reader.table("a").find_one(key_of("a")) == 0


def write_under_a_limit(path: Path) -> int:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    writer = Writer.open(path)
    table = writer.table("a", VECTORS)
    table.append({"keys": keys_of(["a"]), "vectors": vectors_of(["a"])})
    writer.commit()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    texts = [f"t{i}" for i in range(200_000)]
    try:
        table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
    except WriteFailed as error:
        if "limit on file sizes" not in str(error):
            return 2
    else:
        return 3
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    table.append({"keys": keys_of(["b"]), "vectors": vectors_of(["b"])})
    writer.commit()
    check_plain_rows(path)
    writer.close()
    return 0


def check_plain_rows(path: Path) -> None:
    import h5py

    with h5py.File(path) as file:
        assert len(file["a/vectors"]) == 2
