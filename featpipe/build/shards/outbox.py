"""The outbox of a part: its distinct unit texts with their levels, in the order of the shards.

It is made of the published part alone, so that both always belong together, whoever made them. An
index behind it tells where the rows of each shard are (`featpipe.build.shards.outbox_index`).
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.build.shards.outbox_index import OutboxIndex, append_index
from featpipe.cache import tables
from featpipe.cache.texts import LEVEL_BIT, Texts, Units, decode
from featpipe.settings import LEVELS
from featpipe.store import Column, Ragged, Reader, TableSpec, Writer
from featpipe.store.disk import writing
from featpipe.store.folder_layout import shard_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.build.publish import Publisher
    from featpipe.store import TableReader, TableWriter

_UNITS = "units"
_BOUNDS = "bounds"

#: Documents looked at together, and rows copied together: so many that no column is begun in chunks
#: smaller than those it has at the end. What was left of them would be fetched with every slice.
_DOCUMENTS = 256
_ROWS = 1 << 17


def write_outbox(part: Path, bits: int, path: Path, chosen: NDArray[np.int64] | None = None) -> int:
    """Write the units of a part to a new file; returns how many there are.

    ``path`` and a hidden file beside it must not exist, or are of an attempt that ended. ``chosen``
    are rows of documents, by default of all.

    Raises:
        WriteFailed: disk full ...

    """
    unsorted = path.with_name(f".{path.name}.unsorted")
    for file in (path, unsorted):
        file.unlink(missing_ok=True)
    try:
        levels = _collect(part, unsorted, chosen)
        with Reader(unsorted) as reader:
            return _write_sorted(reader, levels, bits, path)
    finally:
        unsorted.unlink(missing_ok=True)


class Slice(NamedTuple):
    """The rows of one shard in one outbox."""

    path: Path
    start: int
    stop: int

    def read(self, rows: NDArray[np.int64]) -> Texts:
        """Texts of some rows, numbered within the outbox."""
        with Reader(self.path) as reader:
            return Texts(*reader.table(_UNITS).ragged_many("text", rows))

    def keys(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Keys (n, 16) and level bits (n,)."""
        with Reader(self.path) as reader:
            table = reader.table(_UNITS)
            rows = np.arange(self.start, self.stop)
            return (
                np.asarray(table.gather("key", rows), np.uint8),
                np.asarray(table.gather("bits", rows), np.uint8),
            )


def fetch_slice(folder: Publisher, name: str, shard: int) -> Slice:
    """The rows of a shard in a published outbox; of an object store, not more than these."""

    def find_ranges(read_end: Callable[[int], bytes]) -> list[tuple[int, int]] | None:
        index = OutboxIndex.read(read_end)
        return None if index is None else index.ranges(shard)

    return read_slice(folder.fetch_some(name, f"{shard:x}", find_ranges), shard)


def read_slice(path: Path, shard: int) -> Slice:
    """The rows of a shard in an outbox."""
    with Reader(path) as reader:
        start, stop = json.loads(reader.table(_UNITS).attributes[_BOUNDS])[shard : shard + 2]
    return Slice(path, start, stop)


def count_by_shard(path: Path) -> NDArray[np.int64]:
    """Rows of each shard in an outbox."""
    with Reader(path) as reader:
        bounds = np.array(json.loads(reader.table(_UNITS).attributes[_BOUNDS]), np.int64)
        return bounds[1:] - bounds[:-1]


def _collect(part: Path, path: Path, chosen: NDArray[np.int64] | None) -> NDArray[np.uint8]:
    """Write each distinct unit text once; returns level bits by row."""
    levels = np.zeros(0, np.uint8)
    with Reader(part) as reader, Writer.open(path) as writer:
        texts = writer.table(tables.TEXTS, tables.texts_spec())
        if tables.DOCUMENTS not in reader:
            return levels
        documents = reader.table(tables.DOCUMENTS)
        every = np.arange(documents.n_rows) if chosen is None else chosen
        for start in range(0, len(every), _DOCUMENTS):
            rows = every[start : start + _DOCUMENTS]
            keys, bits = _append_new(documents, rows, texts)
            at = texts.find(keys)
            levels = np.concatenate([levels, np.zeros(texts.n_rows - len(levels), np.uint8)])
            np.bitwise_or.at(levels, at, bits)
            writer.commit()
    return levels


def _append_new(
    documents: TableReader, rows: NDArray[np.int64], texts: TableWriter
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Append the texts of units met first in these documents; all their keys and level bits."""
    whole = [decode(documents.ragged("text", row)) for row in rows.tolist()]
    keys, spans, owners, bits = [], [], [], []
    for level in LEVELS:
        found, lengths = documents.ragged_many(f"{level}_keys", rows)
        keys.append(np.asarray(found, np.uint8).reshape(-1, 16))
        spans.append(np.asarray(documents.ragged_many(f"{level}_spans", rows)[0]))
        owners.append(np.repeat(np.arange(len(rows)), lengths))
        bits.append(np.full(len(keys[-1]), LEVEL_BIT[level], np.uint8))
    every, span, owner = (np.concatenate(parts) for parts in (keys, spans, owners))
    _, first = np.unique(np.ascontiguousarray(every).view("V16").ravel(), return_index=True)
    first = np.sort(first)
    new = first[texts.find(every[first]) < 0]
    strings = [
        whole[number][start:stop]
        for number, (start, stop) in zip(owner[new].tolist(), span[new].tolist(), strict=True)
    ]
    texts.append({"keys": every[new], "text": Texts.from_strings(strings).ragged})
    return every, np.concatenate(bits)


def _write_sorted(reader: Reader, levels: NDArray[np.uint8], bits: int, path: Path) -> int:
    texts = reader.table(tables.TEXTS)
    keys = np.asarray(texts.gather("keys", np.arange(texts.n_rows)), np.uint8)
    shards = shard_of(keys, bits)
    order = np.argsort(shards, kind="stable")
    bounds = np.searchsorted(shards[order], np.arange((1 << bits) + 1))
    spec = TableSpec(
        columns=(Column("key", "uint8", (16,)), Column("bits", "uint8"), Ragged("text", "uint8")),
        keyed=False,
        attributes={_BOUNDS: json.dumps(bounds.tolist())},
    )
    with Writer.open(path) as writer:
        table = writer.table(_UNITS, spec)
        for start in range(0, len(order), _ROWS):
            rows = order[start : start + _ROWS]
            text = texts.ragged_many("text", rows)
            table.append({"key": keys[rows], "bits": levels[rows], "text": text})
    if len(order):
        with writing(path):
            append_index(path, _UNITS, bounds.tolist())
    return len(order)


class SliceUnits:
    """The distinct units of a shard over several slices.

    Memory: about 40 bytes for each row of the slices.
    """

    def __init__(self, slices: Sequence[Slice]) -> None:
        self._slices = [s for s in slices if s.stop > s.start]
        parts = [s.keys() for s in self._slices]
        keys = np.concatenate([k for k, _ in parts]) if parts else np.zeros((0, 16), np.uint8)
        whole = np.ascontiguousarray(keys).view("V16").ravel()
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
        levels = np.zeros(len(first), np.uint8)
        if parts:
            np.bitwise_or.at(levels, inverse, np.concatenate([b for _, b in parts]))
        order = np.argsort(first)
        self._first = first[order]
        self.keys: NDArray[np.uint8] = keys[self._first]
        """In the order of the slices: (n, 16)."""
        self.levels: NDArray[np.uint8] = levels[order]
        """Over all slices: (n,)."""
        self._ends = np.cumsum([s.stop - s.start for s in self._slices])

    def blocks(self, chosen: NDArray[np.intp], n: int) -> Iterator[Units]:
        """The chosen units, ascending, at most ``n`` at a time and from one slice."""
        at = self._first[chosen]
        owner = np.searchsorted(self._ends, at, side="right")
        for number, slice_ in enumerate(self._slices):
            mine = chosen[owner == number]
            first = int(self._ends[number]) - (slice_.stop - slice_.start)
            for start, stop in pairwise([*range(0, len(mine), n), len(mine)]):
                some = mine[start:stop]
                texts = slice_.read(self._first[some] - first + slice_.start)
                yield Units(self.keys[some], texts, self.levels[some])
