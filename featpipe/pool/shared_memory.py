"""Slabs: memory that two processes share by passing a descriptor.

Guarantees:

- A slab has no name, so nothing is left behind by any death, and /dev/shm is not involved.
- Its pages outlive its maker: a result stays readable after the worker that made it died.
- Receivers map it read-only. Its maker writes to it again only after it was told that the last
  view of it, in whatever process, is gone.

A slab is a memfd or, where there are none, an unlinked file whose space is reserved before use,
so that a full disk is an `OSError` at the start and never a SIGBUS later.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
import weakref
from bisect import bisect_right, insort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


SMALLEST_BYTES = 1 << 18
IDLE_BYTES = 256 << 20
_OWNER_SHIFT = 32
#: Older Pythons keep a second descriptor for every map.
_MAP_OPTIONS: dict[str, bool] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


class Slab:
    """A piece of shared memory: ``map`` is writable for its maker, read-only for receivers."""

    __slots__ = ("descriptor", "map", "size", "uid")

    def __init__(self, uid: int, size: int, descriptor: int, *, is_mine: bool) -> None:
        self.uid, self.size, self.descriptor = uid, size, descriptor
        access = mmap.ACCESS_WRITE if is_mine else mmap.ACCESS_READ
        self.map = mmap.mmap(descriptor, size, access=access, **_MAP_OPTIONS)

    def give_up_descriptor(self) -> None:
        """Keep only the memory, for as long as this object or a view of it lives."""
        os.close(self.descriptor)
        self.descriptor = -1

    def close(self) -> None:
        """Give up the descriptor now, and the memory with its last view."""
        self.give_up_descriptor()
        # BufferError: somebody looks at it; the mapping goes when nobody does.
        with contextlib.suppress(BufferError):
            self.map.close()


def make_slab(uid: int, size: int) -> Slab:
    """A new slab of ``size`` bytes. Raises OSError when there are no descriptors or no space."""
    descriptor = anonymous_file("featpipe-slab", size)
    try:
        return Slab(uid, size, descriptor, is_mine=True)
    except BaseException:
        os.close(descriptor)
        raise


def anonymous_file(name: str, size: int) -> int:
    """A descriptor of nameless memory, or of a nameless file where there is no memfd."""
    if hasattr(os, "memfd_create") and not os.environ.get("FEATPIPE_NO_MEMFD"):
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        reserve = os.ftruncate
    else:
        import tempfile

        descriptor, path = tempfile.mkstemp(prefix=name)
        os.unlink(path)  # noqa: PTH108  # children must not pay for importing pathlib
        reserve = _reserve_blocks
    try:
        reserve(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _reserve_blocks(descriptor: int, size: int) -> None:
    os.posix_fallocate(descriptor, 0, size)


class SlabStore:
    """The slabs one process made: handed out whole, taken back when the last view is gone.

    Safe to call from several threads.

    Args:
        owner: number that makes the slabs' uids unique among all processes of a pool.
        announce: called with a new slab before it is first used.
        withdraw: called with the uid of a slab that will not be used again.
    """

    def __init__(
        self,
        owner: int,
        announce: Callable[[Slab], None],
        withdraw: Callable[[int], None],
        idle_bytes: int = IDLE_BYTES,
    ) -> None:
        self._next_uid = (owner << _OWNER_SHIFT) + 1
        self._announce, self._withdraw = announce, withdraw
        self._idle_bytes_allowed = idle_bytes
        self._idle: list[Slab] = []
        self._lent: dict[int, Slab] = {}
        # Reentrant: a view may die, and give its slab back, inside any allocation we make here.
        self._lock = threading.RLock()

    def take(self, n_bytes: int) -> Slab:
        """A slab of at least ``n_bytes`` that nobody else uses. Raises OSError."""
        with self._lock:
            # The smallest that fits, and of those the one used last: its pages are in the cache.
            fitting = [slab for slab in reversed(self._idle) if n_bytes <= slab.size]
            if fitting:
                slab = min(fitting, key=_size_of)
                self._idle.remove(slab)
            else:
                slab = make_slab(self._next_uid, _rounded(n_bytes))
                self._next_uid += 1
                self._announce(slab)
            self._lent[slab.uid] = slab
            return slab

    def give_back(self, uid: int) -> None:
        """The last view is gone: keep the slab's warm pages for the next use, or let it go."""
        with self._lock:
            slab = self._lent.pop(uid, None)
            if slab is None:
                return
            self._idle.append(slab)
            while sum(map(_size_of, self._idle)) > self._idle_bytes_allowed:
                oldest = self._idle.pop(0)
                self._withdraw(oldest.uid)
                oldest.close()

    def discard(self, uid: int) -> None:
        """Let a slab go that must not be written to again, because a view of it may live on."""
        with self._lock:
            slab = self._lent.pop(uid, None)
            if slab is not None:
                self._withdraw(uid)
                slab.close()

    def slabs(self) -> list[Slab]:
        """All there are; for a forked child, which cannot trust the lock."""
        return [*self._idle, *self._lent.values()]

    def close(self) -> None:
        """Let go of everything; views that are still alive keep their memory."""
        with self._lock:
            for slab in (*self._idle, *self._lent.values()):
                slab.close()
            self._idle.clear()
            self._lent.clear()


def _size_of(slab: Slab) -> int:
    return slab.size


def _rounded(n_bytes: int) -> int:
    """The next power of two up to 64 MiB, so that slabs fit again; whole mebibytes above."""
    if n_bytes <= SMALLEST_BYTES:
        return SMALLEST_BYTES
    if n_bytes <= 64 << 20:
        return 1 << (n_bytes - 1).bit_length()
    return -(-n_bytes >> 20) << 20


# Leases: knowing when the last view of a slab is gone.
#
# Python cannot ask a memory map who looks at it. So every use of a slab gets its own small exporter
# (a numpy array over the whole map), every view of that use keeps the exporter alive, and a weak
# reference tells when it dies.


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    import numpy as np

    Exporter: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


class Lease:
    """The right to look at a slab; released once, by hand or by being forgotten."""

    __slots__ = ("_release", "slab")

    def __init__(self, slab: Slab, release: Callable[[], None]) -> None:
        self.slab = slab
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        """Tell the slab's maker; only the first call does."""
        release, self._release = self._release, None
        if release is not None:
            release()

    def __del__(self) -> None:
        self.release()


class _Tether(weakref.ref["Exporter"]):
    """A weak reference to an exporter, with what to do when it is gone."""

    __slots__ = ("on_release",)
    on_release: Callable[[], None]


#: A weak reference calls back only while it is itself alive. By identity: its hash is that of the
#: array, which has none.
_TETHERS: dict[int, _Tether] = {}


def lend(slab: Slab, on_release: Callable[[], None]) -> tuple[memoryview, int]:
    """A view of the slab and its address; ``on_release`` runs when no slice of it is left.

    It may run in any thread, at any allocation: it must not block and must not raise.
    """
    import numpy as np

    exporter = np.frombuffer(slab.map, np.uint8)
    tether = _Tether(exporter, _on_gone)
    tether.on_release = on_release
    _TETHERS[id(tether)] = tether
    address: int = exporter.__array_interface__["data"][0]
    return memoryview(exporter), address  # type: ignore[arg-type]  # numpy says so from 3.12 on


def _on_gone(tether: _Tether) -> None:
    _TETHERS.pop(id(tether), None)
    tether.on_release()


# The atlas: which slab a buffer lies in, so that an array can travel on without being copied.


#: Below this a copy is cheaper than a reference, and holds no slab.
_SMALLEST = 4096


class Atlas:
    """Addresses of the slabs that this process mapped and that arrays may look at."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._slabs: dict[int, Slab] = {}
        self._starts_of: dict[int, int] = {}
        # Reentrant: an array may die, and with it a slab, inside any allocation made here.
        self._lock = threading.RLock()

    def note(self, slab: Slab, address: int) -> None:
        """The slab is mapped here."""
        if slab.uid in self._starts_of:
            return
        with self._lock:
            insort(self._starts, address)
            self._slabs[address] = slab
            self._starts_of[slab.uid] = address

    def forget(self, slab: Slab) -> None:
        """The slab is about to be unmapped."""
        with self._lock:
            address = self._starts_of.pop(slab.uid, None)
            if address is not None:
                self._starts.remove(address)
                del self._slabs[address]

    def locate(self, buffer: memoryview) -> tuple[Slab, int] | None:
        """The slab this buffer lies in whole, and where; None when it is ordinary memory."""
        numpy = sys.modules.get("numpy")
        if numpy is None or buffer.nbytes < _SMALLEST or not self._starts:
            return None
        address = numpy.frombuffer(buffer, numpy.uint8).__array_interface__["data"][0]
        with self._lock:
            place = bisect_right(self._starts, address) - 1
            if place < 0:
                return None
            start = self._starts[place]
            slab = self._slabs[start]
        offset = address - start
        return (slab, offset) if offset + buffer.nbytes <= slab.size else None
