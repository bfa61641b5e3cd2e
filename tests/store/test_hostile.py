"""Files that lie: nothing they say leads outside of them, into a loop, or to the end of the
process."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from featpipe.errors import DamagedRows, DictionaryError, NewerDictionary, UnreadableDictionary
from featpipe.store import Reader, Writer, keys_of
from featpipe.store import hdf5_format as hdf5
from featpipe.store.opening import create_dictionary
from featpipe.store.verify import verify_dictionary
from tests.store.hostile import TEXTS_IN_FILE, check_hostile, damaged_copies, make_victim
from tests.store.samples import VECTORS, vectors_of
from tests.store.test_released_layouts import FIXTURES


def test_damaged_files_are_answered_or_refused(folder: Path) -> None:
    source = random.Random(3)  # noqa: S311 - a draw that can be repeated
    for path in damaged_copies(folder, source, 700):
        check_hostile(path)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """Where damaged files may lie, and what they are made of."""
    path = tmp_path_factory.mktemp("victim") / "victim.h5"
    make_victim(path)
    return path.with_name("damaged.h5"), path.read_bytes()


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    edits=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, (1 << 64) - 1)), max_size=4),
    swaps=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 20)), max_size=2),
    cut=st.none() | st.integers(0, 1 << 20),
)
def test_whatever_is_put_into_a_file_it_is_answered_or_refused(
    victim: tuple[Path, bytes],
    edits: list[tuple[int, int]],
    swaps: list[tuple[int, int]],
    cut: int | None,
) -> None:
    """Any numbers for any words that mean something, words for each other, any length."""
    path, whole = victim
    data = bytearray(whole)
    used = [at for at in range(0, len(data) - 8, 8) if any(data[at : at + 8])]
    for where, number in edits:
        at = used[where % len(used)]
        data[at : at + 8] = struct.pack("<Q", number)
    for where, other in swaps:
        at, source = used[where % len(used)], used[other % len(used)]
        data[at : at + 8] = data[source : source + 8]
    path.write_bytes(data if cut is None else data[: cut % len(data)])
    check_hostile(path)


def test_a_file_cut_at_any_byte_is_refused(folder: Path) -> None:
    path = folder / "victim.h5"
    make_victim(path)
    whole = path.read_bytes()
    for size in [*range(0, 400, 7), *range(400, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(UnreadableDictionary):
            Reader(path)
        with pytest.raises(UnreadableDictionary):
            Writer.open(path)
        assert path.stat().st_size == size, "a damaged file was changed"
        assert not verify_dictionary(path).is_good


def put(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_more_rows_than_there_is_file_are_refused(path: Path) -> None:
    make_victim(path)
    with Reader(path) as reader:
        address = reader.table("embeddings/a").now.view.headers["checks"].dims_address
    for lie in (10**6, 2**40, 2**63, 2**64 - 1):
        put(path, address, struct.pack("<Q", lie))
        with Reader(path) as reader:
            with pytest.raises(UnreadableDictionary):
                reader.table("embeddings/a")
            assert reader.table("texts").n_rows == 60
        found = {table.name: table for table in verify_dictionary(path).tables}
        assert not found["embeddings/a"].is_good
        assert found["texts"].is_good


def test_offsets_that_lead_outside_are_refused(path: Path) -> None:
    make_victim(path)
    with Reader(path) as reader:
        view = reader.table("texts").now.view
        ends = view.fixed["text_end"]
        for row, lie in ((5, 2**50), (6, 0)):
            put(path, ends.offset_of(row), struct.pack("<Q", lie))
        table = reader.table("texts")
        for row in (5, 6, 7):
            with pytest.raises(DamagedRows, match=f"table texts row {row} is not as written"):
                table.ragged("text", row)
        with pytest.raises(DamagedRows) as caught:
            table.ragged_many("text", [6, 1, 5])
        assert (caught.value.table, caught.value.rows) == ("texts", (5, 6))
        assert caught.value.hint == f"featpipe repair {path}"
        assert table.ragged("text", 2).tobytes() == b"t2"


def test_a_cycle_of_groups_ends(path: Path) -> None:
    shutil.copy(FIXTURES / "layout_1.h5", path)  # without checksums, which would refuse it
    with h5py.File(path, "r+") as file:
        file["embeddings/loop"] = file["/"]
    with Reader(path) as reader:
        assert len(reader.tables()) == 5
        assert "embeddings/loop/embeddings/loop/documents" in reader  # as far as the name says


def test_objects_of_other_programs_that_cannot_be_read_are_passed_over(path: Path) -> None:
    make_victim(path)
    with h5py.File(path, "r+") as file:
        file.create_group("mine", track_order=True)["x"] = 1
    with Reader(path) as reader:
        assert reader.tables() == ["documents", "embeddings/a", "runs", "texts"]


def test_a_link_that_leads_elsewhere_is_damage(path: Path) -> None:
    make_victim(path)
    with Reader(path) as reader:
        root, groups = reader._root, reader._structure.header(reader._root).links
        at = path.read_bytes().rindex(struct.pack("<Q", groups["embeddings"]))
    for other in (root, groups["texts"], groups["embeddings"] - 8):
        put(path, at, struct.pack("<Q", other))
        with pytest.raises(UnreadableDictionary, match="checksum"):
            Reader(path)
        assert not verify_dictionary(path).is_good


def test_links_to_other_files_are_not_followed(path: Path, tmp_path: Path) -> None:
    make_victim(path)
    secret = tmp_path / "secret.h5"
    make_victim(secret)
    raw = tmp_path / "raw"
    raw.write_bytes(b"secret" * 1000)
    with h5py.File(path, "r+") as file:
        file["away"] = h5py.ExternalLink(str(secret), "/texts")
        file["soft"] = h5py.SoftLink("/texts")
        external = [(str(raw), 0, 600)]
        file.create_dataset("outside", (600,), "u1", external=external)
    with Reader(path) as reader:
        assert reader.tables() == ["documents", "embeddings/a", "runs", "texts"]
        for name in ("away", "soft", "outside"):
            assert name not in reader
            with pytest.raises(DictionaryError):
                reader.table(name)
    with Writer.open(path) as writer:
        data = {"keys": keys_of(["x"]), "vectors": vectors_of(["x"])}
        writer.table("embeddings/a", VECTORS).append(data)
    with h5py.File(path) as file:
        assert isinstance(file.get("away", getlink=True), h5py.ExternalLink)
        assert len(file["embeddings/a/checks"]) == 61


@pytest.mark.parametrize("how", ["filter", "external", "type", "virtual"])
def test_columns_that_are_not_as_we_write_them_are_refused(
    path: Path, tmp_path: Path, how: str
) -> None:
    make_victim(path)
    raw = tmp_path / "raw"
    raw.write_bytes(bytes(6000))
    with h5py.File(path, "r+") as file:
        group = file["embeddings/a"]
        values = group["vectors"][:]
        del group["vectors"]
        if how == "filter":
            group.create_dataset("vectors", data=values, chunks=(32, 8), compression="gzip")
        elif how == "external":
            group.create_dataset("vectors", (60, 8), "f2", external=[(str(raw), 0, 960)])
        elif how == "virtual":
            layout = h5py.VirtualLayout((60, 8), "f2")
            layout[:] = h5py.VirtualSource(str(raw), "x", (60, 8))
            group.create_virtual_dataset("vectors", layout)
        else:
            group.create_dataset("vectors", data=values.astype("f4"), chunks=(32, 8))
    with Reader(path) as reader:
        with pytest.raises(UnreadableDictionary, match="embeddings/a"):
            reader.table("embeddings/a")
        assert reader.table("texts").n_rows == 60
    assert not verify_dictionary(path).is_good


def test_an_index_that_lies_is_made_anew(path: Path) -> None:
    make_victim(path)
    with Reader(path) as reader:
        place = reader.table("embeddings/a").now.view.index
    assert place is not None
    for lie in (b"\1\0\0\0", b"\xff\xff\xff\xff", b"\7\0\0\0"):
        put(path, place.address, lie * place.capacity)
        with Reader(path) as reader:
            table = reader.table("embeddings/a")
            for texts in (TEXTS_IN_FILE, TEXTS_IN_FILE[:3]):
                # Not one empty slot: the probe does not end, and the index is made anew.
                assert table.find(keys_of(texts)).tolist() == list(range(len(texts)))
            assert table.find_one(keys_of(["absent"]).tobytes()) == -1
        # The first miss is not believed: the index is seen to lack rows, and made anew.
    put(path, place.address, bytes(4 * place.capacity))
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        assert table.find(keys_of(TEXTS_IN_FILE)).tolist() == list(range(60))
        assert table.find_one(keys_of(TEXTS_IN_FILE[7:8]).tobytes()) == 7
    for is_deep in (False, True):
        found = verify_dictionary(path, is_deep=is_deep)
        assert "index" in str(found)
        assert not found.is_good
    with Writer.open(path) as writer:
        data = {"keys": keys_of(TEXTS_IN_FILE), "vectors": vectors_of(TEXTS_IN_FILE)}
        assert writer.table("embeddings/a", VECTORS).append(data) == 0, "a row was written twice"


def test_keys_that_collide_in_the_table_are_told_apart(path: Path) -> None:
    """Thousands of keys that all want the same slot, some of them alike in half of their bytes."""
    keys = np.zeros((3000, 16), np.uint8)
    keys[:, 8:12] = np.arange(3000, dtype="<u4").view(np.uint8).reshape(-1, 4)
    keys[2000:, 3] = 1
    vectors = np.arange(3000)[:, None].repeat(8, 1).astype(np.float16)
    with Writer.open(path) as writer:
        for start in range(0, 3000, 500):
            part = slice(start, start + 500)
            table = writer.table("t", VECTORS)
            assert table.append({"keys": keys[part], "vectors": vectors[part]}) == 500
            assert table.append({"keys": keys[part], "vectors": vectors[part]}) == 0
            writer.commit()
    with Reader(path) as reader:
        table = reader.table("t")
        assert np.array_equal(table.find(keys), np.arange(3000))
        absent = keys.copy()
        absent[:, 15] = 9
        assert (table.find(absent) == -1).all()


def test_a_newer_layout_is_refused_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featpipe.store.hdf5_format.FORMAT_VERSION", 3)
    with Writer.open(path):
        pass
    monkeypatch.undo()
    for opening in (Reader, Writer.open):
        with pytest.raises(NewerDictionary, match="version 3"):
            opening(path)
    assert "version 3" in str(verify_dictionary(path))


def test_a_damaged_file_does_not_take_libhdf5s_reader_along(path: Path) -> None:
    """The deep check asks libhdf5 in a child: whatever that does, we get to say so."""
    make_victim(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"TREE")
    data[at : at + 4] = b"EERT"
    path.write_bytes(data)
    found = verify_dictionary(path, is_deep=True)
    assert not found.is_good
    assert any("libhdf5" in problem for problem in found.problems)


def test_reading_a_hostile_file_loads_no_hdf5_library(path: Path) -> None:
    make_victim(path)
    code = f"import sys; from featpipe.store import Reader; Reader({str(path)!r}).table('texts');"
    code += "sys.exit('h5py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_was_aside_is_gone_when_it_cannot_be_linked(path: Path) -> None:
    from featpipe.store.disk import Disk

    path.write_bytes(b"taken")
    with pytest.raises(FileExistsError):
        create_dictionary(Disk(), path)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert hdf5.SIGNATURE not in path.read_bytes()


@pytest.mark.parametrize(
    "lie",
    [
        "[" * 5000,
        '{"keyed":true,"columns":[{"name":"a","dtype":"(((","shape":[],"ragged":false}]}',
        "{}",
    ],
)
def test_a_schema_that_is_none_is_damage(path: Path, lie: str) -> None:
    make_victim(path)
    data = bytearray(path.read_bytes())
    at = data.index(b'{"keyed":true,"columns":[{"name":"vectors"')
    size = data.index(b"]}", at) + 2 - at
    data[at : at + size] = lie.encode()[:size].ljust(size)
    path.write_bytes(data)
    with Reader(path) as reader:
        for asking in (lambda: "embeddings/a" in reader, reader.tables):
            with pytest.raises(UnreadableDictionary, match="embeddings/a"):
                asking()
        assert reader.table("texts").n_rows == 60


def test_what_other_programs_write_beside_us_is_passed_over(path: Path) -> None:
    make_victim(path)
    with h5py.File(path, "r+") as file:
        file.attrs["latin"] = np.bytes_(b"\xe9t\xe9")
        file["texts"].attrs["note"] = "from elsewhere"
        file["embeddings/a/vectors"].attrs["unit"] = "none"
        file["embeddings"].create_group("mine")["x"] = np.arange(5)
    with Writer.open(path) as writer:
        data = {"keys": keys_of(["x"]), "vectors": vectors_of(["x"])}
        writer.table("embeddings/a", VECTORS).append(data)
        writer.commit()
    with h5py.File(path) as file:
        assert file.attrs["latin"] == b"\xe9t\xe9"
        assert file["texts"].attrs["note"] == "from elsewhere"
        assert file["embeddings/a/vectors"].attrs["unit"] == "none"
        assert file["embeddings/mine/x"][:].tolist() == list(range(5))
        assert np.array_equal(file["embeddings/a/vectors"], vectors_of([*TEXTS_IN_FILE, "x"]))
