"""Compacts a cache in a folder: file by file, and shards of many files into one.

Guarantees: the path of each file names the old or the whole new one at every instant; killed at any
point, no document that was forgotten is back, and no row is lost. Files are locked one at a time:
no jobs may run on the folder meanwhile.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.atomic_write import Access
from featpipe.cache import tables
from featpipe.cache.derived import complete, derived_tables
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.levels import level_bits
from featpipe.cache.merge import merge_caches
from featpipe.errors import DictionaryChanged, DictionaryError
from featpipe.store import FolderReader, Reader, Writer
from featpipe.store.disk import Disk, writing
from featpipe.store.folder_layout import LISTS, OUTBOX, PARTS, WORK, FolderLayout
from featpipe.store.rewrite import compact_dictionary, sound_blocks
from featpipe.store.schema import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from featpipe.store.rewrite import Compaction, Pick

#: A shard with more additions than this becomes one file.
MOST_ADDITIONS = 8


@dataclass(frozen=True, slots=True)
class FolderCompaction:
    """Result: what came of each file; ``n_folded`` additions are now in the files of their shards.

    ``leftovers`` are folders with names and texts of documents, which a compaction leaves.
    """

    path: Path
    files: tuple[Compaction, ...]
    n_folded: int
    leftovers: tuple[str, ...] = ()

    def __str__(self) -> str:
        kept, unwanted, before, after = (
            sum(getattr(file, name) for file in self.files)
            for name in ("n_rows", "n_unwanted", "before_bytes", "after_bytes")
        )
        freed = f", {unwanted:,} of forgotten documents freed" if unwanted else ""
        folded = f", {self.n_folded:,} additions folded" if self.n_folded else ""
        head = (
            f"{self.path}: {len(self.files):,} files, {kept:,} rows kept{freed}{folded}; "
            f"{before:,} -> {after:,} bytes"
        )
        note = (
            f"names and texts of forgotten documents are left in {' and '.join(self.leftovers)}; "
            "remove these folders when all jobs are done (featpipe shard status)"
        )
        return f"{head}\n{note}" if self.leftovers and unwanted else head


def compact_folder(path: str | Path) -> FolderCompaction:
    """Rewrite each file of a folder without what nothing needs.

    Raises:
        DictionaryError: a file is damaged; what was compacted before stays so.
        DictionaryChanged: a job published a file of a shard meanwhile.
        Else as `featpipe.store.rewrite.compact_dictionary`.
    """
    with FolderReader(path) as reader:
        layout = reader.layout
        _remove_second_names(reader)
        n_folded = sum(_fold(layout, shard) for shard in layout.shard_files())
        reader.refresh()
        parts = layout.part_files()
        forgotten = Forgotten(reader)
        forgotten.settle()
        levels = _levels_by_file(reader, forgotten) if forgotten else {}

        def compact(file: Path) -> Compaction:
            return _compact(file, forgotten, levels.get(file), lambda: _refuse_new(layout, parts))

        done = tuple(map(compact, _in_order(reader)))
    kinds = (name for name in (OUTBOX, LISTS, WORK) if any((layout.path / name).glob("*")))
    return FolderCompaction(layout.path, done, n_folded, tuple(kinds))


def _remove_second_names(reader: FolderReader) -> None:
    """Remove names of published files that processes left which were killed as they published."""
    published = {(file.st_dev, file.st_ino) for file in map(Path.stat, reader.files)}
    folder = reader.layout.path
    for file in (*folder.glob(f"{WORK}/*.h5"), *folder.glob(".forget-*/*.h5")):
        with suppress(FileNotFoundError):
            status = file.stat()
            if (status.st_dev, status.st_ino) in published:
                with writing(file):
                    file.unlink(missing_ok=True)


def _in_order(reader: FolderReader) -> list[Path]:
    """Shards first, then parts from the oldest on.

    That a document left is told by a later part than that it was there: the latest goes last.
    """
    return sorted(reader.files, key=lambda file: file.parent.name == PARTS)


def _levels_by_file(reader: FolderReader, forgotten: Forgotten) -> dict[Path, NDArray[np.uint8]]:
    """Levels of the texts of each file, by row of its ``/texts``, of documents that are kept."""
    found: dict[Path, NDArray[np.uint8]] = {}
    if tables.TEXTS not in reader:
        return found
    bits, texts = level_bits(reader, forgotten.kept), reader.table(tables.TEXTS)
    for file in reader.files:
        with Reader(file, checks_rows=False) as member:
            if tables.TEXTS in member:
                rows = texts.find(np.asarray(member.table(tables.TEXTS).column(KEYS), np.uint8))
                found[file] = np.where(rows >= 0, bits[rows], 0).astype(np.uint8)
    return found


def _refuse_new(layout: FolderLayout, parts: Sequence[Path]) -> None:
    """Raises DictionaryChanged where documents came in that may need what is to be freed."""
    if layout.part_files() != parts:
        raise DictionaryChanged(
            f"a job published documents of {layout.path} meanwhile",
            hint="compact the folder when no jobs run on it",
        )


def _compact(
    file: Path,
    forgotten: Forgotten,
    levels: NDArray[np.uint8] | None,
    check: Callable[[], None],
) -> Compaction:
    opened: list[Reader] = []

    def pick_of(member: Reader) -> Pick:
        opened.append(member)
        return forgotten.of_file(member).pick

    def write_levels(target: Writer) -> None:
        """Those of documents that are kept, in the place of the log of all."""
        texts, bits = opened[0].table(tables.TEXTS), np.asarray(levels, np.uint8)
        log = target.table(tables.TEXT_LEVELS, tables.levels_spec())
        for rows, _ in sound_blocks(texts):
            kept = forgotten.kept(texts, rows)
            kept = kept[bits[kept] > 0]
            log.append({"text": texts.gather(KEYS, kept), "bits": bits[kept]})
        target.commit()
        # Last: a job that has documents of its own sees texts here as stored, until the file is
        # replaced, and calls them done.
        check()

    # Reports of jobs call all rows done, so that a lost one would not be computed again.
    compact = partial(compact_dictionary, file, pick_of=pick_of, is_needed=lambda _: True)
    if file.parent.name == PARTS:
        return compact(leave_out=derived_tables, complete=complete)
    if levels is None:
        return compact()
    left_out = {tables.TEXT_LEVELS}
    return compact(leave_out=lambda _: left_out, complete=write_levels)


def _fold(layout: FolderLayout, shard: int) -> int:
    """Make one file of a shard that has too many; how many additions went into it."""
    files = layout.shard_files()[shard]
    if len(files) - 1 <= MOST_ADDITIONS:
        return 0
    base, aside = files[0], files[0].with_name(f".{files[0].name}.folded")
    access = Access.of(base)
    owners = [Writer.open(file) for file in files]
    try:
        aside.unlink(missing_ok=True)
        merged = merge_caches(files, aside)
        if merged.conflicts or merged.n_damaged or merged.unread:
            raise DictionaryError(
                f"files of shard {layout.shard_name(shard)} are damaged:\n{merged}",
                hint=f"featpipe repair {layout.path}",
            )
        if layout.shard_files()[shard] != files:
            raise DictionaryChanged(
                f"a job published a file of shard {layout.shard_name(shard)} meanwhile",
                hint="compact the folder when no jobs run on it",
            )
        with writing(base):
            with aside.open("rb") as opened:
                access.give(opened.fileno())
            # Killed after this, rows are in two files: found once, and named by verify --deep.
            Disk().replace(aside, base)
            for file in reversed(files[1:]):
                file.unlink()
            Disk().sync_directory(base.parent)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        for owner in owners:
            owner.abandon()
    return len(files) - 1
