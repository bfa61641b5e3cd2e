"""A folder cache with fewer shards: what was built wide is read narrow.

Shards are joined whose numbers have their last bits in common. Nothing is encoded; parts are copied
as they are. Outboxes and reports of jobs stay behind: the new folder is as one whose jobs are done.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.cache.merge import merge_caches
from featpipe.errors import DictionaryError, UsageError
from featpipe.store.disk import writing
from featpipe.store.folder_layout import PARTS, SHARDS, FolderLayout, read_description

if TYPE_CHECKING:
    from featpipe.store.rewrite import Conflict, Merge


@dataclass(frozen=True, slots=True)
class FolderMerge:
    """Result: a merge for each new shard."""

    path: Path
    shards: tuple[Merge, ...]

    @property
    def is_whole(self) -> bool:
        """Whether no row was damaged, unreadable or another one in two files."""
        return not any(m.conflicts or m.n_damaged or m.unread for m in self.shards)

    def __str__(self) -> str:
        n_rows = sum(merged.n_rows for merged in self.shards)
        n_damaged = sum(merged.n_damaged for merged in self.shards)
        damaged = [f"{n_damaged:,} damaged rows left out"] if n_damaged else []
        conflicts: list[Conflict] = [c for merged in self.shards for c in merged.conflicts]
        unread = [what for merged in self.shards for what in merged.unread]
        head = f"{self.path}: {len(self.shards):,} shards, {n_rows:,} rows"
        return "\n".join((head, *damaged, *unread, *map(str, conflicts)))


def narrow_folder(source: str | Path, output: str | Path, n_shards: int) -> FolderMerge:
    """Write a folder cache as one with ``n_shards``.

    Raises:
        UsageError: no power of two below the number of shards that there are.
        DictionaryError: ``output`` exists; it is removed where an error ends the merge.
    """
    layout, path = FolderLayout.read(source), Path(output).absolute()
    if n_shards < 1 or n_shards & (n_shards - 1) or n_shards >= layout.n_shards:
        raise UsageError(
            f"{layout.path} has {layout.n_shards} shards, and cannot have {n_shards} instead",
            hint="a power of two below the number of its shards",
        )
    with writing(path):
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise DictionaryError(
                f"{path} exists already", hint="merge into a new folder"
            ) from None
    try:
        return _narrow(layout, FolderLayout(path, n_shards.bit_length() - 1))
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(path)
        raise


def _narrow(layout: FolderLayout, target: FolderLayout) -> FolderMerge:
    with writing(target.path):
        for name in (PARTS, SHARDS):
            (target.path / name).mkdir()
        shutil.copymode(layout.path, target.path)
        for file in layout.part_files():
            shutil.copy2(file, target.path / PARTS / file.name)
        if layout.results_file.exists():
            shutil.copy2(layout.results_file, target.results_file)
        if (layout.path / "spaces").is_dir():
            shutil.copytree(layout.path / "spaces", target.path / "spaces")
    files = layout.shard_files()
    merged = []
    for number in range(target.n_shards):
        own = [f for n in sorted(files) if n % target.n_shards == number for f in files[n]]
        if own:
            merged.append(merge_caches(own, target.shard_file(number)))
    description = read_description(layout.path) | {"bits": target.bits}
    with writing(target.description):
        # Last: before, the folder is no cache.
        text = json.dumps(description, ensure_ascii=False, indent=1)
        target.description.write_text(text, "utf-8")
    return FolderMerge(target.path, tuple(merged))
