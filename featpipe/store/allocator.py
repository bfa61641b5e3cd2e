"""Allocates space at the end of the file, and announces the file's end to readers.

Guarantees: allocated end <= announced end <= physical size, at every instant and after a power
loss. libhdf5 opens a file by asking its size, then reading the announced end, then the root
address. A writer that grows the file between these steps must have published each value well
before the next one needs it, or the open fails. So the physical size runs three steps ahead and the
announced end up to two, both sparse; :meth:`Allocator.trim` gives the slack back.

Space is never used twice, since readers may hold an older tree: space that a rewrite abandons is
lost until :mod:`featpipe.store.rewrite` compacts the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from featpipe.store import hdf5_format as hdf5

if TYPE_CHECKING:
    from featpipe.store.disk import Disk

STEP = 64 << 20
PAGE = 4096
_ARENA = 64 << 10


class Allocation(Protocol):
    """The file of a writer, as a table and its index use it."""

    descriptor: int
    allocator: Allocator

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write into space that no reader uses, or publish by one aligned store."""


class Allocator:
    """Allocates from the end of the file behind ``descriptor``; ``end`` is the first free byte."""

    def __init__(self, disk: Disk, descriptor: int, end: int) -> None:
        self._disk = disk
        self._descriptor = descriptor
        self.end = end
        self.announced = end
        self.physical = end
        self._arena = self._arena_end = 0

    def open_ahead(self) -> None:
        """Grow the file once before the first allocation needs it."""
        self._grow(self.end)

    def allocate(self, size: int, align: int) -> int:
        """``size`` bytes at a multiple of ``align``; they read as zeros."""
        address = -(-self.end // align) * align
        self._grow(address + size)
        self.end = address + size
        return address

    def put(self, blob: bytes) -> int:
        """Write a piece of structure to fresh space; returns its address."""
        address = self.reserve(len(blob))
        self.fill(address, blob)
        return address

    def fill(self, address: int, blob: bytes | memoryview) -> None:
        """Write into allocated space."""
        self._disk.write(self._descriptor, address, blob)

    def reserve(self, size: int) -> int:
        """Space for a piece of structure, 8-aligned; small pieces share an arena."""
        size = -(-size // 8) * 8
        if size > _ARENA // 2:
            return self.allocate(size, 8)
        if self._arena + size > self._arena_end:
            # A small file gets small arenas: the rest of the last one stays in the file for good.
            room = max(PAGE, size, min(_ARENA, self.end // 16 // PAGE * PAGE))
            self._arena = self.allocate(room, 8)
            self._arena_end = self._arena + room
        address = self._arena
        self._arena += size
        return address

    def trim(self) -> None:
        """Cut the file at its end.

        The announcement shrinks first: in the other order a reader would see a file shorter than
        announced.
        """
        self.end = -(-self.end // 8) * 8
        self.announce(self.end)
        self._disk.sync(self._descriptor)
        self._disk.resize(self._descriptor, self.end)
        self.physical = self.end
        self._arena = self._arena_end = 0
        self._disk.sync(self._descriptor)

    def announce(self, end: int) -> None:
        """Publish the end of the file, which must not exceed its size."""
        self._disk.write(self._descriptor, hdf5.EOF_ADDRESS, hdf5.u64(end))
        self.announced = end

    def _grow(self, end: int) -> None:
        step = max(STEP, end >> 3)
        if end + step // 2 <= self.announced:
            return
        before = self.physical
        if self.physical < end + 2 * step:
            self._disk.resize(self._descriptor, end + 3 * step)
            self.physical = end + 3 * step
            # The size must be durable before the superblock announces it.
            self._disk.sync(self._descriptor)
        # Announce no more than the size of a step ago, unless the allocation needs it now: a reader
        # may have asked for the size just before it grew.
        self.announce(min(before, end + 2 * step) if before >= end + step // 2 else end + step)
