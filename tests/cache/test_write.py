"""The one way in: rows are durable when the writer says so, and a fault ends in its own error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from featpipe.cache.texts import Texts
from featpipe.cache.write import CacheWriter
from featpipe.errors import DictionaryLocked
from featpipe.store import Ragged, Reader, TableSpec, Writer

if TYPE_CHECKING:
    from featpipe.cache.tables import Rows

SPECS = {"log": TableSpec(columns=(Ragged("record", "uint8"),), keyed=False, attributes={})}


def records(*texts: str) -> dict[str, Rows]:
    return {"log": {"record": Texts.from_strings(list(texts)).ragged}}


def stored(path: Path) -> list[str]:
    with Reader(path) as reader:
        table = reader.table("log")
        return Texts(*table.ragged_many("record", np.arange(table.n_rows))).strings()


def test_rows_are_stored_in_the_order_of_the_calls_when_they_are_acknowledged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.h5"
    seen: list[list[str]] = []
    with CacheWriter.open(path, SPECS) as writer:
        writer.append({})
        writer.settle()
        assert path.exists()
        for number in range(5):
            writer.append(records(str(number)), then=lambda: seen.append(stored(path)))
            writer.settle(most_open=2)
            assert writer.n_open <= 2
    assert [found[number] for number, found in enumerate(seen)] == list("01234")
    assert stored(path) == list("01234")


def test_a_cache_that_another_process_writes_is_said_to_be_locked(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    with Writer.open(path):
        writer = CacheWriter.open(path, SPECS)
        with pytest.raises(DictionaryLocked, match=r"c\.h5"):
            _write(writer)
    _write(CacheWriter.open(path, SPECS))
    assert stored(path) == ["a"]


def _write(writer: CacheWriter) -> None:
    with writer:
        writer.append(records("a"))
