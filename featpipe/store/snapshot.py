"""A table at one time, as its readers use it, and the file that it is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from featpipe.errors import DictionaryChanged, DictionaryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from featpipe.errors import UnreadableDictionary
    from featpipe.store.table_view import TableView
    from featpipe.store.views import ColumnView, FileMap


class OpenFile(Protocol):
    """The file of a reader, as its tables use it."""

    path: Path
    descriptor: int
    checks_rows: bool

    def documents_of(self, table: str, keys: Sequence[bytes]) -> Sequence[str]:
        """Documents that rows of these keys belong to, as far as they are known."""

    def held(self) -> AbstractContextManager[None]:
        """While this is open, no other thread closes the file, or opens the one that replaced it.

        Raises DictionaryError when it is closed.
        """

    def read_u64(self, address: int) -> int:
        """Eight bytes of the file as they are now."""

    def check_size(self, reach: int) -> None:
        """Raises DictionaryChanged when the file is shorter than ``reach``."""

    def damage(self, what: str) -> UnreadableDictionary:
        """The error for a damaged file."""


class StoredType(NamedTuple):
    """The numpy type of a column's bytes, and the shape of one value."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One table at one time. It is replaced as a whole, so a thread sees the old or the new one."""

    mapping: FileMap
    view: TableView
    n_rows: int
    reach: int
    keys: ColumnView | None
    announced: int  #: the length of the leading column

    @classmethod
    def of(cls, mapping: FileMap, view: TableView) -> Snapshot:
        """The table with the visible rows of ``view``."""
        keys = view.keys(mapping) if view.spec.keyed else None
        announced = view.lengths()[view.leader]
        return cls(mapping, view, view.n_rows, view.reach, keys, announced)

    @property
    def key_column(self) -> ColumnView:
        """The keys as (n, 2) uint64. Raises DictionaryError for a table without keys."""
        if self.keys is None:
            raise DictionaryError(f"table {self.view.name} has no keys to be found by")
        return self.keys

    def fixed(self, name: str) -> ColumnView:
        """A column with one entry per row. Raises DictionaryError when there is none."""
        try:
            return self.view.fixed[name]
        except KeyError:
            raise DictionaryError(
                f"table {self.view.name} has no column {name!r}: there are {list(self.view.fixed)}"
            ) from None

    def values(self, name: str) -> ColumnView:
        """The values of a ragged column. Raises DictionaryError when there is none."""
        try:
            return self.view.values[name]
        except KeyError:
            raise DictionaryError(f"table {self.view.name} has no ragged column {name!r}") from None

    def row_numbers(self, rows: ArrayLike) -> NDArray[np.int64]:
        """These rows (n,) as numbers. Raises DictionaryError where one is not there."""
        return row_numbers(rows, self.n_rows, self.view.name)

    def check_range(self, start: int, stop: int) -> None:
        """Raises DictionaryError unless rows start:stop are there."""
        check_range(start, stop, self.n_rows, self.view.name)


def row_numbers(rows: ArrayLike, n_rows: int, table: str) -> NDArray[np.int64]:
    """As `Snapshot.row_numbers`, of a table with so many rows."""
    wanted = np.asarray(rows)
    if wanted.dtype != np.int64:
        if wanted.size and wanted.dtype.kind not in "iu":
            raise DictionaryError(f"rows are numbers, not {wanted.dtype}")
        wanted = wanted.astype(np.int64)
    if wanted.ndim != 1:
        raise DictionaryError(f"rows are a list of numbers, not of shape {wanted.shape}")
    # Viewed as unsigned, negative numbers are huge: one pass checks both bounds.
    if len(wanted) and int(wanted.view(np.uint64).max()) >= n_rows:
        raise DictionaryError(f"row outside the {n_rows} rows of table {table}")
    return wanted


def check_range(start: int, stop: int, n_rows: int, table: str) -> None:
    """As `Snapshot.check_range`, of a table with so many rows."""
    if not 0 <= start <= stop <= n_rows:
        raise DictionaryError(f"rows {start}:{stop} of the {n_rows} of table {table}")


def replaced(path: Path, table: str) -> DictionaryChanged:
    """The error for row numbers of a file that another one has replaced."""
    return DictionaryChanged(
        f"{path} was replaced: row numbers of table {table} are void",
        hint="take the table from the reader again",
    )
