"""Loads the groups of a file for writing, and gives those of layout 1 their checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.errors import UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.structure import covered_links, generation_of, spec_of
from featpipe.store.structure_hash import renewed
from featpipe.store.table_view import load_table
from featpipe.store.table_writer import group_of
from featpipe.store.tree import Group, store

if TYPE_CHECKING:
    from featpipe.store.allocator import Allocator
    from featpipe.store.hdf5_parse import Header, Structure
    from featpipe.store.tree import Node
    from featpipe.store.views import FileMap


def load_group(structure: Structure, header: Header, path: str) -> Group:
    """A group of tables, none of them loaded. Raises UnreadableDictionary."""
    ours = covered_links(structure, header, path)
    foreign = frozenset(set(header.links) - ours)
    links: dict[str, Node] = {**header.links}
    return Group(links, header.extras, header.address, is_dirty=False, foreign=foreign)


def cover(structure: Structure, mapping: FileMap, root: Header, allocator: Allocator) -> Group:
    """The root group of a file of layout 1, its tables stored anew with checksums."""
    group = _covered(structure, mapping, root, allocator, "")
    group.extras = renewed(group.extras, {"version": hdf5.FORMAT_VERSION})
    return group


def _covered(
    structure: Structure, mapping: FileMap, header: Header, allocator: Allocator, path: str
) -> Group:
    links: dict[str, Node] = {}
    foreign = set[str]()
    for name, address in header.links.items():
        links[name] = address
        below = f"{path}/{name}".strip("/")
        try:
            child = structure.header(address)
            if not child.is_group or child.refusals:
                foreign.add(name)
                continue
            if spec_of(child) is not None:
                group = group_of(load_table(structure, mapping, below, child))
            else:
                group = _covered(structure, mapping, child, allocator, below)
        except UnreadableDictionary:  # damaged: kept as it is
            foreign.add(name)
            continue
        group.is_dirty = True
        links[name] = store(group, allocator, generation_of(header) + 1)
    return Group(links, header.extras, header.address, foreign=frozenset(foreign))
