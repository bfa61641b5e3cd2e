"""A dictionary without what rewrites and crashes left in it, and without damaged rows.

Guarantees: the file under the name is the old one or the whole new one, at every instant; nobody
writes meanwhile; readers that have the old one open keep it until they refresh.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import DictionaryError
from featpipe.store.copy import rows_of, sound_blocks
from featpipe.store.disk import Disk, writing
from featpipe.store.reader import Reader
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from featpipe.store.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class Compaction:
    """What was kept. ``n_dropped`` rows were damaged; bytes are those on disk."""

    path: Path
    n_rows: int
    n_dropped: int
    before_bytes: int
    after_bytes: int

    def __str__(self) -> str:
        lost = f", {self.n_dropped:,} damaged rows left out" if self.n_dropped else ""
        return (
            f"{self.path}: {self.n_rows:,} rows kept{lost}; "
            f"{self.before_bytes:,} -> {self.after_bytes:,} bytes"
        )


def compact_dictionary(path: str | Path, *, disk: Disk | None = None) -> Compaction:
    """Rewrite the dictionary at ``path`` and put the result in its place.

    Raises DictionaryLocked, WriteFailed (the old file stays), and DictionaryError when the file
    holds objects of another program, or tables too damaged to read, which a rewrite would lose.
    """
    path = Path(path).resolve()
    disk = disk or Disk()
    aside = path.with_name(f".{path.name}.compact")
    Reader(path).close()  # a missing file is an error here, and not the start of a new one
    owner = Writer.open(path, disk=disk)
    try:
        aside.unlink(missing_ok=True)
        with Reader(path) as reader:
            _refuse_strangers(reader)
            with Writer.open(aside, disk=disk) as target:
                counts = [copy_table(reader.table(name), target) for name in reader.tables()]
        before, after = (file.stat().st_blocks * 512 for file in (path, aside))
        with writing(path):
            disk.replace(aside, path)
            disk.sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    finally:
        owner.abandon()
    kept, dropped = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    return Compaction(path, kept, dropped, before, after)


def copy_table(table: TableReader, target: Writer) -> tuple[int, int]:
    """Append a table's sound rows to that of the same name; (rows kept, rows damaged)."""
    written = target.table(table.name, table.spec)
    values = {name: table.n_values(name) for name in table.now.view.values}
    written.reserve(written.n_rows + table.n_rows, values)
    n_kept = n_damaged = 0
    for rows, n_bad in sound_blocks(table):
        n_kept += written.append(rows_of(table, rows))
        n_damaged += n_bad
    target.commit()
    return n_kept, n_damaged


def _refuse_strangers(reader: Reader) -> None:
    problems: list[str] = []
    reader.tables(problems)
    problems += reader.strangers()
    if problems:
        raise DictionaryError(
            f"{reader.path} holds what compacting would lose: {'; '.join(problems)}",
            hint="merge it into a new file to save the tables that can be read",
        )
