"""Term statistics on their way into the file: local term ids become those of its vocabulary."""

from __future__ import annotations

from dataclasses import dataclass, field
from logging import getLogger
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryLocked
from featpipe.store import Reader, Writer, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from featpipe.cache.texts import Texts
    from featpipe.store import TableSpec

    Rows = dict[str, "NDArray[np.generic] | tuple[NDArray[np.generic], NDArray[np.int64]]"]


@dataclass(frozen=True, slots=True, eq=False)
class LocalTerms:
    """Term ids of distinct units, against a vocabulary of this batch alone.

    The writer turns them into ids of the file's vocabulary, so workers need share nothing.
    """

    keys: NDArray[np.uint8]
    vocabulary: Texts
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WriteTask:
    """Parent -> writer: rows by table, written in this order, made durable together."""

    rows: Mapping[str, Rows]
    terms: LocalTerms | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Writer -> parent: acknowledged. Rows that were new, by table."""

    n_new: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TermTables:
    """Where term statistics go."""

    vocabulary: str
    units: str


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


# Write: the one process that makes every group and row of the cache. It imports no torch.
#
# Every task is one commit: when the answer arrives, its rows are durable.


logger = getLogger(__name__)

_TRY_AGAIN_S = 0.1


@dataclass(slots=True)
class WriteRole:
    """Appends rows to tables it creates when first needed.

    Args:
        cache: path of the file; created when missing.
        specs: table name -> its columns, for every table this run may write.
        terms: the tables of the term analyser.
        wait_until: until when to wait for another writer to be done, in seconds of the clock that
            all processes of a machine share (``time.monotonic``): a restart waits no longer.

    Raises:
        DictionaryLocked: another process writes this file, and went on for longer than that.

    """

    cache: str
    specs: Mapping[str, TableSpec]
    terms: TermTables
    wait_until: float = 0.0
    _writer: Writer = field(init=False)
    _terms: TermWriter = field(init=False)

    def __post_init__(self) -> None:
        self._writer = _open_when_free(Path(self.cache), self.wait_until)
        self._terms = TermWriter(Path(self.cache), self._writer, self.terms, self.specs)

    def run(self, task: WriteTask) -> Written:
        """Append and commit; when this returns, the rows survive the loss of any process."""
        new = {name: self._append(name, rows) for name, rows in task.rows.items()}
        if task.terms is not None:
            new[self.terms.units] = self._terms.append(task.terms)
        self._writer.commit()
        return Written(new)

    def close(self) -> None:
        """Trim and release the file."""
        self._writer.close()

    def _append(self, name: str, rows: Rows) -> int:
        return self._writer.table(name, self.specs[name]).append(rows)


def _open_when_free(cache: Path, until: float) -> Writer:
    is_told = False
    while True:
        try:
            return Writer.open(cache)
        except DictionaryLocked as error:
            if monotonic() >= until:
                raise
            if not is_told:
                logger.warning("waiting up to %.0f s: %s", until - monotonic(), error.message)
                is_told = True
            # The lock belongs to a process we know nothing of: it can only be tried again.
            sleep(_TRY_AGAIN_S)
