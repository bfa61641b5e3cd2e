"""The shape of a table: its columns, whether rows are found by key, and what it says about itself.

Values only: frozen, comparable, picklable. What is written to the file is :meth:`TableSpec.to_json`
plus each attribute under its own name, so that a reader without featpipe sees plain HDF5
attributes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from featpipe.errors import DictionaryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, DTypeLike, NDArray

BFLOAT16 = "bfloat16"

KEYS = "keys"
CHECKS = "checks"
INDEX = "index"
INDEXED = "indexed"
END_SUFFIX = "_end"

#: Attributes of a table's group that are the store's own.
COLUMNS_ATTRIBUTE = "columns"
SALT_ATTRIBUTE = "salt"

_RESERVED_COLUMNS = frozenset({KEYS, CHECKS, INDEX, INDEXED})
_RESERVED_ATTRIBUTES = frozenset({COLUMNS_ATTRIBUTE, SALT_ATTRIBUTE})
_KINDS = {"f": (2, 4, 8), "u": (1, 2, 4, 8), "i": (1, 2, 4, 8)}
_STORED_DTYPES = frozenset(
    {BFLOAT16, *(np.dtype(f"<{kind}{size}").str for kind in _KINDS for size in _KINDS[kind])}
)
_MAX_ATTRIBUTE_BYTES = 60_000


def canonical_dtype(dtype: DTypeLike) -> str:
    """``"<f2"``, ``"|u1"`` ... or ``"bfloat16"``: one spelling for each type a column may have."""
    if isinstance(dtype, str) and dtype == BFLOAT16:
        return BFLOAT16
    kind = np.dtype(dtype)
    if kind.kind not in _KINDS or kind.itemsize not in _KINDS[kind.kind]:
        raise DictionaryError(
            f"a column cannot hold {dtype!r}: only integers and floats of <= 8 bytes"
        )
    return kind.newbyteorder("<").str


def storage_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy type of a column's bytes: bfloat16 is handled as its 16 bits."""
    return np.dtype("<u2" if dtype == BFLOAT16 else dtype)


@dataclass(frozen=True, slots=True)
class Column:
    """One value of fixed shape per row. ``dtype`` is a numpy type or ``"bfloat16"``."""

    name: str
    dtype: DTypeLike
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _normalise(self)

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of the bytes."""
        return storage_dtype(str(self.dtype))

    @property
    def row_bytes(self) -> int:
        """Bytes of one value: of one row for a Column, of one element for a Ragged."""
        return _row_bytes(self)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Any number of values per row.

    Row i is ``values[end[i-1]:end[i]]``, with a flat ``name`` dataset and a ``name_end`` column.
    """

    name: str
    dtype: DTypeLike
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _normalise(self)

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of the bytes."""
        return storage_dtype(str(self.dtype))

    @property
    def row_bytes(self) -> int:
        """Bytes of one element."""
        return _row_bytes(self)


AnyColumn: TypeAlias = "Column | Ragged"


def _normalise(column: AnyColumn) -> None:
    object.__setattr__(column, "dtype", canonical_dtype(column.dtype))
    object.__setattr__(column, "shape", tuple(int(size) for size in column.shape))
    if not column.name or "/" in column.name or column.name in {".", ".."} or "\0" in column.name:
        raise DictionaryError(f"{column.name!r} cannot be the name of a column")
    if any(size < 1 for size in column.shape):
        raise DictionaryError(f"column {column.name!r} has an empty shape: {column.shape}")
    if _row_bytes(column) >= 1 << 30:
        raise DictionaryError(f"one row of column {column.name!r} is larger than 1 GiB")


def _row_bytes(column: AnyColumn) -> int:
    size = storage_dtype(str(column.dtype)).itemsize
    for extent in column.shape:
        size *= extent
    return size


@dataclass(frozen=True, slots=True)
class TableSpec:
    """What a table holds.

    ``keyed`` tables have a (n, 16) uint8 ``keys`` column besides, are found by it, and hold no key
    twice; the others are plain logs. ``attributes`` are text, and part of the table's identity.
    """

    columns: tuple[AnyColumn, ...]
    keyed: bool = True
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "attributes", dict(sorted(self.attributes.items())))
        names = list(_RESERVED_COLUMNS)
        for column in self.columns:
            names.append(column.name)
            if isinstance(column, Ragged):
                names.append(column.name + END_SUFFIX)
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise DictionaryError(
                f"columns named twice, or as the store's own: {', '.join(doubled)}"
            )
        if not self.columns and not self.keyed:
            raise DictionaryError("a table needs a column")
        for name, text in self.attributes.items():
            if name in _RESERVED_ATTRIBUTES or not name:
                raise DictionaryError(f"{name!r} cannot be the name of an attribute")
            if len(text.encode()) > _MAX_ATTRIBUTE_BYTES:
                raise DictionaryError(
                    f"attribute {name!r} is longer than {_MAX_ATTRIBUTE_BYTES} bytes"
                )

    def column(self, name: str) -> AnyColumn:
        """The declared column of this name. Raises DictionaryError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise DictionaryError(f"no column {name!r}: there are {[c.name for c in self.columns]}")

    def to_json(self) -> str:
        """Everything but the attributes, which are written one by one."""
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


def fixed_datasets(spec: TableSpec) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, shape) of the datasets with one entry per row, in the order they are written.

    ``checks`` is last on purpose: it makes a row real, and its length is the one readers go by.
    """
    found: list[tuple[str, str, tuple[int, ...]]] = [(KEYS, "|u1", (16,))] if spec.keyed else []
    for column in spec.columns:
        if isinstance(column, Ragged):
            found.append((column.name + END_SUFFIX, "<u8", ()))
        else:
            found.append((column.name, str(column.dtype), column.shape))
    return [*found, (CHECKS, "<u4", ())]


def datasets_of(spec: TableSpec) -> set[str]:
    """The names of all datasets of a table."""
    names = {name for name, _, _ in [*fixed_datasets(spec), *value_datasets(spec)]}
    return names | {INDEX, INDEXED} if spec.keyed else names


def value_datasets(spec: TableSpec) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, shape) of the flat datasets behind ragged columns."""
    return [(c.name, str(c.dtype), c.shape) for c in spec.columns if isinstance(c, Ragged)]


# Rows about to be appended: checked against the table's schema, contiguous, little-endian.


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
