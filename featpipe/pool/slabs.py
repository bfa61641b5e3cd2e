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
