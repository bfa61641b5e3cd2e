"""Several cache files read as one, in a fixed order: a shard and its additions, or earlier parts.

Row numbers run through the files one after the other, so rows of the last file, which grows, have
the highest ones.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import numpy as np

from featpipe.store import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from featpipe.store import TableReader


class StackedReader:
    """Stands for a `Reader` in a build: look-ups in several files.

    Args:
        paths: whole files, which nobody writes; and perhaps one that is being written, last.

    """

    def __init__(self, paths: Sequence[Path]) -> None:
        with ExitStack() as opened:
            self._readers = [opened.enter_context(Reader(path)) for path in paths]
            self._files = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every file."""
        self._files.close()

    def __contains__(self, name: str) -> bool:
        return any(name in reader for reader in self._readers)

    def table(self, name: str) -> StackedTable:
        """The rows of this table in every file that has it."""
        return StackedTable([r.table(name) for r in self._readers if name in r])

    def refresh(self) -> bool:
        """Show what was committed to the last file; returns whether anything changed."""
        return bool(self._readers) and self._readers[-1].refresh()


class StackedTable:
    """One table of several files."""

    def __init__(self, tables: Sequence[TableReader]) -> None:
        self._tables = tables

    @property
    def n_rows(self) -> int:
        """Of all files."""
        return sum(table.n_rows for table in self._tables)

    def find(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Rows of these keys (n, 16); -1 when absent: (n,) int64."""
        rows = np.full(len(keys), -1, np.int64)
        first = 0
        for table in self._tables:
            lacking = np.flatnonzero(rows < 0)
            if not len(lacking):
                break
            found = table.find(keys[lacking])
            rows[lacking] = np.where(found < 0, -1, found + first)
            first += table.n_rows
        return rows

    def find_one(self, key: bytes) -> int:
        """As `find`, of one key."""
        return int(self.find(np.frombuffer(key, np.uint8).reshape(1, 16))[0])

    def slice(self, name: str, start: int, stop: int) -> NDArray[np.generic]:
        """Rows start:stop of a column."""
        return self.gather(name, np.arange(start, stop))

    def gather(self, name: str, rows: ArrayLike) -> NDArray[np.generic]:
        """A copy of these rows of a column."""
        split = self._split(np.asarray(rows, np.int64))
        parts = np.concatenate([table.gather(name, at) for table, at, _ in split])
        found = np.empty_like(parts)
        found[np.concatenate([places for _, _, places in split])] = parts
        return found

    def ragged_many(
        self, name: str, rows: ArrayLike
    ) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        """The concatenated values of these rows, and the length of each."""
        split = self._split(np.asarray(rows, np.int64))
        parts = [table.ragged_many(name, at) for table, at, _ in split]
        if len(parts) == 1:
            return parts[0]
        values, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(np.concatenate([places for _, _, places in split]), kind="stable")
        first = (np.cumsum(lengths) - lengths)[order]
        lengths = lengths[order]
        shift = np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
        return values[shift + np.arange(int(lengths.sum()))], lengths

    def _split(
        self, rows: NDArray[np.int64]
    ) -> list[tuple[TableReader, NDArray[np.int64], NDArray[np.intp]]]:
        """(table, its rows, their places among the rows asked for); at least one table."""
        ends = np.cumsum([table.n_rows for table in self._tables])
        owner = np.searchsorted(ends, rows, side="right")
        split = []
        for number, table in enumerate(self._tables):
            places = np.flatnonzero(owner == number)
            if len(places) or (number == 0 and not len(rows)):
                split.append((table, rows[places] - (ends[number] - table.n_rows), places))
        return split
