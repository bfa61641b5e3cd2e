"""Shared-memory segments that two processes share by passing a descriptor.

Guarantees:

- A segment has no name, so no death leaves anything behind, and /dev/shm is not involved.
- Its pages outlive its maker: a result stays readable after the worker that made it died.
- Receivers map it read-only. Its maker writes to it again only after the last view of it, in any
  process, is gone.

A segment is a memfd or, where memfds are missing, an unlinked file whose space is reserved before
use, so that a full disk is an `OSError` at the start and never a SIGBUS later.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import sys
import weakref
from bisect import bisect_right
from typing import TYPE_CHECKING

from featpipe.fork_lock import make_rlock

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_SMALLEST_BYTES = 1 << 18
_IDLE_BYTES = 256 << 20
_OWNER_SHIFT = 32
#: Arrays below this many bytes are copied: cheaper than a reference, and no segment is held.
_SMALLEST_REFERENCE_BYTES = 4096
#: Older Pythons keep a second descriptor for every map.
_MAP_OPTIONS: dict[str, bool] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


class Segment:
    """A piece of shared memory: ``map`` is writable for its maker, read-only for receivers."""

    __slots__ = ("address", "descriptor", "map", "size", "uid")

    def __init__(self, uid: int, size: int, descriptor: int, *, is_mine: bool) -> None:
        if descriptor < 0:  # lost on its way: a map of it would be of new, empty memory
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.uid, self.size, self.descriptor = uid, size, descriptor
        self.address = 0
        """Of its memory in this process, as the first view found it."""
        access = mmap.ACCESS_WRITE if is_mine else mmap.ACCESS_READ
        self.map = mmap.mmap(descriptor, size, access=access, **_MAP_OPTIONS)

    def close_descriptor(self) -> None:
        """Keep only the memory, for as long as this object or a view of it lives."""
        os.close(self.descriptor)
        self.descriptor = -1

    def close(self) -> None:
        """Close the descriptor now, and unmap the memory with its last view."""
        self.close_descriptor()
        with contextlib.suppress(BufferError):  # views are alive; the last one unmaps it
            self.map.close()


def create_segment(uid: int, size: int) -> Segment:
    """A new segment of ``size`` bytes. Raises OSError when descriptors or space run out."""
    descriptor = anonymous_file("featpipe-segment", size)
    try:
        return Segment(uid, size, descriptor, is_mine=True)
    except BaseException:
        os.close(descriptor)
        raise


def anonymous_file(name: str, size: int) -> int:
    """A descriptor of a memfd, or of an unlinked file where memfds are missing or refused."""
    descriptor = _memfd(name)
    reserve: Callable[[int, int], None] = os.ftruncate
    if descriptor is None:
        import tempfile

        descriptor, path = tempfile.mkstemp(prefix=name)
        os.unlink(path)
        reserve = _reserve_blocks
    try:
        reserve(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _memfd(name: str) -> int | None:
    """None where the kernel, a sandbox or the user does without memfds."""
    if os.environ.get("FEATPIPE_NO_MEMFD") or not hasattr(os, "memfd_create"):
        return None
    try:
        return os.memfd_create(name, os.MFD_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
            raise
        return None


def _reserve_blocks(descriptor: int, size: int) -> None:
    os.posix_fallocate(descriptor, 0, size)


class SegmentStore:
    """The segments one process made: each is in use or idle. Safe to call from several threads.

    Args:
        owner: number that makes the uids unique among all processes of a pool.
        announce: called with a new segment before it is first used.
        withdraw: called with the uid of a segment that will not be used again.
        idle_bytes: idle segments are kept up to this size, the oldest go first.
    """

    def __init__(
        self,
        owner: int,
        announce: Callable[[Segment], None],
        withdraw: Callable[[int], None],
        idle_bytes: int = _IDLE_BYTES,
    ) -> None:
        self._next_uid = (owner << _OWNER_SHIFT) + 1
        self._announce, self._withdraw = announce, withdraw
        self._idle_bytes_allowed = idle_bytes
        self._idle: list[Segment] = []
        self._in_use: dict[int, Segment] = {}
        # Reentrant: a view may die, and give its segment back, inside any allocation made here.
        self._lock = make_rlock()

    def take(self, n_bytes: int) -> Segment:
        """A segment of at least ``n_bytes`` for one use. Raises OSError."""
        with self._lock:
            # The smallest that fits, and of those the one used last: its pages are in the cache.
            fitting = [segment for segment in reversed(self._idle) if n_bytes <= segment.size]
            if fitting:
                segment = min(fitting, key=_size_of)
                self._idle.remove(segment)
            else:
                segment = create_segment(self._next_uid, _rounded(n_bytes))
                self._next_uid += 1
                self._announce(segment)
            self._in_use[segment.uid] = segment
            return segment

    def give_back(self, uid: int) -> None:
        """The last view is gone: keep the warm pages for the next use, within the limit."""
        with self._lock:
            segment = self._in_use.pop(uid, None)
            if segment is None:
                return
            self._idle.append(segment)
            while sum(map(_size_of, self._idle)) > self._idle_bytes_allowed:
                oldest = self._idle.pop(0)
                self._withdraw(oldest.uid)
                oldest.close()

    def discard(self, uid: int) -> None:
        """Close a segment that must not be written to again, because a view of it may live on."""
        with self._lock:
            segment = self._in_use.pop(uid, None)
            if segment is not None:
                self._withdraw(uid)
                segment.close()

    def segments(self) -> list[Segment]:
        """All of them, without the lock; for a forked child, where it may be held for ever."""
        return [*self._idle, *self._in_use.values()]

    def close(self) -> None:
        """Close everything; views that are still alive keep their memory."""
        with self._lock:
            for segment in self.segments():
                segment.close()
            self._idle.clear()
            self._in_use.clear()


def _size_of(segment: Segment) -> int:
    return segment.size


def _rounded(n_bytes: int) -> int:
    """The next power of two up to 64 MiB, so that segments fit again; whole mebibytes above."""
    if n_bytes <= _SMALLEST_BYTES:
        return _SMALLEST_BYTES
    if n_bytes <= 64 << 20:
        return 1 << (n_bytes - 1).bit_length()
    return -(-n_bytes >> 20) << 20


class Reference:
    """The right to look at a segment; released once, explicitly or by its destructor."""

    __slots__ = ("_release", "segment")

    def __init__(self, segment: Segment, release: Callable[[], None]) -> None:
        self.segment = segment
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        """Allow the segment's maker to use it again; only the first call has an effect."""
        release, self._release = self._release, None
        if release is not None:
            release()

    def __del__(self) -> None:
        self.release()


class _Exporter(weakref.ref["NDArray[np.uint8]"]):
    """Notes the end of one exporter; cheaper than a `weakref.finalize`, which thinks of exits."""

    __slots__ = ("on_release",)
    on_release: Callable[[], None]


#: Those whose exporter lives, by id: they must be alive to be called.
_exporters: dict[int, _Exporter] = {}


def _on_exporter_gone(exporter: weakref.ref[NDArray[np.uint8]]) -> None:
    _exporters.pop(id(exporter)).on_release()


def tracked_view(segment: Segment, on_release: Callable[[], None]) -> memoryview:
    """A view of the segment; ``on_release`` runs when no slice of it is left.

    Python cannot count the views of a memory map. So every use of a segment gets its own small
    exporter (a numpy array over the whole map), which every view of that use keeps alive.
    ``on_release`` may run in any thread, at any allocation: it must not block and must not raise.
    """
    import numpy as np

    array = np.frombuffer(segment.map, np.uint8)
    exporter = _Exporter(array, _on_exporter_gone)
    exporter.on_release = on_release
    _exporters[id(exporter)] = exporter
    if not segment.address:
        segment.address = array.__array_interface__["data"][0]
    return memoryview(array)  # type: ignore[arg-type]  # a Buffer in numpy's stubs only from Python 3.12 on


class AddressMap:
    """Finds the segment a buffer lies in, so that an array is sent on without being copied."""

    def __init__(self) -> None:
        #: (address, segment), sorted; segments do not overlap.
        self._entries: list[tuple[int, Segment]] = []
        self._uids: set[int] = set()
        # Reentrant: an array may die, and with it a segment, inside any allocation made here.
        self._lock = make_rlock()

    def add(self, segment: Segment) -> None:
        """The segment has a view; harmless when it was added before."""
        if segment.uid in self._uids:
            return
        with self._lock:
            place = bisect_right(self._entries, segment.address, key=_address_of)
            if not place or self._entries[place - 1][1] is not segment:
                self._entries.insert(place, (segment.address, segment))
            self._uids.add(segment.uid)

    def remove(self, segment: Segment) -> None:
        """The segment is about to be unmapped; harmless when it was never added."""
        with self._lock:
            self._uids.discard(segment.uid)
            self._entries = [entry for entry in self._entries if entry[1] is not segment]

    def locate(self, buffer: memoryview) -> tuple[Segment, int] | None:
        """The segment that holds the whole buffer, and its offset; None for ordinary memory."""
        numpy = sys.modules.get("numpy")
        if numpy is None or buffer.nbytes < _SMALLEST_REFERENCE_BYTES or not self._entries:
            return None
        address = numpy.frombuffer(buffer, numpy.uint8).__array_interface__["data"][0]
        with self._lock:
            place = bisect_right(self._entries, address, key=_address_of)
            if not place:
                return None
            start, segment = self._entries[place - 1]
        offset = address - start
        return (segment, offset) if offset + buffer.nbytes <= segment.size else None


def _address_of(entry: tuple[int, Segment]) -> int:
    return entry[0]
