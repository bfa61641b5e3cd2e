"""Of an outbox in an object store a job fetches the rows of its shard, and checks them as any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pytest

from featpipe.build.object_folder import ObjectFolder
from featpipe.build.publish import LocalFolder
from featpipe.build.shards import outbox_index
from featpipe.build.shards.outbox import Slice, fetch_slice, read_slice
from featpipe.build.shards.outbox_index import Column, OutboxIndex
from featpipe.errors import DamagedRows, StoreUnreachable
from featpipe.store import Reader, fetched
from featpipe.store.object_store import ObjectStore

if TYPE_CHECKING:
    from folder_cache import Pair

pytest.importorskip("fsspec", reason="fsspec is not installed")

SHARDS = range(4)


@pytest.fixture(autouse=True)
def no_outbox_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_index, "NEAR_BYTES", 0)
    monkeypatch.setattr(outbox_index, "_MOST_OF_ALL", 1.0)
    monkeypatch.setattr(fetched, "_MUCH", float("inf"))


@pytest.fixture
def outbox(pair: Pair) -> Path:
    return min((pair.folder / "outbox").iterdir())


@pytest.fixture
def name(outbox: Path) -> str:
    return f"outbox/{outbox.name}"


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(f"memory://bucket/{uuid4().hex}")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each request for contents."""
    found: list[int] = []
    ranges, whole, end = ObjectStore.fetch_ranges, ObjectStore.fetch, ObjectStore.read_range

    def fetch_ranges(self: ObjectStore, name: str, some: list, n: int, to: Path) -> None:  # type: ignore[type-arg]
        found.append(sum(stop - start for start, stop in some))
        ranges(self, name, some, n, to)

    def fetch(self: ObjectStore, name: str, to: Path) -> None:
        whole(self, name, to)
        found.append(to.stat().st_size)

    def read_range(self: ObjectStore, name: str, start: int, stop: int) -> bytes:
        content = end(self, name, start, stop)
        found.append(len(content))
        return content

    monkeypatch.setattr(ObjectStore, "fetch_ranges", fetch_ranges)
    monkeypatch.setattr(ObjectStore, "fetch", fetch)
    monkeypatch.setattr(ObjectStore, "read_range", read_range)
    return found


def rows_of(some: Slice) -> tuple[list[bytes], list[int], list[str]]:
    keys, levels = some.keys()
    texts = some.read(np.arange(some.start, some.stop)).strings()
    return [key.tobytes() for key in keys], levels.tolist(), texts


def test_rows_of_every_shard_are_those_of_the_outbox(
    store: ObjectStore, outbox: Path, name: str, tmp_path: Path
) -> None:
    store.put_new(name, outbox)
    n_rows = 0
    for shard in SHARDS:
        mine = fetch_slice(ObjectFolder(store.url, tmp_path), name, shard)
        assert mine.path.stat().st_size == outbox.stat().st_size
        whole = read_slice(outbox, shard)
        assert (mine.start, mine.stop) == (whole.start, whole.stop)
        assert rows_of(mine) == rows_of(whole)
        n_rows += mine.stop - mine.start
    assert n_rows > 20


def test_another_shards_rows_are_no_rows(
    store: ObjectStore, outbox: Path, name: str, tmp_path: Path
) -> None:
    store.put_new(name, outbox)
    path = fetch_slice(ObjectFolder(store.url, tmp_path), name, 0).path
    last = read_slice(outbox, 3)
    with pytest.raises(DamagedRows):
        Slice(path, last.start + 1, last.stop).keys()


def test_the_job_fetches_less_than_the_file_and_once(
    store: ObjectStore, outbox: Path, name: str, tmp_path: Path, requests: list[int]
) -> None:
    store.put_new(name, outbox)
    first = fetch_slice(ObjectFolder(store.url, tmp_path), name, 1)
    assert len(requests) == 2
    assert requests[1] < outbox.stat().st_size
    assert fetch_slice(ObjectFolder(store.url, tmp_path), name, 1) == first
    assert len(requests) == 2
    whole = ObjectFolder(store.url, tmp_path).fetch(name)
    assert fetch_slice(ObjectFolder(store.url, tmp_path), name, 2).path == whole
    assert len(requests) == 3


def test_a_machine_of_many_shards_fetches_the_file_after_some_of_them(
    store: ObjectStore,
    outbox: Path,
    name: str,
    tmp_path: Path,
    requests: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.put_new(name, outbox)
    folder = ObjectFolder(store.url, tmp_path)
    first = fetch_slice(folder, name, 0)
    monkeypatch.setattr(fetched, "_MUCH", 1.9 * requests[-1] / outbox.stat().st_size)
    second = fetch_slice(folder, name, 1)
    assert first.path != second.path
    assert second.path.read_bytes() == outbox.read_bytes()
    n = len(requests)
    assert rows_of(fetch_slice(folder, name, 2)) == rows_of(read_slice(outbox, 2))
    assert len(requests) == n


def test_in_a_local_folder_the_file_itself_is_read(pair: Pair, outbox: Path, name: str) -> None:
    assert fetch_slice(LocalFolder(pair.folder), name, 2) == read_slice(outbox, 2)


@pytest.mark.parametrize("cut", [1, 16, 28, 60, None])
def test_an_outbox_without_a_sound_index_is_fetched_whole(
    store: ObjectStore,
    outbox: Path,
    name: str,
    tmp_path: Path,
    cut: int | None,
    requests: list[int],
) -> None:
    content = bytearray(outbox.read_bytes())
    index = OutboxIndex.read(lambda n: bytes(content[-n:]))
    assert index is not None
    if cut is None:  # of a featpipe from before there were any
        del content[index.n_bytes :]
    else:
        content[-cut] ^= 1
    store.put_new(name, bytes(content))
    mine = fetch_slice(ObjectFolder(store.url, tmp_path), name, 3)
    assert mine.path == tmp_path / mine.path.relative_to(tmp_path).parts[0] / name
    assert requests[-1] == len(content)
    assert rows_of(mine) == rows_of(read_slice(outbox, 3))


@pytest.mark.parametrize("column", ["key", "bits", "text", "text_end", "text_crc", "checks"])
def test_a_flipped_bit_of_a_row_is_found_as_in_the_whole_file(
    store: ObjectStore, outbox: Path, name: str, tmp_path: Path, column: str
) -> None:
    whole = read_slice(outbox, 2)
    content = bytearray(outbox.read_bytes())
    with Reader(outbox) as reader:
        table = reader.table("units")
        view = table.now.view
        row = whole.start + 1
        if column == "text":
            place = view.values["text"].offset_of(int(view.bounds("text", row, row + 1)[0]))
        else:
            place = view.fixed[column].offset_of(row)
    content[place] ^= 1
    store.put_new(name, bytes(content))
    mine = fetch_slice(ObjectFolder(store.url, tmp_path), name, 2)
    with pytest.raises(DamagedRows):
        rows_of(mine)
    assert rows_of(fetch_slice(ObjectFolder(store.url, tmp_path), name, 0)) == rows_of(
        read_slice(outbox, 0)
    )


def test_a_store_that_gives_less_than_asked_for_is_named_and_leaves_nothing(
    store: ObjectStore, outbox: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_new(name, outbox)
    folder = ObjectFolder(store.url, tmp_path)
    system = type(store._files)
    given = system.cat_ranges
    monkeypatch.setattr(system, "cat_ranges", lambda *a, **k: [c[:-1] for c in given(*a, **k)])
    with pytest.raises(StoreUnreachable, match="gave"):
        fetch_slice(folder, name, 1)
    monkeypatch.undo()
    assert not [path for path in tmp_path.rglob("*.h5*") if not path.name.endswith(".lock")]


def test_places_cover_rows_over_several_chunks() -> None:
    column = Column(row_bytes=4, chunk_rows=3, offsets=(100, 40, 200), firsts=(0, 2, 2, 7, 9))
    assert [list(column.places(shard)) for shard in range(4)] == [
        [(100, 108)],
        [],
        [(104, 112), (40, 52), (200, 204)],
        [(200, 212)],
    ]


def test_near_ranges_are_one_and_a_large_share_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Column(row_bytes=1, chunk_rows=1000, offsets=(500,), firsts=(0, 100, 900, 1000))
    index = OutboxIndex(2000, (rows,))
    assert index.ranges(0) == [(0, 600), (1500, 2000)]
    assert index.ranges(2) == [(0, 500), (1399, 2000)]
    monkeypatch.setattr(outbox_index, "NEAR_BYTES", 899)
    assert index.ranges(2) == [(0, 2000)]
    monkeypatch.setattr(outbox_index, "_MOST_OF_ALL", 0.9)
    assert index.ranges(2) is None
