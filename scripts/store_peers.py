"""The stores that a dictionary is measured against, each driven through the same three calls.

``append(keys, vectors)`` is durable when it returns; ``look_up(keys)`` gives the matrix of those
vectors; ``look_up_one(key)`` one vector. Keys are (n, 16) uint8, or 16 bytes.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Protocol

import h5py
import lmdb
import numpy as np

from featpipe.store import Column, Reader, TableSpec, Writer
from featpipe.store.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Keys = NDArray[np.uint8]
    Vectors = NDArray[np.float16]


class Peer(Protocol):
    """A store of vectors by key in ``folder``."""

    name: str

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """Add rows, and return when they are durable."""

    def finish(self) -> None:
        """Close for writing, open for reading."""

    def look_up(self, keys: Keys) -> Vectors:
        """The vectors of keys that are there, in their order."""

    def look_up_one(self, key: bytes) -> Vectors:
        """One of them."""

    def close(self) -> None:
        """Give everything up."""

    def n_bytes(self) -> int:
        """What it occupies on disk."""


def occupied(path: Path) -> int:
    """Bytes on disk of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_blocks * 512 for file in files)


class TracingDisk(Disk):
    """Notes where the writer writes how much, and when it syncs."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []  #: (what, offset or size, bytes)

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        """Noted, then done."""
        self.calls.append(("write", offset, memoryview(data).nbytes))
        super().write(descriptor, offset, data)

    def start(self, descriptor: int, offset: int, size: int) -> None:
        """Noted, then done."""
        self.calls.append(("start", offset, size))
        super().start(descriptor, offset, size)

    def resize(self, descriptor: int, size: int) -> None:
        """Noted, then done."""
        self.calls.append(("resize", size, 0))
        super().resize(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Noted, then done."""
        self.calls.append(("sync", 0, 0))
        super().sync(descriptor)


class SameWrites:
    """No store: a bare file that gets the same writes and syncs as ours, and computes nothing."""

    name = "bare file, same writes and syncs"

    def __init__(self, folder: Path, disk: TracingDisk) -> None:
        self._trace = disk
        self._disk = Disk()
        self._bytes = memoryview(os.urandom(1 << 20))
        self._descriptor = os.open(folder / "same", os.O_RDWR | os.O_CREAT)

    def repeat(self) -> None:
        """What the writer did since the last time."""
        calls, self._trace.calls = self._trace.calls, []
        for what, at, size in calls:
            if what == "write":
                for start in range(0, size, len(self._bytes)):
                    part = self._bytes[: min(len(self._bytes), size - start)]
                    self._disk.write(self._descriptor, at + start, part)
            elif what == "start":
                self._disk.start(self._descriptor, at, size)
            elif what == "resize":
                self._disk.resize(self._descriptor, at)
            else:
                self._disk.sync(self._descriptor)

    def close(self) -> None:
        """The file."""
        os.close(self._descriptor)


class Dictionary:
    """Ours."""

    name = "featpipe"

    def __init__(self, folder: Path, dim: int) -> None:
        self.path = folder / "featpipe.h5"
        self.disk = TracingDisk()
        self._writer = Writer.open(self.path, disk=self.disk)
        self._table = self._writer.table("vectors", TableSpec((Column("vectors", "f2", (dim,)),)))

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """One batch, one commit."""
        self._table.append({"keys": keys, "vectors": vectors})
        self._writer.commit()

    def finish(self) -> None:
        """A reader instead of the writer."""
        self._writer.close()
        self._reader = Reader(self.path)
        self.table = self._reader.table("vectors")

    def look_up(self, keys: Keys) -> Vectors:
        """Find, then gather."""
        return self.table.gather("vectors", self.table.find(keys))

    def look_up_one(self, key: bytes) -> Vectors:
        """A view of the file."""
        found = self.table.get("vectors", key)
        if found is None:
            raise KeyError(key)
        return found

    def close(self) -> None:
        """The reader."""
        self._reader.close()

    def n_bytes(self) -> int:
        """With keys, checksums, index and what rewrites left behind."""
        return occupied(self.path)


class DatasetPerKey:
    """h5py, one dataset per key in a group: everyone's first version."""

    name = "h5py, dataset per key"

    def __init__(self, folder: Path, dim: int) -> None:
        self.dim = dim
        self.path = folder / "per_key.h5"
        self._file = h5py.File(self.path, "w")
        self.group = self._file.create_group("word_emb")

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """Flushed and synced per batch, or nothing is durable at all."""
        for key, vector in zip(keys, vectors, strict=True):
            self.group.create_dataset(key.tobytes().hex(), data=vector)
        self._file.flush()
        os.fsync(self._file.id.get_vfd_handle())

    def finish(self) -> None:
        """Open again for reading."""
        self._file.close()
        self._file = h5py.File(self.path, "r")
        self.group = self._file["word_emb"]

    def look_up(self, keys: Keys) -> Vectors:
        """One dataset after the other."""
        found = np.empty((len(keys), self.dim), np.float16)
        for i, key in enumerate(keys):
            self.group[key.tobytes().hex()].read_direct(found[i])
        return found

    def look_up_one(self, key: bytes) -> Vectors:
        """As the documentation shows it."""
        vector: Vectors = self.group[key.hex()][()]
        return vector

    def close(self) -> None:
        """The file."""
        self._file.close()

    def n_bytes(self) -> int:
        """The file."""
        return occupied(self.path)


class ChunkedMatrix:
    """h5py, one matrix in 1 MiB chunks and its keys beside it; rows found by sorted search."""

    name = "h5py, one matrix"

    def __init__(self, folder: Path, dim: int) -> None:
        self.path = folder / "matrix.h5"
        self._file = h5py.File(self.path, "w")
        rows = max(1, (1 << 20) // (2 * dim))
        self.vectors = self._file.create_dataset(
            "vectors", (0, dim), "f2", maxshape=(None, dim), chunks=(rows, dim)
        )
        self.keys = self._file.create_dataset(
            "keys", (0, 16), "u1", maxshape=(None, 16), chunks=(rows, 16)
        )

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """Grow, write, flush, sync."""
        n = len(self.keys)
        for dataset, rows in ((self.vectors, vectors), (self.keys, keys)):
            dataset.resize(n + len(keys), axis=0)
            dataset[n:] = rows
        self._file.flush()
        os.fsync(self._file.id.get_vfd_handle())

    def finish(self) -> None:
        """Open again, and sort the keys."""
        self._file.close()
        self._file = h5py.File(self.path, "r")
        self.vectors = self._file["vectors"]
        heads = self._file["keys"][:].view("<u8")[:, 0]
        self._order = np.argsort(heads)
        self._sorted = heads[self._order]

    def _rows(self, keys: Keys) -> NDArray[np.int64]:
        heads = np.ascontiguousarray(keys).view("<u8")[:, 0]
        return self._order[np.searchsorted(self._sorted, heads)]

    def look_up(self, keys: Keys) -> Vectors:
        """Fancy indexing, which wants ascending rows without repeats."""
        rows, inverse = np.unique(self._rows(keys), return_inverse=True)
        found: Vectors = self.vectors[rows][inverse]
        return found

    def look_up_one(self, key: bytes) -> Vectors:
        """One row."""
        row = self._rows(np.frombuffer(key, np.uint8)[None])[0]
        vector: Vectors = self.vectors[row]
        return vector

    def close(self) -> None:
        """The file."""
        self._file.close()

    def n_bytes(self) -> int:
        """The file."""
        return occupied(self.path)


class Lmdb:
    """LMDB with its defaults: a synced transaction per batch."""

    name = "LMDB"

    def __init__(self, folder: Path, dim: int) -> None:
        self.dim = dim
        self.path = folder / "lmdb"
        self._open = lmdb.open(str(self.path), map_size=8 << 30)

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """One transaction."""
        with self._open.begin(write=True) as transaction:
            for key, vector in zip(keys, vectors, strict=True):
                transaction.put(key.tobytes(), vector.tobytes())

    def finish(self) -> None:
        """Read-only, without its lock, which is the quickest."""
        self._open.close()
        self._open = lmdb.open(str(self.path), readonly=True, lock=False)
        self._reading = self._open.begin(buffers=True)

    def look_up(self, keys: Keys) -> Vectors:
        """One get per key into one matrix."""
        found = np.empty((len(keys), self.dim), np.float16)
        data = keys.tobytes()
        get = self._reading.get
        for i in range(len(keys)):
            found[i] = np.frombuffer(get(data[16 * i : 16 * i + 16]), np.float16)
        return found

    def look_up_one(self, key: bytes) -> Vectors:
        """A view of its map."""
        return np.frombuffer(self._reading.get(key), np.float16)

    def close(self) -> None:
        """The environment."""
        self._reading.abort()
        self._open.close()

    def n_bytes(self) -> int:
        """Its folder."""
        return occupied(self.path)


class Sqlite:
    """SQLite, blobs, write-ahead log, synchronous=FULL.

    A plain table with an index on the key: rows of a WITHOUT ROWID table lie in the tree of the
    keys, where blobs of this size make every insertion move pages.
    """

    name = "SQLite"

    def __init__(self, folder: Path, dim: int) -> None:
        self.dim = dim
        self.path = folder / "sqlite"
        self.path.mkdir()
        self._open = sqlite3.connect(self.path / "db", isolation_level=None)
        self._open.execute("pragma journal_mode=wal")
        self._open.execute("pragma synchronous=full")
        self._open.execute("create table v (key blob primary key, vector blob)")

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """One transaction."""
        rows = [(k.tobytes(), v.tobytes()) for k, v in zip(keys, vectors, strict=True)]
        self._open.execute("begin")
        self._open.executemany("insert into v values (?, ?)", rows)
        self._open.execute("commit")

    def finish(self) -> None:
        """The log goes into the file."""
        self._open.execute("pragma wal_checkpoint(truncate)")

    def look_up(self, keys: Keys) -> Vectors:
        """One query per key."""
        found = np.empty((len(keys), self.dim), np.float16)
        for i, key in enumerate(keys):
            found[i] = self.look_up_one(key.tobytes())
        return found

    def look_up_one(self, key: bytes) -> Vectors:
        """One query."""
        row = self._open.execute("select vector from v where key = ?", (key,)).fetchone()
        return np.frombuffer(row[0], np.float16)

    def close(self) -> None:
        """The connection."""
        self._open.close()

    def n_bytes(self) -> int:
        """Its folder."""
        return occupied(self.path)


class RawFile:
    """No store, but the limit of the disk: the vectors alone, one pwrite and one sync a batch.

    Read as a raw memory map it is the limit of reading, too. A file written in one go would lie in
    larger pieces of the page cache: its random rows are read a tenth faster, which is no merit of a
    layout.
    """

    name = "raw file (the limit)"

    def __init__(self, folder: Path, dim: int) -> None:
        self.path = folder / "limit"
        self.row_bytes = 2 * dim
        self._n_rows = 0
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT)

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """At the end."""
        os.pwrite(self._descriptor, vectors, self._n_rows * self.row_bytes)
        os.fdatasync(self._descriptor)
        self._n_rows += len(keys)

    def close(self) -> None:
        """The file stays, to be read as a raw memory map."""
        os.close(self._descriptor)


class FilePerKey:
    """One .npy-like file per key. Synced one by one, it would take all day: only written."""

    name = "file per key (not synced)"

    def __init__(self, folder: Path, dim: int) -> None:
        self.dim = dim
        self.path = folder / "files"
        self.path.mkdir()

    def append(self, keys: Keys, vectors: Vectors) -> None:
        """A file each."""
        for key, vector in zip(keys, vectors, strict=True):
            (self.path / key.tobytes().hex()).write_bytes(vector.tobytes())

    def finish(self) -> None:
        """Nothing to do."""

    def look_up(self, keys: Keys) -> Vectors:
        """A file each."""
        return np.array([self.look_up_one(key.tobytes()) for key in keys])

    def look_up_one(self, key: bytes) -> Vectors:
        """Open, read, close."""
        return np.frombuffer((self.path / key.hex()).read_bytes(), np.float16)

    def close(self) -> None:
        """Nothing to do."""

    def n_bytes(self) -> int:
        """All of them."""
        return occupied(self.path)


PEERS = (DatasetPerKey, ChunkedMatrix, Lmdb, Sqlite, FilePerKey)
