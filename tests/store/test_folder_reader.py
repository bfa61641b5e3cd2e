"""Folder caches: files that come, go, are missing, foreign or damaged, and many of them."""

from __future__ import annotations

import gc
import inspect
import resource
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from featpipe.errors import DictionaryChanged, DictionaryError, UnreadableDictionary
from featpipe.store import FolderReader, Reader, TableReader, Writer, key_of, keys_of, open_reader
from featpipe.store.folder_layout import FolderLayout, shard_of
from featpipe.store.folder_table import FolderTable
from featpipe.store.open_files import OPEN_FILES, OpenFiles
from tests.store.folders import make_folder
from tests.store.samples import RUNS, TEXTS, VECTORS, ragged_text, vectors_of

BITS = 3
TEXT = [f"text {i}" for i in range(200)]


def add_texts(layout: FolderLayout, texts: list[str], addition: int = 0) -> None:
    """Write texts and vectors to the files of their shards."""
    shards = shard_of(keys_of(texts), layout.bits)
    for shard in np.unique(shards).tolist():
        own = [text for text, its in zip(texts, shards.tolist(), strict=True) if its == shard]
        with Writer.open(layout.shard_file(shard, addition)) as writer:
            rows = {"keys": keys_of(own), "vectors": vectors_of(own)}
            writer.table("embeddings/a", VECTORS).append(rows)
            writer.table("texts", TEXTS).append({"keys": keys_of(own), "text": ragged_text(own)})


def add_part(layout: FolderLayout, run: str, number: int, records: list[str]) -> None:
    with Writer.open(layout.part_file(run, number)) as writer:
        writer.table("sources", RUNS).append({"record": ragged_text(records)})
        writer.table("documents", TEXTS).append(
            {"keys": keys_of(records), "text": ragged_text(records)}
        )


def read_log(reader: Reader) -> list[str]:
    table = reader.table("sources")
    return [table.ragged("record", row).tobytes().decode() for row in range(table.n_rows)]


@pytest.fixture
def layout(tmp_path: Path) -> FolderLayout:
    layout = make_folder(tmp_path / "c.fp", BITS)
    add_texts(layout, TEXT)
    return layout


def test_no_method_of_a_files_reader_is_left_to_a_folder() -> None:
    # Those below are what the tables of a file need of it, and nobody else.
    of_a_file = {"read_u64", "check_size", "damage", "held"}
    of_a_file |= {"identity", "known", "is_still", "checks_rows"}
    for whole, own in ((Reader, FolderReader), (TableReader, FolderTable)):
        public = {name for name, _ in inspect.getmembers(whole) if not name.startswith("_")}
        assert public - set(vars(own)) <= of_a_file


def test_a_key_opens_the_files_of_its_shard_only(layout: FolderLayout) -> None:
    before = len(OPEN_FILES)
    with FolderReader(layout.path) as reader:
        assert len(OPEN_FILES) == before
        table = reader.table("embeddings/a")
        one = len(OPEN_FILES)
        assert one <= before + 1
        wanted = [t for t in TEXT if shard_of(keys_of([t]), BITS)[0] == 5]
        for text in wanted:
            assert table.has(key_of(text))
            assert np.array_equal(table.get("vectors", key_of(text)), vectors_of([text])[0])
            assert table.look_up("vectors", keys_of([text]))[1].all()
        assert len(OPEN_FILES) <= one + 1
        assert table.n_rows == len(TEXT)
        assert len(OPEN_FILES) == before + layout.n_shards
    assert len(OPEN_FILES) == before


def test_a_forgotten_reader_closes_its_files(layout: FolderLayout) -> None:
    before = len(OPEN_FILES)
    reader = FolderReader(layout.path)
    assert reader.table("embeddings/a").n_rows == len(TEXT)
    assert len(OPEN_FILES) == before + layout.n_shards
    del reader
    gc.collect()
    assert len(OPEN_FILES) == before


def test_a_finalizer_within_a_call_waits_for_no_lock() -> None:
    """It may run wherever memory is allocated, also where this thread holds the lock."""
    files = OpenFiles()
    with files._lock:
        files.give_up(["a", "b"])
    files.give_up([])
    assert not files._given_up


def test_a_file_opened_while_its_reader_is_closed_is_not_kept(
    layout: FolderLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(OPEN_FILES)
    reader = FolderReader(layout.path)
    open_member = reader._open_member

    def close_meanwhile(number: int) -> Reader:
        opened = open_member(number)
        reader.close()
        return opened

    monkeypatch.setattr(reader, "_open_member", close_meanwhile)
    assert reader.member(0).identity
    assert len(OPEN_FILES) == before


def test_published_files_appear_and_rows_keep_their_numbers(layout: FolderLayout) -> None:
    with FolderReader(layout.path) as reader:
        table = reader.table("embeddings/a")
        rows = table.find(keys_of(TEXT))
        more = [f"more {i}" for i in range(100)]
        add_texts(layout, more, addition=1)
        assert (table.find(keys_of(more)) < 0).all()
        assert reader.refresh()
        assert reader.table("embeddings/a") is table
        assert np.array_equal(table.find(keys_of(TEXT)), rows)
        found = table.find(keys_of(more))
        assert np.array_equal(table.gather("vectors", found), vectors_of(more))
        assert table.n_rows == len(TEXT) + len(more)
        assert not reader.refresh()


def test_rows_that_a_file_gains_get_higher_numbers(layout: FolderLayout) -> None:
    with Writer.open(layout.shard_file(2)) as writer, FolderReader(layout.path) as reader:
        table = reader.table("embeddings/a")
        rows = table.find(keys_of(TEXT))
        for step in range(3):
            more = [t for t in (f"{step} {i}" for i in range(80)) if shard_of(keys_of([t]), 3) == 2]
            writer.table("embeddings/a", VECTORS).append(
                {"keys": keys_of(more), "vectors": vectors_of(more)}
            )
            writer.commit()
            assert reader.refresh()
            found = table.find(keys_of(more))
            assert found.min() >= table.n_rows - len(more)
            assert np.array_equal(table.gather("vectors", found), vectors_of(more))
            assert np.array_equal(table.find(keys_of(TEXT)), rows)


def test_a_log_has_the_order_of_its_parts(tmp_path: Path) -> None:
    layout = make_folder(tmp_path / "c.fp", BITS)
    add_part(layout, "run2", 0, ["c", "d"])
    with FolderReader(layout.path) as reader:
        log = reader.table("sources")
        assert read_log(reader) == ["c", "d"]
        add_part(layout, "run2", 1, ["e"])
        assert reader.refresh()
        assert reader.table("sources") is log
        assert read_log(reader) == ["c", "d", "e"]
        add_part(layout, "run1", 0, ["a", "b"])
        assert reader.refresh()
        assert read_log(reader) == ["a", "b", "c", "d", "e"]
        with pytest.raises(DictionaryChanged, match="void"):
            log.ragged("record", 0)


def test_a_document_of_two_parts_counts_once(tmp_path: Path) -> None:
    layout = make_folder(tmp_path / "c.fp", BITS)
    add_part(layout, "run", 0, ["a", "b"])
    add_part(layout, "run", 1, ["b", "c"])
    with FolderReader(layout.path) as reader:
        table = reader.table("documents")
        assert table.n_rows == 3
        assert table.find(keys_of(["a", "b", "c", "d"])).tolist() == [0, 1, 2, -1]
        assert table.ragged_many("text", [0, 1, 2])[0].tobytes() == b"abc"
        add_part(layout, "run", 2, ["d", "a", "e", "c", "d", "f"])
        assert reader.refresh()
        assert reader.table("documents") is table
        assert table.ragged_many("text", range(table.n_rows))[0].tobytes() == b"abcdef"


def test_a_replaced_file_makes_row_numbers_void_until_the_table_is_taken_again(
    layout: FolderLayout,
) -> None:
    with FolderReader(layout.path) as reader:
        table = reader.table("embeddings/a")
        assert table.n_rows == len(TEXT)
        file = layout.shard_file(1)
        shutil.copyfile(file, file.with_suffix(".other"))
        file.with_suffix(".other").rename(file)
        assert reader.refresh()
        with pytest.raises(DictionaryChanged, match="void"):
            table.gather("vectors", [0])
        again = reader.table("embeddings/a")
        assert again is not table
        assert (again.find(keys_of(TEXT)) >= 0).all()


def test_a_file_written_over_in_place_makes_row_numbers_void(
    layout: FolderLayout, tmp_path: Path
) -> None:
    """As cp does it. The other file has the same keys in another order."""
    mine = [text for text in TEXT if shard_of(keys_of([text]), BITS) == 1]
    with Writer.open(tmp_path / "other.h5") as writer:
        rows = {"keys": keys_of(mine[::-1]), "vectors": vectors_of(mine[::-1])}
        writer.table("embeddings/a", VECTORS).append(rows)
    with FolderReader(layout.path) as reader:
        table = reader.table("embeddings/a")
        row = table.find(keys_of(mine[:1]))
        assert np.array_equal(table.gather("vectors", row), vectors_of(mine[:1]))
        shutil.copyfile(tmp_path / "other.h5", layout.shard_file(1))
        assert reader.refresh()
        with pytest.raises(DictionaryChanged, match="void"):
            table.gather("vectors", row)
        found, is_there = reader.table("embeddings/a").look_up("vectors", keys_of(TEXT))
        assert is_there.all()
        assert np.array_equal(found, vectors_of(TEXT))


def test_a_file_that_goes_before_it_was_opened_is_named(layout: FolderLayout) -> None:
    with FolderReader(layout.path) as reader:
        layout.shard_file(6).unlink()
        table = reader.table("embeddings/a")
        with pytest.raises(DictionaryChanged, match=r"6\.h5 is gone"):
            table.find(keys_of(TEXT))
        assert reader.refresh()
        lost = shard_of(keys_of(TEXT), BITS) == 6
        found = reader.table("embeddings/a").find(keys_of(TEXT))
        assert ((found < 0) == lost).all()


def test_a_torn_file_is_named_and_the_others_are_read(layout: FolderLayout) -> None:
    file = layout.shard_file(4)
    file.write_bytes(file.read_bytes()[:1000])
    wanted = [t for t in TEXT if shard_of(keys_of([t]), BITS)[0] != 4]
    with FolderReader(layout.path) as reader:
        table = reader.table("embeddings/a")
        assert table.look_up("vectors", keys_of(wanted))[1].all()
        with pytest.raises(UnreadableDictionary, match=r"shards/4\.h5"):
            table.look_up("vectors", keys_of(TEXT))
        problems: list[str] = []
        assert reader.tables(problems) == ["embeddings/a", "texts"]
        assert len(problems) == 1
        assert "4.h5" in problems[0]
        with pytest.raises(UnreadableDictionary, match=r"4\.h5"):
            reader.tables()


def test_a_file_of_another_cache_is_named(layout: FolderLayout) -> None:
    layout.shard_file(3).unlink()
    with Writer.open(layout.shard_file(3)) as writer:
        writer.table("embeddings/a", TEXTS)
    with (
        FolderReader(layout.path) as reader,
        pytest.raises(UnreadableDictionary, match=r"3\.h5: table embeddings/a has another schema"),
    ):
        reader.table("embeddings/a").find(keys_of(TEXT))


def test_a_shard_without_files_or_tables_holds_nothing(tmp_path: Path) -> None:
    layout = make_folder(tmp_path / "c.fp", BITS)
    with FolderReader(layout.path) as reader:
        assert reader.tables() == []
        assert "embeddings/a" not in reader
        Writer.open(layout.shard_file(0)).close()
        add_texts(layout, [t for t in TEXT if shard_of(keys_of([t]), BITS)[0] in {1, 2}])
        assert reader.refresh()
        found, is_there = reader.table("embeddings/a").look_up("vectors", keys_of(TEXT))
        assert is_there.tolist() == np.isin(shard_of(keys_of(TEXT), BITS), [1, 2]).tolist()
        assert np.array_equal(found[is_there], vectors_of(TEXT)[is_there])


def test_the_door_takes_files_and_folders(layout: FolderLayout, tmp_path: Path) -> None:
    with open_reader(layout.path) as reader, open_reader(layout.shard_file(0)) as one:
        assert type(reader) is FolderReader
        assert type(one) is Reader
    with pytest.raises(UnreadableDictionary, match="not a cache"):
        open_reader(tmp_path)
    with pytest.raises(UnreadableDictionary, match="cannot be opened"):
        open_reader(tmp_path / "absent")


def test_the_least_recently_used_files_are_closed(layout: FolderLayout) -> None:
    files = OpenFiles(capacity=3)
    opened = [
        files.open(shard, lambda shard=shard: Reader(layout.shard_file(shard)))
        for shard in (0, 1, 2, 0, 3, 0, 4)
    ]
    assert len(files) == 3
    assert [shard for shard in range(5) if files.get(shard) is not None] == [0, 3, 4]
    assert opened[0] is opened[3]
    assert opened[1].table("texts").n_rows  # a thread that has it goes on reading
    for shard in range(5):
        files.drop(shard)
    assert len(files) == 0


_MANY = """
import resource, sys
import numpy as np
from featpipe.store import FolderReader, keys_of
from featpipe.store.open_files import OPEN_FILES
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
texts = [f"text {i}" for i in range(int(sys.argv[2]))]
with FolderReader(sys.argv[1]) as reader:
    table = reader.table("embeddings/a")
    for _ in range(2):
        rows = table.find(keys_of(texts))
        assert (rows >= 0).all() and table.n_rows == len(texts)
    kept = [table.row("vectors", row) for row in rows.tolist()]
    vectors, found = table.look_up("vectors", keys_of(texts))
    assert found.all() and np.array_equal(vectors, np.array(kept))
    print(hard, len(OPEN_FILES) < hard, len(reader.tables()))
    open("/dev/null").close()  # some are left for the program
"""


def test_1024_shards_are_read_under_a_limit_of_1024_descriptors(tmp_path: Path) -> None:
    layout = make_folder(tmp_path / "c.fp", bits=10)
    texts = [f"text {i}" for i in range(3000)]
    keys = keys_of(texts)
    shards = shard_of(keys, 10)
    for shard in range(1024):
        at = np.flatnonzero(shards == shard)
        with Writer.open(layout.shard_file(shard)) as writer:
            own = [texts[i] for i in at.tolist()]
            rows = {"keys": keys[at], "vectors": vectors_of(own)}
            writer.table("embeddings/a", VECTORS).append(rows)
    command = [sys.executable, "-c", _MANY, str(layout.path), str(len(texts))]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024)),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1024", "True", "1"]


def test_a_closed_reader_says_so(layout: FolderLayout) -> None:
    reader = FolderReader(layout.path)
    table = reader.table("embeddings/a")
    reader.close()
    reader.close()
    for ask in (reader.refresh, lambda: table.find(keys_of(TEXT)), lambda: table.n_rows):
        with pytest.raises(DictionaryError, match="closed"):
            ask()


def test_threads_share_one_reader_while_files_appear(layout: FolderLayout) -> None:
    keys, expected = keys_of(TEXT), vectors_of(TEXT)
    is_over = threading.Event()

    def read() -> int:
        n_rounds = 0
        while not is_over.is_set() or not n_rounds:
            table = reader.table("embeddings/a")
            rows = table.find(keys)
            assert np.array_equal(table.gather("vectors", rows), expected)
            found, is_there = table.look_up("vectors", keys)
            assert is_there.all()
            assert np.array_equal(found, expected)
            n_rounds += 1
        return n_rounds

    with FolderReader(layout.path) as reader, ThreadPoolExecutor(3) as pool:
        running = [pool.submit(read) for _ in range(3)]
        try:
            for step in range(1, 6):
                add_texts(layout, [f"{step} {i}" for i in range(60)], addition=step)
                assert reader.refresh()
        finally:
            is_over.set()
        assert all(future.result() for future in running)
        assert reader.table("embeddings/a").n_rows == len(TEXT) + 5 * 60
