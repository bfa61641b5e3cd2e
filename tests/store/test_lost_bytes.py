"""A file that loses bytes under its readers ends no process: they raise, or read on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from waiting import HANG_S

from featpipe.errors import DictionaryError
from featpipe.store import Reader, Writer, keys_of
from featpipe.store.verify import verify_dictionary
from tests.store.samples import TEXTS, VECTORS, ragged_text, vectors_of

HERE = Path(__file__).parent
NAMES = [f"第{i}条" for i in range(6000)]

#: Reads everything again and again; prints each error once, and ends well after the end is asked.
READ_ON = """
import sys
import numpy as np
from pathlib import Path
from featpipe.errors import DictionaryError
from featpipe.store import Reader, keys_of
from tests.store.samples import vectors_of
from tests.store.test_lost_bytes import NAMES
expected, keys = vectors_of(NAMES), keys_of(NAMES)
rows = np.arange(len(NAMES))
path, end = sys.argv[1], Path(sys.argv[2])
n_read = n_refused = 0
print("ready", flush=True)
is_over = False
while not is_over:
    is_over = end.exists()  # one round more, which may be the first
    try:
        with Reader(path) as reader:
            for _ in range(5):
                table = reader.table("embeddings/a")
                found, is_there = table.look_up("vectors", keys)
                assert is_there.all() and (found == expected).all(), "a wrong vector"
                texts = reader.table("texts")
                values, _ = texts.ragged_many("text", rows)
                text = bytes(values)  # a view: it may have lost bytes since, as the next call says
                texts.ragged_many("text", rows[:1])
                assert text.decode() == "".join(NAMES), "a wrong text"
                n_read += 1
    except DictionaryError:
        n_refused += 1
print(n_read, n_refused)
"""


def write(path: Path) -> None:
    with Writer.open(path) as writer:
        keys = keys_of(NAMES)
        writer.table("embeddings/a", VECTORS).append({"keys": keys, "vectors": vectors_of(NAMES)})
        writer.table("texts", TEXTS).append({"keys": keys, "text": ragged_text(NAMES)})


def test_no_reader_dies_while_cp_replaces_the_file_in_place(tmp_path: Path) -> None:
    path, good, end = tmp_path / "c.h5", tmp_path / "good.h5", tmp_path / "end"
    write(good)
    shutil.copyfile(good, path)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READ_ON, str(path), str(end)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, HERE.parents[:2]))},
        )
        for _ in range(3)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    until = time.monotonic() + 4
    while time.monotonic() < until:
        with path.open("r+b") as file:  # as cp does: the same file, emptied and filled
            file.truncate(0)
            file.write(good.read_bytes())
    end.touch()
    counts = [reader.communicate(timeout=HANG_S)[0].split() for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0, 0]
    assert all(int(n_read) + int(n_refused) for n_read, n_refused in counts)


def test_an_open_reader_says_that_bytes_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write(path)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        seen = table.now.mapping.guard
        os.truncate(path, 4096)
        assert not np.frombuffer(table.now.mapping.bytes, np.uint8)[8192:].any()
        assert seen.is_broken
        with pytest.raises(DictionaryError):
            table.gather("vectors", [0])
        with pytest.raises(DictionaryError):
            table.find(keys_of(NAMES[:1]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
def test_a_full_file_system_keeps_nobody_from_reading(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        write(folder / "c.h5")
        _fill(folder / "rest")
        assert verify_dictionary(folder / "c.h5", is_deep=True).is_good
        with Reader(folder / "c.h5") as reader:
            rows = reader.table("embeddings/a").find(keys_of([*NAMES, "not there"]))
            assert (rows == [*range(len(NAMES)), -1]).all()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def test_the_guard_comes_back_after_another_handler_took_its_place(tmp_path: Path) -> None:
    """As Ray and faulthandler install theirs; a fault that is not ours still ends the process."""
    path = tmp_path / "c.h5"
    write(path)
    program = (
        "import ctypes, faulthandler, os, sys\n"
        "from featpipe.errors import DictionaryError\n"
        "from featpipe.store import Reader, keys_of\n"
        "path = sys.argv[1]\n"
        "Reader(path).close()\n"
        "faulthandler.enable()\n"
        "reader = Reader(path)\n"
        "table = reader.table('embeddings/a')\n"
        "os.truncate(path, 4096)\n"
        "try:\n"
        "    table.look_up('vectors', keys_of(['第1条']))\n"
        "except DictionaryError:\n"
        "    print('refused', flush=True)\n"
        "os.kill(os.getpid(), 7)\n"
        "os.kill(os.getpid(), 7)\n"
        "os.kill(os.getpid(), 7)\n"
        "print('alive')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.stdout == "refused\n", done.stderr
    assert done.returncode == -7
