"""What the files of a folder cache hold, row by row, against one file of one machine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from cache_contents import contents

from featpipe.store.folder_layout import FolderLayout

Rows = dict[bytes, tuple[bytes, ...]]


def folder_differences(folder: Path, one: Path) -> list[str]:
    """Where a folder is not what one machine makes, in words; empty when every byte is equal."""
    expected = {name: rows for name, rows in contents(one).items() if rows}
    found, words = gather(folder)
    expected = {name: rows for name, rows in expected.items() if "vocabulary" not in name}
    words += [f"{name} is missing" for name in expected.keys() - found.keys()]
    words += [f"{name} is in excess" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        if expected[name] != found[name]:
            n_missing = len(expected[name].keys() - found[name].keys())
            n_extra = len(found[name].keys() - expected[name].keys())
            both = expected[name].keys() & found[name].keys()
            n_other = sum(expected[name][key] != found[name][key] for key in both)
            words.append(f"{name}: {n_missing} missing, {n_extra} extra, {n_other} different")
    return words


def gather(folder: Path) -> tuple[dict[str, Rows], list[str]]:
    """The rows of all files, and in words which key of a shard is in two of them."""
    layout = FolderLayout.read(folder)
    found: dict[str, Rows] = {}
    words: list[str] = []
    shards = [file for files in layout.shard_files().values() for file in files]
    for file in [*layout.part_files(), *shards]:
        for name, rows in contents(file).items():
            if not rows or "vocabulary" in name:
                continue
            known = found.setdefault(name, {})
            if file in shards and known.keys() & rows.keys():
                words.append(f"{file.name}: {name} has rows of another file")
            known.update(rows)
    return found, words
