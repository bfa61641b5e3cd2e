"""The groups and datasets that a writer changes, stored copy-on-write.

Guarantees: :func:`store` writes changed objects, and the groups above them, to fresh space and
changes no reachable byte; until the root address moves, readers see the old tree. Objects that are
not loaded are plain addresses and are kept as they are, foreign ones included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from featpipe.store import hdf5_format as hdf5
from featpipe.store.hdf5_parse import attributes_of
from featpipe.store.schema import GENERATION_ATTRIBUTE, STRUCTURE_ATTRIBUTE, storage_dtype
from featpipe.store.structure_hash import hash_dataset, hash_group, renewed

if TYPE_CHECKING:
    from featpipe.store.allocator import Allocator

Node: TypeAlias = "Group | Dataset | Array | int"


@dataclass(slots=True)
class Group:
    """Named links to other nodes, and the messages (attributes, foreign links) of its header.

    ``foreign`` are the names of links that other programs made, ``hashes`` the checksums of
    datasets that are not loaded; a table has a checksum for each of its datasets.
    """

    links: dict[str, Node] = field(default_factory=dict)
    extras: list[hdf5.Message] = field(default_factory=list)
    address: int = 0
    is_dirty: bool = True
    is_table: bool = False
    foreign: frozenset[str] = frozenset()
    hashes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Dataset:
    """A growing, chunked dataset. ``n_rows`` is the length in its header."""

    dtype: str
    shape: tuple[int, ...]
    chunk_rows: int
    chunks: list[int] = field(default_factory=list)
    n_rows: int = 0
    extras: list[hdf5.Message] = field(default_factory=list)
    address: int = 0
    dims_address: int = 0
    is_dirty: bool = True
    row_bytes: int = field(init=False)  #: bytes of one row
    _tree: int = hdf5.UNDEFINED
    _n_in_tree: int = 0

    def __post_init__(self) -> None:
        self.row_bytes = storage_dtype(self.dtype).itemsize * math.prod(self.shape)

    @property
    def n_capacity(self) -> int:
        """Rows that its chunks hold."""
        return len(self.chunks) * self.chunk_rows

    def offset_of(self, row: int) -> int:
        """The file offset of a row."""
        chunk, within = divmod(row, self.chunk_rows)
        return self.chunks[chunk] + within * self.row_bytes

    def start_over(self, chunk_rows: int) -> None:
        """Drop all chunks; later ones have ``chunk_rows`` rows."""
        self.chunk_rows, self.chunks, self._n_in_tree = chunk_rows, [], 0

    def keep_tree(self, address: int) -> None:
        """Use the stored tree at ``address``, which lists the present chunks."""
        self._tree, self._n_in_tree = address, len(self.chunks)

    def tree(self, allocator: Allocator) -> int:
        """Address of the chunk tree, which is written again only when chunks were added."""
        if self.chunks and len(self.chunks) != self._n_in_tree:
            nodes = hdf5.n_btree_nodes(len(self.chunks))
            base = allocator.reserve(nodes * hdf5.btree_node_bytes(1 + len(self.shape)))
            item = storage_dtype(self.dtype).itemsize
            blob, self._tree = hdf5.chunk_btree(
                self.chunks, self.chunk_rows, self.shape, item, base
            )
            allocator.fill(base, blob)
            self._n_in_tree = len(self.chunks)
        return self._tree

    def hash(self) -> str:
        """The checksum of its type, shape and chunks."""
        chunk = (self.chunk_rows, *self.shape, storage_dtype(self.dtype).itemsize)
        return hash_dataset(hdf5.datatype(self.dtype), self.shape, chunk, self.chunks)


@dataclass(slots=True)
class Array:
    """A contiguous dataset of fixed length, whose values are written elsewhere."""

    dtype: str
    n_items: int
    data_address: int
    extras: list[hdf5.Message] = field(default_factory=list)
    address: int = 0
    is_dirty: bool = True

    @property
    def n_bytes(self) -> int:
        """Its size in the file."""
        return self.n_items * storage_dtype(self.dtype).itemsize

    def hash(self) -> str:
        """The checksum of its type, shape and place."""
        places = [self.data_address, self.n_bytes]
        return hash_dataset(hdf5.datatype(self.dtype), (self.n_items,), (), places)


def store(node: Node, allocator: Allocator, generation: int) -> int:
    """Write the changed objects below ``node``, children first; returns the node's address.

    ``generation`` counts the changes of the structure, this one included.
    """
    if isinstance(node, int):
        return node
    if isinstance(node, Group):
        return _store_group(node, allocator, generation)
    if node.is_dirty:
        if isinstance(node, Dataset):
            item = storage_dtype(node.dtype).itemsize
            messages = hdf5.chunked_header(
                (node.n_rows, *node.shape), node.dtype, item, node.chunk_rows, node.tree(allocator)
            )
        else:
            messages = hdf5.contiguous_header(
                (node.n_items,), node.dtype, node.n_bytes, node.data_address
            )
        node.address = allocator.put(hdf5.object_header([*messages, *node.extras]))
        if isinstance(node, Dataset):
            node.dims_address = node.address + hdf5.DIMS_OFFSET
        node.is_dirty = False
    return node.address


def _store_group(group: Group, allocator: Allocator, generation: int) -> int:
    addresses = {}
    for name, child in group.links.items():
        before = child if isinstance(child, int) else child.address
        addresses[name] = store(child, allocator, generation)
        group.is_dirty |= addresses[name] != before
    if group.is_dirty:
        group.address = allocator.put(covered_header(group, addresses, generation))
        group.is_dirty = False
    return group.address


def covered_header(group: Group, addresses: dict[str, int], generation: int) -> bytes:
    """The header of a group whose links lead to ``addresses``, with its checksum."""
    ours = {name: address for name, address in addresses.items() if name not in group.foreign}
    rest = "".join(_hash_of(group, name) for name in sorted(ours)) if group.is_table else ""
    extras = renewed(group.extras, {GENERATION_ATTRIBUTE: generation, STRUCTURE_ATTRIBUTE: ""})
    digits = hash_group(attributes_of(extras), ours, rest)
    extras = renewed(extras, {STRUCTURE_ATTRIBUTE: digits + rest})
    return hdf5.group_header(addresses.items(), extras)


def _hash_of(group: Group, name: str) -> str:
    child = group.links[name]
    return child.hash() if isinstance(child, Dataset | Array) else group.hashes[name]


def is_dirty(node: Node) -> bool:
    """Whether ``node`` or anything below it is not stored yet."""
    if isinstance(node, int):
        return False
    if isinstance(node, Group) and any(is_dirty(child) for child in node.links.values()):
        return True
    return node.is_dirty
