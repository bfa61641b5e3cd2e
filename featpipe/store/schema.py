"""Schemas of tables and the rows that fit them: columns, keys, attributes, and checked batches.

Schemas are values: frozen, comparable, picklable. The file holds :meth:`TableSpec.to_json` and each
attribute under its own name, so that other programs see plain HDF5 attributes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.store.checksum import ODD_64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from featpipe.store.checksum import AnyArray

BFLOAT16 = "bfloat16"

KEYS = "keys"
CHECKS = "checks"
INDEX = "index"
INDEXED = "indexed"
END_SUFFIX = "_end"
CRC_SUFFIX = "_crc"

#: Attributes of a table's group that are the store's own; the last four since layout 2.
COLUMNS_ATTRIBUTE = "columns"
SALT_ATTRIBUTE = "salt"
HASH_ATTRIBUTE = "row_hash"
PATH_ATTRIBUTE = "path"
STRUCTURE_ATTRIBUTE = "structure"
GENERATION_ATTRIBUTE = "generation"

_RESERVED_COLUMNS = frozenset({KEYS, CHECKS, INDEX, INDEXED})
OWN_ATTRIBUTES = frozenset(
    {
        COLUMNS_ATTRIBUTE,
        SALT_ATTRIBUTE,
        HASH_ATTRIBUTE,
        PATH_ATTRIBUTE,
        STRUCTURE_ATTRIBUTE,
        GENERATION_ATTRIBUTE,
    }
)
_KINDS = {"f": (2, 4, 8), "u": (1, 2, 4, 8), "i": (1, 2, 4, 8)}
_STORED_DTYPES = frozenset(
    {BFLOAT16, *(np.dtype(f"<{kind}{size}").str for kind in _KINDS for size in _KINDS[kind])}
)
_MAX_ATTRIBUTE_BYTES = 60_000
_MAX_ROW_BYTES = 1 << 30


def canonical_dtype(dtype: DTypeLike) -> str:
    """The one spelling of a column's type: ``"<f2"``, ``"|u1"`` ... or ``"bfloat16"``."""
    if isinstance(dtype, str) and dtype == BFLOAT16:
        return BFLOAT16
    kind = np.dtype(dtype)
    if kind.kind not in _KINDS or kind.itemsize not in _KINDS[kind.kind]:
        raise DictionaryError(
            f"a column cannot hold {dtype!r}: only integers and floats of <= 8 bytes"
        )
    return kind.newbyteorder("<").str


def storage_dtype(dtype: str) -> np.dtype[np.generic]:
    """The numpy type of a column's bytes; bfloat16 is stored as its 16 bits."""
    return np.dtype("<u2" if dtype == BFLOAT16 else dtype)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of one type and shape; ``dtype`` is a numpy type or ``"bfloat16"``."""

    name: str
    dtype: DTypeLike
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", canonical_dtype(self.dtype))
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))
        if not self.name or "/" in self.name or self.name in {".", ".."} or "\0" in self.name:
            raise DictionaryError(f"{self.name!r} cannot be the name of a column")
        if any(size < 1 for size in self.shape):
            raise DictionaryError(f"column {self.name!r} has an empty shape: {self.shape}")
        if self.row_bytes >= _MAX_ROW_BYTES:
            raise DictionaryError(f"one row of column {self.name!r} is larger than 1 GiB")

    @property
    def storage(self) -> np.dtype[np.generic]:
        """The numpy type of the bytes."""
        return storage_dtype(str(self.dtype))

    @property
    def row_bytes(self) -> int:
        """Bytes of one value: of one row for a Column, of one element for a Ragged."""
        return self.storage.itemsize * math.prod(self.shape)


class Column(_Values):
    """One value of fixed shape per row."""

    __slots__ = ()


class Ragged(_Values):
    """Any number of values per row.

    Row i is ``values[end[i-1]:end[i]]``, with a flat ``name`` dataset and a ``name_end`` column.
    """

    __slots__ = ()


AnyColumn: TypeAlias = "Column | Ragged"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The schema of a table.

    A ``keyed`` table has a (n, 16) uint8 ``keys`` column besides, which finds its rows, and holds
    no key twice; other tables are plain logs. ``attributes`` are texts, part of the table's
    identity.
    """

    columns: tuple[AnyColumn, ...]
    keyed: bool = True
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "attributes", dict(sorted(self.attributes.items())))
        self._check_columns()
        for name, text in self.attributes.items():
            if name in OWN_ATTRIBUTES or not name:
                raise DictionaryError(f"{name!r} cannot be the name of an attribute")
            if len(text.encode()) > _MAX_ATTRIBUTE_BYTES:
                raise DictionaryError(
                    f"attribute {name!r} is longer than {_MAX_ATTRIBUTE_BYTES} bytes"
                )

    def _check_columns(self) -> None:
        ragged = [c.name for c in self.columns if isinstance(c, Ragged)]
        beside = [name + suffix for name in ragged for suffix in (END_SUFFIX, CRC_SUFFIX)]
        names = [*_RESERVED_COLUMNS, *(c.name for c in self.columns), *beside]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise DictionaryError(
                f"columns named twice, or as the store's own: {', '.join(doubled)}"
            )
        if not self.columns and not self.keyed:
            raise DictionaryError("a table needs a column")

    def column(self, name: str) -> AnyColumn:
        """The column of this name. Raises DictionaryError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise DictionaryError(f"no column {name!r}: there are {[c.name for c in self.columns]}")

    def is_bfloat16(self, name: str) -> bool:
        """Whether this is a column with one bfloat16 entry, or an array of them, per row."""
        return any(
            isinstance(c, Column) and c.name == name and c.dtype == BFLOAT16 for c in self.columns
        )

    def to_json(self) -> str:
        """The schema without the attributes, which are written one by one."""
        columns = [
            {
                "name": column.name,
                "dtype": str(column.dtype),
                "shape": list(column.shape),
                "ragged": isinstance(column, Ragged),
            }
            for column in self.columns
        ]
        return json.dumps({"keyed": self.keyed, "columns": columns}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, attributes: Mapping[str, str]) -> TableSpec:
        """The reverse of :meth:`to_json`.

        Raises ValueError, TypeError, KeyError or DictionaryError for anything else.
        """
        parts = json.loads(text)
        unknown = {part["dtype"] for part in parts["columns"]} - _STORED_DTYPES
        if unknown:
            raise DictionaryError(f"columns of types that no column has: {unknown}")
        columns = tuple(
            (Ragged if part["ragged"] else Column)(
                str(part["name"]), str(part["dtype"]), tuple(part["shape"])
            )
            for part in parts["columns"]
        )
        return cls(columns, bool(parts["keyed"]), attributes)


def fixed_datasets(spec: TableSpec, row_hash: str) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, shape) of the datasets with one entry per row, in the order of writing.

    ``checks`` is last: the checksum makes a row real. ``row_hash`` names the sum: a table of layout
    1 holds no crc beside the offsets of a ragged column.
    """
    found: list[tuple[str, str, tuple[int, ...]]] = [(KEYS, "|u1", (16,))] if spec.keyed else []
    for column in spec.columns:
        if isinstance(column, Ragged):
            found.append((column.name + END_SUFFIX, "<u8", ()))
            if row_hash != ODD_64:
                found.append((column.name + CRC_SUFFIX, "<u4", ()))
        else:
            found.append((column.name, str(column.dtype), column.shape))
    return [*found, (CHECKS, "<u4", ())]


def value_datasets(spec: TableSpec) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, shape) of the flat datasets behind ragged columns."""
    return [(c.name, str(c.dtype), c.shape) for c in spec.columns if isinstance(c, Ragged)]


def datasets_of(spec: TableSpec, row_hash: str) -> set[str]:
    """The names of all datasets of a table."""
    names = {name for name, _, _ in [*fixed_datasets(spec, row_hash), *value_datasets(spec)]}
    return names | {INDEX, INDEXED} if spec.keyed else names


#: Data of a column: (n, *shape) values, or for a ragged one (flat values, lengths).
ColumnData: TypeAlias = "ArrayLike | tuple[ArrayLike, ArrayLike]"

_KEY_COLUMN = Column(KEYS, "u1", (16,))


@dataclass(slots=True)
class Batch:
    """Rows to append, checked against a schema: contiguous and little-endian.

    ``fixed`` holds (n_rows, ...) arrays by column, ``ragged`` (values, lengths).
    """

    n_rows: int
    fixed: dict[str, AnyArray]
    ragged: dict[str, tuple[AnyArray, NDArray[np.int64]]]

    @classmethod
    def of(cls, spec: TableSpec, data: Mapping[str, ColumnData]) -> Batch:
        """Check ``data``: exactly the table's columns, of equal length. Raises DictionaryError."""
        wanted = {column.name for column in spec.columns} | ({KEYS} if spec.keyed else set())
        if set(data) != wanted:
            raise DictionaryError(f"rows need the columns {sorted(wanted)}, not {sorted(data)}")
        ragged = {}
        fixed = {KEYS: _exactly(data[KEYS], _KEY_COLUMN)} if spec.keyed else {}
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


def _exactly(given: object, column: AnyColumn) -> AnyArray:
    """``given`` as the column stores it; a type that loses or invents precision is refused."""
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


def _ragged(given: object, column: Ragged) -> tuple[AnyArray, NDArray[np.int64]]:
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


def to_bfloat16(values: AnyArray) -> NDArray[np.uint16]:
    """Floats as bfloat16 bits, rounded to nearest even; a NaN stays one."""
    narrow = np.ascontiguousarray(values, np.float32)
    bits = narrow.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(narrow), np.uint32(0x7FC0), rounded).astype(np.uint16)


def from_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """bfloat16 bits as float32, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
