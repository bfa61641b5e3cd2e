"""Maps of files: their bytes, and that they hold no descriptor."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from featpipe.store import Reader, Writer, keys_of
from featpipe.store.mapping import map_file
from tests.store.samples import VECTORS, vectors_of


def n_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    content = np.arange(3 * mmap.ALLOCATIONGRANULARITY // 4, dtype="<u4")
    (tmp_path / "f").write_bytes(content.tobytes())
    opened = os.open(tmp_path / "f", os.O_RDWR)
    yield opened
    os.close(opened)


def test_a_map_has_the_bytes_of_the_file(descriptor: int) -> None:
    lead = mmap.ALLOCATIONGRANULARITY
    assert map_file(descriptor, 100)[:] == os.pread(descriptor, 100, 0)
    assert map_file(descriptor, 100, offset=lead)[:] == os.pread(descriptor, 100, lead)


def test_a_shared_map_sees_what_is_written_later_and_cannot_be_written(descriptor: int) -> None:
    shared = map_file(descriptor, 100)
    os.pwrite(descriptor, b"later", 10)
    assert shared[10:15] == b"later"
    with pytest.raises(TypeError):
        shared[0] = 1


def test_a_private_map_leaves_the_file_as_it_is(descriptor: int) -> None:
    private = map_file(descriptor, 100, is_private=True)
    private[:5] = b"mine!"
    assert private[:5] == b"mine!"
    assert os.pread(descriptor, 5, 0) == map_file(descriptor, 5)[:]


@pytest.mark.parametrize("n_bytes", [(2 << 20) - 1, 2 << 20, (2 << 20) + 1, (5 << 20) + 13])
def test_maps_of_large_pages_have_the_bytes_of_the_file(folder: Path, n_bytes: int) -> None:
    content = np.random.default_rng(0).bytes(n_bytes)
    (folder / "f").write_bytes(content)
    before = Path("/proc/self/maps").read_text().count("\n")
    with (folder / "f").open("rb") as file:
        maps = [map_file(file.fileno(), n_bytes) for _ in range(20)]
    assert all(each[:] == content for each in maps)
    del maps
    assert Path("/proc/self/maps").read_text().count("\n") < before + 20


def test_more_than_the_file_has_is_refused(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    assert len(map_file(descriptor, size)) == size
    with pytest.raises(ValueError, match="byte"):
        map_file(descriptor, size + 1)


def test_arrays_that_outlive_their_reader_hold_no_descriptor(tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left to it, sockets among them
    before, kept = n_descriptors(), []
    for number in range(20):
        path = tmp_path / f"{number}.h5"
        with Writer.open(path) as writer:
            texts = [f"t{i}" for i in range(10)]
            table = writer.table("t", VECTORS)
            table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
        with Reader(path) as reader:
            table = reader.table("t")
            assert table.find(keys_of(texts)).tolist() == list(range(10))
            kept.append(table.row("vectors", 3))
    assert n_descriptors() <= before
    assert all((row == vectors_of(["t3"])[0]).all() for row in kept)
