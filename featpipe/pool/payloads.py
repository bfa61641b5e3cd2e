"""Payloads as they are sent: a small pickle, and large buffers that stay in shared memory.

Pickle protocol 5 hands the buffers of arrays out of the stream. Small ones follow the pickle in the
frame, and its receiver's arrays are views of that; large ones are copied once, by their sender,
into a segment that the receiver maps. Buffers that already lie in a segment this process received
are referred to and not copied.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, cast

from featpipe.pool.frames import FOLLOWED, OUT_OF_BAND, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer  # in collections.abc from Python 3.12 on

    from featpipe.pool.shared_memory import Segment

    #: (uid of a segment, offset, bytes), or the bytes themselves
    Entry = bytes | tuple[int, int, int]
    #: Finds the segment a buffer lies in, and its offset there.
    Locate = Callable[[memoryview], tuple[Segment, int] | None]
    #: Gives a segment of at least so many bytes. Raises OSError.
    Take = Callable[[int], Segment]
    _Reduced = tuple[Callable[..., object], tuple[object, ...]]

#: Payloads up to here are sent in the frame: two copies by the kernel cost less than a segment's
#: way there and back.
INLINE_BYTES = 32 << 10
_ALIGNMENT = 64
#: Of buffers in a frame: the memory of a bytes object is aligned to no more.
_ALIGNMENT_IN_FRAME = 16
_WITHOUT_ARRAYS = frozenset({type(None), bool, int, float, str, bytes})


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

    @property
    def n_bytes(self) -> int:
        """Size of the payload, segments included."""
        return len(self.body) + sum(segment.size for segment in self.segments)


def pack(thing: object, take: Take, locate: Locate | None = None) -> PackedPayload:
    """Make ``thing`` ready to be sent. Raises whatever its pickling raises."""
    buffers: list[pickle.PickleBuffer] = []
    return pack_pickled(dump(thing, buffers), buffers, take, locate)


def dump(thing: object, buffers: list[pickle.PickleBuffer]) -> bytes:
    """Pickle ``thing``; the buffers of its arrays are appended, and are no part of the pickle.

    Any `pickle.loads` understands it. Plain arrays take a third of the time that numpy's own way
    takes, which calls Python code at both ends. Raises whatever its pickling raises.
    """
    if "numpy" not in sys.modules or type(thing) in _WITHOUT_ARRAYS:
        return pickle.dumps(thing, 5, buffer_callback=buffers.append)
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 5, buffer_callback=buffers.append)
    pickler.dispatch_table = {**copyreg.dispatch_table, **_array_reducer()}
    pickler.dump(thing)
    return out.getvalue()


@cache
def _array_reducer() -> Mapping[type, Callable[[NDArray[np.generic]], _Reduced]]:
    import numpy as np

    # Numbers in the byte order of this machine; their names are made slowly.
    names = {np.dtype(code): np.dtype(code).str for code in "?bhilqBHILQefdgFDG"}

    def reduce(array: NDArray[np.generic]) -> _Reduced:
        name = names.get(array.dtype)
        if name is None or not array.flags.c_contiguous:
            return cast("_Reduced", array.__reduce_ex__(5))
        return np.ndarray, (array.shape, name, pickle.PickleBuffer(cast("Buffer", array)))

    return {np.ndarray: reduce}


def pack_pickled(
    data: bytes,
    buffers: Sequence[pickle.PickleBuffer],
    take: Take,
    locate: Locate | None = None,
) -> PackedPayload:
    """A payload of a pickle and its out-of-band buffers."""
    if not buffers and len(data) <= INLINE_BYTES:
        return PackedPayload(data)
    raws = [buffer.raw() for buffer in buffers]
    sizes = [raw.nbytes for raw in raws]
    if len(data) + sum(sizes) <= INLINE_BYTES:
        return PackedPayload(_join(data, raws, sizes), FOLLOWED)
    if len(data) > INLINE_BYTES:
        raws.append(memoryview(data))
        data = b""
    entries, segments = _refer_to_known(raws, locate)
    own = _copy_rest(raws, entries, take)
    if own is not None:
        segments.append(own)
    body = pickle.dumps((data, entries), 5)
    return PackedPayload(body, OUT_OF_BAND, own, tuple(segments), buffers)


def _join(data: bytes, raws: Sequence[memoryview], sizes: Sequence[int]) -> bytes:
    """Number of buffers, sizes of the pickle and of each (8 bytes each), pickle, buffers."""
    head = struct.pack(f"<{2 + len(sizes)}Q", len(sizes), len(data), *sizes)
    parts: list[bytes | memoryview] = [head, data]
    at = len(head) + len(data)
    for raw, size in zip(raws, sizes, strict=True):
        gap = -at % _ALIGNMENT_IN_FRAME
        parts += (bytes(gap), raw)
        at += gap + size
    return b"".join(parts)


def _load_joined(body: bytes) -> object:
    """The object of `_join`; its arrays are read-only views of the body."""
    (n,) = struct.unpack_from("<Q", body)
    size, *sizes = struct.unpack_from(f"<{1 + n}Q", body, 8)
    view = memoryview(body)
    begin = 16 + 8 * n
    at = begin + size
    buffers = []
    for n_bytes in sizes:
        at += -at % _ALIGNMENT_IN_FRAME
        buffers.append(view[at : at + n_bytes])
        at += n_bytes
    return pickle.loads(view[begin : begin + size], buffers=buffers)


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


def _copy_rest(raws: Sequence[memoryview], entries: list[Entry], take: Take) -> Segment | None:
    """Copy the remaining buffers into one segment, or into the frame when none can be made."""
    rest = [n for n, raw in enumerate(raws) if raw.nbytes and not entries[n]]
    n_bytes = sum(_aligned(raws[n].nbytes) for n in rest)
    if not n_bytes:
        return None
    try:
        segment = take(n_bytes)
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
    """The object again. Its arrays are read-only views of ``view_of(segment)``, or of the body.

    Without ``view_of`` they are copies. Raises whatever its unpickling raises.
    """
    if not flags & OUT_OF_BAND:
        return _load_joined(body) if flags & FOLLOWED else pickle.loads(body)
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
