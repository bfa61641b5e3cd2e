"""The index at the end of an outbox: where in the file the rows of each shard are.

A job on a shard needs its rows of every outbox, and the outboxes of a large cache are hundreds of
gigabytes. With the index, which comes after the last byte that HDF5 knows of, they are fetched from
an object store as a sparse local file: all of the outbox's structure, and the rows of one shard.

Guarantee: the index decides nothing but which bytes are fetched. The ordinary reader opens the
sparse file, and holds structure and rows against the checksums that were written with them.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from struct import Struct
from typing import TYPE_CHECKING, Self
from zlib import crc32

from featpipe.store import Reader
from featpipe.store.schema import END_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from featpipe.store import TableReader
    from featpipe.store.views import ColumnView

    Range = tuple[int, int]

_MAGIC = b"featpipe slices\n"
#: After the index: its length and crc32, and the magic.
_LENGTHS = Struct("<QI")
_TAIL_BYTES = _LENGTHS.size + len(_MAGIC)
#: Bytes at the end that are asked for at first: they hold the index of some thousand shards.
_END_BYTES = 128 << 10
#: Ranges that are so near to each other are fetched as one: a request costs as much.
NEAR_BYTES = 256 << 10
#: Where a slice is more than this share of an outbox, all of it is fetched, for other shards, too.
_MOST_OF_ALL = 0.5


@dataclass(frozen=True, slots=True)
class Column:
    """One dataset: ``chunk_rows`` rows or values from each offset on.

    ``firsts`` (shards + 1) are the numbers of the first row or value of each shard, and of the end.
    """

    row_bytes: int
    chunk_rows: int
    offsets: tuple[int, ...]
    firsts: tuple[int, ...]

    @classmethod
    def of(cls, view: ColumnView, firsts: Iterable[int]) -> Self:
        """A column of an open file."""
        return cls(view.row_bytes, view.chunk_rows, tuple(view.offset_list), tuple(firsts))

    def chunks(self) -> Iterator[Range]:
        """The bytes of each chunk."""
        return ((at, at + self.chunk_rows * self.row_bytes) for at in self.offsets)

    def places(self, shard: int) -> Iterator[Range]:
        """The bytes of a shard's rows, and of the row before them, where the first one begins."""
        start, stop = self.firsts[shard : shard + 2]
        start = max(0, start - 1) if stop > start else stop
        while start < stop:
            chunk, within = divmod(start, self.chunk_rows)
            n = min(stop - start, self.chunk_rows - within)
            first = self.offsets[chunk] + within * self.row_bytes
            yield first, first + n * self.row_bytes
            start += n


@dataclass(frozen=True, slots=True)
class OutboxIndex:
    """Where the rows are, and how long the file is that HDF5 knows of."""

    n_bytes: int
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: TableReader, bounds: Sequence[int], n_bytes: int) -> Self:
        """Of the rows of an outbox, whose shards begin at these."""
        view = table.now.view
        columns = [Column.of(column, bounds) for column in view.fixed.values()]
        for name, values in view.values.items():
            ends = table.gather(name + END_SUFFIX, [max(0, first - 1) for first in bounds])
            firsts = (int(end) if first else 0 for end, first in zip(ends, bounds, strict=True))
            columns.append(Column.of(values, firsts))
        return cls(n_bytes, tuple(columns))

    @classmethod
    def read(cls, read_end: Callable[[int], bytes]) -> Self | None:
        """The index of an outbox; None where it has none, or a damaged one.

        Args:
            read_end: gives so many of the file's last bytes, or all that it has.

        """
        end = read_end(_END_BYTES)
        if len(end) < _TAIL_BYTES or not end.endswith(_MAGIC):
            return None
        n, expected = _LENGTHS.unpack(end[-_TAIL_BYTES : -len(_MAGIC)])
        if n + _TAIL_BYTES > len(end):
            end = read_end(n + _TAIL_BYTES)
        written = end[-_TAIL_BYTES - n : -_TAIL_BYTES]
        if len(written) != n or crc32(written) != expected:
            return None
        told = json.loads(written)
        return cls(told["n_bytes"], tuple(Column(**column) for column in told["columns"]))

    def append_to(self, outbox: Path) -> None:
        """Write it behind the file, durably. Raises OSError."""
        written = json.dumps(asdict(self), separators=(",", ":")).encode()
        with outbox.open("ab") as file:
            file.write(written + _LENGTHS.pack(len(written), crc32(written)) + _MAGIC)
            file.flush()
            os.fsync(file.fileno())

    def ranges(self, shard: int) -> list[Range] | None:
        """The bytes that a reader of a shard's rows needs; None: fetch all of the file."""
        rows = (place for column in self.columns for place in column.places(shard))
        ranges = list(_joined(sorted([*self._structure(), *rows])))
        is_little = sum(stop - start for start, stop in ranges) <= _MOST_OF_ALL * self.n_bytes
        return ranges if is_little else None

    def _structure(self) -> Iterator[Range]:
        """The bytes that are no column's."""
        at = 0
        for start, stop in sorted(chunk for column in self.columns for chunk in column.chunks()):
            if start > at:
                yield at, start
            at = max(at, stop)
        if at < self.n_bytes:
            yield at, self.n_bytes


def append_index(outbox: Path, table: str, bounds: Sequence[int]) -> None:
    """Write its index behind an outbox that is complete and closed. Raises OSError."""
    with Reader(outbox) as reader:
        index = OutboxIndex.of(reader.table(table), bounds, outbox.stat().st_size)
    index.append_to(outbox)


def _joined(ranges: Iterable[Range]) -> Iterator[Range]:
    """Ranges in their order, those that are near to each other as one."""
    start = stop = -1
    for first, last in ranges:
        if stop >= 0 and first - stop <= NEAR_BYTES:
            stop = max(stop, last)
            continue
        if stop >= 0:
            yield start, stop
        start, stop = first, last
    if stop >= 0:
        yield start, stop
