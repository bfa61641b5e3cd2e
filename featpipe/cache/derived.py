"""Derived rows: what the writer adds to the rows it is given, so that no reader needs to read all.

Rows of texts bring those of `featpipe.cache.levels`, and those of places the entries of
`featpipe.cache.place_index`. A cache from before there were such rows gains them with the first
commit that brings some; until then readers go without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.levels import LevelLog
from featpipe.cache.place_log import PlaceLog

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from featpipe.cache.tables import Rows
    from featpipe.store import Reader, Writer


def derived_tables(reader: Reader) -> frozenset[str]:
    """The tables of a cache whose rows follow from those of others, and are not copied with them.

    The levels of texts follow from documents, where there are any.
    """
    of_documents = {tables.TEXT_LEVELS} if tables.DOCUMENTS in reader else set()
    return frozenset({tables.PLACES, *of_documents})


def complete(writer: Writer) -> None:
    """Add and commit all derived rows that a cache lacks. Nothing may be uncommitted."""
    DerivedRows(writer, {tables.TEXT_LEVELS, tables.SOURCES}).catch_up()
    writer.commit()


class DerivedRows:
    """Keeps derived rows in step with a cache. The caller commits.

    Args:
        writer: that owns the cache.
        written: the tables that the caller writes.

    """

    def __init__(self, writer: Writer, written: Collection[str]) -> None:
        self._writer = writer
        self._levels = LevelLog(writer) if tables.TEXT_LEVELS in written else None
        self._places = PlaceLog(writer) if tables.SOURCES in written else None
        self._is_behind = True

    def catch_up(self) -> None:
        """Add what is missing of committed rows; looks once. Nothing may be uncommitted."""
        if not self._is_behind:
            return
        self._writer.commit()  # where one has failed, its rows are taken back here
        for derived in (self._levels, self._places):
            if derived is not None:
                derived.catch_up()
        self._is_behind = False

    def append(self, rows: Mapping[str, Rows]) -> None:
        """Add what follows from these rows, which were appended just now."""
        if self._places is not None and tables.SOURCES in rows:
            self._places.append(rows[tables.SOURCES])
        if self._levels is not None and tables.TEXT_LEVELS in rows:
            self._append_levels(self._levels, rows)

    def _append_levels(self, levels: LevelLog, rows: Mapping[str, Rows]) -> None:
        given = rows[tables.TEXT_LEVELS]
        texts, bits = (np.asarray(given[name], np.uint8) for name in ("text", "bits"))
        levels.append(texts, bits)
        if tables.DOCUMENTS in rows:
            keys = np.asarray(rows[tables.DOCUMENTS]["keys"], np.uint8)
            documents = self._writer.table(tables.DOCUMENTS, tables.documents_spec())
            at = documents.find(keys)
            if len(at) and at.max() == documents.n_rows - 1:  # else all were stored before
                levels.cover(keys[at.argmax()], int(at.max()))

    def forget(self) -> None:
        """Start from the file again: a commit failed, and rows of it are lost."""
        self._is_behind = True
        if self._levels is not None:
            self._levels.forget()
