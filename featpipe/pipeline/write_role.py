"""Write: the one process that makes every group and row of the cache. It imports no torch.

Every task is one commit: when the answer arrives, its rows are durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from logging import getLogger
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryLocked
from featpipe.pipeline.messages import Written
from featpipe.store import Reader, Writer, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from featpipe.pipeline.messages import LocalTerms, Rows, TermTables, WriteTask
    from featpipe.pipeline.units import Texts
    from featpipe.store import TableSpec


logger = getLogger(__name__)

_TRY_AGAIN_S = 0.1


@dataclass(slots=True)
class WriteRole:
    """Appends rows to tables it creates when first needed.

    Args:
        cache: path of the file; created when missing.
        specs: table name -> its columns, for every table this run may write.
        terms: the tables of the term analyser.
        lock_wait_s: how long to wait for another writer to be done.

    Raises:
        DictionaryLocked: another process writes this file, and went on for longer than that.

    """

    cache: str
    specs: Mapping[str, TableSpec]
    terms: TermTables
    lock_wait_s: float = 0.0
    _writer: Writer = field(init=False)
    _term_ids: NDArray[np.uint32] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._writer = _open_when_free(Path(self.cache), self.lock_wait_s)

    def run(self, task: WriteTask) -> Written:
        """Append and commit; when this returns, the rows survive the loss of any process."""
        new = {name: self._append(name, rows) for name, rows in task.rows.items()}
        if task.terms is not None:
            new[self.terms.units] = self._append_terms(task.terms)
        self._writer.commit()
        return Written(new)

    def close(self) -> None:
        """Trim and release the file."""
        self._writer.close()

    def _append(self, name: str, rows: Rows) -> int:
        return self._writer.table(name, self.specs[name]).append(rows)

    def _append_terms(self, terms: LocalTerms) -> int:
        ids = self._ids_of(terms.vocabulary)[terms.ids]
        return self._append(self.terms.units, {"keys": terms.keys, "ids": (ids, terms.lengths)})

    def _ids_of(self, terms: Texts) -> NDArray[np.uint32]:
        """The file's ids of distinct terms; new ones are added to the vocabulary."""
        vocabulary = self._writer.table(self.terms.vocabulary, self.specs[self.terms.vocabulary])
        if self._term_ids is None:
            self._term_ids = self._read_term_ids()
        keys = keys_of(terms.strings())
        new = np.flatnonzero(vocabulary.find(keys) < 0)
        if len(new):
            first = int(self._term_ids.max(initial=0)) + 1
            ids = np.arange(first, first + len(new), dtype=np.uint32)
            vocabulary.append({"keys": keys[new], "id": ids, "term": terms.take(new).ragged})
            # Durable before any row that refers to it: after a crash, an id that was lost could
            # else be given to another term.
            self._writer.commit()
            self._term_ids = np.concatenate([self._term_ids, ids])
        return self._term_ids[vocabulary.find(keys)]

    def _read_term_ids(self) -> NDArray[np.uint32]:
        """Ids by row of the vocabulary, as they are stored."""
        with Reader(Path(self.cache)) as reader:
            if self.terms.vocabulary not in reader:
                return np.empty(0, np.uint32)
            table = reader.table(self.terms.vocabulary)
            return np.array(table.gather("id", np.arange(table.n_rows)), np.uint32)


def _open_when_free(cache: Path, wait_s: float) -> Writer:
    until = monotonic() + wait_s
    is_told = False
    while True:
        try:
            return Writer.open(cache)
        except DictionaryLocked as error:
            if monotonic() >= until:
                raise
            if not is_told:
                logger.warning("waiting up to %.0f s: %s", wait_s, error.message)
                is_told = True
            # The lock belongs to a process we know nothing of: it can only be tried again.
            sleep(_TRY_AGAIN_S)
