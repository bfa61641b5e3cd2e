"""Readers beside a writer: other processes, other threads, plain h5py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from waiting import HANG_S

from featpipe.store import Reader, Writer, keys_of
from tests.store.reader_process import name_of, texts_of
from tests.store.samples import VECTORS, vectors_of


def start_reader(kind: str, path: Path, n: int, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.reader_process", kind, str(path), str(n)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def write_table(writer: Writer, number: int) -> None:
    texts = texts_of(number)
    table = writer.table(name_of(number), VECTORS)
    table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
    writer.commit()


def write_beside_readers(path: Path, readers: list[subprocess.Popen[str]]) -> list[str]:
    """Make one table after the other until every reader is done; what they printed."""
    number = 0
    with Writer.open(path) as writer:
        while any(reader.poll() is None for reader in readers):
            write_table(writer, number)
            number += 1
    printed = []
    for reader in readers:
        out, errors = reader.communicate(timeout=HANG_S)
        assert reader.returncode == 0, errors
        printed.append(out)
    return printed


@pytest.mark.parametrize("locking", ["TRUE", "FALSE", "BEST_EFFORT"])
def test_readers_in_other_processes_always_open_and_see_whole_rows(
    folder: Path, locking: str
) -> None:
    path = folder / "d.h5"
    with Writer.open(path):
        pass
    setting = {"HDF5_USE_FILE_LOCKING": locking}
    readers = [start_reader(kind, path, 60, **setting) for kind in ("plain", "featpipe")]
    for printed in write_beside_readers(path, readers):
        assert int(printed) >= 60


def test_threads_share_one_reader(path: Path) -> None:
    texts = [f"t{i}" for i in range(4000)]
    failures: list[BaseException] = []
    done = threading.Event()
    with Writer.open(path) as writer, Reader(path) as reader:
        writer.table("t", VECTORS)
        writer.commit()
        reader.refresh()

        def look_up() -> None:
            table = reader.table("t")
            try:
                while not done.is_set():
                    reader.refresh()
                    n = table.n_rows
                    rows = table.find(keys_of(texts[:n]))
                    assert np.array_equal(rows[:n], np.arange(n))
                    assert np.array_equal(table.gather("vectors", rows), vectors_of(texts[:n]))
                    assert n == 0 or table.find_one(keys_of(texts[n - 1 : n]).tobytes()) == n - 1
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=look_up) for _ in range(3)]
        for thread in threads:
            thread.start()
        for start in range(0, len(texts), 50):
            some = texts[start : start + 50]
            writer.table("t", VECTORS).append({"keys": keys_of(some), "vectors": vectors_of(some)})
            writer.commit()
        done.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def test_a_reader_started_before_the_file_grew_sees_its_own_time(path: Path) -> None:
    """What a reader shows changes at refresh and at no other time, though chunks move under it."""
    texts = [f"t{i}" for i in range(3000)]
    with Writer.open(path) as writer:
        table = writer.table("t", VECTORS)
        table.append({"keys": keys_of(texts[:10]), "vectors": vectors_of(texts[:10])})
        writer.commit()
        with Reader(path) as reader:
            seen = reader.table("t")
            table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
            writer.commit()
            assert seen.n_rows == 10
            assert seen.find(keys_of(texts[:20])).tolist() == [*range(10), *[-1] * 10]
            assert np.array_equal(seen.column("vectors"), vectors_of(texts[:10]))
            reader.refresh()
            assert np.array_equal(seen.column("vectors"), vectors_of(texts))
