"""Reads the tables of a dictionary that another program has written anew, through libhdf5."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.store.checksum import ODD_64, RowHash
from featpipe.store.row_checks import RowChecks
from featpipe.store.row_source import RowSource
from featpipe.store.schema import (
    BFLOAT16,
    COLUMNS_ATTRIBUTE,
    HASH_ATTRIBUTE,
    OWN_ATTRIBUTES,
    SALT_ATTRIBUTE,
    TableSpec,
    fixed_datasets,
    storage_dtype,
    to_bfloat16,
    value_datasets,
)

if TYPE_CHECKING:
    from pathlib import Path

    import h5py
    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray


class Hdf5Column:
    """One dataset in memory, with the calls of a ColumnView."""

    def __init__(self, dataset: h5py.Dataset, dtype: str, shape: tuple[int, ...]) -> None:
        values = np.asarray(dataset[...])
        if dtype == BFLOAT16 and values.dtype.kind == "f":
            values = to_bfloat16(values)
        storage = storage_dtype(dtype)
        if values.dtype != storage or values.shape[1:] != shape:
            raise UnreadableDictionary(f"{dataset.name} is not what the table's schema says")
        self.values: AnyArray = np.ascontiguousarray(values)
        self.dtype, self.shape = storage, shape
        self.n_capacity = len(values)
        self.row_bytes = storage.itemsize * math.prod(shape)

    def slice(self, start: int, stop: int) -> AnyArray:
        """Rows start:stop."""
        return self.values[start:stop]

    def gather(self, rows: NDArray[np.int64]) -> AnyArray:
        """These rows."""
        return self.values.take(rows, axis=0, mode="clip")


def read_through_libhdf5(path: Path) -> list[RowSource]:
    """Every table that libhdf5 can read. Raises UnreadableDictionary."""
    import h5py

    found: list[RowSource] = []

    def visit(name: str, node: object) -> None:
        if isinstance(node, h5py.Group) and COLUMNS_ATTRIBUTE in node.attrs:
            found.append(_source(name, node))

    try:
        with h5py.File(path, "r", locking=False) as file:
            file.visititems(visit)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, DictionaryError) as error:
        raise UnreadableDictionary(f"{path} cannot be read by libhdf5 either: {error}") from error
    return found


def _source(name: str, group: h5py.Group) -> RowSource:
    texts = {key: _text(value) for key, value in group.attrs.items()}
    own = {key: value for key, value in texts.items() if key not in OWN_ATTRIBUTES and value}
    spec = TableSpec.from_json(str(texts[COLUMNS_ATTRIBUTE]), own)
    row_hash = RowHash(int(group.attrs[SALT_ATTRIBUTE]), texts.get(HASH_ATTRIBUTE, ODD_64))
    columns: list[dict[str, Any]] = [  # Any: with the calls of a ColumnView
        {label: Hdf5Column(group[label], dtype, shape) for label, dtype, shape in datasets}
        for datasets in (fixed_datasets(spec, row_hash.name), value_datasets(spec))
    ]
    fixed, values = columns
    n_rows = min(column.n_capacity for column in fixed.values())
    return RowSource(name, spec, fixed, values, RowChecks(fixed, values, row_hash), n_rows)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode()
    return value if isinstance(value, str) else ""
