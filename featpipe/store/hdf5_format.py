"""The bytes of HDF5, its oldest parts only: superblock 0, object header 1, chunk B-tree 1.

Every HDF5 library since 1998 reads these parts. They carry no checksums, so one aligned 8-byte
store can publish a row or a whole tree. Pure functions from values to bytes; the reverse is
:mod:`featpipe.store.hdf5_parse`. Source: the HDF5 File Format Specification, version 3.0 (sections
II.A superblock, III.A.1 B-tree 1, IV.A.1 object header 1, IV.A.2 messages).
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.store.schema import BFLOAT16

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIGNATURE = b"\x89HDF\r\n\x1a\n"
UNDEFINED = 0xFFFF_FFFF_FFFF_FFFF

#: Attributes of a dictionary's root group.
FORMAT = "featpipe"
FORMAT_VERSION = 2
#: Since this version every group holds a checksum of its structure.
COVERED_VERSION = 2

SUPERBLOCK_BYTES = 96
EOF_ADDRESS = 40  #: of the announced end of the file, in the superblock
ROOT_ADDRESS = 64  #: of the root group's address, in the superblock
#: Of a copy of it, between the owner's record and the first object. It is written just before: of
#: two that differ, the one that leads to the later generation of the structure is right.
ROOT_COPY_ADDRESS = 640

DATASPACE, LINK_INFO, DATATYPE, FILL, LINK = 0x01, 0x02, 0x03, 0x05, 0x06
EXTERNAL_FILES, LAYOUT, GROUP_INFO, FILTERS, ATTRIBUTE = 0x07, 0x08, 0x0A, 0x0B, 0x0C
CONTINUATION, SYMBOL_TABLE = 0x10, 0x11

BTREE_ENTRIES = 64  #: twice the rank that superblock 0 implies for chunk trees
BTREE_HEADER = 24

#: Offset of dims[0] in a dataset header whose dataspace message comes first: the header's 16 bytes,
#: the message's 8, the dataspace's own 8. A multiple of 8, so a store there is never torn.
DIMS_OFFSET = 32


class Message(NamedTuple):
    """One header message: type, flags, body (without padding)."""

    kind: int
    flags: int
    body: bytes


def pad8(data: bytes) -> bytes:
    """``data`` with zeros up to a multiple of eight bytes."""
    return data + bytes(-len(data) % 8)


def u64(value: int) -> bytes:
    """Eight bytes, little-endian."""
    return struct.pack("<Q", value)


def superblock(end: int, root: int) -> bytes:
    """Superblock 0 announcing ``end`` bytes, with the root group's header at ``root``."""
    return (
        SIGNATURE
        + struct.pack("<BBBBBBBBHHI", 0, 0, 0, 0, 0, 8, 8, 0, 4, 16, 0)
        + struct.pack("<QQQQ", 0, UNDEFINED, end, UNDEFINED)
        + struct.pack("<QQIIQQ", 0, root, 0, 0, 0, 0)
    )


def object_header(messages: Sequence[Message]) -> bytes:
    """Object header 1 in one piece."""
    body = b"".join(
        struct.pack("<HHB3x", kind, len(padded := pad8(data)), flags) + padded
        for kind, flags, data in messages
    )
    return struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body


def datatype(dtype: str) -> bytes:
    """The datatype message of one of our column types; bfloat16 is a custom IEEE-like float."""
    if dtype == BFLOAT16:
        return struct.pack("<BBBBIHHBBBBI", 0x11, 0x20, 15, 0, 2, 0, 16, 7, 8, 0, 7, 127)
    kind = np.dtype(dtype)
    size = kind.itemsize
    if kind.kind == "f":
        exponent, mantissa, bias = {2: (5, 10, 15), 4: (8, 23, 127), 8: (11, 52, 1023)}[size]
        sign = 8 * size - 1
        head = struct.pack("<BBBBI", 0x11, 0x20, sign, 0, size)
        return head + struct.pack("<HHBBBBI", 0, 8 * size, mantissa, exponent, 0, mantissa, bias)
    return struct.pack("<BBBBIHH", 0x10, 8 if kind.kind == "i" else 0, 0, 0, size, 0, 8 * size)


def _text_datatype(size: int) -> bytes:
    return struct.pack("<BBBBI", 0x13, 0x11, 0, 0, size)  # fixed length, null-padded, UTF-8


def dataspace(shape: Sequence[int], *, is_growing: bool) -> bytes:
    """Dataspace 1; ``is_growing`` leaves the first dimension unlimited."""
    dims = b"".join(u64(size) for size in shape)
    head = struct.pack("<BBBx4x", 1, len(shape), 1 if is_growing else 0)
    if is_growing:
        dims += u64(UNDEFINED) + b"".join(u64(size) for size in shape[1:])
    return head + dims


def attribute(name: str, value: str | int) -> Message:
    """A scalar attribute: fixed-length UTF-8 text, or an unsigned 32-bit number."""
    if isinstance(value, str):
        data = value.encode() or b"\0"
        kind = _text_datatype(len(data))
    else:
        data = struct.pack("<I", value)
        kind = datatype("<u4")
    space = dataspace((), is_growing=False)
    label = name.encode() + b"\0"
    head = struct.pack("<BBHHHB", 3, 0, len(label), len(kind), len(space), 1)
    return Message(ATTRIBUTE, 0, head + label + kind + space + data)


def hard_link(name: str, address: int) -> Message:
    """A group's entry for the object at ``address``."""
    label = name.encode()
    return Message(LINK, 0, struct.pack("<BBBH", 1, 0x11, 1, len(label)) + label + u64(address))


def group_header(links: Iterable[tuple[str, int]], extras: Sequence[Message]) -> bytes:
    """A group whose links are messages in its header.

    The group info allows 65,535 such links: else a plain HDF5 writer that adds a ninth link would
    move them into a fractal heap, which this package does not read.
    """
    return object_header(
        [
            Message(LINK_INFO, 0, struct.pack("<BBQQ", 0, 0, UNDEFINED, UNDEFINED)),
            Message(GROUP_INFO, 0, struct.pack("<BBHH", 0, 1, 0xFFFF, 0xFFFE)),
            *(hard_link(name, address) for name, address in links),
            *extras,
        ]
    )


def chunked_header(
    shape: tuple[int, ...], dtype: str, item_bytes: int, chunk_rows: int, tree: int
) -> list[Message]:
    """Messages of a dataset that grows along its first dimension, in unfiltered chunks."""
    layout = struct.pack("<BBBQ", 3, 2, len(shape) + 1, tree)
    layout += b"".join(struct.pack("<I", size) for size in (chunk_rows, *shape[1:], item_bytes))
    return [
        Message(DATASPACE, 0, dataspace(shape, is_growing=True)),  # first: see DIMS_OFFSET
        Message(DATATYPE, 1, datatype(dtype)),
        Message(FILL, 0, struct.pack("<BB", 3, 0x0B)),
        Message(LAYOUT, 0, layout),
    ]


def contiguous_header(shape: tuple[int, ...], dtype: str, size: int, address: int) -> list[Message]:
    """Messages of a dataset of fixed shape in one piece of the file."""
    return [
        Message(DATASPACE, 0, dataspace(shape, is_growing=False)),
        Message(DATATYPE, 1, datatype(dtype)),
        Message(FILL, 0, struct.pack("<BB", 3, 0x0A)),
        Message(LAYOUT, 0, struct.pack("<BBQQ", 3, 1, address, size)),
    ]


def btree_node_bytes(rank: int) -> int:
    """Size of a chunk B-tree node for a dataset of ``rank`` dimensions."""
    return BTREE_HEADER + BTREE_ENTRIES * 8 + (BTREE_ENTRIES + 1) * (8 + 8 * (rank + 1))


def n_btree_nodes(n_chunks: int) -> int:
    """Nodes of the tree over ``n_chunks`` chunks, in all levels."""
    total, level = 0, n_chunks
    while True:
        level = -(-level // BTREE_ENTRIES)
        total += level
        if level <= 1:
            return total


def chunk_btree(
    chunks: Sequence[int], chunk_rows: int, tail: tuple[int, ...], item_bytes: int, base: int
) -> tuple[bytes, int]:
    """The chunk B-tree over file offsets ``chunks``, laid out at ``base``.

    Chunk i starts at row ``i * chunk_rows``. Returns its bytes and the address of its root node.
    """
    size = item_bytes * chunk_rows * math.prod(tail)
    rank = 1 + len(tail)
    node_bytes = btree_node_bytes(rank)
    zeros = (0,) * rank
    key = struct.Struct(f"<II{rank + 1}Q")
    level = [(i * chunk_rows, address) for i, address in enumerate(chunks)]
    end_key = key.pack(0, 0, len(chunks) * chunk_rows, *tail, item_bytes)
    blob, depth = b"", 0
    while True:
        nodes = [level[i : i + BTREE_ENTRIES] for i in range(0, len(level), BTREE_ENTRIES)]
        start = base + len(blob)
        above = []
        for j, entries in enumerate(nodes):
            is_last = j + 1 == len(nodes)
            left = start + (j - 1) * node_bytes if j else UNDEFINED
            right = UNDEFINED if is_last else start + (j + 1) * node_bytes
            node = b"TREE" + struct.pack("<BBHQQ", 1, depth, len(entries), left, right)
            node += b"".join(
                key.pack(size, 0, row, *zeros) + u64(address) for row, address in entries
            )
            node += end_key if is_last else key.pack(size, 0, nodes[j + 1][0][0], *zeros)
            blob += node.ljust(node_bytes, b"\0")
            above.append((entries[0][0], start + j * node_bytes))
        if len(nodes) == 1:
            return blob, start
        level, depth = above, depth + 1
