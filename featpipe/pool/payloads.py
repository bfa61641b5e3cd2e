"""Payloads as they are sent: a small pickle, and large buffers that stay in shared memory.

Pickle protocol 5 hands the buffers of arrays out of the stream. Small ones are sent in the frame;
large ones are copied once, by their sender, into a segment that the receiver maps. Buffers that
already lie in a segment this process received are referred to and not copied.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, NamedTuple

from featpipe.pool.frames import OUT_OF_BAND, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.pool.shared_memory import Segment, SegmentStore

    #: (uid of a segment, offset, bytes), or the bytes themselves
    Entry = bytes | tuple[int, int, int]
    #: Finds the segment a buffer lies in, and its offset there.
    Locate = Callable[[memoryview], tuple[Segment, int] | None]

_INLINE_BYTES = 32 << 10
_ALIGNMENT = 64


class PackedPayload(NamedTuple):
    """An object ready to be sent."""

    body: bytes
    flags: int = PLAIN
    own: Segment | None = None
    """The segment made for it, which goes back to its store after use."""
    segments: tuple[Segment, ...] = ()
    """All it refers to."""
    buffers: Sequence[pickle.PickleBuffer] = ()
    """Kept alive until then, for the segments of others among them."""
    keeps: object = None
    """Kept alive until then as well."""


def pack(thing: object, store: SegmentStore, locate: Locate | None = None) -> PackedPayload:
    """Make ``thing`` ready to be sent. Raises whatever its pickling raises."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    return pack_pickled(data, buffers, store, locate)


def pack_pickled(
    data: bytes,
    buffers: Sequence[pickle.PickleBuffer],
    store: SegmentStore,
    locate: Locate | None = None,
) -> PackedPayload:
    """A payload of a pickle and its out-of-band buffers."""
    if not buffers and len(data) <= _INLINE_BYTES:
        return PackedPayload(data)
    raws = [buffer.raw() for buffer in buffers]
    if len(data) + sum(raw.nbytes for raw in raws) <= _INLINE_BYTES:
        body = pickle.dumps((data, [bytes(raw) for raw in raws]), 5)
        return PackedPayload(body, OUT_OF_BAND)
    if len(data) > _INLINE_BYTES:
        raws.append(memoryview(data))
        data = b""
    entries, segments = _refer_to_known(raws, locate)
    own = _copy_rest(raws, entries, store)
    if own is not None:
        segments.append(own)
    body = pickle.dumps((data, entries), 5)
    return PackedPayload(body, OUT_OF_BAND, own, tuple(segments), buffers)


def _refer_to_known(
    raws: Sequence[memoryview], locate: Locate | None
) -> tuple[list[Entry], list[Segment]]:
    """Entries for the buffers that already lie in a segment; empty bytes for the others."""
    entries: list[Entry] = [b""] * len(raws)
    if locate is None:
        return entries, []
    used: dict[int, Segment] = {}
    for number, raw in enumerate(raws):
        found = locate(raw) if raw.nbytes else None
        if found is not None:
            segment, offset = found
            entries[number] = (segment.uid, offset, raw.nbytes)
            used[segment.uid] = segment
    return entries, list(used.values())


def _copy_rest(
    raws: Sequence[memoryview], entries: list[Entry], store: SegmentStore
) -> Segment | None:
    """Copy the remaining buffers into one segment, or into the frame when none can be made."""
    rest = [n for n, raw in enumerate(raws) if raw.nbytes and not entries[n]]
    n_bytes = sum(_aligned(raws[n].nbytes) for n in rest)
    if not n_bytes:
        return None
    try:
        segment = store.take(n_bytes)
    except OSError:  # descriptors or space ran out: the frame can carry anything, slower
        for n in rest:
            entries[n] = bytes(raws[n])
        return None
    at = 0
    with memoryview(segment.map) as target:
        for n in rest:
            size = raws[n].nbytes
            target[at : at + size] = raws[n]
            entries[n] = (segment.uid, at, size)
            at += _aligned(size)
    return segment


def unpack(
    body: bytes,
    flags: int,
    segment_of: Callable[[int], Segment],
    view_of: Callable[[Segment], memoryview] | None,
) -> object:
    """The object again. Its arrays are read-only views of ``view_of(segment)``.

    Without ``view_of`` they are copies. Raises whatever its unpickling raises.
    """
    if not flags & OUT_OF_BAND:
        return pickle.loads(body)
    data, entries = pickle.loads(body)
    if not data and len(entries) == 1:  # one large pickle without arrays: no view will remain
        return _load_in_place(entries[0], segment_of)
    views: dict[int, memoryview] = {}
    buffers: list[bytes | memoryview] = []
    for entry in entries:
        if isinstance(entry, bytes):
            buffers.append(entry)
            continue
        uid, offset, size = entry
        if uid not in views:
            segment = segment_of(uid)
            views[uid] = memoryview(segment.map) if view_of is None else view_of(segment)
        piece = views[uid][offset : offset + size]
        buffers.append(bytes(piece) if view_of is None else piece)
    return pickle.loads(data or buffers.pop(), buffers=buffers)


def _load_in_place(entry: Entry, segment_of: Callable[[int], Segment]) -> object:
    if isinstance(entry, bytes):
        return pickle.loads(entry)
    uid, offset, size = entry
    with memoryview(segment_of(uid).map) as whole, whole[offset : offset + size] as data:
        return pickle.loads(data)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
