"""A writer that dies at any of its write-like calls loses nothing that it acknowledged."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest

from featpipe.store import Reader, Writer, keys_of
from tests.store.crashing_disk import CountingDisk, KillingDisk
from tests.store.samples import RUNS, TEXTS, VECTORS, ragged_text, vectors_of

#: Rows of each commit: small ones, and one that outgrows a chunk size.
BATCHES = [3, 1, 40, 7, 900, 2, 30]


def texts_of(batch: int) -> list[str]:
    return [f"{batch}/{i}" for i in range(BATCHES[batch])]


def write_batches(path: Path, disk: CountingDisk, acknowledge: Callable[[int], None]) -> None:
    """The workload: tables made on the way, several per commit, closed and opened again once."""
    for batches in (range(4), range(4, len(BATCHES))):
        with Writer.open(path, disk=disk) as writer:
            for batch in batches:
                texts = texts_of(batch)
                table = writer.table(f"embeddings/{batch % 3}", VECTORS)
                table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
                data = {"keys": keys_of(texts), "text": ragged_text(texts)}
                writer.table("texts", TEXTS).append(data)
                writer.table("runs", RUNS).append({"record": ragged_text([str(batch)])})
                writer.commit()
                acknowledge(batch)


def killed_at(point: int, path: Path, *, is_torn: bool) -> tuple[int, bool]:
    """Run the workload in a child that is killed; (batches acknowledged, whether it was killed)."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            disk = KillingDisk(point, is_torn=is_torn)
            write_batches(path, disk, lambda _: os.write(writing, b"."))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        n_acknowledged = len(pipe.read())
    _, status = os.waitpid(child, 0)
    return n_acknowledged, os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def check_plain(path: Path, n_acknowledged: int) -> None:
    """Every acknowledged row is there for plain h5py, bit for bit, and no other but whole ones."""
    with h5py.File(path) as file:
        for table in range(3):
            texts = [t for b in range(len(BATCHES)) if b % 3 == table for t in texts_of(b)]
            n_acked = sum(BATCHES[b] for b in range(n_acknowledged) if b % 3 == table)
            if not n_acked and f"embeddings/{table}" not in file:
                continue
            group = file[f"embeddings/{table}"]
            n_rows = len(group["crc"])
            assert n_rows >= n_acked
            assert len(group["vectors"]) >= n_rows
            assert np.array_equal(group["vectors"][:n_rows], vectors_of(texts[:n_rows]))
            assert np.array_equal(group["keys"][:n_rows], keys_of(texts[:n_rows]))
        if n_acknowledged:
            runs = file["runs"]
            ends = runs["record_end"][: len(runs["crc"])].tolist()
            data = runs["record"][:].tobytes()
            records = [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
            assert records == [str(i) for i in range(len(records))]
            assert len(records) >= n_acknowledged


def check_featpipe(path: Path, n_acknowledged: int) -> None:
    with Reader(path) as reader:
        for batch in range(n_acknowledged):
            table = reader.table(f"embeddings/{batch % 3}")
            rows = table.find(keys_of(texts_of(batch)))
            assert (rows >= 0).all()
            assert np.array_equal(table.gather("vectors", rows), vectors_of(texts_of(batch)))
            found = reader.table("texts")
            rows = found.find(keys_of(texts_of(batch)))
            values, _ = found.ragged_many("text", rows)
            assert values.tobytes().decode() == "".join(texts_of(batch))


def points_of_the_workload(folder: Path) -> int:
    disk = CountingDisk()
    write_batches(folder / "count.h5", disk, lambda _: None)
    return disk.n_points


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory when there is one: a killed process needs no disk to be slow on."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - a private folder is made in it
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("is_torn", [False, True], ids=["clean", "torn"])
def test_a_writer_killed_at_any_call_loses_nothing(folder: Path, is_torn: bool) -> None:
    n_points = points_of_the_workload(folder)
    assert n_points > 200
    for point in range(1 + is_torn, n_points + 1, 7):  # all of them: scripts/soak_store.py
        path = folder / f"{point}.h5"
        n_acknowledged, was_killed = killed_at(point, path, is_torn=is_torn)
        assert was_killed
        if not path.exists():
            assert not n_acknowledged
            continue
        check_plain(path, n_acknowledged)
        check_featpipe(path, n_acknowledged)
        # Whoever opens it next goes on, and ends with everything.
        with Writer.open(path) as writer:
            assert writer.recovery is None or not writer.recovery.damaged
            for batch in range(len(BATCHES)):
                texts = texts_of(batch)
                table = writer.table(f"embeddings/{batch % 3}", VECTORS)
                table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
                data = {"keys": keys_of(texts), "text": ragged_text(texts)}
                writer.table("texts", TEXTS).append(data)
                writer.commit()
        check_featpipe(path, len(BATCHES))
        path.unlink()
