"""Recovers a file whose last writer died.

Guarantees: recovery makes visible every row
before the first one with a wrong checksum, and no row after it; lengths move only after the rows
are durable. A damaged table is left as it is and reported; the other tables stay usable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.errors import UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.schema import CHECKS, END_SUFFIX
from featpipe.store.views import load_table, walk_objects

if TYPE_CHECKING:
    from featpipe.store.disk import Disk
    from featpipe.store.hdf5_parse import Structure
    from featpipe.store.views import FileMap, TableView

_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of a recovery: end of the file's used part, rows regained and damage by table."""

    end: int
    regained: dict[str, int]
    damaged: dict[str, str]


def recover(disk: Disk, descriptor: int, mapping: FileMap, structure: Structure) -> Recovery:
    """Publish the whole rows of each table. Raises UnreadableDictionary, OSError."""
    announced, root = structure.superblock()
    regained: dict[str, int] = {}
    damaged: dict[str, str] = {}
    has_foreign = False
    lengths: list[tuple[int, int]] = []
    for name, header, spec in walk_objects(structure, root):
        if spec is None:
            has_foreign |= not header.is_group or bool(header.refusals)
            continue
        try:
            view = load_table(structure, mapping, name, header)
            n_real = count_real_rows(view)
            lengths += _lengths(view, n_real)
            has_foreign |= view.has_foreign
        except UnreadableDictionary as error:
            damaged[name] = error.message
            continue
        if n_real > view.n_rows:
            regained[name] = n_real - view.n_rows
    if lengths:
        disk.sync(descriptor)
        for address, n_rows in lengths:
            disk.write(descriptor, address, hdf5.u64(n_rows))
    # The extent of foreign and damaged objects is unknown: everything announced counts as used.
    end = announced if has_foreign or damaged else structure.reach
    return Recovery(end, regained, damaged)


def count_real_rows(view: TableView) -> int:
    """Visible rows, and those after them up to the first whose checksum is wrong."""
    row = view.n_rows
    while row < view.n_capacity:
        stop = min(row + _BLOCK, view.n_capacity)
        if not view.fixed[CHECKS].slice(row, stop).any():
            return row
        bad = view.bad_rows(row, stop)
        if len(bad):
            return int(bad[0])
        row = stop
    return row


def _lengths(view: TableView, n_rows: int) -> list[tuple[int, int]]:
    """(address, length) of the lengths to change for ``n_rows`` rows, in order of publishing."""
    wanted = {}
    for name in view.values:
        ends = view.fixed[name + END_SUFFIX]
        wanted[name] = int(ends.slice(n_rows - 1, n_rows)[0]) if n_rows else 0
    wanted |= dict.fromkeys(view.fixed, n_rows)
    return [
        (view.headers[name].dims_address, length)
        for name, length in wanted.items()
        if view.headers[name].shape[0] != length
    ]
