"""A writer of one file after another, so that a pool outlives the files that it fills.

Each task names its file. A file is released with the task that is its last, or when another begins.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from featpipe.cache.write import WRITE, WriteRole
from featpipe.pool.role import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.cache.write import TermTables, WriteTask
    from featpipe.store import TableSpec


def write_files_role(
    specs: Mapping[str, TableSpec], terms: TermTables | None = None, *, wait_s: float = 0.0
) -> Role:
    """The role of the writer, for ``CacheWriter(pool, cache)``.

    Args:
        specs: table name -> its columns, for every table that may be written.
        terms: tables of the analyser whose statistics may be written.
        wait_s: how long to wait for another process that writes a file.

    """
    return Role(
        name=WRITE,
        target="featpipe.cache.write_files:WriteFilesRole",
        arguments={"specs": dict(specs), "terms": terms, "wait_s": wait_s},
        threads=1,
        prefetch=8,
        max_losses=10,  # rows are to blame for nothing: a writer that is killed is replaced
    )


class WriteFilesRole:
    """Appends rows to the file that each task names. Arguments as of :func:`write_files_role`."""

    def __init__(
        self, specs: Mapping[str, TableSpec], terms: TermTables | None, wait_s: float
    ) -> None:
        self._specs, self._terms, self._wait_s = specs, terms, wait_s
        self._cache = ""
        self._writer: WriteRole | None = None

    def run(self, task: WriteTask) -> None:
        """Append and commit; when this returns, the rows survive the loss of any process.

        Raises:
            DictionaryLocked: another process writes this file, and went on for longer than that.

        """
        if self._writer is None or task.cache != self._cache:
            self.close()
            until = monotonic() + self._wait_s
            self._writer = WriteRole(task.cache, self._specs, self._terms, until)
            self._cache = task.cache
        self._writer.run(task)
        if task.is_last:
            self.close()

    def close(self) -> None:
        """Trim and release the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
