"""The atlas: which slab a buffer lies in, so that an array can travel on without being copied."""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.pool.slabs import Slab

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
