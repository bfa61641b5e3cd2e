"""Repairs a cache: damaged rows are dropped, and with them the rows that need them.

A document is dropped when the text of one of its units is lost, and a text's terms when one of them
is: the next build computes both again from the documents, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.derived import complete
from featpipe.settings import LEVELS
from featpipe.store.repair import Repair, repair_dictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.store import TableWriter, Writer
    from featpipe.store.row_source import RowSource

    Rows = NDArray[np.int64]

_UNITS, _VOCABULARY = "/units", "/vocabulary"


def repair_cache(path: str | Path, *, before_loss: Callable[[], None] = lambda: None) -> Repair:
    """As :func:`featpipe.store.repair.repair_dictionary`, for a cache."""
    n_places = 0

    def complete_rows(writer: Writer) -> None:
        nonlocal n_places
        complete(writer)
        n_places = writer.table(tables.PLACES, tables.places_spec()).n_rows

    repaired = repair_dictionary(
        path,
        order=_order,
        select=_Dependents().select,
        complete=complete_rows,
        before_loss=before_loss,
    )
    # The index of places was made anew, whole.
    return replace(
        repaired,
        tables=tuple(
            replace(one, n_kept=n_places, n_dependent=0) if one.name == tables.PLACES else one
            for one in repaired.tables
        ),
    )


def _order(name: str) -> int:
    """Tables that others need come first."""
    return int(name != tables.TEXTS and not name.endswith(_VOCABULARY))


class _Dependents:
    """Drops rows that need lost ones; remembers the ids of the terms that were kept."""

    def __init__(self) -> None:
        self._ids: dict[str, list[NDArray[np.generic]]] = {}

    def select(self, source: RowSource, rows: Rows, written: Mapping[str, TableWriter]) -> Rows:
        """Of sound rows those that need no lost one."""
        if source.name == tables.PLACES:  # they number rows
            return rows[:0]
        if source.name == tables.DOCUMENTS and tables.TEXTS in written:
            return self._with_texts(source, rows, written[tables.TEXTS])
        if source.name.startswith("terms/"):
            group = source.name.rpartition("/")[0]
            if source.name.endswith(_VOCABULARY):
                self._ids.setdefault(group, []).append(source.fixed["id"].gather(rows))
            else:
                known = [np.zeros(0, np.uint32), *self._ids.get(group, [])]
                return self._with_terms(source, rows, np.concatenate(known))
        return rows

    def _with_texts(self, source: RowSource, rows: Rows, texts: TableWriter) -> Rows:
        are_whole = np.ones(len(rows), np.bool_)
        for level in LEVELS:
            keys, lengths = source.ragged(f"{level}_keys", rows)
            is_there = texts.find(np.asarray(keys, np.uint8).reshape(-1, 16)) >= 0
            are_whole &= all_of(is_there, lengths)
        return rows[are_whole]

    def _with_terms(self, source: RowSource, rows: Rows, known: NDArray[np.generic]) -> Rows:
        ids, lengths = source.ragged("ids", rows)
        return rows[all_of(np.isin(ids, known), lengths)]


def all_of(claims: NDArray[np.bool_], lengths: Rows) -> NDArray[np.bool_]:
    """By row, whether all its claims are true."""
    n_false = np.concatenate([[0], np.cumsum(~claims)])
    ends = np.cumsum(lengths)
    whole: NDArray[np.bool_] = n_false[ends] == n_false[ends - lengths]
    return whole
