"""Damage is found, named, and never made worse; a repair drops what was hit, and nothing else.

``scripts/soak_store.py damage`` does the whole sweep.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from flipped_bits import damage, flip, offset_of

from featpipe.errors import DamagedRows, DictionaryError, UnreadableDictionary, WriteFailed
from featpipe.store import Reader, Writer, keys_of
from featpipe.store import hdf5_format as hdf5
from featpipe.store.repair import repair_dictionary
from featpipe.store.verify import verify_dictionary
from tests.store.crashing_disk import CountingDisk, FailingDisk
from tests.store.damage import (
    N_ROWS,
    STATES,
    TEXTS_IN_FILE,
    Outcome,
    Victim,
    build_again,
    content_of,
    write_rows,
    write_victim,
)
from tests.store.samples import RUNS, TEXTS, VECTORS, ragged_text, vectors_of
from tests.store.test_released_layouts import FIXTURES, check_fixture


@pytest.mark.parametrize("state", STATES)
def test_a_flipped_bit_costs_what_it_hit(folder: Path, state: str) -> None:
    source = random.Random(STATES.index(state))  # noqa: S311 - a draw that can be repeated
    victim, total = Victim(folder, state), Outcome()
    for _ in range(25):
        total.add(victim.check_flip(*victim.draw(source)))
    assert not total.n_bad, total


@pytest.mark.parametrize("state", STATES)
def test_a_file_cut_short_is_named_and_saved(folder: Path, state: str) -> None:
    source = random.Random(STATES.index(state))  # noqa: S311 - a draw that can be repeated
    victim, total = Victim(folder, state), Outcome()
    for size in [0, 50, 4096, *(source.randrange(victim.end) for _ in range(6))]:
        total.add(victim.check_cut(size))
    assert not total.n_bad, total


@pytest.mark.parametrize("row", [3, 70])
def test_a_damaged_key_is_no_absent_text(folder: Path, row: int) -> None:
    """Also where the index has the row by the damaged key, since the reader indexed it."""
    victim = Victim(folder, "open")
    for bit in (0, 3, 64, 127):
        victim.flip(offset_of(victim.whole, "texts", "keys", row) * 8 + bit)
        with Reader(victim.path) as reader:
            table, key = reader.table("texts"), keys_of([TEXTS_IN_FILE[row]])
            with pytest.raises(DamagedRows, match=f"table texts row {row}"):
                table.find(key)
            with pytest.raises(DamagedRows, match=f"table texts row {row}"):
                table.find_one(key.tobytes())


def test_checks_can_be_turned_off(path: Path) -> None:
    write_victim(path, "closed")
    flip(path, offset_of(path, "embeddings/a", "vectors", 5))
    with Reader(path) as reader, pytest.raises(DamagedRows) as caught:
        reader.table("embeddings/a").gather("vectors", [4, 5])
    assert (caught.value.table, caught.value.rows) == ("embeddings/a", (5,))
    assert caught.value.hint == f"featpipe repair {path}"
    with Reader(path, checks_rows=False) as reader:
        found = reader.table("embeddings/a").gather("vectors", [4, 5])
    assert np.array_equal(found[0], vectors_of(TEXTS_IN_FILE[4:5])[0])
    assert not np.array_equal(found[1], vectors_of(TEXTS_IN_FILE[5:6])[0])


def test_a_message_of_another_kind_is_damage_and_is_mended(folder: Path) -> None:
    """Kinds are outside the checksums: a group vanished, or a repair dropped a whole table."""
    victim, total = Victim(folder, "closed"), Outcome()
    with Reader(victim.whole) as reader:
        structure = reader._structure
        links = structure.header(reader._root).links
        table = structure.header(links["documents"])
        addresses = [reader._root, links["embeddings"], table.address, table.links["text_end"]]
    for address in addresses:
        for at in kinds_at(victim.whole, address):
            for bit in (0, 1, 8):
                total.add(victim.check_flip("headers", at * 8 + bit))
    assert not total.n_bad, total


def kinds_at(path: Path, address: int) -> list[int]:
    """Where the kind of each message of a header lies, attributes left out."""
    data, found = path.read_bytes(), []
    at, stop = (
        address + 16,
        address + 16 + int.from_bytes(data[address + 8 : address + 12], "little"),
    )
    while at + 8 <= stop:
        if data[at] not in {0, hdf5.ATTRIBUTE, hdf5.LINK}:
            found.append(at)
        at += 8 + int.from_bytes(data[at + 2 : at + 4], "little")
    return found


def test_an_unreadable_group_is_damage_and_nothing_is_cut_off(path: Path) -> None:
    """Its rows were lost for good: recovery trimmed the file to what it had reached."""
    write_victim(path, "unclean")
    size = path.stat().st_size
    with Reader(path) as reader:
        address = reader._structure.header(reader._root).links["texts"]
    flip(path, address)
    with Writer.open(path) as writer:
        assert writer.recovery is not None
        assert list(writer.recovery.damaged) == ["texts"]
        writer.table("embeddings/a", VECTORS)
        with pytest.raises(UnreadableDictionary):
            writer.table("texts", TEXTS)
    assert path.stat().st_size >= size
    repair_dictionary(path, asks_libhdf5=False)
    assert len(content_of(path)["texts"]) == N_ROWS


@pytest.mark.parametrize("state", STATES)
def test_a_table_whose_last_offset_is_damaged_is_not_written(path: Path, state: str) -> None:
    """A garbage length was published, or the file grew to terabytes."""
    write_victim(path, state)
    flip(path, offset_of(path, "texts", "text_end", N_ROWS - 1) + 5)
    with Writer.open(path) as writer:
        rows = {"keys": keys_of(["neu"]), "text": ragged_text(["neu"])}
        with pytest.raises(UnreadableDictionary, match="texts"):
            writer.table("texts", TEXTS).append(rows)
        writer.table("runs", RUNS).append({"record": ragged_text(["{}"])})
    assert path.stat().st_size < 1 << 30
    with h5py.File(path) as file:
        assert len(file["texts/text"]) < 10_000
    repair_dictionary(path, asks_libhdf5=False)
    build_again(path)
    assert len(content_of(path)["texts"]) == N_ROWS


def test_a_good_file_is_not_changed(path: Path) -> None:
    write_victim(path, "closed")
    before = path.read_bytes()
    done = repair_dictionary(path)
    assert done.kept_as is None
    assert done.is_whole
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_damaged_file_is_kept_and_the_new_one_has_its_mode(path: Path) -> None:
    write_victim(path, "closed")
    path.chmod(0o600)
    flip(path, offset_of(path, "texts", "text", 9))
    damaged = path.read_bytes()
    done = repair_dictionary(path)
    assert done.kept_as is not None
    assert done.kept_as.read_bytes() == damaged
    assert path.stat().st_mode & 0o777 == 0o600
    assert [(table.name, len(table.dropped)) for table in done.tables if table.dropped] == [
        ("texts", 1)
    ]
    assert verify_dictionary(path, is_deep=True).is_good


def test_a_file_with_nothing_to_save_stays_as_it_is(path: Path) -> None:
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(9000))
    with pytest.raises(UnreadableDictionary):
        repair_dictionary(path)
    assert path.stat().st_size == 9008
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_repair_that_the_disk_refuses_at_any_call_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    """The file is as it was, or repaired; nothing is left beside it, and the same call goes on."""
    if not has_links:
        monkeypatch.setattr(os, "link", refuse_link)
    write_victim(folder / "whole.h5", "closed")
    damage(folder / "whole.h5", "texts", "text", 9)
    damaged = (folder / "whole.h5").read_bytes()
    counting = CountingDisk()
    shutil.copy(folder / "whole.h5", folder / "count.h5")
    repair_dictionary(folder / "count.h5", disk=counting, asks_libhdf5=False)
    last = counting.n_points
    for point in [*range(1, last - 4, 9), *range(last - 4, last + 1)]:
        path = folder / f"{point}" / "d.h5"
        path.parent.mkdir()
        path.write_bytes(damaged)
        with pytest.raises(WriteFailed, match=str(path)) as failed:
            repair_dictionary(path, disk=FailingDisk(errno.ENOSPC, point), asks_libhdf5=False)
        assert failed.value.hint
        if path.read_bytes() == damaged:
            assert [file.name for file in path.parent.iterdir()] == ["d.h5"]
        repair_dictionary(path, asks_libhdf5=False)
        assert len(content_of(path)["texts"]) == N_ROWS - 1
        assert path.with_name("d.h5.damaged").read_bytes() == damaged
        shutil.rmtree(path.parent)


def refuse_link(*_: object) -> None:
    """As a file system without hard links."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
@pytest.mark.parametrize("state", STATES)
def test_a_repair_on_a_full_file_system_says_what_it_needs(tmp_path: Path, state: str) -> None:
    """Reading a hole there ends a process, and a file that was cut short is read with its end."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    path, rest = tmp_path / "d.h5", tmp_path / "rest"
    try:
        write_victim(path, state)
        damage(path, "texts", "text", 9)
        if state == "closed":
            os.truncate(path, path.stat().st_size * 2 // 3)
        damaged = path.read_bytes()
        for n_left in (0, 1, 4):
            fill(rest, n_left)
            failed = subprocess.run(
                [sys.executable, "-m", "featpipe", "repair", path],
                capture_output=True,
                text=True,
                check=False,
            )
            assert failed.returncode == 3, failed.stderr
            assert f"{path} was not repaired, and is as it was" in failed.stderr
            assert f"make room for it, then featpipe repair {path}" in failed.stderr
            assert path.read_bytes() == damaged
            assert sorted(file.name for file in tmp_path.iterdir()) == ["d.h5", "rest"]
            rest.unlink()
        repair_dictionary(path, asks_libhdf5=False)
        assert verify_dictionary(path, is_deep=True, asks_libhdf5=False).is_good
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def fill(path: Path, n_left: int) -> None:
    """Fill the file system with a file, but for some pages."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(path, path.stat().st_size - n_left * 4096)


@pytest.mark.skipif(shutil.which("h5repack") is None, reason="needs h5repack")
@pytest.mark.parametrize("options", [[], ["-f", "GZIP=1"], ["--latest"]], ids=str)
def test_a_repacked_file_is_taken_over(path: Path, options: list[str]) -> None:
    write_victim(path, "closed")
    before = content_of(path)
    packed = path.with_name("packed.h5")
    subprocess.run(["h5repack", *options, path, packed], check=True)
    with pytest.raises(DictionaryError):
        content_of(packed)
    assert not verify_dictionary(packed).is_good
    done = repair_dictionary(packed)
    assert not any(table.dropped for table in done.tables)
    assert content_of(packed) == before


def test_an_old_file_gains_its_checksums_at_the_next_write(path: Path) -> None:
    shutil.copy(FIXTURES / "layout_1.h5", path)
    with h5py.File(path) as file:
        assert "structure" not in file.attrs
    with Writer.open(path):
        pass
    with h5py.File(path) as file:
        assert file.attrs["version"] == 2
        assert "structure" in file.attrs
        assert "structure" in file["documents"].attrs
        assert "row_hash" not in file["documents"].attrs, "its rows keep their checksums"
    check_fixture(path)
    assert verify_dictionary(path, is_deep=True).is_good


def test_an_old_file_is_repaired(path: Path) -> None:
    shutil.copy(FIXTURES / "layout_1.h5", path)
    flip(path, offset_of(path, "documents", "text", 11))
    with Reader(path) as reader, pytest.raises(DamagedRows, match="table documents"):
        reader.table("documents").ragged_many("text", np.arange(150))
    done = repair_dictionary(path)
    assert {t.name: len(t.dropped) for t in done.tables if t.dropped} == {"documents": 1}
    with Reader(path) as reader:
        assert reader.table("documents").n_rows == 149
        assert reader.table("embeddings/sentence@float32").n_rows == 150


def test_rows_can_be_written_after_a_repair(path: Path) -> None:
    write_victim(path, "unclean")
    flip(path, offset_of(path, "documents", "spans", 20))
    repair_dictionary(path, asks_libhdf5=False)
    with Writer.open(path) as writer:
        write_rows(writer, 20, 21)
    assert len(content_of(path)["documents"]) == N_ROWS
