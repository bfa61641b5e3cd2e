"""Verifies a cache in a folder: each file as one, and that the files belong together.

A file that may not be opened is named with the reason, and all others are checked.

Besides what `featpipe.store.verify` finds in each: files that are missing or not of this cache, a
backup that was interrupted, and with the deep check rows in a shard that is not their key's, and
keys that two files of a shard hold.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.store.folder_layout import UNFINISHED, FolderLayout, shard_of, unfinished_backup
from featpipe.store.reader import Reader
from featpipe.store.verify import Verification, is_out_of_reach, verify_dictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.store.table_reader import TableReader

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class FolderVerification:
    """A folder: its files, and problems outside of them.

    ``unread`` tells what besides the files of tables could not be looked at, and why.
    """

    path: Path
    is_deep: bool
    files: tuple[Verification, ...]
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether everything was checked, and no damage was found."""
        return not (self.problems or self.unread) and all(file.is_good for file in self.files)

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found, in what could be checked."""
        return bool(self.problems) or any(f.is_checked and not f.is_good for f in self.files)

    def __str__(self) -> str:
        not_good = "DAMAGED" if self.is_damaged else "NOT WHOLLY CHECKED"
        verdict = "good" if self.is_good else not_good
        depth = "every row" if self.is_deep else "structure only"
        checked = [file for file in self.files if file.is_checked]
        n_rows = sum(table.n_rows for file in checked for table in file.tables)
        head = f"{self.path}: {verdict} ({depth}), {len(checked):,} files, {n_rows:,} rows"
        if len(checked) < len(self.files):
            head += f"; {len(self.files) - len(checked):,} more could not be opened"
        bad = (str(file) for file in self.files if not file.is_good)
        return "\n".join((head, *self.problems, *self.unread, *bad))


def verify_folder(
    path: str | Path, *, is_deep: bool = False, asks_libhdf5: bool = True
) -> FolderVerification:
    """Check without changing anything, also beside jobs. Arguments as of `verify_dictionary`.

    Raises:
        UnreadableDictionary, NewerDictionary: the folder is not a cache.
    """
    layout = FolderLayout.read(path)
    problems: list[str] = []
    unread: list[str] = []
    if (layout.path / UNFINISHED).exists():
        problems.append(unfinished_backup(layout.path).message)
    shards, parts = _listed(layout, problems, unread)
    results = [layout.results_file] if layout.results_file.exists() else []
    files = [
        _verify(file, is_deep=is_deep, asks_libhdf5=asks_libhdf5)
        for file in [*parts, *results, *(file for of_one in shards.values() for file in of_one)]
    ]
    are_good = {file.path: file.is_good for file in files}
    for shard, of_one in shards.items() if is_deep else ():
        if all(are_good[file] for file in of_one):
            problems += _misplaced(layout, shard, of_one)
    return FolderVerification(
        layout.path, is_deep, tuple(files), tuple(problems), unread=tuple(unread)
    )


def _verify(file: Path, *, is_deep: bool, asks_libhdf5: bool) -> Verification:
    try:
        return verify_dictionary(file, is_deep=is_deep, asks_libhdf5=asks_libhdf5)
    except DictionaryError as error:  # others can be opened, and their damage is not to be hidden
        return Verification(file, is_deep, (), (error.message,), is_checked=False)


def _listed(
    layout: FolderLayout, problems: list[str], unread: list[str]
) -> tuple[dict[int, list[Path]], list[Path]]:
    shards: dict[int, list[Path]] = {}
    parts: list[Path] = []
    with _noting(problems, unread):
        problems += [
            f"{file} is an earlier file of its shard under a second name; "
            f"featpipe repair {layout.path}"
            for file in layout.second_names()
        ]
        shards = layout.shard_files()
    with _noting(problems, unread):
        parts = layout.part_files()
    with _noting(problems, unread):
        problems += [
            f"{file} is missing, and a report of its job says that it was made"
            for file in layout.missing_files()
        ]
    return shards, parts


@contextmanager
def _noting(problems: list[str], unread: list[str]) -> Iterator[None]:
    """Go on after an error of the folder, as damage or as what could not be looked at."""
    try:
        yield
    except DictionaryError as error:
        (unread if is_out_of_reach(error) else problems).append(error.message)


def _misplaced(layout: FolderLayout, shard: int, files: Sequence[Path]) -> Iterator[str]:
    """What is wrong with the keys of one shard's files."""
    readers = [Reader(file) for file in files]
    try:
        for at, reader in enumerate(readers):
            for name in reader.tables():
                table = reader.table(name)
                if not table.spec.keyed:
                    continue
                n_other = n_twice = 0
                before = [r.table(name) for r in readers[:at] if name in r]
                is_vocabulary = name.startswith("terms/") and name.endswith("/vocabulary")
                for keys in _blocks(table):
                    n_other += int((shard_of(keys, layout.bits) != shard).sum())
                    n_twice += sum(int((other.find(keys) >= 0).sum()) for other in before)
                if n_other and not is_vocabulary:
                    yield f"{reader.path}: {name}: {n_other:,} rows belong to other shards"
                if n_twice and not is_vocabulary:
                    yield (
                        f"{reader.path}: {name}: {n_twice:,} rows are in an earlier file of the"
                        f" shard, too; featpipe compact {layout.path} makes them one"
                    )
    finally:
        for reader in readers:
            reader.close()


def _blocks(table: TableReader) -> Iterator[np.ndarray]:
    for start in range(0, table.n_rows, _BLOCK):
        yield np.asarray(table.slice("keys", start, min(start + _BLOCK, table.n_rows)), np.uint8)
