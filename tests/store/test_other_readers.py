"""Independent HDF5 readers find the written rows in a dictionary."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

from featpipe.store import Writer
from tests.store.other_readers import H5DUMP, check_h5dump, check_pyfive
from tests.store.samples import ragged_text
from tests.store.test_released_layouts import TEXTS, write_fixture


@pytest.fixture
def written(path: Path) -> Path:
    with Writer.open(path) as writer:
        write_fixture(writer)
    return path


def test_h5py_reads_every_column(written: Path) -> None:
    with h5py.File(written) as file:
        for dtype in ("float16", "float32", "bfloat16"):
            vectors = file[f"embeddings/sentence@{dtype}/vectors"]
            assert vectors[:, 2].tolist() == list(range(len(TEXTS)))
            assert vectors.chunks is not None
            assert vectors.compression is None
        data, lengths = ragged_text(TEXTS)
        assert file["documents/text"][:].tobytes() == data.tobytes()
        assert np.array_equal(file["documents/text_end"], np.cumsum(lengths))
        assert file["documents"].attrs["note"].decode() == "文档"


def test_pyfive_reads_every_column(written: Path) -> None:
    check_pyfive(written)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyfive

        with pyfive.File(str(written)) as file:
            vectors = file["embeddings/sentence@float16/vectors"][:]
            assert vectors[:, 0].tolist() == list(range(len(TEXTS)))


def test_pytables_reads_every_column(written: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = pytest.importorskip("tables")
        with tables.open_file(str(written)) as file:
            node = file.get_node("/embeddings/sentence@float32/vectors")
            assert node[:][:, 0].tolist() == list(range(len(TEXTS)))


@pytest.mark.skipif(H5DUMP is None, reason="hdf5-tools are not installed")
def test_h5dump_reads_every_value(written: Path) -> None:
    check_h5dump(written)
    command = [
        "h5dump",
        "-d",
        "/embeddings/sentence@bfloat16/vectors[149,0;1,1;1,4;1,1]",
        str(written),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "(149,0): 149, 149, 149, 149" in done.stdout


def test_h5py_may_add_to_a_closed_dictionary_and_we_go_on(written: Path) -> None:
    with h5py.File(written, "r+") as file:
        for i in range(20):
            file[f"embeddings/other{i}"] = np.arange(i)
    with Writer.open(written) as writer:
        write_fixture(writer)
    with h5py.File(written) as file:
        assert len(file["embeddings"]) == 23
        assert file["embeddings/other19"][:].tolist() == list(range(19))
