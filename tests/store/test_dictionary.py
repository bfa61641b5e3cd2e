"""What a dictionary promises in ordinary times, held against dicts and plain h5py."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest

from featpipe.errors import (
    DictionaryChanged,
    DictionaryError,
    DictionaryLocked,
    UnknownSpace,
    UnreadableDictionary,
)
from featpipe.store import Column, Ragged, Reader, TableSpec, Writer, key_of, keys_of
from featpipe.store.table_reader import TableReader
from tests.store.samples import DOCUMENTS, RUNS, TEXTS, VECTORS, ragged_text, vector_of, vectors_of

if TYPE_CHECKING:
    from featpipe.store.snapshot import Snapshot


def append_vectors(writer: Writer, texts: list[str], name: str = "embeddings/a") -> int:
    return writer.table(name, VECTORS).append(
        {"keys": keys_of(texts), "vectors": vectors_of(texts)}
    )


def test_a_key_is_the_documented_hash() -> None:
    expected = hashlib.blake2b("合同/金额".encode(), digest_size=16, person=b"featpipe-unit-v1")
    assert key_of("合同/金额") == expected.digest()
    assert keys_of(["a", "合同/金额"])[1].tobytes() == expected.digest()
    assert len(key_of("lone \ud800 surrogate")) == 16
    assert keys_of([]).shape == (0, 16)


def test_rows_are_found_by_key_as_in_a_dict(path: Path) -> None:
    rng = np.random.default_rng(0)
    model: dict[str, None] = {}
    with Writer.open(path) as writer, Reader(path) as reader:
        for _ in range(60):
            texts = [f"text {rng.integers(4000)}" for _ in range(rng.integers(1, 200))]
            n_new = len(set(texts) - set(model))
            model.update(dict.fromkeys(texts))
            assert append_vectors(writer, texts) == n_new
            writer.commit()
            reader.refresh()
            table = reader.table("embeddings/a")
            assert table.n_rows == len(model)
        wanted = [*model, "never added"]
        vectors, is_there = table.look_up("vectors", keys_of(wanted))
        assert is_there.tolist() == [True] * len(model) + [False]
        assert np.array_equal(vectors[:-1], vectors_of(wanted[:-1]))
        assert not vectors[-1].any()
        for batch in (wanted, wanted[-5:]):
            rows = table.find(keys_of(batch))
            assert rows[-1] == -1
            assert np.array_equal(table.gather("vectors", rows[:-1]), vectors_of(batch[:-1]))
        assert table.get("vectors", key_of("never added")) is None
        assert np.array_equal(table.get("vectors", key_of(batch[2])), vector_of(batch[2]))
        assert [table.find_one(key_of(text)) for text in wanted] == table.find(
            keys_of(wanted)
        ).tolist()


def test_ragged_columns_give_back_what_they_were_given(path: Path) -> None:
    rng = np.random.default_rng(1)
    model = []
    with Writer.open(path) as writer:
        table = writer.table("documents", DOCUMENTS)
        for i in range(120):
            n = int(rng.integers(0, 400))
            row = {
                "text": "甲乙丙x"[i % 4] * n,
                "spans": rng.integers(0, 9999, (i % 7, 2)).astype(np.uint32),
                "weights": rng.standard_normal(i % 3).astype(np.float32),
                "n_pages": i,
                "mean": np.full(3, i / 2, np.float32),
            }
            model.append(row)
            table.append(
                {
                    "keys": keys_of([str(i)]),
                    "text": ragged_text([row["text"]]),
                    "spans": (row["spans"], [len(row["spans"])]),
                    "weights": (row["weights"], [len(row["weights"])]),
                    "n_pages": np.array([i], np.int32),
                    "mean": row["mean"][None],
                }
            )
            if i % 10 == 0:
                writer.commit()
    with Reader(path) as reader:
        found = reader.table("documents")
        assert found.n_rows == len(model)
        assert found.spec == DOCUMENTS
        for i, row in enumerate(model):
            assert found.ragged("text", i).tobytes().decode() == row["text"]
            assert np.array_equal(found.ragged("spans", i), row["spans"])
        for rows in ([5], [7, 8, 9], rng.integers(0, 120, 50).tolist(), []):
            for name in ("spans", "weights", "text"):
                values, lengths = found.ragged_many(name, rows)
                parts = [found.ragged(name, row) for row in rows]
                assert lengths.tolist() == [len(part) for part in parts]
                assert values.tobytes() == b"".join(part.tobytes() for part in parts)
        assert found.gather("n_pages", [3, 119]).tolist() == [3, 119]
        assert np.array_equal(found.gather("mean", range(120)), [row["mean"] for row in model])


def test_plain_h5py_reads_everything(path: Path) -> None:
    texts = [f"句子 {i}/甲" for i in range(500)]
    with Writer.open(path) as writer:
        append_vectors(writer, texts, "embeddings/sentence@1")
        writer.table("texts", TEXTS).append({"keys": keys_of(texts), "text": ragged_text(texts)})
        writer.table("runs", RUNS).append({"record": ragged_text(["{}", "{1}"])})
        writer.commit()
        with h5py.File(path) as file:
            assert file.attrs["format"] == b"featpipe"
            group = file["embeddings/sentence@1"]
            assert group.attrs["spec"] == b'{"model": "a"}'
            row = {key.tobytes(): i for i, key in enumerate(group["keys"][:])}[key_of(texts[77])]
            assert np.array_equal(group["vectors"][row], vector_of(texts[77]))
            assert np.array_equal(group["vectors"][:], vectors_of(texts))
            ends = file["texts/text_end"][:]
            data = file["texts/text"][:].tobytes()
            assert data[ends[76] : ends[77]].decode() == texts[77]
            assert file["runs/record"][:].tobytes() == b"{}{1}"
    with h5py.File(path) as file:
        assert len(file["embeddings/sentence@1/vectors"]) == 500


def test_a_writer_goes_on_where_the_last_one_stopped(path: Path) -> None:
    texts = [f"t{i}" for i in range(3000)]
    for start in range(0, 3000, 500):
        with Writer.open(path) as writer:
            assert append_vectors(writer, texts[max(0, start - 200) : start + 500]) == 500
            assert writer.recovery is None
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        assert table.find(keys_of(texts)).tolist() == list(range(3000))
        assert np.array_equal(table.column("vectors"), vectors_of(texts))


def test_what_is_not_committed_is_not_seen(path: Path) -> None:
    with Writer.open(path) as writer, Reader(path) as reader:
        append_vectors(writer, ["a"])
        reader.refresh()
        assert "embeddings/a" not in reader
        with pytest.raises(UnknownSpace):
            reader.table("embeddings/a")
        writer.commit()
        assert reader.refresh()
        assert not reader.refresh()
        append_vectors(writer, ["b"])
        assert not reader.refresh()
        assert reader.table("embeddings/a").find_one(key_of("b")) == -1


def test_tables_lie_at_any_depth_and_are_listed(path: Path) -> None:
    with Writer.open(path) as writer, Reader(path) as reader:
        names = ["a", "b/c", "b/d/e/f", "terms/x/vocabulary"]
        for name in names:
            writer.table(name, RUNS)
            writer.commit()
        reader.refresh()
        assert reader.tables() == names
        assert "b/d" not in reader
        for bad in ("b/d", "a/below", "", "b//x"):
            with pytest.raises(DictionaryError):
                writer.table(bad, RUNS)
        with pytest.raises(DictionaryError, match="other columns"):
            writer.table("a", TEXTS)
        assert writer.table("a", RUNS) is writer.table("/a/", RUNS)


def test_another_schema_is_refused_after_reopening_too(path: Path) -> None:
    with Writer.open(path) as writer:
        append_vectors(writer, ["a"])
    other = TableSpec(VECTORS.columns, attributes={"spec": "another model"})
    with Writer.open(path) as writer, pytest.raises(DictionaryError, match="another fingerprint"):
        writer.table("embeddings/a", other)


@pytest.mark.parametrize(
    "data",
    [
        {"keys": keys_of(["a"])},
        {"keys": keys_of(["a"]), "vectors": np.zeros((1, 8), np.float32)},
        {"keys": keys_of(["a"]), "vectors": np.zeros((1, 7), np.float16)},
        {"keys": keys_of(["a", "b"]), "vectors": np.zeros((1, 8), np.float16)},
        {"keys": np.zeros((1, 15), np.uint8), "vectors": np.zeros((1, 8), np.float16)},
        {"keys": keys_of(["a"]), "vectors": np.zeros((1, 8), np.float16), "more": [1]},
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(
    path: Path, data: dict[str, object]
) -> None:
    with Writer.open(path) as writer:
        table = writer.table("t", VECTORS)
        with pytest.raises(DictionaryError):
            table.append(data)
        assert table.n_rows == 0


def test_schemas_that_cannot_be_are_refused() -> None:
    for columns in [
        (Column("keys", "f4"),),
        (Column("a", "f4"), Column("a", "f4")),
        (Ragged("a", "f4"), Column("a_end", "u8")),
    ]:
        with pytest.raises(DictionaryError):
            TableSpec(columns)
    for name, dtype, shape in [
        ("a/b", "f4", ()),
        ("a", "S3", ()),
        ("a", "f4", (0,)),
        ("", "f4", ()),
    ]:
        with pytest.raises(DictionaryError):
            Column(name, dtype, shape)
    assert pickle.loads(pickle.dumps(DOCUMENTS)) == DOCUMENTS  # noqa: S301 - our own bytes
    assert TableSpec.from_json(DOCUMENTS.to_json(), {}) == DOCUMENTS


def test_one_writer_at_a_time_and_readers_beside_it(path: Path) -> None:
    with Writer.open(path) as writer:
        append_vectors(writer, ["a"])
        writer.commit()
        with pytest.raises(DictionaryLocked, match=f"process {os.getpid()} on "):
            Writer.open(path)
        with Reader(path):
            pass  # closing a handle of the file must not give up the lock
        other = f"from featpipe.store import Writer; Writer.open({str(path)!r})"
        done = subprocess.run(
            [sys.executable, "-c", other], capture_output=True, text=True, check=False
        )
        assert "DictionaryLocked" in done.stderr
        with pytest.raises(OSError, match="lock"):
            h5py.File(path, "r+", locking=True)
        with h5py.File(path, "r", locking=True) as file:
            assert len(file["embeddings/a/keys"]) == 1
    with h5py.File(path, "r+", locking=True), pytest.raises(DictionaryLocked):
        Writer.open(path)


def test_a_reader_travels_by_its_path(path: Path) -> None:
    with Writer.open(path) as writer:
        append_vectors(writer, ["a"])
    with Reader(path) as reader, pickle.loads(pickle.dumps(reader)) as other:  # noqa: S301 - ours
        assert other.table("embeddings/a").find_one(key_of("a")) == 0


@pytest.mark.forks
def test_a_forked_child_goes_on_reading(path: Path) -> None:
    with Writer.open(path) as writer, Reader(path) as reader:
        append_vectors(writer, ["a"])
        writer.commit()
        reader.refresh()
        table = reader.table("embeddings/a")
        append_vectors(writer, ["b"])
        writer.commit()
        child = os.fork()
        if not child:
            reader.refresh()
            os._exit(table.find_one(key_of("b")) + 40)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 41


def test_views_outlive_their_reader(path: Path) -> None:
    with Writer.open(path) as writer:
        append_vectors(writer, ["a", "b"])
    with Reader(path) as reader:
        column = reader.table("embeddings/a").column("vectors")
    assert np.array_equal(column, vectors_of(["a", "b"]))
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 0
    with pytest.raises(DictionaryError, match="closed"):
        reader.table("embeddings/a").column("vectors")


def test_a_replaced_file_is_opened_anew_and_a_truncated_one_refused(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.h5"
    for target, texts in ((path, ["a"]), (other, ["b", "c"])):
        with Writer.open(target) as writer:
            append_vectors(writer, texts)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        other.replace(path)
        assert table.find_one(key_of("a")) == 0  # still the file that was opened
        assert reader.refresh()
        with pytest.raises(DictionaryChanged, match="was replaced"):
            table.find_one(key_of("a"))
        with pytest.raises(DictionaryChanged, match="was replaced"):
            table.gather("vectors", [0])
        table = reader.table("embeddings/a")
        assert table.find_one(key_of("a")) == -1
        assert table.find_one(key_of("c")) == 1
        os.truncate(path, 5000)
        with pytest.raises(DictionaryChanged, match="truncated"):
            table.column("vectors")
        with pytest.raises(DictionaryChanged):
            reader.refresh()
        path.unlink()
        with pytest.raises(DictionaryChanged, match="gone"):
            reader.refresh()


@pytest.mark.parametrize("kind", ["another", "a twin", "earlier", "later"])
def test_a_file_written_over_in_place_is_opened_anew(path: Path, tmp_path: Path, kind: str) -> None:
    """As cp does it: the same file, emptied and filled. No vector is one of the other file's."""
    copy = tmp_path / "copy.h5"
    before, after = write_file_and_copy(path, copy, kind)
    with Reader(path) as reader:
        assert (reader.table("embeddings/a").find(keys_of(before)) >= 0).all()
        assert not reader.refresh()
        with path.open("r+b") as file:
            file.truncate(0)
            file.write(copy.read_bytes()[:5000])
            file.flush()
            for _ in range(2):
                with pytest.raises(DictionaryChanged, match=str(path)):
                    reader.refresh()
            file.write(copy.read_bytes()[5000:])
        assert reader.refresh()
        assert not reader.refresh()
        table = reader.table("embeddings/a")
        assert table.n_rows == len(after)
        found, is_there = table.look_up("vectors", keys_of([*after, "not there"]))
        assert is_there.tolist() == [True] * len(after) + [False]
        assert np.array_equal(found[:-1], vectors_of(after))


def write_file_and_copy(path: Path, copy: Path, kind: str) -> tuple[list[str], list[str]]:
    """The texts of each; a twin has the places of the other, with other texts there."""
    mine, many = ["a", "b", "c"], [f"{n}" for n in range(5000)]
    with Writer.open(path) as writer:
        append_vectors(writer, mine)
    if kind in {"another", "a twin"}:
        other = ["c", "a", "d", *(many if kind == "another" else [])]
        with Writer.open(copy) as writer:
            append_vectors(writer, other)
        return mine, other
    shutil.copyfile(path, copy)
    with Writer.open(path if kind == "earlier" else copy) as writer:
        append_vectors(writer, many)
    return ([*mine, *many], mine) if kind == "earlier" else (mine, [*mine, *many])


def test_rows_of_a_file_that_was_written_over_are_void_or_refused(
    path: Path, tmp_path: Path
) -> None:
    twin = tmp_path / "twin.h5"
    for target, texts in ((path, ["a", "b"]), (twin, ["b", "a"])):
        with Writer.open(target) as writer:
            append_vectors(writer, texts)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        row = table.find_one(key_of("a"))
        shutil.copyfile(twin, path)
        with pytest.raises(DictionaryError):
            table.gather("vectors", [row])
        assert reader.refresh()
        with pytest.raises(DictionaryChanged, match="row numbers of table embeddings/a are void"):
            table.gather("vectors", [row])


def test_a_file_that_is_copied_to_the_path_is_opened_once_it_is_whole(
    path: Path, tmp_path: Path
) -> None:
    """The file that was there goes on being read; it was read for ever."""
    other = tmp_path / "other.h5"
    for target, texts in ((path, ["a"]), (other, ["b"])):
        with Writer.open(target) as writer:
            append_vectors(writer, texts)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        path.unlink()
        for n_bytes in (0, 5000):
            path.write_bytes(other.read_bytes()[:n_bytes])
            with pytest.raises(DictionaryChanged, match="was replaced, and is not a whole"):
                reader.refresh()
            assert table.find_one(key_of("a")) == 0
        shutil.copyfile(other, path)
        assert reader.refresh()
        assert reader.table("embeddings/a").find_one(key_of("b")) == 0


def test_a_look_up_beside_the_refresh_of_another_thread_is_in_no_other_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place of the index is that of the old file; the text, which both have, was not found."""
    other = tmp_path / "other.h5"
    for target, texts in ((path, ["a", "b"]), (other, [f"{n}" for n in range(5000)] + ["a"])):
        with Writer.open(target) as writer:
            append_vectors(writer, texts)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        checked = TableReader._checked

        def refreshed_since(self: TableReader) -> Snapshot:
            now = checked(self)
            monkeypatch.undo()
            other.replace(path)
            assert reader.refresh()
            return now

        monkeypatch.setattr(TableReader, "_checked", refreshed_since)
        with pytest.raises(DictionaryChanged, match="was replaced"):
            table.find(keys_of(["a"]))
        assert reader.table("embeddings/a").find(keys_of(["a"])) == 5000


def test_a_closed_reader_says_so_and_stays_closed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    for target in (path, other):
        with Writer.open(target) as writer:
            append_vectors(writer, ["a"])
            append_vectors(writer, ["a"], "embeddings/not asked for before")
    reader = Reader(path)
    table = reader.table("embeddings/a")
    reader.close()
    for use in (
        reader.refresh,
        lambda: table.find_one(key_of("a")),
        lambda: reader.table("embeddings/not asked for before"),
    ):
        with pytest.raises(DictionaryError, match="is closed"):
            use()
    other.replace(path)
    with pytest.raises(DictionaryError, match="is closed"):
        reader.refresh()
    assert reader.descriptor == -1


def test_rows_that_are_not_there_are_refused(path: Path) -> None:
    with Writer.open(path) as writer:
        append_vectors(writer, ["a"])
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        for rows in ([1], [-1], [0.5], [[0]]):
            with pytest.raises(DictionaryError):
                table.gather("vectors", rows)
        with pytest.raises(DictionaryError):
            table.column("nothing")
        with pytest.raises(DictionaryError):
            table.ragged("vectors", 0)


def test_files_that_are_not_ours_are_refused(path: Path, tmp_path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["word_emb/a"] = [1.0]
    empty, text = tmp_path / "empty", tmp_path / "text"
    empty.touch()
    text.write_text("hello " * 500)
    for foreign in (path, empty, text):
        with pytest.raises(UnreadableDictionary):
            Reader(foreign)
        with pytest.raises(UnreadableDictionary):
            Writer.open(foreign)
    with pytest.raises(UnreadableDictionary):
        Reader(tmp_path / "absent")


def test_the_store_starts_without_torch_and_h5py() -> None:
    code = "import sys, featpipe.store; print({'torch', 'h5py', 'jieba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_table_is_readable_after_every_length_it_passes(path: Path) -> None:
    """Chunks are replaced by larger ones on the way, with the same number of them or another."""
    texts = [f"t{i}" for i in range(1200)]
    with Writer.open(path) as writer, Reader(path) as reader:
        for stop in (1, 2, 40, 300, 512, 513, 600, 1200):
            append_vectors(writer, texts[:stop])
            writer.commit()
            reader.refresh()
            assert np.array_equal(
                reader.table("embeddings/a").column("vectors"), vectors_of(texts[:stop])
            )
            with h5py.File(path) as file:
                assert np.array_equal(file["embeddings/a/vectors"], vectors_of(texts[:stop]))


def test_a_cold_gather_gives_the_same_rows(path: Path) -> None:
    texts = [f"t{i}" for i in range(3000)]
    with Writer.open(path) as writer:
        append_vectors(writer, texts)
    rows = np.random.default_rng(0).integers(0, 3000, 500)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        cold = table.gather("vectors", rows, is_cold=True)
        assert np.array_equal(cold, table.gather("vectors", rows))
        assert table.gather("vectors", [], is_cold=True).shape == (0, 8)


@pytest.mark.forks
def test_a_forked_child_does_not_give_its_parents_lock_away(path: Path) -> None:
    writer = Writer.open(path)
    child = os.fork()
    if not child:
        refused = False
        try:
            writer.table("t", VECTORS)
        except DictionaryError:
            refused = True
        writer.abandon()
        os._exit(0 if refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(DictionaryLocked):
        Writer.open(path)
    writer.close()


def test_a_forgotten_writer_gives_the_file_up(path: Path) -> None:
    writer = Writer.open(path)
    append_vectors(writer, ["a"])
    writer.commit()
    del writer
    gc.collect()
    with Writer.open(path) as writer:
        assert writer.previous is not None
        assert writer.table("embeddings/a", VECTORS).n_rows == 1
