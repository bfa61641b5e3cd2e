"""Compares a file's structure with what featpipe writes, byte by byte.

The checksums cover what featpipe reads. Other programs read more of the same headers: fill values,
reserved fields, the keys of a chunk tree. All of it follows from what is covered, so it can be
written again and compared. Headers that another program has changed are left out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from featpipe.errors import UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.hdf5_parse import attributes_of
from featpipe.store.schema import (
    INDEX,
    INDEXED,
    STRUCTURE_ATTRIBUTE,
    fixed_datasets,
    storage_dtype,
    value_datasets,
)
from featpipe.store.structure import (
    covered_links,
    generation_of,
    is_covered,
    row_hash_of,
    walk_objects,
)
from featpipe.store.structure_hash import covered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.store.hdf5_parse import Header, Structure
    from featpipe.store.schema import TableSpec


def deviations(structure: Structure, root: int, *, was_closed: bool) -> Iterator[str]:
    """What is not as featpipe writes it, in a file of layout 2; unreadable objects are skipped."""
    if not is_covered(structure.header(root)):
        return
    yield from _superblock(structure, root, was_closed=was_closed)
    for path, header, spec in walk_objects(structure, root, []):
        if not is_covered(header):
            continue
        wanted = hdf5.group_header(header.links.items(), _written_anew(header))
        if _differs(structure, header, wanted):
            yield f"the header of group /{path} is not as featpipe writes it"
        if spec is not None:
            yield from _datasets(structure, header, path, spec)


def _written_anew(header: Header) -> list[hdf5.Message]:
    """The messages of a group besides its links, the attributes of featpipe written again."""
    own = {*covered(header.attributes), STRUCTURE_ATTRIBUTE}
    found = []
    for message in header.extras:
        parsed = attributes_of([message])
        ours = [hdf5.attribute(name, value) for name, value in parsed.items() if name in own]
        found += ours or [message]
    return found


def _superblock(structure: Structure, root: int, *, was_closed: bool) -> Iterator[str]:
    end, address = structure.superblock()
    head = bytes(structure.bytes_at(0, hdf5.SUPERBLOCK_BYTES))
    if head != hdf5.superblock(end, address):
        yield "the superblock is not as featpipe writes it"
    copy = int.from_bytes(structure.bytes_at(hdf5.ROOT_COPY_ADDRESS, 8), "little")
    if address != copy and (was_closed or not _are_neighbours(structure, address, copy)):
        yield f"the root group is at {root}; the file leads to {address} and {copy}"
    if was_closed and end != structure.size:
        yield f"the file has {structure.size} bytes and announces {end}"


def _are_neighbours(structure: Structure, address: int, copy: int) -> bool:
    """Whether a writer was interrupted, or is, between publishing one root and the other."""
    try:
        for root in (address, copy):
            covered_links(structure, structure.header(root), "")
        one, other = (generation_of(structure.header(root)) for root in (address, copy))
    except UnreadableDictionary:
        return False
    return abs(one - other) == 1


def _datasets(structure: Structure, group: Header, path: str, spec: TableSpec) -> Iterator[str]:
    columns = [*fixed_datasets(spec, row_hash_of(group)), *value_datasets(spec)]
    dtypes = {name: dtype for name, dtype, _ in columns} | {INDEX: "<u4", INDEXED: "<u8"}
    for name in covered_links(structure, group, path):
        try:
            header = structure.header(group.links[name])
            is_bad = _differs(structure, header, _dataset_header(header, dtypes[name]))
            is_bad |= _has_odd_tree(structure, header)
        except UnreadableDictionary:
            continue
        except (struct.error, ValueError):  # numbers that no header of featpipe has
            is_bad = True
        if is_bad:
            yield f"the header of /{path}/{name} is not as featpipe writes it"


def _dataset_header(header: Header, dtype: str) -> bytes:
    item = storage_dtype(dtype).itemsize
    if header.chunk_shape:
        messages = hdf5.chunked_header(
            header.shape, dtype, item, header.chunk_shape[0], header.data_address
        )
    else:
        messages = hdf5.contiguous_header(
            header.shape, dtype, header.data_bytes, header.data_address
        )
    return hdf5.object_header([*messages, *header.extras])


def _has_odd_tree(structure: Structure, header: Header) -> bool:
    chunks = structure.chunks(header).tolist() if header.chunk_shape else []
    if not chunks:
        return False
    rank = len(header.shape)
    n_above = (hdf5.n_btree_nodes(len(chunks)) - 1) * hdf5.btree_node_bytes(rank)
    base = header.data_address - n_above
    blob, _ = hdf5.chunk_btree(
        chunks, header.chunk_shape[0], header.shape[1:], header.chunk_shape[-1], base
    )
    try:
        return bytes(structure.bytes_at(base, len(blob))) != blob
    except ValueError:
        return True


def _differs(structure: Structure, header: Header, wanted: bytes) -> bool:
    if header.is_continued:
        return False
    return bytes(structure.bytes_at(header.address, len(wanted))) != wanted
