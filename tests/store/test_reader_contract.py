"""What a reader promises, held against one of a file and one of a folder of the same rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from flipped_bits import flip

from featpipe.errors import DamagedRows, DictionaryError, UnknownSpace
from featpipe.store import (
    FolderReader,
    Reader,
    TableReader,
    Writer,
    key_of,
    keys_of,
    open_reader,
    sound_rows,
)
from featpipe.store.rewrite import equal_rows, sound_blocks
from tests.store.damage import overwrite
from tests.store.folders import split
from tests.store.samples import DOCUMENTS, RUNS, TEXTS, VECTORS, ragged_text, vectors_of

TEXT = [f"句子 {i}" * (i % 5) + str(i) for i in range(700)]
N_DOCUMENTS = 60
DOCUMENT_NAMES = [f"document {i}" for i in range(N_DOCUMENTS)]


@dataclass
class Opened:
    """A reader of some kind, and one of the file with the same rows."""

    reader: Reader
    file: Reader

    def rows(self, name: str) -> np.ndarray:
        """By row of the file, the row of the same key."""
        return self.reader.table(name).find(self.file.table(name).column("keys"))


def write(path: Path) -> None:
    rng = np.random.default_rng(1)
    with Writer.open(path) as writer:
        writer.table("embeddings/a", VECTORS).append(
            {"keys": keys_of(TEXT), "vectors": vectors_of(TEXT)}
        )
        writer.table("texts", TEXTS).append({"keys": keys_of(TEXT), "text": ragged_text(TEXT)})
        writer.table("runs", RUNS).append({"record": ragged_text(["{}", "{1}", ""])})
        names = DOCUMENT_NAMES
        spans = rng.integers(0, 999, (N_DOCUMENTS * 2, 2)).astype(np.uint32)
        writer.table("documents", DOCUMENTS).append(
            {
                "keys": keys_of(names),
                "text": ragged_text(names),
                "spans": (spans, [i % 5 for i in range(N_DOCUMENTS)]),
                "weights": (np.zeros(0, np.float32), [0] * N_DOCUMENTS),
                "n_pages": np.arange(N_DOCUMENTS, dtype=np.int32),
                "mean": rng.standard_normal((N_DOCUMENTS, 3)).astype(np.float32),
            }
        )
        writer.table("wide", DOCUMENTS).append(
            {
                "keys": keys_of(names),
                "text": ragged_text(names),
                "spans": (spans, [i % 5 for i in range(N_DOCUMENTS)]),
                "weights": (np.ones(N_DOCUMENTS, np.float32), [1] * N_DOCUMENTS),
                "n_pages": np.arange(N_DOCUMENTS, dtype=np.int32),
                "mean": rng.standard_normal((N_DOCUMENTS, 3)).astype(np.float32),
            }
        )


@pytest.fixture(autouse=True)
def remember_sound_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a file that was left alone for a while, and with writes noticed without delay."""
    monkeypatch.setattr(sound_rows, "SETTLED_S", 0.0)
    monkeypatch.setattr(sound_rows, "_LOOK_EVERY_S", 0.0)


@pytest.fixture(params=["file", "folder of 1", "folder of 8"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    write(tmp_path / "d.h5")
    path = tmp_path / "d.h5"
    if request.param != "file":
        path = split(path, tmp_path / "d.fp", bits=0 if request.param.endswith("1") else 3).path
    with open_reader(path) as reader, Reader(tmp_path / "d.h5") as file:
        yield Opened(reader, file)


def test_each_table_is_listed_and_has_its_schema(opened: Opened) -> None:
    names = ["documents", "embeddings/a", "runs", "texts", "wide"]
    assert opened.reader.tables() == opened.file.tables() == names
    for name in names:
        table, own = opened.reader.table(name), opened.file.table(name)
        assert name in opened.reader
        assert opened.reader.table(f"/{name}/") is table
        assert (table.name, table.spec, table.attributes) == (name, own.spec, own.attributes)
        assert (table.n_rows, len(table)) == (own.n_rows, own.n_rows)
        assert table.row_bytes == own.row_bytes
        assert (table.fixed_columns, table.value_columns) == (own.fixed_columns, own.value_columns)


def test_every_row_has_the_bytes_of_the_file(opened: Opened) -> None:
    for name in ("documents", "embeddings/a", "texts", "wide"):
        rows = opened.rows(name)
        assert sorted(rows.tolist()) == list(range(opened.reader.table(name).n_rows))
        table, own = opened.reader.table(name), opened.file.table(name)
        assert equal_rows(table, rows, own, np.arange(own.n_rows)).all()
    logs = [
        reader.table("runs").ragged_many("record", [0, 1, 2]) for reader in vars(opened).values()
    ]
    assert logs[0][0].tobytes() == logs[1][0].tobytes()
    assert logs[0][1].tolist() == logs[1][1].tolist()


@pytest.mark.parametrize("n", [0, 1, 40, 700])
def test_rows_are_found_by_key(opened: Opened, n: int) -> None:
    table = opened.reader.table("embeddings/a")
    wanted = [*TEXT[:n], "never added", *TEXT[n:][:3]]
    rows = table.find(keys_of(wanted))
    assert (rows < 0).tolist() == [text == "never added" for text in wanted]
    assert [table.find_one(key_of(text)) for text in wanted] == rows.tolist()
    assert [table.has(key_of(text)) for text in wanted] == (rows >= 0).tolist()
    for _ in range(3):  # rows that are read again are not checked again
        vectors, is_there = table.look_up("vectors", keys_of(wanted))
        assert is_there.tolist() == (rows >= 0).tolist()
        asked = [text for text in wanted if text != "never added"]
        assert np.array_equal(vectors[is_there], vectors_of(asked))
        assert not vectors[~is_there].any()
        means, _ = opened.reader.table("wide").look_up("mean", keys_of(DOCUMENT_NAMES))
        assert np.array_equal(means, opened.file.table("wide").gather("mean", range(N_DOCUMENTS)))
    for text in wanted[-5:]:
        found = table.get("vectors", key_of(text))
        assert (found is None) == (text == "never added")
        assert found is None or np.array_equal(found, vectors_of([text])[0])


def test_values_are_found_by_key(opened: Opened) -> None:
    table = opened.reader.table("texts")
    assert table.ragged_of("text", key_of("never added")) is None
    for text in TEXT[::70]:
        found = table.ragged_of("text", key_of(text))
        assert found is not None
        assert found.tobytes().decode() == text


def test_rows_are_gathered_in_any_order(opened: Opened) -> None:
    table, rng = opened.reader.table("wide"), np.random.default_rng(3)
    for rows in ([], [5], [7, 8, 9], rng.integers(0, N_DOCUMENTS, 90).tolist(), np.arange(60)):
        wanted = np.asarray(rows, np.int64)
        for name in ("spans", "text", "weights"):
            values, lengths = table.ragged_many(name, wanted)
            parts = [table.ragged(name, row) for row in wanted.tolist()]
            assert lengths.tolist() == [len(part) for part in parts]
            assert values.tobytes() == b"".join(part.tobytes() for part in parts)
            assert values.shape[1:] == opened.file.table("wide").value_columns[name].shape
        for name in ("n_pages", "mean", "keys"):
            found = table.gather(name, wanted)
            assert found.shape[0] == len(wanted)
            assert np.array_equal(found, table.gather(name, wanted, is_cold=True))
            into = np.zeros_like(found)
            assert table.gather(name, wanted, into) is into
            assert np.array_equal(into, found)
        bits = table.gather_bits("mean", wanted)
        assert bits.dtype == np.uint16
        assert [table.row("n_pages", row) for row in wanted.tolist()] == table.gather(
            "n_pages", wanted
        ).tolist()


def test_columns_are_read_whole_in_slices_and_in_blocks(opened: Opened) -> None:
    table = opened.reader.table("wide")
    whole = table.column("n_pages")
    assert sorted(whole.tolist()) == list(range(N_DOCUMENTS))
    names = ["n_pages", "keys", "mean"]
    assert np.concatenate(list(table.blocks("n_pages"))).tolist() == whole.tolist()
    for start, stop in ((0, 60), (0, 0), (60, 60), (3, 50), (59, 60)):
        assert table.slice("n_pages", start, stop).tolist() == whole[start:stop].tolist()
        for name, found in zip(names, table.slices(names, start, stop), strict=True):
            assert np.array_equal(found, table.slice(name, start, stop))
    ends = np.concatenate(list(table.blocks("text_end")))
    _, lengths = table.ragged_many("text", np.arange(table.n_rows))
    assert ends.tolist() == np.cumsum(lengths).tolist()
    assert table.n_values("text") == ends[-1]


REFUSED: dict[str, Callable[[TableReader], object]] = {
    "rows beyond": lambda table: table.slice("n_pages", 5, 61),
    "rows of several beyond": lambda table: table.slices(["keys", "n_pages"], 5, 61),
    "rows before": lambda table: table.slice("n_pages", -1, 5),
    "a row beyond": lambda table: table.row("n_pages", 60),
    "values before": lambda table: table.ragged("text", -1),
    "one of two": lambda table: table.gather("n_pages", [0, 60]),
    "a negative one": lambda table: table.gather("n_pages", [-1]),
    "half a row": lambda table: table.gather("n_pages", [0.5]),
    "a matrix": lambda table: table.gather("n_pages", [[1]]),
    "values beyond": lambda table: table.ragged_many("text", [60]),
    "another column": lambda table: table.gather("absent", [1]),
    "no values": lambda table: table.ragged("n_pages", 1),
    "by key": lambda table: table.look_up("absent", keys_of(["document 1"])),
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED)
def test_what_is_not_there_is_refused(opened: Opened, ask: Callable[[TableReader], object]) -> None:
    with pytest.raises(DictionaryError):
        ask(opened.reader.table("wide"))


def test_a_table_that_is_not_there_is_refused_by_name(opened: Opened) -> None:
    assert "absent" not in opened.reader
    with pytest.raises(UnknownSpace, match=f"{opened.reader.path}.*absent"):
        opened.reader.table("absent")


def test_a_log_has_no_keys(opened: Opened) -> None:
    with pytest.raises(DictionaryError, match="no keys"):
        opened.reader.table("runs").find(keys_of(["a"]))


def test_a_reader_travels_by_its_path(opened: Opened) -> None:
    with pickle.loads(pickle.dumps(opened.reader)) as other:  # noqa: S301 - of this test
        assert type(other) is type(opened.reader)
        assert other.path == opened.reader.path
        assert other.table("embeddings/a").n_rows == len(TEXT)


def test_views_outlive_their_reader(opened: Opened) -> None:
    table = opened.reader.table("embeddings/a")
    row = table.row("vectors", table.find_one(key_of(TEXT[3])))
    opened.reader.close()
    assert np.array_equal(row, vectors_of([TEXT[3]])[0])
    with pytest.raises(DictionaryError):
        table.row("vectors", 0)


def test_a_reader_that_sees_nothing_new_says_so(opened: Opened) -> None:
    table = opened.reader.table("embeddings/a")
    rows = opened.rows("embeddings/a")
    assert not opened.reader.refresh()
    assert opened.reader.table("embeddings/a") is table
    assert np.array_equal(opened.rows("embeddings/a"), rows)


def test_damaged_rows_are_named_and_others_read(opened: Opened) -> None:
    table = opened.reader.table("embeddings/a")
    row = int(opened.rows("embeddings/a")[5])
    for _ in range(3):
        assert table.look_up("vectors", keys_of(TEXT))[1].all()
    path = opened.reader.path
    if isinstance(opened.reader, FolderReader):
        (path,) = [f for f in sorted(path.glob("shards/*.h5")) if holds(f, TEXT[5])]
    with Reader(path) as one:
        own = one.table("embeddings/a")
        address = own.now.view.fixed["vectors"].offset_of(own.find_one(key_of(TEXT[5])))
    overwrite(path, address, b"\x99\x99")
    assert table.bad_rows(0, table.n_rows).tolist() == [row]
    for ask in (
        lambda: table.get("vectors", key_of(TEXT[5])),
        lambda: table.gather("vectors", [row]),
        lambda: table.look_up("vectors", keys_of(TEXT)),
    ):
        with pytest.raises(DamagedRows, match=path.name):
            ask()
    assert np.array_equal(table.get("vectors", key_of(TEXT[6])), vectors_of([TEXT[6]])[0])
    sound = [(rows, n_bad) for rows, n_bad in sound_blocks(table)]
    assert sum(n_bad for _, n_bad in sound) == 1
    assert len(np.concatenate([rows for rows, _ in sound])) == len(TEXT) - 1


def holds(path: Path, text: str) -> bool:
    with Reader(path) as reader:
        return reader.table("embeddings/a").has(key_of(text))


def test_a_damaged_key_is_not_taken_for_an_absent_one(opened: Opened) -> None:
    path = opened.reader.path
    if isinstance(opened.reader, FolderReader):
        (path,) = [f for f in sorted(path.glob("shards/*.h5")) if holds(f, TEXT[5])]
    with Reader(path) as one:
        own = one.table("embeddings/a")
        address = own.now.view.fixed["keys"].offset_of(own.find_one(key_of(TEXT[5])))
    flip(path, address + 3)
    for wanted in (TEXT, TEXT[:6]):
        with open_reader(opened.reader.path) as reader, pytest.raises(DamagedRows):
            reader.table("embeddings/a").find(keys_of(wanted))
