"""The index of places of a folder cache: each file's own, one after the other.

A path, id or last part is looked up in the index of every file of ``/sources``, and the log is read
for the rows that were found. Where a file has no index that covers it, and for all places at once,
the log is looked through as in a cache from before the index.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.place_index import LEFT, PATH, PlaceIndex, next_listed
from featpipe.store import FolderReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.cache.place_index import Numbers
    from featpipe.cache.places import Place
    from featpipe.store import Reader

#: So many paths are looked up one by one; for more, the log is looked through.
_FEW = 64


def open_place_index(reader: Reader) -> PlaceIndex:
    """The places of a cache, a file or a folder, as its reader sees it now."""
    return FolderPlaceIndex(reader) if isinstance(reader, FolderReader) else PlaceIndex(reader)


class FolderPlaceIndex(PlaceIndex):
    """As `PlaceIndex`, of a folder.

    Args:
        reader: of the folder.

    """

    def __init__(self, reader: FolderReader) -> None:
        super().__init__(reader)
        self._reader = reader

    def blocks(self) -> Iterator[list[Place]]:
        """As `PlaceIndex.blocks`; the first block costs as much in a large folder as in a small."""
        if not self._is_covered:
            yield from super().blocks()
            return
        n_first = min(_FEW, self.n_rows)
        rows = np.arange(n_first)
        last = self._find_last([place.path for place in self.read(rows)])
        yield self.read(last[last[:, 1] == rows, 0])
        if n_first < self.n_rows:
            yield from self.blocks_after(n_first - 1)

    def _find_last(self, paths: Sequence[str]) -> Numbers:
        if len(paths) > _FEW or not self._is_covered:
            return super()._find_last(paths)
        found = np.full((len(paths), 2), LEFT, np.int64)
        for number, path in enumerate(paths):
            rows = self._rows_of(PATH, path)
            listed = LEFT
            for row, place in zip(rows, self.read(np.array(rows, np.int64)), strict=True):
                listed = next_listed(place, row, listed)
            if rows:
                found[number] = rows[-1], listed
        return found

    def _rows_of(self, kind: bytes, name: str) -> list[int]:
        if not self._is_covered:
            return super()._rows_of(kind, name)
        return [
            first + row
            for file, first, n in self._reader.files_of(tables.SOURCES)
            for row in PlaceIndex(file)._rows_of(kind, name)
            if row < n
        ]

    @cached_property
    def _is_covered(self) -> bool:
        """Whether every file has an index of all its rows."""
        covered = [
            n if PlaceIndex(file).n_covered >= n else -1
            for file, _, n in self._reader.files_of(tables.SOURCES)
        ]
        return min(covered, default=-1) >= 0 and sum(covered) == self.n_rows
