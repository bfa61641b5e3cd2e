"""Dictionaries that earlier featpipes wrote are read, and written on, by this one."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from featpipe.store import Column, Ragged, Reader, TableSpec, Writer, keys_of
from featpipe.store.hdf5_format import FORMAT_VERSION
from featpipe.store.verify import verify_dictionary
from tests.store.samples import ragged_text

FIXTURES = Path(__file__).parents[2] / "data" / "dictionaries"
TEXTS = [f"第 {i} 条: 合同金额为人民币 {i} 万元。" for i in range(150)]

VECTORS = {
    dtype: TableSpec(
        (Column("vectors", dtype, (4,)),), attributes={"spec": f'{{"dtype": "{dtype}"}}'}
    )
    for dtype in ("float16", "float32", "bfloat16")
}
DOCUMENTS = TableSpec(
    (Ragged("text", "u1"), Ragged("spans", "u4", (2,)), Column("n_pages", "i8")),
    attributes={"note": "文档"},
)
RUNS = TableSpec((Ragged("record", "u1"),), keyed=False)


def write_fixture(writer: Writer) -> None:
    """Several commits, tables of every kind, chunks of two sizes."""
    for part in np.split(np.arange(len(TEXTS)), [1, 20, 90]):
        texts = [TEXTS[i] for i in part]
        keys = keys_of(texts)
        for dtype, spec in VECTORS.items():
            vectors = np.repeat(part[:, None], 4, 1).astype("f2" if dtype == "float16" else "f4")
            writer.table(f"embeddings/sentence@{dtype}", spec).append(
                {"keys": keys, "vectors": vectors}
            )
        spans = np.stack([part, part + 1], 1).astype(np.uint32)
        writer.table("documents", DOCUMENTS).append(
            {
                "keys": keys,
                "text": ragged_text(texts),
                "spans": (spans, [1] * len(part)),
                "n_pages": part.astype(np.int64),
            }
        )
        writer.table("runs", RUNS).append({"record": ragged_text([f'{{"n": {len(part)}}}'])})
        writer.commit()


def check_fixture(path: Path) -> None:
    with Reader(path) as reader:
        rows = np.arange(len(TEXTS))
        for dtype, spec in VECTORS.items():
            table = reader.table(f"embeddings/sentence@{dtype}")
            assert table.spec == spec
            assert np.array_equal(table.find(keys_of(TEXTS)), rows)
            assert np.array_equal(table.gather("vectors", rows)[:, 0], rows)
        documents = reader.table("documents")
        assert documents.attributes == {"note": "文档"}
        found = [documents.ragged("text", row).tobytes().decode() for row in rows]
        assert found == TEXTS
        assert documents.ragged("spans", 7).tolist() == [[7, 8]]
        assert documents.gather("n_pages", rows).tolist() == rows.tolist()
        assert reader.table("runs").ragged("record", 2).tobytes() == b'{"n": 70}'


def fixtures() -> list[Path]:
    return sorted(FIXTURES.glob("layout_*.h5"))


def test_there_is_a_fixture_of_every_layout() -> None:
    assert [path.name for path in fixtures()] == [
        f"layout_{version}.h5" for version in range(1, FORMAT_VERSION + 1)
    ]


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda path: path.name)
def test_a_released_layout_is_read_and_written_on(fixture: Path, path: Path) -> None:
    shutil.copy(fixture, path)
    check_fixture(path)
    assert verify_dictionary(path, is_deep=True).is_good
    with Writer.open(path) as writer:
        write_fixture(writer)  # every key is known
        keys = keys_of(["neu"])
        table = writer.table("embeddings/sentence@float16", VECTORS["float16"])
        assert table.append({"keys": keys, "vectors": np.ones((1, 4), np.float16)}) == 1
    check_fixture(path)
    with h5py.File(path) as file:
        assert len(file["embeddings/sentence@float16/vectors"]) == len(TEXTS) + 1
        assert file["embeddings/sentence@bfloat16/vectors"][3].tolist() == [3.0] * 4


def test_what_is_written_today_is_the_released_layout(path: Path) -> None:
    """The same objects of the same types: a change of them needs a new layout number."""
    with Writer.open(path) as writer:
        write_fixture(writer)
    check_fixture(path)
    with Reader(path) as new, Reader(fixtures()[-1]) as old:
        assert new.tables() == old.tables()
        assert set(new.root_attributes()) == set(old.root_attributes())
        for name in new.tables():
            left, right = new.table(name).now.view, old.table(name).now.view
            assert left.spec == right.spec
            assert list(left.headers) == list(right.headers)
            for column in left.headers:
                assert left.headers[column].datatype == right.headers[column].datatype
                assert left.headers[column].shape == right.headers[column].shape
