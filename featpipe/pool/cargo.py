"""The cargo: what of payloads and results lies in shared memory, and who still looks at it.

Guarantees: the memory of a payload is written to again only after its task has ended and its
worker has let go of it; the memory of a result only after the last view of it here, and in every
worker it was sent on to, is gone, and never if a fork may have kept one.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from featpipe.pool import pickling
from featpipe.pool.payloads import unpack, wrap
from featpipe.pool.shared_memory import Atlas, Lease, Slab, SlabStore, lend

if TYPE_CHECKING:
    import pickle
    from collections.abc import Callable

    from featpipe.pool.payloads import Parcel
    from featpipe.pool.task import Task

#: So many results may be looked at in place at a time; further ones are copied out of their slabs,
#: because each slab in use costs a descriptor or two, in two processes.
MOST_LEASES = 200
_DESCRIPTORS_PER_LEASE = 8


def most_leases() -> int:
    """The same where few descriptors are allowed (ulimit -n): a quarter of them for all slabs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_LEASES
    return min(MOST_LEASES, soft // _DESCRIPTORS_PER_LEASE)


class Cargo:
    """The parent's slabs, and its view of the children's."""

    def __init__(self, withdraw: Callable[[int], None]) -> None:
        self.atlas = Atlas()
        self._withdraw = withdraw
        self._most_leases = most_leases()
        self._store = SlabStore(0, lambda _: None, withdraw)
        self._leased: dict[int, Slab] = {}
        self._forked: set[int] = set()
        self._held: dict[tuple[int, int], Parcel] = {}

    # for any thread

    def pack(self, payload: object) -> Parcel:
        """Make a payload ready to pickling. Raises CannotTravel."""
        buffers: list[pickle.PickleBuffer] = []
        meta = pickling.dumps(payload, "payload", buffers.append)
        return wrap(meta, buffers, self._store, self.atlas.locate)

    def unpack(self, body: bytes, flags: int, lease: Lease | None) -> object:
        """The result; its arrays look at the slab, which stays theirs until they are gone."""
        if lease is None:
            return unpack(body, flags, _no_slab, None)

        def view_of(slab: Slab) -> memoryview:
            view, address = lend(slab, lease.release)
            self.atlas.note(slab, address)
            return view

        are_too_many = len(self._leased) > self._most_leases
        return unpack(body, flags, lambda _: lease.slab, None if are_too_many else view_of)

    def before_fork(self) -> None:
        """The new process will look at what is leased now, for as long as it likes."""
        self._forked |= self._leased.keys()

    # for the hub

    def lease(self, slab: Slab, release: Callable[[], None]) -> Lease:
        """A worker's slab that a result lies in; ``release`` is called when nobody looks any more.

        It may be called in any thread, at any allocation.
        """
        self._leased[slab.uid] = slab
        return Lease(slab, release)

    def end_lease(self, uid: int) -> tuple[Slab | None, bool]:
        """(the slab, whether its maker may use it again)."""
        slab = self._leased.pop(uid, None)
        may_reuse = uid not in self._forked
        self._forked.discard(uid)
        return slab, may_reuse

    def is_leased(self, slab: Slab) -> bool:
        """Whether somebody looks at it."""
        return slab.uid in self._leased

    def retire(self, slab: Slab) -> None:
        """A worker's slab will not be used again."""
        self._withdraw(slab.uid)
        self.atlas.forget(slab)
        slab.close()

    def release(self, task: Task) -> None:
        """The task's payload has served."""
        parcel, task.parcel = task.parcel, None
        self._give_back(parcel)

    def hold(self, worker: int, task: Task) -> None:
        """The task has ended, and the worker still looks at its payload."""
        if task.parcel is not None:
            self._held[worker, task.number] = task.parcel
            task.parcel = None

    def let_go(self, worker: int, number: int) -> None:
        """The worker looks no more."""
        self._give_back(self._held.pop((worker, number), None))

    def let_all_go(self, worker: int) -> None:
        """The worker is gone, and all its views with it."""
        for key in [key for key in self._held if key[0] == worker]:
            self._give_back(self._held.pop(key))

    def forget_after_fork(self) -> None:
        """In a forked child: the descriptors are copies. Locks may be held by nobody for ever."""
        for slab in (*self._leased.values(), *self._store.slabs()):
            slab.give_up_descriptor()

    def close(self) -> None:
        """Give up every descriptor. What is looked at stays readable."""
        for slab in self._leased.values():
            self.atlas.forget(slab)
            slab.give_up_descriptor()
        self._leased.clear()
        self._held.clear()
        self._store.close()

    def _give_back(self, parcel: Parcel | None) -> None:
        if parcel is not None and parcel.own is not None:
            self._store.give_back(parcel.own.uid)


def _no_slab(uid: int) -> Slab:
    raise AssertionError(f"a result without a slab refers to slab {uid}")
