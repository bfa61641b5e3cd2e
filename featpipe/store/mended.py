"""A damaged file in memory, its structure mended where the checksums allow it.

The file is mapped privately: what is mended here is not written to it. A group or dataset whose
checksum is wrong is tried with each single bit flipped; 64 bits of checksum decide, so a repair is
right or is not made. Tables are found by their links, and by searching the file for headers of
groups, since each names its path and its generation: of several copies the latest counts.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.bus_guard import GuardedRange
from featpipe.store.hdf5_parse import Structure
from featpipe.store.mapping import map_padded
from featpipe.store.schema import PATH_ATTRIBUTE, STRUCTURE_ATTRIBUTE, datasets_of
from featpipe.store.structure import (
    covered_links,
    dataset_hash,
    generation_of,
    is_covered,
    row_hash_of,
    spec_of,
)
from featpipe.store.structure_hash import DIGITS
from featpipe.store.table_view import load_table
from featpipe.store.views import FileMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from featpipe.store.hdf5_parse import Header
    from featpipe.store.table_view import TableView

#: How a group's header goes on after its 16 bytes: a link info message without dense storage.
_GROUP_MARK = bytes.fromhex("02001800000000000000") + b"\xff" * 16
_MARK_AT = 16

#: Longer headers are not mended bit by bit.
_MAX_HEADER = 1 << 16
_MAX_NODES = 64


class PrivateMap(FileMap):
    """The file in memory, writable without effect on the file; zeros follow, up to ``n_bytes``."""

    def __init__(self, descriptor: int, path: Path, n_bytes: int) -> None:
        self.size = os.fstat(descriptor).st_size
        if not self.size:
            raise UnreadableDictionary(
                f"{path} is empty: nothing of it can be saved", hint="remove it, and build it again"
            )
        self.size = max(self.size, n_bytes)
        self.bytes = map_padded(descriptor, self.size)
        self.buffer = memoryview(self.bytes)
        self.guard = GuardedRange(self.bytes, descriptor)


class MendedFile:
    """The tables of a damaged file; ``problems`` says what could not be read.

    Args:
        descriptor: of the file, open for as long as this is used.
        path: of it.
        n_bytes: that it had before it was cut short; what is missing reads as zeros.
    """

    def __init__(self, descriptor: int, path: Path, n_bytes: int = 0) -> None:
        self.mapping = PrivateMap(descriptor, path, n_bytes)
        self.name = str(path)
        self.problems: list[str] = []
        self.n_mended = 0
        #: Of layout 2: a header without one has lost it, or is a stale one of layout 1.
        self._has_checksums = self.mapping.bytes.find(f"{STRUCTURE_ATTRIBUTE}\0".encode()) >= 0

    def tables(self) -> list[TableView]:
        """Each table once, as of the latest generation that can be read."""
        found: dict[str, TableView] = {}
        for address, path in self._addresses():
            try:
                view = self._table(address, path)
            except (DictionaryError, ValueError) as error:
                what = error.message if isinstance(error, DictionaryError) else str(error)
                self.problems.append(f"/{path or address}: {what}")
                continue
            if view is not None and _is_later(view, found.get(view.name)):
                found[view.name] = view
        return [found[name] for name in sorted(found)]

    def _addresses(self) -> Iterator[tuple[int, str]]:
        """Addresses of groups that may be tables, with their paths where a link names them."""
        linked: dict[int, str] = {}
        pending = [(root, "") for root in self._roots()]
        has_root = False
        seen = set[int]()
        while pending:
            address, path = pending.pop()
            if address in seen:
                continue
            seen.add(address)
            header = self._mended_group(address)
            has_root |= header is not None and not path
            if header is not None and spec_of(header) is None and header.is_group:
                for name, child in header.links.items():
                    linked.setdefault(child, f"{path}/{name}".strip("/"))
                    pending.append((child, f"{path}/{name}".strip("/")))
        if not has_root:
            # As in a file that was cut short: what it linked to may be gone without a trace.
            self.problems.append("/: its header cannot be read, so tables may be missing")
        at = self.mapping.bytes.find(_GROUP_MARK)
        while at >= 0:
            if (at - _MARK_AT) % 8 == 0 and at >= hdf5.SUPERBLOCK_BYTES:
                linked.setdefault(at - _MARK_AT, "")
            at = self.mapping.bytes.find(_GROUP_MARK, at + 1)
        return iter(linked.items())

    def _roots(self) -> list[int]:
        places = (hdf5.ROOT_COPY_ADDRESS, hdf5.ROOT_ADDRESS)
        stored = [int.from_bytes(self.mapping.buffer[at : at + 8], "little") for at in places]
        return [root for root in dict.fromkeys(stored) if 0 < root < self.mapping.size]

    def _structure(self) -> Structure:
        """A parser that remembers nothing of the bytes before they were mended."""
        return Structure(self.mapping.buffer, self.name)

    def _table(self, address: int, path: str) -> TableView | None:
        header = self._mended_group(address)
        if header is None and path:
            raise ValueError("its header cannot be read")
        if header is None or spec_of(header) is None:
            return None
        if self._has_checksums and not is_covered(header):
            raise ValueError("its header has no checksum")
        named = header.attributes.get(PATH_ATTRIBUTE, path)
        if not isinstance(named, str) or not named:
            return None  # a stale header of layout 1
        if is_covered(header):
            self._mend_datasets(header)
        return load_table(self._structure(), self.mapping, named, header)

    def _mended_group(self, address: int) -> Header | None:
        """The group at ``address``; None when there is none, or none that can be mended."""

        def read() -> Header | None:
            structure = self._structure()
            header = structure.header(address)
            covered_links(structure, header, "")
            return header

        header = _attempt(read)
        if header is None:
            size = self._header_size(address)
            header = self._mend([(address, size)], lambda: _covered(_attempt(read)))
        return header

    def _header_size(self, address: int) -> int:
        size = int.from_bytes(self.mapping.buffer[address + 8 : address + 12], "little")
        size = size if 0 < size <= _MAX_HEADER else 4096
        return min(16 + size, self.mapping.size - address)

    def _mend_datasets(self, header: Header) -> None:
        spec = spec_of(header)
        own = datasets_of(spec, row_hash_of(header)) if spec else set()
        stated = str(header.attributes[STRUCTURE_ATTRIBUTE])[DIGITS:]
        for at, name in enumerate(sorted(own & set(header.links))):
            digits, address = stated[at * DIGITS : (at + 1) * DIGITS], header.links[name]

            def is_right(address: int = address, digits: str = digits) -> Header | None:
                structure = self._structure()
                found = structure.header(address)
                # A message of another kind, such as storage elsewhere, is outside the checksum.
                is_whole = not found.refusals and dataset_hash(structure, found) == digits
                return found if is_whole else None

            if _attempt(is_right) is None:
                pieces = [(address, self._header_size(address)), *self._nodes(address)]
                self._mend(pieces, partial(_attempt, is_right))

    def _nodes(self, address: int) -> list[tuple[int, int]]:
        """The pieces of a dataset's chunk tree, as far as they can be found."""
        header = _attempt(lambda: self._structure().header(address))
        if header is None or header.data_address == hdf5.UNDEFINED or not header.chunk_shape:
            return []
        size = hdf5.btree_node_bytes(len(header.shape))
        pending, found = [header.data_address], list[tuple[int, int]]()
        while pending and len(found) < _MAX_NODES:
            node = pending.pop(0)
            if not 0 < node <= self.mapping.size - size:
                continue
            found.append((node, size))
            data = self.mapping.buffer[node : node + size]
            if data[5]:  # a level above the leaves: each entry is a key and a child's address
                key = 8 * (len(header.shape) + 2)
                first = hdf5.BTREE_HEADER + key
                ends = range(first, first + data[6] * (key + 8), key + 8)
                pending += [int.from_bytes(data[at : at + 8], "little") for at in ends]
        return found

    def _mend(
        self, pieces: list[tuple[int, int]], read: Callable[[], Header | None]
    ) -> Header | None:
        """Flip each bit of the pieces until ``read`` succeeds; it stays flipped then."""
        data = self.mapping.bytes
        for start, size in pieces:
            for at in range(start, start + max(0, size)):
                for bit in range(8):
                    data[at] ^= 1 << bit
                    header = read()
                    if header is not None:
                        self.n_mended += 1
                        return header
                    data[at] ^= 1 << bit
        return None


def _is_later(view: TableView, other: TableView | None) -> bool:
    return other is None or generation_of(view.group) > generation_of(other.group)


def _covered(header: Header | None) -> Header | None:
    return header if header is not None and is_covered(header) else None


def _attempt(read: Callable[[], Header | None]) -> Header | None:
    try:
        return read()
    except (DictionaryError, ValueError):
        return None
