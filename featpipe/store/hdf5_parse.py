"""Parses the structure of a dictionary: its groups, datasets and chunk addresses.

Guarantees: all bytes come from one buffer, and every address and size is compared with its length.
A damaged or hostile file leads to :class:`UnreadableDictionary`, never to a read outside the file,
a cycle, or memory beyond the size of the file. libhdf5 is not used: it may hang or abort on such
files, and takes 20 ms to load. Features of HDF5 that :mod:`featpipe.store.hdf5_format` does not
write (filters, external storage, links to other files, dense groups) are refused by name where
they are needed, and skipped elsewhere.
"""

from __future__ import annotations

import math
import struct
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import NewerDictionary, UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.folder_layout import cache_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_MAX_MESSAGES = 200_000

_DATASET_KINDS = frozenset({hdf5.DATASPACE, hdf5.DATATYPE, hdf5.LAYOUT})
_GROUP_KINDS = frozenset({hdf5.LINK, hdf5.LINK_INFO, hdf5.SYMBOL_TABLE})
_REFUSED = {hdf5.FILTERS: "a filter", hdf5.EXTERNAL_FILES: "storage in other files"}
_WRITTEN_ANEW = frozenset({hdf5.GROUP_INFO, hdf5.FILL, 0x04})


@dataclass(slots=True)
class Header:
    """One object header: a group or a dataset."""

    address: int
    links: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, str | int] = field(default_factory=dict)
    #: Messages that a rewritten header repeats: attributes, foreign links.
    extras: list[hdf5.Message] = field(default_factory=list)
    is_group: bool = False
    is_dataset: bool = False
    is_continued: bool = False  #: elsewhere in the file, as another program does it
    #: Reasons why the object cannot be read: a filter, external storage ...
    refusals: list[str] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    dims_address: int = 0
    datatype: bytes = b""
    chunk_shape: tuple[int, ...] = ()  #: with the item size last; empty when contiguous
    data_address: int = hdf5.UNDEFINED  #: of the chunk B-tree, or of contiguous bytes
    data_bytes: int = 0


class Structure:
    """The structure of the file in ``buffer``; ``name`` is for messages."""

    def __init__(self, buffer: memoryview, name: str) -> None:
        self._buffer = buffer
        self._name = name
        self._groups: dict[int, Header] = {}  # by address; a stored group never changes
        self._as_read: dict[int, bytes] = {}  # the first block of each of these headers
        self.covered: dict[int, frozenset[str]] = {}
        """By address of a group whose checksum is right: the names of its links that it covers."""
        self.reach = hdf5.SUPERBLOCK_BYTES
        """One past the last byte read so far."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._buffer)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except (struct.error, ValueError, IndexError, UnicodeError, OverflowError) as error:
            raise self.damage(f"{what}: {error}") from error

    def damage(self, what: str) -> UnreadableDictionary:
        """The error for a damaged file."""
        return UnreadableDictionary(
            f"{self._name} is damaged, or not as featpipe writes it: {what}",
            hint=f"featpipe repair {cache_of(Path(self._name))}",
        )

    def bytes_at(self, address: int, size: int) -> memoryview:
        """``size`` bytes at ``address``; raises ValueError outside the file."""
        if address < 0 or size < 0 or address + size > len(self._buffer):
            raise ValueError(f"{size} bytes at {address} lie outside the file")
        self.reach = max(self.reach, address + size)
        return self._buffer[address : address + size]

    def superblock(self) -> tuple[int, int]:
        """(announced end of file, address of the root group's header)."""
        if bytes(self._buffer[:8]) != hdf5.SIGNATURE:
            raise UnreadableDictionary(f"{self._name} is not an HDF5 file")
        with self._reading("superblock"):
            head = bytes(self.bytes_at(0, hdf5.SUPERBLOCK_BYTES))
            if head[8] != 0 or head[13:15] != b"\x08\x08" or head[24:32] != bytes(8):
                raise _foreign(self._name)
            (end,) = struct.unpack_from("<Q", head, hdf5.EOF_ADDRESS)
            (root,) = struct.unpack_from("<Q", head, hdf5.ROOT_ADDRESS)
        if end > self.size:
            raise self.damage(f"the file is truncated: {self.size} bytes of {end}")
        return end, root

    def header(self, address: int) -> Header:
        """The object at ``address``. Raises UnreadableDictionary."""
        known = self._groups.get(address)
        if known is not None:
            return known
        with self._reading(f"object header at {address}"):
            header = Header(address)
            for kind, flags, at, body in self._messages(address):
                if kind == hdf5.CONTINUATION:
                    header.is_continued = True
                else:
                    _add_message(header, hdf5.Message(kind, flags, body), at)
        if header.is_group:
            (size,) = struct.unpack_from("<I", self.bytes_at(address + 8, 4))
            self._as_read[address] = bytes(self.bytes_at(address, 16 + size))
            self._groups[address] = header
        return header

    def is_as_read(self) -> bool:
        """Whether the groups read so far are still in the file.

        If not, another file's bytes were put into it: a table's group has a random number.
        """
        buffer = self._buffer
        return all(buffer[at : at + len(b)].tobytes() == b for at, b in self._as_read.items())

    def _messages(self, address: int) -> Iterator[tuple[int, int, int, bytes]]:
        """(type, flags, address of the body, body) of every message, continuations included."""
        if address % 8:
            raise ValueError("not aligned")
        version, n_messages, _, size = struct.unpack_from("<BxHII", self.bytes_at(address, 16))
        if version != 1:
            raise ValueError(f"version {version}")
        blocks = [(address + 16, size)]
        n_seen = 0
        while blocks:
            position, size = blocks.pop(0)
            block = self.bytes_at(position, size)
            offset = 0
            while offset + 8 <= size and n_seen < min(n_messages, _MAX_MESSAGES):
                kind, length, flags = struct.unpack_from("<HHB", block, offset)
                if offset + 8 + length > size:
                    raise ValueError("a message is longer than its header")
                body = bytes(block[offset + 8 : offset + 8 + length])
                if kind == hdf5.CONTINUATION:
                    blocks.append(struct.unpack_from("<QQ", body))
                if kind:
                    yield kind, flags, position + offset + 8, body
                offset += 8 + length
                n_seen += 1

    def chunks(self, header: Header) -> NDArray[np.int64]:
        """File offsets of a dataset's chunks, in row order, each wholly inside the file.

        Raises UnreadableDictionary when chunks are missing, overlong, filtered or out of order, or
        hold fewer rows than the dataset claims.
        """
        with self._reading(f"chunks of the dataset at {header.address}"):
            *chunk_shape, item_bytes = header.chunk_shape
            if len(chunk_shape) != len(header.shape) or min(header.chunk_shape) < 1:
                raise ValueError(f"chunk shape {header.chunk_shape} for {header.shape}")
            if tuple(chunk_shape[1:]) != header.shape[1:]:
                raise ValueError("chunks do not span whole rows")
            size = item_bytes * math.prod(chunk_shape)
            found = np.zeros(0, np.int64)
            if header.data_address != hdf5.UNDEFINED:
                found = self._walk_tree(header.data_address, len(chunk_shape), chunk_shape[0], size)
            if len(found) * size > self.size:
                raise ValueError("chunks that share their bytes")
            if len(found) * chunk_shape[0] < header.shape[0]:
                raise ValueError(f"{header.shape[0]} rows in {len(found)} chunks")
            if len(found):
                self.bytes_at(int(found.max()), size)
            return found

    def _walk_tree(self, root: int, rank: int, chunk_rows: int, size: int) -> NDArray[np.int64]:
        entry = np.dtype(
            [("size", "<u4"), ("mask", "<u4"), ("at", "<u8", (rank + 1,)), ("child", "<u8")]
        )
        node_bytes = hdf5.btree_node_bytes(rank)
        budget = self.size // node_bytes + 1
        pending, leaves = [(root, -1)], []
        while pending:
            address, want_level = pending.pop()
            node = self.bytes_at(address, node_bytes)
            signature, kind, level, n = struct.unpack_from("<4sBBH", node)
            budget -= 1
            is_sane = signature == b"TREE" and kind == 1 and 0 < n <= hdf5.BTREE_ENTRIES
            if not is_sane or want_level not in {-1, level} or budget < 0:
                raise ValueError(f"bad B-tree node at {address}")
            entries = np.frombuffer(node, entry, n, hdf5.BTREE_HEADER)
            if level:
                pending.extend((int(child), level - 1) for child in entries["child"][::-1])
            else:
                leaves.append(entries)
        entries = np.concatenate(leaves)
        rows = np.arange(len(entries), dtype=np.uint64) * np.uint64(chunk_rows)
        if (entries["mask"] != 0).any() or (entries["size"] != size).any():
            raise ValueError("filtered or odd-sized chunks")
        if (entries["at"][:, 0] != rows).any() or (entries["at"][:, 1:] != 0).any():
            raise ValueError("missing chunks")
        if (entries["child"] > self.size - size).any():
            raise ValueError("a chunk lies outside the file")
        return entries["child"].astype(np.int64)


def check_root(root: Header, name: str) -> None:
    """Raises UnreadableDictionary for a foreign file, NewerDictionary for a later layout."""
    version = root.attributes.get("version")
    if root.attributes.get("format") != hdf5.FORMAT or not isinstance(version, int):
        raise _foreign(name)
    if version > hdf5.FORMAT_VERSION:
        raise NewerDictionary(
            f"{name} has layout version {version}; this featpipe knows up to {hdf5.FORMAT_VERSION}",
            hint="update featpipe",
        )
    if root.refusals:
        raise UnreadableDictionary(
            f"{name} was changed by another program: its root group has {root.refusals[0]}"
        )


def _foreign(name: str) -> UnreadableDictionary:
    return UnreadableDictionary(
        f"{name} is an HDF5 file that featpipe did not write",
        hint="files of one dataset per text are taken over by: featpipe import",
    )


def attributes_of(messages: Sequence[hdf5.Message]) -> dict[str, str | int]:
    """The attributes among these messages that are texts of fixed length or unsigned numbers."""
    header = Header(0)
    for message in messages:
        if message.kind == hdf5.ATTRIBUTE:
            _add_attribute(header, message.body)
    return header.attributes


def _add_message(header: Header, message: hdf5.Message, at: int) -> None:
    """Add one message to the header of its object."""
    kind, flags, body = message
    if flags & 2 and kind in {*_DATASET_KINDS, hdf5.FILTERS}:
        header.refusals.append("a shared message")
    elif kind in _DATASET_KINDS:
        _add_dataset_message(header, kind, body, at)
    elif kind in _GROUP_KINDS:
        _add_group_message(header, message)
    elif kind in _REFUSED:
        header.refusals.append(_REFUSED[kind])
    elif kind not in _WRITTEN_ANEW:
        header.extras.append(message)
        if kind == hdf5.ATTRIBUTE:
            _add_attribute(header, body)


def _add_group_message(header: Header, message: hdf5.Message) -> None:
    kind, _, body = message
    if kind == hdf5.LINK:
        name, address = _link(body)
        if address is None:
            header.extras.append(message)
        else:
            header.links[name] = address
        return
    header.is_group = True
    if kind == hdf5.SYMBOL_TABLE:
        header.refusals.append("links in a symbol table")
    elif struct.unpack_from("<Q", body, 10 if body[1] & 1 else 2)[0] != hdf5.UNDEFINED:
        header.refusals.append("links in a fractal heap")


def _add_dataset_message(header: Header, kind: int, body: bytes, at: int) -> None:
    if kind == hdf5.DATASPACE:
        version, rank, _ = struct.unpack_from("<BBB", body)
        if version == 1:
            header.shape = struct.unpack_from(f"<{rank}Q", body, 8)
            header.dims_address = at + 8
        else:
            header.refusals.append(f"dataspace version {version}")
    elif kind == hdf5.DATATYPE:
        header.datatype = body
    else:
        header.is_dataset = True
        version, layout = struct.unpack_from("<BB", body)
        if version == 3 and layout == 1:
            header.data_address, header.data_bytes = struct.unpack_from("<QQ", body, 2)
        elif version == 3 and layout == 2:
            (rank,) = struct.unpack_from("<B", body, 2)
            (header.data_address,) = struct.unpack_from("<Q", body, 3)
            header.chunk_shape = struct.unpack_from(f"<{rank}I", body, 11)
        else:
            header.refusals.append(f"layout {version}.{layout}")


def _link(body: bytes) -> tuple[str, int | None]:
    """(name, address) of a link message; the address is None for a soft or external link."""
    version, flags = struct.unpack_from("<BB", body)
    if version != 1:
        raise ValueError(f"link version {version}")
    offset, kind = 2, 0
    if flags & 8:
        kind, offset = body[offset], offset + 1
    offset += (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(body[offset : offset + width], "little")
    offset += width
    if offset + size > len(body):
        raise ValueError("a link's name is longer than its message")
    name = body[offset : offset + size].decode()
    return name, None if kind else struct.unpack_from("<Q", body, offset + size)[0]


def _add_attribute(header: Header, body: bytes) -> None:
    """Take texts of fixed length and unsigned numbers as values; other attributes stay bytes."""
    version = body[0]
    if version not in {1, 2, 3} or (version > 1 and body[1] & 3):
        return
    n_name, n_type, n_space = struct.unpack_from("<HHH", body, 2)
    offset = 9 if version == 3 else 8
    parts = []
    for size in (n_name, n_type, n_space):
        parts.append(body[offset : offset + size])
        offset += -(-size // 8) * 8 if version == 1 else size
    name, kind, space = parts
    if len(kind) < 8 or len(space) < 2 or space[1] != 0:
        return
    (size,) = struct.unpack_from("<I", kind, 4)
    data = body[offset : offset + size]
    if len(data) != size:
        return
    with suppress(UnicodeError):  # of another program, in another encoding
        label = name.split(b"\0")[0].decode()
        if kind[0] & 15 == 3:
            header.attributes[label] = data.rstrip(b"\0").decode()
        elif kind[0] & 15 == 0 and not kind[1] & 9:
            header.attributes[label] = int.from_bytes(data, "little")
