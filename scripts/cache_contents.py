"""What two caches hold, compared key by key and byte by byte with h5py alone."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import h5py
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

#: Derived, or about the run rather than the documents: a term's id is its turn in this file.
IGNORED = {"index", "indexed", "checks", "id"}
#: Numbers of rows, and their checksums.
IGNORED_TABLES = {"places"}


def contents(path: Path) -> dict[str, dict[bytes, tuple[bytes, ...]]]:
    """Every keyed table: its keys, and the bytes of each row's columns in order of their names.

    Terms stand for their ids, which follow from the order in which counted units arrive.
    """
    tables: dict[str, dict[bytes, tuple[bytes, ...]]] = {}

    def visit(name: str, thing: object) -> None:
        if isinstance(thing, h5py.Group) and "keys" in thing and name not in IGNORED_TABLES:
            rows = rows_of(thing)
            if "ids" in thing:
                terms = terms_of(thing.parent["vocabulary"])
                rows = {
                    key: (terms[np.frombuffer(ids, "<u4")].tobytes(),)
                    for key, (ids,) in rows.items()
                }
            tables[name] = rows

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return tables


def terms_of(vocabulary: h5py.Group) -> NDArray[np.void]:
    """The key of each term, by id."""
    ids = vocabulary["id"][...]
    keys = np.zeros(int(ids.max(initial=0)) + 1, "V16")
    keys[ids] = vocabulary["keys"][...].view("V16").ravel()
    return keys


def rows_of(group: h5py.Group) -> dict[bytes, tuple[bytes, ...]]:
    """Key -> columns. A ragged column is the slice that its row's end says."""
    keys = group["keys"][...]
    columns: list[list[bytes]] = []
    for name in sorted(set(group) - IGNORED - {"keys"}):
        if name.endswith(("_end", "_crc")) and name[: -len("_end")] in group:
            continue
        values = group[name][...]
        if f"{name}_end" in group:
            ends = [0, *group[f"{name}_end"][...].tolist()]
            column = [values[a:b].tobytes() for a, b in pairwise(ends)]
        else:
            column = [row.tobytes() for row in values]
        columns.append(column)
    return dict(zip((key.tobytes() for key in keys), zip(*columns, strict=True), strict=True))


def differences(quiet: dict[str, dict[bytes, tuple[bytes, ...]]], path: Path) -> list[str]:
    """What a disturbed cache has otherwise, in words."""
    found = contents(path)
    words = [f"{name} is missing" for name in quiet.keys() - found.keys()]
    for name, rows in found.items():
        expected = quiet.get(name, {})
        n_missing = len(expected.keys() - rows.keys())
        n_extra = len(rows.keys() - expected.keys())
        n_other = sum(rows[key] != expected[key] for key in rows.keys() & expected.keys())
        if n_missing or n_extra or n_other:
            words.append(f"{name}: {n_missing} missing, {n_extra} extra, {n_other} different")
    return words
