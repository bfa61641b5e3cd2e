"""Commands that handle a cache as a whole: what they print, and what they leave."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

from featpipe.cache import tables
from featpipe.cache.cache import Cache
from featpipe.cache.texts import Texts
from featpipe.cli.main import featpipe
from featpipe.errors import DamagedRows, DictionaryError, UnreadableDictionary, UsageError
from featpipe.store import Reader, Writer, key_of, keys_of

SPACE = "embeddings/m@0123456789ab"


def make_cache(path: Path, texts: list[str], *, shift: float = 0.0) -> Path:
    """A cache with one space; the vector of a text is made of its length."""
    spec = tables.vectors_spec({"feature": "embedding"}, "0123456789ab", 4, "float32")
    with Writer.open(path) as writer:
        vectors = np.array([[len(t), 1, 2, shift] for t in texts], np.float32)
        writer.table(SPACE, spec).append({"keys": keys_of(texts), "vectors": vectors})
        writer.table(tables.TEXTS, tables.texts_spec()).append(
            {"keys": keys_of(texts), "text": Texts.from_strings(texts).ragged}
        )
        writer.commit()
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


def test_a_whole_cache_verifies(tmp_path: Path) -> None:
    done = run("verify", make_cache(tmp_path / "a.h5", ["合同", "金额"]), "--deep")
    assert done.exit_code == 0, done.output
    assert f"{SPACE}: 2 rows, good" in done.output


def test_a_flipped_bit_is_found_and_compacted_away(tmp_path: Path) -> None:
    path = make_cache(tmp_path / "a.h5", ["合同", "金额", "甲方名称"])
    with h5py.File(path, "r") as plain:
        vectors = plain[f"{SPACE}/vectors"]
        at = vectors.id.get_chunk_info(0).byte_offset + vectors.shape[1] * 4
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    found = run("verify", path, "--deep")
    assert found.exit_code == 1
    assert "1 damaged, first row 1" in found.output
    assert run("compact", path).exit_code == 0
    assert run("verify", path, "--deep").exit_code == 0
    with Reader(path) as reader:
        assert reader.table(SPACE).n_rows == 2
        assert reader.table(SPACE).find_one(key_of("金额")) == -1


def test_merged_caches_hold_the_union(tmp_path: Path) -> None:
    make_cache(tmp_path / "a.h5", ["合同", "金额"])
    make_cache(tmp_path / "b.h5", ["金额", "甲方"])
    done = run("merge", tmp_path / "a.h5", tmp_path / "b.h5", "-o", tmp_path / "c.h5")
    assert done.exit_code == 0, done.output
    with Reader(tmp_path / "c.h5") as reader:
        assert reader.table(SPACE).n_rows == 3


def test_conflicting_bytes_for_one_key_are_reported(tmp_path: Path) -> None:
    make_cache(tmp_path / "a.h5", ["合同"])
    make_cache(tmp_path / "b.h5", ["合同"], shift=9.0)
    done = run("merge", tmp_path / "a.h5", tmp_path / "b.h5", "-o", tmp_path / "c.h5")
    assert done.exit_code == 1
    assert key_of("合同").hex() in done.output


def test_merging_over_a_file_is_refused(tmp_path: Path) -> None:
    path = make_cache(tmp_path / "a.h5", ["合同"])
    done = run("merge", path, "-o", path)
    assert isinstance(done.exception, DictionaryError)


def test_an_old_file_becomes_a_space_of_its_own(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "old.hdf5", "x") as old:
        old["word_emb/合同"] = np.arange(4, dtype=np.float32)
        old["word_emb/甲方/乙方"] = np.ones(4, np.float32)
    done = run("import", tmp_path / "old.hdf5", "--cache", tmp_path / "c.h5")
    assert done.exit_code == 0, done.output
    with Reader(tmp_path / "c.h5") as reader:
        (name,) = [n for n in reader.tables() if n.startswith("embeddings/old@")]
        table = reader.table(name)
        row = table.find_one(key_of("甲方/乙方"))
        assert table.gather("vectors", [row])[0].tolist() == [1, 1, 1, 1]


def test_a_file_without_the_group_is_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "old.hdf5", "x") as old:
        old["data"] = [1]
    done = run("import", tmp_path / "old.hdf5", "--cache", tmp_path / "c.h5")
    assert isinstance(done.exception, UnreadableDictionary)
    assert "word_emb" in str(done.exception)


def test_exported_columns_are_plain_numpy(tmp_path: Path) -> None:
    path = make_cache(tmp_path / "a.h5", ["合同", "金额"])
    done = run("export", path, tmp_path / "out", "--table", SPACE)
    assert done.exit_code == 0, done.output
    vectors = np.load(tmp_path / "out" / SPACE / "vectors.npy")
    assert vectors.tolist() == [[2, 1, 2, 0], [2, 1, 2, 0]]


@pytest.mark.parametrize("command", ["verify", "compact", "export"])
def test_a_missing_file_is_named(tmp_path: Path, command: str) -> None:
    extra = [tmp_path / "out"] if command == "export" else []
    done = run(command, tmp_path / "absent.h5", *extra)
    assert isinstance(done.exception, UnreadableDictionary)
    assert "absent.h5 cannot be opened: No such file or directory" in str(done.exception)
    assert "DAMAGED" not in done.output


def test_vectors_that_are_no_numbers_are_left_out_and_named(tmp_path: Path) -> None:
    """NaN is nearest to everything, or to nothing, depending on the sort."""
    good = np.ones(4, np.float32)
    with h5py.File(tmp_path / "old.hdf5", "x") as old:
        old["word_emb/合同"] = good
        old["word_emb/空"] = np.array([1, np.nan, 1, 1], np.float32)
        old["word_emb/无穷"] = np.array([1, np.inf, 1, 1], np.float32)
        old["word_emb/太大"] = np.array([1, 1e300, 1, 1], np.float64)
        old["word_emb/零"] = np.zeros(4, np.float32)
    done = run("import", tmp_path / "old.hdf5", "--cache", tmp_path / "c.h5")
    assert done.exit_code == 1, done.output
    assert done.output.count("太大") == 1
    assert "2 skipped, it holds NaN or infinity: " in done.output
    assert "1 skipped, it is too large for float32: '太大'" in done.output
    assert "2 rows into" in done.output
    assert "1 of them all zeros" in done.output
    with Reader(tmp_path / "c.h5") as reader:
        (name,) = [n for n in reader.tables() if n.startswith("embeddings/old@")]
        found = reader.table(name).find(keys_of(["合同", "空", "无穷", "太大", "零"]))
    assert (found >= 0).tolist() == [True, False, False, False, True]


def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "old.hdf5", "x") as old:
        old.create_group("word_emb").create_dataset(b"\xff\xfe", data=np.ones(4, np.float32))
    done = run("import", tmp_path / "old.hdf5", "--cache", tmp_path / "c.h5")
    assert isinstance(done.exception, UnreadableDictionary)
    assert r"not UTF-8: b'\xff\xfe'" in str(done.exception)


def test_a_wider_type_that_comes_late_is_not_rounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("featpipe.store.import_vectors._BATCH", 1)
    with h5py.File(tmp_path / "old.hdf5", "x", track_order=True) as old:
        old["word_emb/a"] = np.ones(4, np.float16)
        old["word_emb/b"] = np.full(4, 1 / 3, np.float32)
    done = run("import", tmp_path / "old.hdf5", "--cache", tmp_path / "c.h5")
    assert done.exit_code == 1
    assert "it is float32, and those before it are float16" in done.output


def test_a_flipped_bit_is_named_and_repaired_away(tmp_path: Path) -> None:
    path = make_cache(tmp_path / "a.h5", ["合同", "金额", "甲方名称"])
    assert run("repair", path).output == f"{path}: good, nothing to repair\n"
    with h5py.File(path, "r") as plain:
        at = plain[f"{SPACE}/vectors"].id.get_chunk_info(0).byte_offset
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with Cache.open(path) as cache, pytest.raises(DamagedRows) as caught:
        cache.dictionary("m")["合同"]
    assert caught.value.hint == f"featpipe repair {path}"
    done = run("repair", path)
    assert done.exit_code == 1, "a row was lost"
    assert f"{SPACE}: 2 rows kept, 1 damaged dropped" in done.output
    assert f"{path}.damaged" in done.output
    assert run("verify", path, "--deep").exit_code == 0
    make_cache(path, ["合同", "金额", "甲方名称"])
    with Reader(path) as reader:
        assert reader.table(SPACE).n_rows == 3


@pytest.mark.parametrize("command", [["verify"], ["repair"], ["compact"], ["backup", "copy.h5"]])
def test_commands_on_whole_files_refuse_an_object_store(command: list[str]) -> None:
    with pytest.raises(UsageError, match=r"s3://bucket/corpus\.fp is in an object store"):
        featpipe.main([command[0], "s3://bucket/corpus.fp", *command[1:]], standalone_mode=False)
