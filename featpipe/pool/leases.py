"""Leases: knowing when the last view of a slab is gone.

Python cannot ask a memory map who looks at it. So every use of a slab gets its own small exporter
(a numpy array over the whole map), every view of that use keeps the exporter alive, and a weak
reference tells when it dies.
"""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    import numpy as np

    from featpipe.pool.slabs import Slab

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
