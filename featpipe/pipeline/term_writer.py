"""Term statistics on their way into the file: local term ids become those of its vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import Reader, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.pipeline.messages import LocalTerms, TermTables
    from featpipe.pipeline.units import Texts
    from featpipe.store import TableSpec, Writer


class TermWriter:
    """Appends the terms of one analyser. The caller commits.

    Args:
        path: of the cache.
        writer: that owns it.
        tables: vocabulary and units of the analyser.
        specs: their columns.

    """

    def __init__(
        self, path: Path, writer: Writer, tables: TermTables, specs: Mapping[str, TableSpec]
    ) -> None:
        self._path = path
        self._writer = writer
        self._tables = tables
        self._specs = specs
        self._ids: NDArray[np.uint32] | None = None

    def append(self, terms: LocalTerms) -> int:
        """Add the units that have no row yet; returns how many those are."""
        ids = self.ids_of(terms.vocabulary)[terms.ids]
        units = self._writer.table(self._tables.units, self._specs[self._tables.units])
        return units.append({"keys": terms.keys, "ids": (ids, terms.lengths)})

    def ids_of(self, terms: Texts) -> NDArray[np.uint32]:
        """The file's ids of distinct terms; new ones are added to the vocabulary, durably."""
        name = self._tables.vocabulary
        vocabulary = self._writer.table(name, self._specs[name])
        if self._ids is None:
            self._ids = self._read_ids()
        keys = keys_of(terms.strings())
        new = np.flatnonzero(vocabulary.find(keys) < 0)
        if len(new):
            first = int(self._ids.max(initial=0)) + 1
            ids = np.arange(first, first + len(new), dtype=np.uint32)
            vocabulary.append({"keys": keys[new], "id": ids, "term": terms.take(new).ragged})
            # Durable before any row that refers to it: after a crash, an id that was lost could
            # else be given to another term.
            self._writer.commit()
            self._ids = np.concatenate([self._ids, ids])
        return self._ids[vocabulary.find(keys)]

    def _read_ids(self) -> NDArray[np.uint32]:
        """Ids by row of the vocabulary, as they are stored."""
        with Reader(self._path) as reader:
            if self._tables.vocabulary not in reader:
                return np.empty(0, np.uint32)
            table = reader.table(self._tables.vocabulary)
            return np.array(table.gather("id", np.arange(table.n_rows)), np.uint32)
