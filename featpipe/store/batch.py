"""Rows about to be appended: checked against the table's schema, contiguous, little-endian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.store.schema import BFLOAT16, KEYS, Column, Ragged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from featpipe.store.schema import AnyColumn, TableSpec

#: What a column is given as: (n, *shape) values, or for a ragged one (flat values, lengths).
ColumnData: TypeAlias = "ArrayLike | tuple[ArrayLike, ArrayLike]"

_KEY_COLUMN = Column(KEYS, "u1", (16,))


@dataclass(slots=True)
class Batch:
    """``n_rows`` rows: ``fixed`` holds (n, ...) arrays by column, ``ragged`` (values, lengths)."""

    n_rows: int
    fixed: dict[str, NDArray[Any]]
    ragged: dict[str, tuple[NDArray[Any], NDArray[np.int64]]]

    @classmethod
    def of(cls, spec: TableSpec, data: Mapping[str, ColumnData]) -> Batch:
        """Raises DictionaryError unless ``data`` holds exactly the table's columns, alike long."""
        wanted = {column.name for column in spec.columns} | ({KEYS} if spec.keyed else set())
        if set(data) != wanted:
            raise DictionaryError(f"rows need the columns {sorted(wanted)}, not {sorted(data)}")
        fixed: dict[str, NDArray[Any]] = {}
        ragged = {}
        if spec.keyed:
            fixed[KEYS] = _exactly(data[KEYS], _KEY_COLUMN)
        for column in spec.columns:
            if isinstance(column, Ragged):
                ragged[column.name] = _ragged(data[column.name], column)
            else:
                fixed[column.name] = _exactly(data[column.name], column)
        counts = {name: len(array) for name, array in fixed.items()}
        counts |= {name: len(lengths) for name, (_, lengths) in ragged.items()}
        if len(set(counts.values())) != 1:
            raise DictionaryError(f"columns of unequal length: {counts}")
        return cls(next(iter(counts.values())), fixed, ragged)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The keys as (n, 2) uint64."""
        return self.fixed[KEYS].view("<u8")

    def only(self, rows: NDArray[np.intp]) -> Batch:
        """The batch of these rows, in this order."""
        ragged = {}
        for name, (values, lengths) in self.ragged.items():
            ends = np.cumsum(lengths)
            kept = [values[ends[row] - lengths[row] : ends[row]] for row in rows.tolist()]
            ragged[name] = (np.concatenate(kept) if kept else values[:0], lengths[rows])
        return Batch(len(rows), {name: array[rows] for name, array in self.fixed.items()}, ragged)


def _exactly(given: Any, column: AnyColumn) -> NDArray[Any]:  # noqa: ANN401 - any array
    """``given`` as the column stores it; a type that would lose or invent precision is refused."""
    array = np.asarray(given)
    if str(column.dtype) == BFLOAT16 and array.dtype.kind == "f":
        array = to_bfloat16(array)
    storage = column.storage
    if array.dtype != storage and array.dtype.newbyteorder("<") != storage:
        raise DictionaryError(f"column {column.name!r} holds {column.dtype}, not {array.dtype}")
    if array.shape[1:] != column.shape or array.ndim != len(column.shape) + 1:
        raise DictionaryError(
            f"column {column.name!r} has rows of shape {column.shape}, not {array.shape[1:]}"
        )
    return np.ascontiguousarray(array, storage)


def _ragged(given: Any, column: Ragged) -> tuple[NDArray[Any], NDArray[np.int64]]:  # noqa: ANN401
    if not isinstance(given, tuple) or len(given) != 2:
        raise DictionaryError(f"ragged column {column.name!r} is given as (values, lengths)")
    values = _exactly(given[0], column)
    lengths = np.asarray(given[1])
    if lengths.ndim != 1 or (lengths.size and lengths.dtype.kind not in "iu"):
        raise DictionaryError(f"lengths of {column.name!r} are not a list of counts")
    lengths = lengths.astype(np.int64)
    if (lengths < 0).any() or int(lengths.sum()) != len(values):
        raise DictionaryError(f"lengths of {column.name!r} do not add up to {len(values)} values")
    return values, lengths


def to_bfloat16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Floats as bfloat16 bits, rounded to nearest even; a NaN stays one."""
    narrow = np.ascontiguousarray(values, np.float32)
    bits = narrow.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(narrow), np.uint32(0x7FC0), rounded).astype(np.uint16)


def from_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """bfloat16 bits as float32, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
