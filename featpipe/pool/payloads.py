"""Parcels: an object as a small pickle plus its large buffers, which stay in slabs.

Pickle protocol 5 hands the buffers of arrays out of the stream. Small ones ride in the frame; large
ones are copied once, by their sender, into a slab that the receiver maps. Buffers that already lie
in a slab this process received are not copied at all: the parcel refers to them.
"""

from __future__ import annotations

import pickle

from featpipe.pool.frames import FLAT, PARCEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.pool.shared_memory import Slab, SlabStore

    #: (uid of a slab, offset, bytes), or the bytes themselves
    Entry = bytes | tuple[int, int, int]
    #: Finds the slab a buffer lies in, and where.
    Locate = Callable[[memoryview], tuple[Slab, int] | None]

INLINE_BYTES = 32 << 10
_ALIGNMENT = 64


class Parcel:
    """An object ready to travel.

    ``own`` is the slab made for it, which goes back to its store when the parcel has served;
    ``slabs`` are all it refers to; ``keep`` holds the buffers of others alive until then.
    """

    __slots__ = ("body", "flags", "keep", "own", "slabs")

    def __init__(
        self,
        body: bytes,
        flags: int = FLAT,
        own: Slab | None = None,
        slabs: tuple[Slab, ...] = (),
        keep: Sequence[pickle.PickleBuffer] = (),
    ) -> None:
        self.body, self.flags, self.own, self.slabs, self.keep = body, flags, own, slabs, keep


def pack(thing: object, store: SlabStore, locate: Locate | None = None) -> Parcel:
    """Make ``thing`` ready to travel. Raises whatever its pickling raises."""
    buffers: list[pickle.PickleBuffer] = []
    meta = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    return wrap(meta, buffers, store, locate)


def wrap(
    meta: bytes,
    buffers: Sequence[pickle.PickleBuffer],
    store: SlabStore,
    locate: Locate | None = None,
) -> Parcel:
    """A parcel of what pickling gave."""
    if not buffers and len(meta) <= INLINE_BYTES:
        return Parcel(meta)
    raws = [buffer.raw() for buffer in buffers]
    if len(meta) + sum(raw.nbytes for raw in raws) <= INLINE_BYTES:
        return Parcel(pickle.dumps((meta, [bytes(raw) for raw in raws]), 5), PARCEL)
    if len(meta) > INLINE_BYTES:
        raws.append(memoryview(meta))
        meta = b""
    entries, used = _place_known(raws, locate)
    own = _place_rest(raws, entries, store)
    body = pickle.dumps((meta, entries), 5)
    if own is not None:
        used.append(own)
    return Parcel(body, PARCEL, own, tuple(used), buffers)


def _place_known(
    raws: Sequence[memoryview], locate: Locate | None
) -> tuple[list[Entry], list[Slab]]:
    """Entries for the buffers that already lie in a slab; empty bytes for the others."""
    entries: list[Entry] = [b""] * len(raws)
    used: dict[int, Slab] = {}
    for number, raw in enumerate(raws if locate is not None else ()):
        found = locate(raw) if locate is not None and raw.nbytes else None
        if found is not None:
            slab, offset = found
            entries[number] = (slab.uid, offset, raw.nbytes)
            used[slab.uid] = slab
    return entries, list(used.values())


def _place_rest(raws: Sequence[memoryview], entries: list[Entry], store: SlabStore) -> Slab | None:
    """Copy the remaining buffers into one slab, or into the frame when no slab is to be had."""
    rest = [n for n, raw in enumerate(raws) if raw.nbytes and not entries[n]]
    n_bytes = sum(_aligned(raws[n].nbytes) for n in rest)
    if not n_bytes:
        return None
    try:
        slab = store.take(n_bytes)
    except OSError:  # no descriptor or no space: the frame itself can carry anything, slower
        for n in rest:
            entries[n] = bytes(raws[n])
        return None
    at = 0
    with memoryview(slab.map) as target:
        for n in rest:
            size = raws[n].nbytes
            target[at : at + size] = raws[n]
            entries[n] = (slab.uid, at, size)
            at += _aligned(size)
    return slab


def unpack(
    body: bytes,
    flags: int,
    slab_of: Callable[[int], Slab],
    view_of: Callable[[Slab], memoryview] | None,
) -> object:
    """The object again. Its arrays are read-only views of what ``view_of(slab)`` gives.

    Without ``view_of`` they are copies. Raises whatever its unpickling raises.
    """
    if not flags & PARCEL:
        return pickle.loads(body)  # noqa: S301  # from our own children, over a private socket
    meta, entries = pickle.loads(body)  # noqa: S301  # as above
    if not meta and len(entries) == 1:  # one large pickle without arrays: nothing will look at it
        return _load_in_place(entries[0], slab_of)
    views: dict[int, memoryview] = {}
    buffers: list[bytes | memoryview] = []
    for entry in entries:
        if isinstance(entry, bytes):
            buffers.append(entry)
            continue
        uid, offset, size = entry
        if uid not in views:
            slab = slab_of(uid)
            views[uid] = memoryview(slab.map) if view_of is None else view_of(slab)
        piece = views[uid][offset : offset + size]
        buffers.append(bytes(piece) if view_of is None else piece)
    return pickle.loads(meta or buffers.pop(), buffers=buffers)  # noqa: S301  # as above


def _load_in_place(entry: Entry, slab_of: Callable[[int], Slab]) -> object:
    if isinstance(entry, bytes):
        return pickle.loads(entry)  # noqa: S301  # as above
    uid, offset, size = entry
    with memoryview(slab_of(uid).map) as whole, whole[offset : offset + size] as meta:
        return pickle.loads(meta)  # noqa: S301  # as above


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
