"""Verify, compact, merge, export, import and inspect: whole files at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from flipped_bits import damage, flip, offset_of

from featpipe.errors import DictionaryError, DictionaryLocked, MissingExtra, UnreadableDictionary
from featpipe.store import Reader, TableSpec, Writer, key_of, keys_of
from featpipe.store.export import Export, export_npy, export_parquet
from featpipe.store.import_vectors import import_vectors
from featpipe.store.rewrite import compact_dictionary, merge_dictionaries
from featpipe.store.schema import CHECKS
from featpipe.store.table_reader import TableReader
from featpipe.store.verify import verify_dictionary
from tests.store.samples import DOCUMENTS, RUNS, TEXTS, VECTORS, ragged_text, vectors_of


def fill(path: Path, texts: list[str], *, n_commits: int = 20) -> None:
    with Writer.open(path) as writer:
        for part in np.array_split(np.arange(len(texts)), n_commits):
            some = [texts[i] for i in part]
            keys = keys_of(some)
            vectors = {"keys": keys, "vectors": vectors_of(some)}
            writer.table("embeddings/a", VECTORS).append(vectors)
            writer.table("texts", TEXTS).append({"keys": keys, "text": ragged_text(some)})
            writer.table("documents", DOCUMENTS).append(
                {
                    "keys": keys[:1],
                    "text": ragged_text(some[:1]),
                    "spans": (np.ones((2, 2), np.uint32), [2][: len(some)]),
                    "weights": (np.zeros(0, np.float32), [0]),
                    "n_pages": np.array([3], np.int32),
                    "mean": np.full((1, 3), 1.5, np.float32),
                }
            )
            writer.table("runs", RUNS).append({"record": ragged_text(["{}"])})
            writer.commit()


def content(path: Path) -> dict[str, dict[bytes, bytes]]:
    """Every keyed row's bytes, by table and key."""
    found: dict[str, dict[bytes, bytes]] = {}
    with Reader(path) as reader:
        for name in reader.tables():
            table = reader.table(name)
            if not table.spec.keyed:
                continue
            rows = {}
            for row in range(table.n_rows):
                parts = [
                    table.ragged(c.name, row).tobytes()
                    if c.name in table.now.view.values
                    else table.gather_bits(c.name, [row]).tobytes()
                    for c in table.spec.columns
                ]
                rows[table.row("keys", row).tobytes()] = b"|".join(parts)
            found[name] = rows
    return found


TEXTS_A = [f"a{i}" for i in range(700)] + ["共有"]
TEXTS_B = [f"b{i}" for i in range(300)] + ["共有"]


def test_a_good_dictionary_is_said_to_be_good(path: Path) -> None:
    fill(path, TEXTS_A)
    for is_deep in (False, True):
        found = verify_dictionary(path, is_deep=is_deep)
        assert found.is_good, str(found)
        assert [table.name for table in found.tables] == [
            "documents",
            "embeddings/a",
            "runs",
            "texts",
        ]
        assert "701 rows, good" in str(found)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("embeddings/a", "vectors"),
        ("embeddings/a", CHECKS),
        ("texts", "text"),
        ("texts", "text_end"),
    ],
)
def test_a_flipped_bit_is_found_and_compacting_drops_its_row(
    path: Path, table: str, column: str
) -> None:
    fill(path, TEXTS_A)
    before = content(path)
    flip(path, offset_of(path, table, column, 5), 4)
    found = verify_dictionary(path, is_deep=True)
    bad = {t.name: t.damaged_rows for t in found.tables if t.damaged_rows}
    assert list(bad) == [table]
    assert 1 <= len(bad[table]) <= 2  # an offset belongs to the row and to the one after it
    assert found.tables[-1].n_savable + found.tables[1].n_savable == 1402 - len(bad[table])
    done = compact_dictionary(path)
    assert done.n_dropped == len(bad[table])
    assert verify_dictionary(path, is_deep=True).is_good
    after = content(path)
    for name, rows in before.items():
        dropped = set(rows) - set(after[name])
        assert len(dropped) == (len(bad[table]) if name == table else 0)
        assert all(after[name][key] == rows[key] for key in after[name])


def test_a_flipped_key_is_found(path: Path) -> None:
    fill(path, TEXTS_A)
    damage(path, "texts", "keys", 9)
    checked = {table.name: table for table in verify_dictionary(path, is_deep=True).tables}
    assert checked["texts"].damaged_rows == (9,)
    assert checked["texts"].unfound_rows == (9,)


def test_compacting_keeps_every_row_and_gives_space_back(path: Path) -> None:
    fill(path, TEXTS_A)
    fill(path, TEXTS_B)
    before = content(path)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        done = compact_dictionary(path)
        assert done.after_bytes < done.before_bytes
        assert done.n_rows == sum(map(len, before.values())) + 40
        assert len(table.column("keys")) == 1001  # the old file, until a refresh
        assert reader.refresh()
        table = reader.table("embeddings/a")
        assert table.n_rows == 1001
        assert table.find_one(key_of("共有")) == 700
    assert content(path) == before
    with h5py.File(path) as file:
        assert len(file["embeddings/a/vectors"]) == 1001
    assert not list(path.parent.glob(".*"))


def test_compacting_refuses_a_locked_file_and_foreign_objects(path: Path) -> None:
    fill(path, ["a", "b"], n_commits=1)
    with Writer.open(path), pytest.raises(DictionaryLocked):
        compact_dictionary(path)
    with h5py.File(path, "r+") as file:
        file["notes"] = [1, 2, 3]
    with pytest.raises(DictionaryError, match="notes"):
        compact_dictionary(path)
    fill(path, ["c"], n_commits=1)
    with h5py.File(path) as file:
        assert file["notes"][:].tolist() == [1, 2, 3]
        assert len(file["texts/checks"]) == 3


def test_merging_is_the_union(path: Path) -> None:
    a, b = path.with_name("a.h5"), path.with_name("b.h5")
    fill(a, TEXTS_A)
    fill(b, TEXTS_B)
    done = merge_dictionaries([a, b], path)
    assert not done.conflicts
    assert not done.unread
    assert done.n_doubled == 2  # one text, in two tables
    expected = {name: content(a)[name] | content(b)[name] for name in content(a)}
    assert content(path) == expected
    assert verify_dictionary(path, is_deep=True).is_good
    with pytest.raises(DictionaryError, match="exists"):
        merge_dictionaries([a, b], path)


def test_merging_reports_a_key_with_other_bytes_and_keeps_the_first(path: Path) -> None:
    a, b = path.with_name("a.h5"), path.with_name("b.h5")
    for target, value in ((a, 1.0), (b, 2.0)):
        with Writer.open(target) as writer:
            vectors = np.full((2, 8), value, np.float16)
            vectors[1] = 0
            table = writer.table("t", VECTORS)
            table.append({"keys": keys_of(["x", "y"]), "vectors": vectors})
            data = {"keys": keys_of(["x"]), "text": ragged_text([str(value)])}
            writer.table("texts", TEXTS).append(data)
    done = merge_dictionaries([a, b], path)
    assert [(c.table, c.key) for c in done.conflicts] == [
        ("t", key_of("x").hex()),
        ("texts", key_of("x").hex()),
    ]
    with Reader(path) as reader:
        assert reader.table("t").gather("vectors", [0])[0, 0] == 1.0


def test_merging_refuses_another_schema_and_leaves_nothing(path: Path) -> None:
    a, b = path.with_name("a.h5"), path.with_name("b.h5")
    for target, spec in ((a, VECTORS), (b, TableSpec(VECTORS.columns))):
        with Writer.open(target) as writer:
            writer.table("t", spec)
            writer.commit()
    with pytest.raises(DictionaryError, match="other columns"):
        merge_dictionaries([a, b], path)
    assert not path.exists()


def test_a_merge_that_is_killed_leaves_no_file_that_looks_whole(path: Path) -> None:
    a, b = path.with_name("a.h5"), path.with_name("b.h5")
    fill(a, TEXTS_A, n_commits=1)
    fill(b, TEXTS_B, n_commits=1)
    program = (
        "import os, signal, sys\n"
        "from featpipe.store.rewrite import merge_dictionaries\n"
        "end = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "merge_dictionaries(sys.argv[2:], sys.argv[1], complete=end)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, path, a, b], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not path.exists()
    (left,) = path.parent.glob(f".{path.name}.*")
    os.utime(left, (0, 0))  # as if it had been long ago: a younger one may be another process's
    merge_dictionaries([a, b], path)
    expected = {name: content(a)[name] | content(b)[name] for name in content(a)}
    assert content(path) == expected
    assert sorted(file.name for file in path.parent.iterdir()) == sorted(
        [a.name, b.name, path.name]
    )


def test_of_two_merges_into_one_name_the_second_leaves_the_first_ones_file(path: Path) -> None:
    a, b = path.with_name("a.h5"), path.with_name("b.h5")
    fill(a, TEXTS_A, n_commits=1)
    fill(b, TEXTS_B, n_commits=1)

    def merge_another(_: Writer) -> None:
        merge_dictionaries([b], path)

    with pytest.raises(DictionaryError, match="exists"):
        merge_dictionaries([a], path, complete=merge_another)
    assert content(path) == content(b)
    assert not list(path.parent.glob(f".{path.name}.*"))


def test_exported_arrays_and_lines_hold_every_row(path: Path, tmp_path: Path) -> None:
    fill(path, TEXTS_A)
    done = export_npy(path, tmp_path / "out")
    assert done.n_rows == {"documents": 20, "embeddings/a": 701, "runs": 20, "texts": 701}
    vectors = np.load(tmp_path / "out/embeddings/a/vectors.npy")
    assert np.array_equal(vectors, vectors_of(TEXTS_A))
    lines = (tmp_path / "out/texts/rows.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == TEXTS_A
    assert json.loads(lines[3])["key"] == key_of(TEXTS_A[3]).hex()
    ends = np.load(tmp_path / "out/texts/text_end.npy")
    data = np.load(tmp_path / "out/texts/text.npy").tobytes()
    assert data[ends[2] : ends[3]].decode() == TEXTS_A[3]
    with pytest.raises(DictionaryError, match="exists"):
        export_npy(path, tmp_path / "out")


#: An export that stands still in the middle.
STALLED = """
import sys
from featpipe.store import export
def stall(table, path):
    print(path.parent, flush=True)
    sys.stdin.read()
export._write_lines = stall
export.export_npy(*sys.argv[1:])
"""


def test_what_a_killed_export_leaves_is_removed_by_the_next(path: Path, tmp_path: Path) -> None:
    fill(path, TEXTS_A[:40])
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", STALLED, path, out],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        export_npy(path, out, tables=["texts"])
        assert left.is_dir(), "its export lives"
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert left.is_dir()
    export_npy(path, out, tables=["documents"])
    assert sorted(file.name for file in out.iterdir()) == ["documents", "texts"]


@pytest.mark.parametrize("export", [export_npy, export_parquet])
def test_an_export_that_is_stopped_leaves_nothing_that_looks_finished(
    export: Callable[..., Export], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    fill(path, TEXTS_A)
    out = tmp_path / "out"
    read = TableReader.ragged_many

    def stop_at_texts(table: TableReader, name: str, rows: np.ndarray) -> object:
        if table.name == "texts" and len(rows):  # the last table
            assert [file for file in out.iterdir() if file.name[0] != "."] == []
            raise KeyboardInterrupt
        return read(table, name, rows)

    with monkeypatch.context() as patch:
        patch.setattr(TableReader, "ragged_many", stop_at_texts)
        for already in (False, True):
            if already:
                out.mkdir()
            with pytest.raises(KeyboardInterrupt):
                export(path, out)
            assert out.exists() == already
            assert not already or list(out.iterdir()) == []
    files = export(path, out).files
    before = {file: file.read_bytes() for file in files}
    with pytest.raises(DictionaryError, match="exists already"):
        export(path, out, tables=["texts"])
    assert {file: file.read_bytes() for file in files} == before


def test_parquet_without_its_extra_says_what_to_install(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, TEXTS_A[:1], n_commits=1)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pyarrow"):
        export_parquet(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_exported_parquet_counts_the_damaged_rows_that_it_lacks(path: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    fill(path, TEXTS_A)
    damage(path, "embeddings/a", "vectors", 5)
    done = export_parquet(path, tmp_path / "out")
    assert done.n_damaged == 1
    assert str(done).endswith("; 1 damaged rows left out")
    n_rows = pq.read_table(tmp_path / "out/embeddings/a.parquet").num_rows
    assert n_rows == done.n_rows["embeddings/a"] == len(TEXTS_A) - 1


def test_exported_parquet_holds_every_row(path: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    fill(path, TEXTS_A)
    with Writer.open(path) as writer:
        writer.table("empty", DOCUMENTS)
        writer.commit()
    flip(path, offset_of(path, "texts", "text", 5), 4)  # the sixth byte is in the third text
    done = export_parquet(path, tmp_path / "out")
    assert done.n_rows["texts"] == len(TEXTS_A) - 1
    assert done.n_rows["empty"] == 0
    empty = pq.read_table(tmp_path / "out/empty.parquet")
    documents = pq.read_table(tmp_path / "out/documents.parquet")
    assert len(empty) == 0
    assert empty.schema == documents.schema
    assert documents["mean"].to_pylist()[0] == [1.5] * 3  # bfloat16, as the numbers it stands for
    assert documents["key"].to_pylist()[0] == key_of(TEXTS_A[0])
    table = pq.read_table(tmp_path / "out/texts.parquet")
    sound = [text for i, text in enumerate(TEXTS_A) if i != 2]
    assert [text.decode() for text in table["text"].to_pylist()] == sound
    vectors = pq.read_table(tmp_path / "out/embeddings/a.parquet")["vectors"].to_pylist()
    assert np.array_equal(np.array(vectors, np.float16), vectors_of(TEXTS_A))
    spans = documents["spans"].to_pylist()
    assert spans[0] == [[1, 1], [1, 1]]


def test_old_files_of_one_dataset_per_text_are_taken_over(path: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.h5"
    texts = ["合同", "甲/乙", "a/b/c", "x"]
    with h5py.File(old, "w") as file:
        for i, text in enumerate(texts):
            file[f"word_emb/{text}"] = np.full(4, i, np.float32)
        file["word_emb/odd"] = np.zeros(5, np.float32)
        file["word_emb/scalar"] = 3.0
        file["word_emb/away"] = h5py.ExternalLink("/etc/passwd", "/")
        file["word_emb/soft"] = h5py.SoftLink("/word_emb/x")
    done = import_vectors(old, path, table="embeddings/word@old", attributes={"spec": "old"})
    assert done.n_rows == 4
    assert sorted(text for text, _ in done.skipped) == ["odd", "scalar"]
    with Reader(path) as reader:
        table = reader.table("embeddings/word@old")
        rows = table.find(keys_of(texts))
        assert table.gather("vectors", rows)[:, 0].tolist() == [0, 1, 2, 3]
        words = reader.table("texts")
        row = words.find_one(key_of("甲/乙"))
        assert words.ragged("text", row).tobytes().decode() == "甲/乙"
    again = import_vectors(old, path, table="embeddings/word@old", attributes={"spec": "old"})
    assert (again.n_rows, again.n_known) == (0, 4)
    with pytest.raises(UnreadableDictionary, match="no group"):
        import_vectors(old, path, table="t", group="para_emb")
    with pytest.raises(UnreadableDictionary):
        import_vectors(tmp_path / "absent", path, table="t")
    with pytest.raises(UnreadableDictionary, match="no group"):
        import_vectors(old, tmp_path / "new.h5", table="t", group="para_emb")
    assert not (tmp_path / "new.h5").exists()
