"""Write: the one process that makes every group and row of the cache. It imports no torch.

Every task is one commit: when the answer arrives, its rows are durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from logging import getLogger
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from featpipe.errors import DictionaryLocked
from featpipe.pipeline.messages import Written
from featpipe.pipeline.term_writer import TermWriter
from featpipe.store import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.pipeline.messages import Rows, TermTables, WriteTask
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
