"""Folder caches for tests: stores that write into one, and files split into one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import FolderReader, Reader, Writer, keys_of
from featpipe.store.folder_layout import FolderLayout, shard_of
from featpipe.store.folder_reader import PART_TABLES
from featpipe.store.rewrite import rows_of
from tests.store.samples import VECTORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.store import TableSpec


def make_folder(path: Path, bits: int) -> FolderLayout:
    """A folder without files."""
    for name in ("parts", "shards"):
        (path / name).mkdir(parents=True)
    (path / "cache.json").write_text(json.dumps({"format": 1, "bits": bits}))
    return FolderLayout.read(path)


def split(source: Path, folder: Path, bits: int) -> FolderLayout:
    """The rows of one file as a folder: keyed tables by shard, others in one part."""
    layout = make_folder(folder, bits)
    with Reader(source) as reader:
        with Writer.open(layout.part_file("run", 0)) as writer:
            for name in PART_TABLES.intersection(reader.tables()):
                table = reader.table(name)
                writer.table(name, table.spec).append(rows_of(table, np.arange(table.n_rows)))
        tables = [reader.table(n) for n in reader.tables() if n not in PART_TABLES]
        shards = {t.name: shard_of(t.column("keys"), bits) for t in tables}
        for shard in range(layout.n_shards):
            with Writer.open(layout.shard_file(shard)) as writer:
                for table in tables:
                    rows = np.flatnonzero(shards[table.name] == shard)
                    writer.table(table.name, table.spec).append(rows_of(table, rows))
    return layout


class FolderStore:
    """As `tests.store.contract.DictionaryStore`; a file more for each shard when it is reopened."""

    def __init__(self, path: Path, spec: TableSpec = VECTORS) -> None:
        self.layout = make_folder(path, bits=2)
        self.spec = spec
        self.n_files = 0
        self.open()

    def open(self) -> None:
        files = [self.layout.shard_file(s, self.n_files) for s in range(self.layout.n_shards)]
        self.n_files += 1
        self.writers = [Writer.open(file) for file in files]
        for writer in self.writers:
            writer.table("t", self.spec)
        self.commit()
        self.reader = FolderReader(self.layout.path)

    def append(self, texts: list[str], vectors: NDArray[np.float16]) -> int:
        keys, n_new = keys_of(texts), 0
        is_new = self.reader.table("t").find(keys) < 0
        shards = shard_of(keys, self.layout.bits)
        for shard, writer in enumerate(self.writers):
            at = np.flatnonzero((shards == shard) & is_new)
            n_new += writer.table("t", self.spec).append({"keys": keys[at], "vectors": vectors[at]})
        return n_new

    def commit(self) -> None:
        for writer in self.writers:
            writer.commit()

    def find(self, texts: list[str]) -> list[bytes | None]:
        self.reader.refresh()
        table = self.reader.table("t")
        rows = table.find(keys_of(texts))
        vectors, is_there = table.look_up("vectors", keys_of(texts))
        assert is_there.tolist() == (rows >= 0).tolist()
        assert table.gather("vectors", rows[is_there]).tobytes() == vectors[is_there].tobytes()
        return [vectors[i].tobytes() if row >= 0 else None for i, row in enumerate(rows.tolist())]

    def n_rows(self) -> int:
        self.reader.refresh()
        return self.reader.table("t").n_rows

    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.reader.close()
        for writer in self.writers:
            writer.close()
