"""What the files of a folder cache hold, row by row, against one file of one machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cache_contents import contents

from featpipe.store.folder_layout import FolderLayout

if TYPE_CHECKING:
    from pathlib import Path

    Rows = dict[bytes, tuple[bytes, ...]]


@dataclass(slots=True)
class Comparison:
    """Where a folder is not what one machine makes."""

    words: list[str]
    n_missing: int = 0
    n_unequal: int = 0
    """Rows with other bytes, in excess, or in two shards."""


def compare_folder(folder: Path, one: Path) -> Comparison:
    """Every keyed table of both. Term ids are numbers of a file, so terms stand for them."""
    expected = {name: rows for name, rows in contents(one).items() if is_compared(name, rows)}
    found, words = gather(folder)
    made = Comparison(words, n_unequal=len(words))
    for name in sorted(expected.keys() | found.keys()):
        asked, rows = expected.get(name, {}), found.get(name, {})
        n_missing, n_extra = len(asked.keys() - rows.keys()), len(rows.keys() - asked.keys())
        n_other = sum(asked[key] != rows[key] for key in asked.keys() & rows.keys())
        if n_missing or n_extra or n_other:
            words.append(f"{name}: {n_missing} missing, {n_extra} extra, {n_other} different")
        made.n_missing += n_missing
        made.n_unequal += n_extra + n_other
    return made


def is_compared(name: str, rows: Rows) -> bool:
    """Vocabularies are those of a file."""
    return bool(rows) and "vocabulary" not in name


def gather(folder: Path) -> tuple[dict[str, Rows], list[str]]:
    """The rows of all files, and in words which table has rows in two of the shards."""
    layout = FolderLayout.read(folder)
    found: dict[str, Rows] = {}
    words: list[str] = []
    shards = [file for files in layout.shard_files().values() for file in files]
    for file in [*layout.part_files(), *shards]:
        for name, rows in contents(file).items():
            if not is_compared(name, rows):
                continue
            known = found.setdefault(name, {})
            if file in shards and known.keys() & rows.keys():
                words.append(f"{file.name}: {name} has rows of another file")
            known.update(rows)
    return found, words
