"""After a writer died: rows that are whole but not yet visible are made so, the rest is void.

Guarantees: every row before the first one with a wrong checksum is real, whoever wrote it, and
becomes visible; nothing after it does. Lengths move only after the rows are durable. A table that
is damaged is left as it is and reported; it does not keep the others from being used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.errors import UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.schema import CHECKS, END_SUFFIX
from featpipe.store.views import load_table, spec_of

if TYPE_CHECKING:
    from featpipe.store.disk import Disk
    from featpipe.store.hdf5_parse import Structure
    from featpipe.store.views import Mapping, TableView

_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found: where the file's used part ends, rows regained and damage by table."""

    end: int
    regained: dict[str, int]
    damaged: dict[str, str]


def recover(disk: Disk, descriptor: int, mapping: Mapping, structure: Structure) -> Recovery:
    """Make the dictionary behind ``descriptor`` whole again.

    Raises UnreadableDictionary, OSError.
    """
    announced, root = structure.superblock()
    regained: dict[str, int] = {}
    damaged: dict[str, str] = {}
    has_strangers = False
    lengths: list[tuple[int, int]] = []
    inside: set[int] = set()
    for name, header in structure.walk(root):
        if header.address in inside:
            continue
        if spec_of(header) is None:
            has_strangers |= not header.is_group or bool(header.refusals)
            continue
        inside.update(header.links.values())
        try:
            view = load_table(structure, mapping, name, header)
            n_real = count_real_rows(view)
            lengths += _lengths(view, n_real)
            has_strangers |= view.has_strangers
        except UnreadableDictionary as error:
            damaged[name] = error.message
            continue
        if n_real > view.n_rows:
            regained[name] = n_real - view.n_rows
    if lengths:
        disk.sync(descriptor)
        for address, n_rows in lengths:
            disk.write(descriptor, address, hdf5.u64(n_rows))
    # What foreign objects occupy is not known here: nothing below the announced end is free then.
    end = announced if has_strangers or damaged else structure.reach
    return Recovery(end, regained, damaged)


def count_real_rows(view: TableView) -> int:
    """Rows up to the first one beyond the visible ones that is not whole."""
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
    """(address, length) of headers that do not show ``n_rows`` yet, in order of publishing."""
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
