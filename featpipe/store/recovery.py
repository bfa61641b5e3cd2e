"""Recovers a file whose last writer died.

Guarantees: recovery makes visible every row before the first one with a wrong checksum, and no row
after it; lengths move only after the rows are durable, and never beyond a row that is damaged. A
damaged table is left as it is and reported; the other tables stay usable, and nothing is cut off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.errors import UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.schema import END_SUFFIX
from featpipe.store.structure import walk_objects
from featpipe.store.table_view import count_sound, load_table

if TYPE_CHECKING:
    from featpipe.store.disk import Disk
    from featpipe.store.hdf5_parse import Structure
    from featpipe.store.table_view import TableView
    from featpipe.store.views import FileMap


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of a recovery: end of the file's used part, rows regained and damage by table."""

    end: int
    regained: dict[str, int]
    damaged: dict[str, str]


def recover(
    disk: Disk, descriptor: int, mapping: FileMap, structure: Structure, root: int
) -> Recovery:
    """Publish the whole rows of each table. Raises OSError."""
    announced, _ = structure.superblock()
    regained: dict[str, int] = {}
    problems: list[str] = []
    damaged: dict[str, str] = {}
    has_foreign = False
    followers: list[tuple[int, int]] = []
    leaders: list[tuple[int, int]] = []
    for name, header, spec in walk_objects(structure, root, problems):
        if spec is None:
            has_foreign |= not header.is_group or bool(header.refusals)
            continue
        try:
            view = load_table(structure, mapping, name, header)
            n_rows = view.lengths()[view.leader]
            n_real = _count_real(structure, view)
            *others, leader = _lengths(view, n_real)
        except UnreadableDictionary as error:
            damaged[name] = error.message
            continue
        has_foreign |= view.has_foreign
        followers += others
        leaders.append(leader)
        if n_real > n_rows:
            regained[name] = n_real - n_rows
    damaged |= {problem.partition(":")[0].strip("/"): problem for problem in problems}
    for lengths in (followers, leaders):
        _publish(disk, descriptor, lengths)
    # The extent of foreign and damaged objects is unknown: everything announced counts as used.
    end = max(announced, structure.reach) if has_foreign or damaged else structure.reach
    return Recovery(end, regained, damaged)


def _publish(disk: Disk, descriptor: int, lengths: list[tuple[int, int]]) -> None:
    """Write lengths that have changed, once everything before is durable."""
    changed = [
        (address, n_rows)
        for address, n_rows in lengths
        if int.from_bytes(os.pread(descriptor, 8, address), "little") != n_rows
    ]
    if changed:
        disk.sync(descriptor)
        for address, n_rows in changed:
            disk.write(descriptor, address, hdf5.u64(n_rows))


def _count_real(structure: Structure, view: TableView) -> int:
    """Rows up to the first whose checksum is wrong. Raises UnreadableDictionary for damage."""
    n_real = count_sound(view, view.n_rows, view.n_capacity)
    if view.lengths()[view.leader] > n_real:
        raise structure.damage(f"columns of /{view.name} have different lengths")
    if n_real and len(view.bad_rows(n_real - 1, n_real)):
        raise structure.damage(f"the last row of /{view.name} is not as written")
    return n_real


def _lengths(view: TableView, n_rows: int) -> list[tuple[int, int]]:
    """(address, length) of every length for ``n_rows`` rows, that of the leading column last."""
    wanted = {}
    for name in view.values:
        ends = view.fixed[name + END_SUFFIX]
        wanted[name] = int(ends.slice(n_rows - 1, n_rows)[0]) if n_rows else 0
    order = [*wanted, *(name for name in view.fixed if name != view.leader), view.leader]
    wanted |= dict.fromkeys(view.fixed, n_rows)
    return [(view.headers[name].dims_address, wanted[name]) for name in order]
