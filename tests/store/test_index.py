"""The key index by itself, held against a dict: every way of probing gives the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from featpipe.store import Column, Reader, TableSpec, Writer
from featpipe.store import index as index_module
from featpipe.store.index import IndexDamaged, KeyIndex, capacity_for
from featpipe.store.views import ColumnView, FileMap

if TYPE_CHECKING:
    from numpy.typing import NDArray


def column_of(keys: NDArray[np.uint64], path: Path) -> ColumnView:
    """The keys as they lie in a file, after a page of something else."""
    path.write_bytes(bytes(4096) + keys.tobytes())
    with path.open("rb") as file:
        mapping = FileMap(file.fileno(), path)
    return ColumnView(mapping, np.dtype("<u8"), (2,), len(keys), [4096])


def crowded_keys(n: int, n_heads: int, capacity: int) -> NDArray[np.uint64]:
    """Keys of few different heads, the last of which want the table's last slots."""
    source = np.random.default_rng(n)
    heads = source.integers(capacity - n_heads, capacity, n).astype(np.uint64)
    return np.stack([heads, np.arange(n, dtype=np.uint64)], 1)


@pytest.mark.parametrize("n_heads", [1, 40, 5000])
@pytest.mark.parametrize("n_asked", [1, 11, 13, 60, 1000, 1025, 4000])
def test_every_number_of_keys_is_answered_as_by_a_dict(
    path: Path, n_heads: int, n_asked: int
) -> None:
    capacity = capacity_for(5000)
    keys = crowded_keys(5000, n_heads, capacity)
    model = {key.tobytes(): row for row, key in enumerate(keys[:4000])}
    column = column_of(keys, path)
    index = KeyIndex.empty(capacity)
    index.extend(column, 4000)
    asked = np.random.default_rng(n_asked).permutation(keys)[:n_asked]
    ends = np.zeros(len(asked), np.intp)
    found = index.find(asked, column, 4000, ends)
    assert found.tolist() == [model.get(key.tobytes(), -1) for key in asked]
    for key, end in zip(asked[found < 0], ends[found < 0].tolist(), strict=True):
        slot = int(key[0]) & index.mask
        while slot != end:  # nothing was skipped that add would have to fill
            assert index.slots[slot]
            slot = (slot + 1) & index.mask


def test_keys_added_where_the_search_ended_are_found(path: Path) -> None:
    capacity = capacity_for(3000)
    keys = crowded_keys(3000, 700, capacity)
    column = column_of(keys, path)
    index = KeyIndex.empty(capacity)
    for start in range(0, 3000, 150):
        new = keys[start : start + 150]
        ends = np.zeros(150, np.intp)
        assert (index.find(new, column, start, ends) == -1).all()
        index.add(new, ends)
        known = keys[: start + 150]
        assert np.array_equal(index.find(known, column, start + 150), np.arange(start + 150))


@pytest.mark.parametrize("n_asked", [5, 200, 2000])
def test_a_table_without_an_empty_slot_is_said_to_be_damaged(path: Path, n_asked: int) -> None:
    keys = crowded_keys(2100, 2000, 4096)
    column = column_of(keys, path)
    index = KeyIndex(np.full(4096, 7, np.uint32), 100)
    with pytest.raises(IndexDamaged):
        index.find(keys[100 : 100 + n_asked], column, 100)


@pytest.mark.parametrize("n_asked", [3, 100, 1500])
def test_of_two_rows_with_one_key_the_first_is_found(path: Path, n_asked: int) -> None:
    """No writer of ours makes such a file; verify shows the second row as one not to be found."""
    keys = crowded_keys(2000, 2000, 4096)
    column = column_of(np.concatenate([keys, keys]), path)
    index = KeyIndex.empty(capacity_for(4000))
    index.extend(column, 2000)
    index.extend(column, 4000)
    assert np.array_equal(index.find(keys[:n_asked], column, 4000), np.arange(n_asked))


def test_a_large_index_grows_by_a_few_rows_each_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No append waits until all keys are in a larger index."""
    n_added = 0
    add = KeyIndex.add

    def counted(self: KeyIndex, keys: NDArray[np.uint64], *ends: NDArray[np.intp]) -> None:
        nonlocal n_added
        n_added += len(keys)
        add(self, keys, *ends)

    monkeypatch.setattr(KeyIndex, "add", counted)
    monkeypatch.setattr(index_module, "GRADUAL_SLOTS", 1024)
    all_keys = np.random.default_rng(1).integers(0, 256, (20_000, 16), np.uint8)
    numbers = np.arange(20_000, dtype=np.int64)
    most = 0
    with Writer.open(path) as writer:
        table = writer.table("t", TableSpec((Column("number", "int64"),)))
        for start in range(0, 20_000, 40):
            n_added, part = 0, slice(start, start + 40)
            table.append({"keys": all_keys[part], "number": numbers[part]})
            most = max(most, n_added)
            if start % 1000 == 0:
                writer.commit()
                assert table.find(all_keys[: start + 80]).tolist() == [
                    *range(start + 40), *[-1] * 40,
                ]  # fmt: skip
    assert most <= 40 * 10
    with Reader(path) as reader:
        assert reader.table("t").has_whole_index()
        assert reader.table("t").find(all_keys).tolist() == numbers.tolist()


def test_a_reader_that_follows_a_file_keeps_no_entries_of_its_own_that_the_file_has(
    path: Path,
) -> None:
    """Pages that a reader adds to are its own: they would grow to the size of the whole index."""
    keys = np.random.default_rng(2).integers(0, 256, (20_000, 16), np.uint8)

    def write(start: int, stop: int) -> None:
        with Writer.open(path) as writer:
            table = writer.table("t", TableSpec((Column("number", "int64"),)))
            numbers = np.arange(start, stop, dtype=np.int64)
            table.append({"keys": keys[start:stop], "number": numbers})

    write(0, 15_000)
    with Reader(path) as reader:
        table = reader.table("t")
        assert table.find(keys[:2]).tolist() == [0, 1]
        for stop in (15_040, 15_080, 20_000):
            write(table.n_rows, stop)
            assert reader.refresh()
            found = table.find(keys)
            assert found.tolist() == [*range(stop), *[-1] * (len(keys) - stop)]
            assert not table._index.current.filed.dirty.any()


def test_a_reader_that_follows_a_writer_indexes_by_itself_what_the_writer_has_not(
    path: Path,
) -> None:
    """In an index of its own, small beside that of the file, whose pages stay shared."""
    keys = np.random.default_rng(3).integers(0, 256, (60_000, 16), np.uint8)
    absent = np.random.default_rng(4).integers(0, 256, (500, 16), np.uint8)
    numbers = np.arange(len(keys), dtype=np.int64)
    most_beside = 0
    with Writer.open(path) as writer:
        table = writer.table("t", TableSpec((Column("number", "int64"),)))
        table.append({"keys": keys[:500], "number": numbers[:500]})
        writer.commit()
        with Reader(path) as reader:
            followed = reader.table("t")
            for stop in range(1500, len(keys) + 1, 1500):
                part = slice(stop - 1500 if stop > 1500 else 500, stop)
                table.append({"keys": keys[part], "number": numbers[part]})
                writer.commit()
                assert reader.refresh()
                assert followed.find(keys).tolist() == [*range(stop), *[-1] * (len(keys) - stop)]
                assert (followed.find(absent) == -1).all()
                assert [followed.find_one(keys[row].tobytes()) for row in (0, stop - 1)] == [
                    0, stop - 1,
                ]  # fmt: skip
                assert followed.find_one(absent[0].tobytes()) == -1
                filed, recent = followed._index.current
                assert not filed.dirty.any()
                if recent is not None:
                    assert stop - filed.n_rows <= max(4096, stop // 4)
                    assert len(recent.slots) == capacity_for(stop - filed.n_rows)
                    most_beside = max(most_beside, stop - filed.n_rows)
    assert most_beside > 4096
