"""Copies a cache in a folder, file by file, also while files are published into it.

Guarantees: each file of the copy is whole; a copy holds no report of a job without the files that
the job made before it. An interrupted backup is gone on with by the same command; until then a new
one is no cache, and one that was to be brought up to date is neither verified as good nor built on,
as documents may be there without their texts.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.atomic_write import write_atomically
from featpipe.errors import DictionaryError
from featpipe.store.backup import back_up_dictionary
from featpipe.store.disk import writing
from featpipe.store.folder_layout import (
    DESCRIPTION,
    LISTS,
    OUTBOX,
    REPORTS,
    UNFINISHED,
    FolderLayout,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.store.backup import Backup


@dataclass(frozen=True, slots=True)
class FolderBackup:
    """Result of a backup of a folder."""

    path: Path
    files: tuple[Backup, ...]

    def __str__(self) -> str:
        n_rows = sum(file.n_rows for file in self.files)
        return f"{self.path}: {len(self.files):,} files, {n_rows:,} rows"


def back_up_folder(source: str | Path, target: str | Path) -> FolderBackup:
    """Make ``target`` a folder with the files of ``source``; an earlier backup is brought up to it.

    Raises:
        DictionaryError: ``target`` is the source, a file, or a folder of another cache; or rows of
            ``source`` are damaged.
        UnreadableDictionary, NewerDictionary: ``source`` cannot be read.
        DictionaryLocked: a file of ``target`` is being written.
        WriteFailed: what was copied stays; the same command goes on.
    """
    layout, target = FolderLayout.read(os.path.realpath(source)), Path(os.path.realpath(target))
    _refuse_target(layout, target)
    # Reports first: what they tell of is there, and is copied after them.
    reports = list(_others(layout.path))
    told = {file.relative_to(layout.path) for file in reports}
    tables = [*layout.part_files(), *_shard_files(layout), *_existing(layout.results_file)]
    made = []
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copymode(layout.path, target)
        write_atomically(target / UNFINISHED, layout.description.read_bytes(), is_durable=True)
        shutil.copymode(layout.description, target / UNFINISHED)
    for file in _others(target):
        # Reports above all: where a repair removed one, its job is to be done again.
        name = file.relative_to(target)
        if name.parts[0] in {REPORTS, LISTS, OUTBOX} and name not in told:
            with writing(file):
                file.unlink()
    for file in tables:
        copy = target / file.relative_to(layout.path)
        with writing(copy):
            copy.parent.mkdir(exist_ok=True)
        made.append(back_up_dictionary(file, copy))
    for file in reports:
        _copy_whole(file, target / file.relative_to(layout.path))
    kept = {target / file.relative_to(layout.path) for file in tables}
    for file in _stale(FolderLayout(target, layout.bits), kept):
        with writing(file):
            file.unlink()
    with writing(target):
        (target / UNFINISHED).replace(target / DESCRIPTION)
    return FolderBackup(target, tuple(made))


def _refuse_target(layout: FolderLayout, target: Path) -> None:
    if not target.exists():
        return
    if target.samefile(layout.path):
        raise DictionaryError(f"{target} is the folder to back up", hint="name another folder")
    described = [target / name for name in (DESCRIPTION, UNFINISHED) if (target / name).is_file()]
    wanted = layout.description.read_bytes()
    is_same = bool(described) and all(file.read_bytes() == wanted for file in described)
    if not (is_same or (target.is_dir() and not any(target.iterdir()))):
        raise DictionaryError(
            f"{target} exists and is no backup of {layout.path}", hint="name another folder"
        )


def _shard_files(layout: FolderLayout) -> Iterator[Path]:
    for files in layout.shard_files().values():
        yield from files


def _existing(file: Path) -> list[Path]:
    return [file] if file.exists() else []


def _others(folder: Path) -> Iterator[Path]:
    """All other files that are published: reports, lists, outboxes, plans."""
    tables = {"parts", "shards"}
    for below in sorted(folder.iterdir()):
        if below.is_dir() and below.name not in tables and not below.name.startswith("."):
            yield from (
                file
                for file in sorted(below.rglob("*"))
                if file.is_file() and not file.name.startswith(".")
            )


def _copy_whole(file: Path, copy: Path) -> None:
    aside = copy.with_name(f".{copy.name}.backup")
    with writing(copy):
        if copy.exists() and copy.stat().st_size == file.stat().st_size:
            return  # published files are never rewritten
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, aside)
        aside.replace(copy)


def _stale(layout: FolderLayout, kept: set[Path]) -> Iterator[Path]:
    """Files of an earlier backup that the source has no longer: additions that were folded."""
    for file in [*layout.part_files(), *_shard_files(layout)]:
        if file not in kept:
            yield file
