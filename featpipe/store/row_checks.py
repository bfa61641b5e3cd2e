"""Checks rows against their checksums: in any order, and before any of their bytes is handed out.

A row is sound when the sum of its fixed columns is right and the values of its ragged columns have
the crc32 beside their offsets (see :mod:`featpipe.store.checksum`). Offsets are not trusted: values
are read only where they lie inside their column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

import numpy as np

from featpipe.store.checksum import ODD_64, as_bytes, crcs_of
from featpipe.store.schema import CHECKS, CRC_SUFFIX, END_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray, RowHash
    from featpipe.store.views import ColumnView

    Rows = NDArray[np.int64]

#: First and one past the last value of each row, and whether they lie inside the column.
Bounds: TypeAlias = "tuple[Rows, Rows, NDArray[np.bool_]]"

#: Bytes of fixed columns that are summed at once: they stay in the processor's cache.
_BLOCK_BYTES = 1 << 19
_MIN_BLOCK, _MAX_BLOCK = 64, 4096

#: The fixed columns of a row as a part that is checked; ragged ones go by their names.
FIXED = ""


class RowChecks:
    """The checks of one table, whose ``fixed`` columns have one entry per row."""

    __slots__ = ("_fixed", "_hash", "_values", "block_rows")

    def __init__(
        self,
        fixed: Mapping[str, ColumnView],
        values: Mapping[str, ColumnView],
        row_hash: RowHash,
    ) -> None:
        self._fixed = fixed
        self._values = values
        self._hash = row_hash
        width = sum(column.row_bytes for column in fixed.values())
        self.block_rows = min(_MAX_BLOCK, max(_MIN_BLOCK, _BLOCK_BYTES // width))

    def parts(self, ragged: Sequence[str]) -> tuple[str, ...]:
        """Names of what is checked: of all fixed columns together, and of each ragged one.

        Layout 1 has one sum over everything.
        """
        return (FIXED,) if self._hash.name == ODD_64 else (FIXED, *ragged)

    def bad_rows(self, start: int, stop: int) -> Rows:
        """The damaged rows of start:stop."""
        rows = np.arange(start, stop, dtype=np.int64)
        return rows[self.are_bad(rows)]

    def are_bad(
        self,
        rows: Rows,
        ragged: Iterable[str] | None = None,
        given: Mapping[str, AnyArray] | None = None,
    ) -> NDArray[np.bool_]:
        """Whether each of these rows is damaged: (n,) bool.

        Of ragged columns the named ones are checked, by default all; ``given`` holds fixed columns
        that are at hand, with the bytes that will be handed out.
        """
        found = [
            self._are_bad(
                rows[at : at + self.block_rows], ragged, _part(given, at, self.block_rows)
            )
            for at in range(0, len(rows), self.block_rows)
        ]
        return np.concatenate(found) if found else np.zeros(0, np.bool_)

    def _are_bad(
        self, rows: Rows, ragged: Iterable[str] | None, given: Mapping[str, AnyArray]
    ) -> NDArray[np.bool_]:
        parts = [
            given[name] if name in given else take(column, rows)
            for name, column in self._fixed.items()
            if name != CHECKS
        ]
        wrong = np.zeros(len(rows), np.bool_)
        names = self._values if ragged is None or self._hash.name == ODD_64 else ragged
        for name in names:
            crcs, is_inside = self._crcs(name, rows)
            wrong |= ~is_inside
            if self._hash.name == ODD_64:
                parts.append(crcs)
            else:
                wrong |= crcs != take(self._fixed[name + CRC_SUFFIX], rows)
        wrong |= self._hash.sums(rows, parts) != take(self._fixed[CHECKS], rows)
        return wrong

    def is_bad(self, row: int, ragged: str = "") -> bool:
        """Whether the fixed columns of one row are damaged, or its values in a ragged one.

        As :meth:`are_bad`, in a tenth of the time.
        """
        if self._hash.name == ODD_64:
            return bool(self._are_bad(np.array([row], np.int64), (), {})[0])
        *parts, stored = [column.bytes_of(row) for column in self._fixed.values()]
        if self._hash.sum_one(int(row), parts) != int.from_bytes(stored, "little"):
            return True
        return bool(ragged) and self._has_bad_values(row, ragged)

    def _has_bad_values(self, row: int, name: str) -> bool:
        ends, column = self._fixed[name + END_SUFFIX], self._values[name]
        stop = int.from_bytes(ends.bytes_of(row), "little")
        start = int.from_bytes(ends.bytes_of(row - 1), "little") if row else 0
        if not start <= stop <= column.n_capacity:
            return True
        values = np.ascontiguousarray(column.slice(start, stop))
        crc = int.from_bytes(self._fixed[name + CRC_SUFFIX].bytes_of(row), "little")
        return crc32(as_bytes(values)) != crc

    def bounds(self, name: str, rows: Rows) -> Bounds:
        """Where the values of these rows lie."""
        ends = self._fixed[name + END_SUFFIX]
        stops = take(ends, rows).astype(np.int64)
        starts = ends.gather(np.maximum(rows - 1, 0)).astype(np.int64)
        starts[rows == 0] = 0
        # Compared, not subtracted: a difference of damaged offsets may wrap around.
        is_inside = (starts >= 0) & (stops >= starts) & (stops <= self._values[name].n_capacity)
        return starts, stops, is_inside

    def _crcs(self, name: str, rows: Rows) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        starts, stops, is_inside = self.bounds(name, rows)
        column, size = self._values[name], self._values[name].row_bytes
        if is_inside.all() and (starts[1:] == stops[:-1]).all() and len(rows):
            values = np.ascontiguousarray(column.slice(int(starts[0]), int(stops[-1])))
            bounds = (np.append(starts[:1], stops) - starts[0]) * size
            return crcs_of(as_bytes(values), bounds).astype(np.uint64), is_inside
        found = np.zeros(len(rows), np.uint64)
        for at in np.flatnonzero(is_inside).tolist():
            values = np.ascontiguousarray(column.slice(int(starts[at]), int(stops[at])))
            found[at] = crc32(as_bytes(values))
        return found, is_inside


def take(column: ColumnView, rows: Rows) -> AnyArray:
    """These rows of a column; a view where they follow each other in one chunk."""
    n = len(rows)
    if n and int(rows[-1]) - int(rows[0]) == n - 1 and (n < 3 or bool((np.diff(rows) == 1).all())):
        return column.slice(int(rows[0]), int(rows[-1]) + 1)
    return column.gather(rows)


def _part(given: Mapping[str, AnyArray] | None, at: int, n: int) -> Mapping[str, AnyArray]:
    return {name: values[at : at + n] for name, values in given.items()} if given else {}
