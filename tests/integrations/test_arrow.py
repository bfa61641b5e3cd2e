"""Arrow tables, Parquet files and Hugging Face datasets of a cache, read by their own readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from known_texts import KNOWN

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow.parquet as pq

from featpipe import Cache
from featpipe.errors import UsageError
from featpipe.integrations import arrow


@pytest.mark.parametrize("level", [None, "sentence"])
def test_a_parquet_file_holds_every_text_beside_its_vector(
    filled: Path, tmp_path: Path, level: str | None
) -> None:
    with Cache.open(filled) as cache:
        dictionary = cache.dictionary(level=level)
        n = arrow.write_units(dictionary, tmp_path / "units.parquet")
        texts = list(dictionary.texts())
        stored, _ = dictionary.lookup(texts)
        name = dictionary.name
    table = pq.read_table(tmp_path / "units.parquet")
    assert table.num_rows == n == len(texts)
    assert table.column("text").to_pylist() == texts
    assert table.schema.metadata[b"featpipe.space"].decode() == name
    vectors = np.array(table.column("vector").to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, np.asarray(stored, np.float32))
    if level == "sentence":
        assert set(KNOWN) <= set(texts)


def test_documents_stand_in_a_parquet_file(filled: Path, tmp_path: Path) -> None:
    with Cache.open(filled) as cache:
        assert arrow.write_documents(cache, tmp_path / "documents.parquet") == 2
        with pytest.raises(UsageError, match="cannot be written"):
            arrow.write_documents(cache, tmp_path / "none" / "documents.parquet")
    rows = pq.read_table(tmp_path / "documents.parquet").to_pylist()
    assert [row["id"] for row in rows] == ["docs/a.txt", "docs/b.txt"]
    assert rows[0]["text"] == "\n".join(KNOWN[:2])
    assert rows[0]["entities"] == []


def test_datasets_maps_filters_and_saves(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    pytest.importorskip("datasets", reason="datasets is not installed")
    from datasets import load_from_disk

    with Cache.open(filled) as cache:
        units = arrow.unit_dataset(cache.dictionary(level="sentence"))
        documents = arrow.document_dataset(cache)
        stored = np.asarray(cache.dictionary()[KNOWN[1]], np.float32)
    assert documents["id"][:] == ["docs/a.txt", "docs/b.txt"]
    found = units.filter(lambda row: row["text"] == KNOWN[1])
    found.save_to_disk(tmp_path / "saved")
    row = load_from_disk(tmp_path / "saved").with_format("numpy")[0]
    np.testing.assert_array_equal(np.asarray(row["vector"], np.float32), stored)
