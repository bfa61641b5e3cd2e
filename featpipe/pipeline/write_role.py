"""Write: the one process that makes every group and row of the cache. It imports no torch.

Every task is one commit: when the answer arrives, its rows are durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.pipeline.messages import Written
from featpipe.store import Writer, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.pipeline.messages import LocalTerms, Rows, TermTables, WriteTask
    from featpipe.store import TableSpec


@dataclass(slots=True)
class WriteRole:
    """Appends rows to tables it creates when first needed.

    Args:
        cache: path of the file; created when missing.
        specs: table name -> its columns, for every table this run may write.
        terms: the tables of the term analyser.

    """

    cache: str
    specs: Mapping[str, TableSpec]
    terms: TermTables
    _writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        self._writer = Writer.open(Path(self.cache))

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
        vocabulary = self._writer.table(self.terms.vocabulary, self.specs[self.terms.vocabulary])
        keys = keys_of(terms.vocabulary.strings())
        vocabulary.append(
            {"keys": keys, "term": (terms.vocabulary.values, terms.vocabulary.lengths)}
        )
        ids = vocabulary.find(keys)[terms.ids].astype(np.uint32)
        return self._append(self.terms.units, {"keys": terms.keys, "ids": (ids, terms.lengths)})
