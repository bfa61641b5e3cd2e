"""The rows of one table, wherever they come from: told sound from damaged, and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store.row_checks import RowChecks, take
from featpipe.store.schema import KEYS, Ragged
from featpipe.store.table_view import count_sound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from featpipe.store.schema import ColumnData, TableSpec
    from featpipe.store.table_view import TableView
    from featpipe.store.views import ColumnView

    Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowSource:
    """The rows of one table, wherever they come from."""

    name: str
    spec: TableSpec
    fixed: Mapping[str, ColumnView]
    values: Mapping[str, ColumnView]
    checks: RowChecks
    n_rows: int

    @classmethod
    def of(cls, view: TableView) -> RowSource:
        """All rows that any column claims to have, and sound ones after them."""
        claimed = max(length for length in view.lengths().values() if length <= view.n_capacity)
        n_rows = count_sound(view, claimed, view.n_capacity)
        return cls(view.name, view.spec, view.fixed, view.values, view.checks, n_rows)

    def sound_rows(self, start: int, stop: int) -> Rows:
        """The rows of start:stop that are as they were written."""
        rows = np.arange(start, stop, dtype=np.int64)
        return rows[~self.checks.are_bad(rows)]

    def read(self, rows: Rows) -> dict[str, ColumnData]:
        """These sound rows, as :meth:`TableWriter.append` takes them."""
        data: dict[str, ColumnData] = {}
        if self.spec.keyed:
            data[KEYS] = take(self.fixed[KEYS], rows)
        for column in self.spec.columns:
            if isinstance(column, Ragged):
                data[column.name] = self.ragged(column.name, rows)
            else:
                data[column.name] = take(self.fixed[column.name], rows)
        return data

    def ragged(self, name: str, rows: Rows) -> tuple[NDArray[np.generic], Rows]:
        """The values of these sound rows, and the length of each."""
        starts, stops, _ = self.checks.bounds(name, rows)
        column = self.values[name]
        pieces = [
            column.slice(start, stop)
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        return np.concatenate(pieces or [column.slice(0, 0)]), stops - starts
