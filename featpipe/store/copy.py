"""Rows from one dictionary to another, as they are: what compact and merge are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.store.schema import KEYS, Column, Ragged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from featpipe.store.batch import ColumnData
    from featpipe.store.table_reader import TableReader

#: Bytes of rows handled at a time.
_BLOCK_BYTES = 16 << 20
_MAX_ROWS = 1 << 14


def rows_of(table: TableReader, rows: NDArray[np.int64]) -> dict[str, ColumnData]:
    """These rows, in the form that :meth:`TableWriter.append` takes."""
    data: dict[str, ColumnData] = {}
    if table.spec.keyed:
        data[KEYS] = table.gather(KEYS, rows)
    for column in table.spec.columns:
        if isinstance(column, Ragged):
            data[column.name] = table.ragged_many(column.name, rows)
        else:
            data[column.name] = table.gather_bits(column.name, rows)
    return data


def sound_blocks(table: TableReader) -> Iterator[tuple[NDArray[np.int64], int]]:
    """A table's rows in blocks, damaged ones left out: (row numbers, how many were damaged)."""
    width = max(1, sum(column.row_bytes for column in table.now.view.fixed.values()))
    size = max(1, min(_MAX_ROWS, _BLOCK_BYTES // width))
    for start in range(0, table.n_rows, size):
        stop = min(start + size, table.n_rows)
        bad = table.now.view.bad_rows(start, stop)
        yield np.setdiff1d(np.arange(start, stop, dtype=np.int64), bad), len(bad)


def equal_rows(
    left: TableReader,
    left_rows: NDArray[np.int64],
    right: TableReader,
    right_rows: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether pairs of rows hold the same bytes in every column: (n,) bool."""
    equal = np.ones(len(left_rows), np.bool_)
    for column in left.spec.columns:
        if isinstance(column, Column):
            ours = _as_bytes(left.gather_bits(column.name, left_rows))
            theirs = _as_bytes(right.gather_bits(column.name, right_rows))
            equal &= (ours == theirs).all(axis=1)
        else:
            for i, (a, b) in enumerate(zip(left_rows.tolist(), right_rows.tolist(), strict=True)):
                one, other = left.ragged(column.name, a), right.ragged(column.name, b)
                equal[i] &= one.tobytes() == other.tobytes()
    return equal


def _as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return flat.view(np.uint8)
