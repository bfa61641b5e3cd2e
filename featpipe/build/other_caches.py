"""Rows of other caches: what one of them has computed is copied, never computed again.

A row is a function of (fingerprint, text) alone, so that of a colleague's cache is as good as ours.
Terms are counted anew, since their ids are those of one file.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np

from featpipe.store.open_reader import open_reader
from featpipe.store.rewrite import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.cache.tables import Rows
    from featpipe.store import TableReader, TableSpec

#: Groups of tables whose rows are the same in every cache.
_GROUPS = frozenset({"embeddings", "entities"})


class FoundRows(NamedTuple):
    """Rows for one table, and the places of their keys among those asked for."""

    rows: Rows
    places: NDArray[np.intp]


class OtherCaches:
    """Caches that are read, and never written.

    Args:
        paths: files or folders.

    Raises:
        UnreadableDictionary, NewerDictionary: one of them is no cache.

    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        with ExitStack() as opened:
            self._readers = [opened.enter_context(open_reader(path)) for path in paths]
            self._files = opened.pop_all()
        self._tables: dict[str, list[TableReader]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close them."""
        self._files.close()

    def find(self, table: str, spec: TableSpec, keys: NDArray[np.uint8]) -> Iterator[FoundRows]:
        """The rows of these keys (n, 16), from each cache those that the earlier ones lack.

        Places count the keys without those of earlier answers.

        Args:
            table: such as ``embeddings/zh-small@3f2a9c71b0de``.
            spec: its schema and fingerprint. A table of the same ones may have another name there.
            keys: of the rows.

        """
        if table not in self._tables:
            self._tables[table] = list(self._same(table, spec))
        for other in self._tables[table]:
            rows = other.find(keys)
            places = np.flatnonzero(rows >= 0)
            if len(places):
                yield FoundRows(cast("Rows", rows_of(other, rows[places])), places)
                keys = np.delete(keys, places, axis=0)

    def _same(self, table: str, spec: TableSpec) -> Iterator[TableReader]:
        group, end = table.partition("/")[0], table.rpartition("@")[2]
        if group not in _GROUPS:
            return
        for reader in self._readers:
            for name in reader.tables():
                if name.startswith(f"{group}/") and name.endswith(f"@{end}"):
                    other = reader.table(name)
                    if other.spec == spec:
                        yield other
