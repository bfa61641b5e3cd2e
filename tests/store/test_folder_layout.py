"""A cache in a folder: a key's shard, the names of files, and what is said of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from featpipe.errors import NewerDictionary, UnreadableDictionary
from featpipe.store import keys_of
from featpipe.store.folder_layout import FolderLayout, shard_of, shard_of_one


def describe(folder: Path, **description: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cache.json").write_text(json.dumps({"format": 1, "bits": 8} | description))
    return folder


def publish(layout: FolderLayout, *names: str) -> None:
    for name in names:
        file = layout.path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()


@pytest.mark.parametrize("bits", [0, 1, 4, 8, 10, 13, 16])
def test_the_shard_of_a_key_is_its_last_bits(bits: int) -> None:
    keys = keys_of(f"text {i}" for i in range(2000))
    wanted = [int.from_bytes(key.tobytes(), "big") % (1 << bits) for key in keys]
    assert shard_of(keys, bits).tolist() == wanted
    assert [shard_of_one(key.tobytes(), bits) for key in keys] == wanted


def test_the_shard_leaves_the_bits_that_an_index_begins_at() -> None:
    # The index takes the first eight bytes of a key, the low bits of a little-endian number.
    keys = keys_of(f"text {i}" for i in range(64_000))
    for bits in (6, 10, 16):
        of_one = keys[shard_of(keys, bits) == shard_of(keys, bits)[0]]
        others = keys.copy()
        others[:, :8] = of_one[0, :8]  # only the bits of the index differ
        assert (shard_of(others, bits) == shard_of(keys, bits)).all()
    of_one = keys[shard_of(keys, 6) == 3]
    begins = np.unique(np.ascontiguousarray(of_one).view("<u8")[:, 0] & np.uint64(2047))
    assert len(begins) > 700  # of 2,048 with 1,000 keys; by the first bits there would be 32


@pytest.mark.parametrize(
    ("bits", "first", "last"),
    [(0, "0", "0"), (1, "0", "1"), (4, "0", "f"), (5, "00", "1f"), (10, "000", "3ff")],
)
def test_names_are_hexadecimal_and_as_wide_for_each_shard(
    tmp_path: Path, bits: int, first: str, last: str
) -> None:
    layout = FolderLayout(tmp_path, bits)
    assert layout.shard_name(0) == first
    assert layout.shard_name(layout.n_shards - 1) == last
    with pytest.raises(ValueError, match=f"of {layout.n_shards}"):
        layout.shard_name(layout.n_shards)


def test_files_are_listed_with_their_additions_in_order(tmp_path: Path) -> None:
    layout = FolderLayout(tmp_path, 8)
    additions = [f"shards/0a.{n}.h5" for n in range(1, 12)]
    publish(layout, *additions, "shards/0a.h5", "shards/ff.h5", "shards/.00.h5-12-ab")
    assert layout.shard_files() == {
        10: [layout.shard_file(10, n) for n in range(12)],
        255: [layout.shard_file(255)],
    }


def test_parts_are_listed_by_run_and_number(tmp_path: Path) -> None:
    layout = FolderLayout(tmp_path, 8)
    publish(layout, "parts/2-a-0001.h5", "parts/1-b-10000.h5", "parts/1-b-9999.h5", "parts/.x.h5")
    assert [file.name for file in layout.part_files()] == [
        "1-b-9999.h5",
        "1-b-10000.h5",
        "2-a-0001.h5",
    ]


@pytest.mark.parametrize("name", ["0A.h5", "a.h5", "00a.h5", "100.h5", "0a.0.h5", "copy.h5"])
def test_a_foreign_file_among_the_shards_is_named(tmp_path: Path, name: str) -> None:
    layout = FolderLayout(tmp_path, 8)
    publish(layout, "shards/0a.h5", f"shards/{name}")
    with pytest.raises(UnreadableDictionary, match=name):
        layout.shard_files()


def test_a_foreign_file_among_the_parts_is_named(tmp_path: Path) -> None:
    layout = FolderLayout(tmp_path, 8)
    publish(layout, "parts/copy.h5")
    with pytest.raises(UnreadableDictionary, match=r"copy\.h5"):
        layout.part_files()


@pytest.mark.parametrize("missing", ["0a.h5", "0a.1.h5"])
def test_a_file_that_an_addition_needs_is_named(tmp_path: Path, missing: str) -> None:
    layout = FolderLayout(tmp_path, 8)
    publish(layout, *(f"shards/{n}" for n in {"0a.h5", "0a.1.h5", "0a.2.h5"} - {missing}))
    with pytest.raises(UnreadableDictionary, match=rf"{missing} is missing"):
        layout.shard_files()


def test_a_layout_is_read_from_the_folder(tmp_path: Path) -> None:
    layout = FolderLayout.read(describe(tmp_path, bits=10, levels=["word"]))
    assert (layout.path, layout.n_shards) == (tmp_path, 1024)


def test_a_later_format_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(NewerDictionary, match="format 2"):
        FolderLayout.read(describe(tmp_path, format=2))


@pytest.mark.parametrize("bits", [None, -1, 17, "8", True, 8.0])
def test_bits_that_are_no_such_number_are_refused(tmp_path: Path, bits: object) -> None:
    with pytest.raises(UnreadableDictionary, match="bits is"):
        FolderLayout.read(describe(tmp_path, bits=bits))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "1"}', "[" * 100_000])
def test_a_file_that_describes_no_cache_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cache.json").write_text(text)
    with pytest.raises(UnreadableDictionary, match=r"cache\.json does not describe a cache"):
        FolderLayout.read(tmp_path)


def test_a_folder_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableDictionary, match="not a cache"):
        FolderLayout.read(tmp_path)
    with pytest.raises(UnreadableDictionary, match="does not exist"):
        FolderLayout.read(tmp_path / "absent")
