"""The parent's shared memory: payloads it sends, results it received, and who still uses them.

Guarantees: the memory of a payload is written to again only after its task has ended and its
worker has released it. The memory of a result is written to again only after the last view of it
here, and in every worker it was sent on to, is gone, and never if a fork may have kept one.
"""

from __future__ import annotations

import os
import pickle
import resource
from functools import partial
from typing import TYPE_CHECKING

from featpipe.pool import frames, pickling
from featpipe.pool.frames import ProtocolError
from featpipe.pool.payloads import INLINE_BYTES, PackedPayload, pack_pickled, unpack
from featpipe.pool.shared_memory import AddressMap, Reference, Segment, SegmentStore, tracked_view

if TYPE_CHECKING:
    from featpipe.pool.actions import Send
    from featpipe.pool.event_loop import EventLoop
    from featpipe.pool.frames import Frame
    from featpipe.pool.task import Task
    from featpipe.pool.workers import Worker, WorkerTable

#: So many results may be viewed in place at a time; further ones are copied out of their segments,
#: because each segment in use costs a descriptor or two, in two processes.
_MOST_VIEWED = 200
_DESCRIPTORS_PER_SEGMENT = 8


class PayloadStore:
    """Packs payloads, sends them, and unpacks results."""

    def __init__(self, loop: EventLoop, workers: WorkerTable) -> None:
        self._loop, self._workers = loop, workers
        self._addresses = AddressMap()
        self.most_viewed = most_viewed()
        self._own = SegmentStore(0, lambda _: None, self._withdraw)
        #: Workers' segments that results lie in, and those a forked child may still view.
        self._referenced: dict[int, Segment] = {}
        self._forked: set[int] = set()
        #: (worker, task) -> a payload whose task has ended while the worker still views it.
        self._held: dict[tuple[int, int], PackedPayload] = {}

    # in any thread

    def pack(self, payload: object) -> PackedPayload:
        """Make a payload ready to be sent. Raises CannotTravel."""
        buffers: list[pickle.PickleBuffer] = []
        data = pickling.dumps(payload, "payload", buffers)
        if not buffers and len(data) <= INLINE_BYTES:
            return PackedPayload(data)
        return pack_pickled(data, buffers, self._own.take, self._addresses.locate)

    def pack_pickled(self, data: bytes) -> PackedPayload:
        """The same for a payload that was pickled without out-of-band buffers."""
        return pack_pickled(data, (), self._own.take)

    def unpack(self, body: bytes, flags: int, reference: Reference | None) -> object:
        """A result; its arrays are views of the segment, which is released with the last."""
        if not flags:
            return pickle.loads(body)
        if reference is None:
            return unpack(body, flags, _no_segment, None)

        def view_of(segment: Segment) -> memoryview:
            # The view keeps the reference, which is released with its last holder: an interrupt in
            # here leaves it to the next attempt.
            view = tracked_view(segment, partial(_keep, reference))
            self._addresses.add(segment)
            return view

        are_too_many = len(self._referenced) > self.most_viewed
        return unpack(body, flags, lambda _: reference.segment, None if are_too_many else view_of)

    def before_fork(self) -> None:
        """The forked child may view every referenced segment, for as long as it lives."""
        self._forked |= self._referenced.keys()

    # in the hub's thread: payloads

    def send(self, action: Send) -> None:
        """Queue a task for the end of this turn, after every segment its worker lacks."""
        worker, task = self._workers.by_number[action.worker], action.task
        packed = task.packed
        if packed is None:
            raise AssertionError(f"task {task.number} was sent after its end")
        for segment in packed.segments:
            if segment.uid not in worker.known:
                worker.known.add(segment.uid)
                size = segment.size.to_bytes(8, "little")
                data = frames.frame_with_descriptor(frames.SEGMENT, segment.uid, size)
                self._workers.write(worker, data, segment.descriptor)
        flags = packed.flags | frames.CUT * (task.cut_for is not None)
        worker.send(frames.frame(frames.TASK, task.number, packed.body, flags))
        self._workers.unsent.add(worker)

    def release(self, task: Task) -> None:
        """The task has ended, and its payload is not needed any more."""
        packed, task.packed = task.packed, None
        self.give_back(packed)

    def hold(self, worker: Worker, task: Task) -> None:
        """The task has ended, and the worker still views its payload."""
        if task.packed is not None:
            self._held[worker.number, task.number] = task.packed
            task.packed = None

    def release_held(self, worker: Worker, message: Frame) -> None:
        """The worker's last view of a held payload is gone."""
        self.give_back(self._held.pop((worker.number, message.number), None))

    # in the hub's thread: workers' segments

    def add_segment(self, worker: Worker, message: Frame) -> None:
        """A worker has made a segment; where it cannot be mapped, `refer` says so."""
        uid, size = message.number, int.from_bytes(message.body, "little")
        if uid in worker.segments:
            raise ProtocolError(f"it announced segment {uid} twice")
        try:
            worker.segments[uid] = Segment(uid, size, message.descriptor, is_mine=False)
        except (OSError, ValueError, OverflowError, MemoryError) as error:
            # Address space or descriptors ran out here: the worker is not to blame.
            worker.unmapped[uid] = f"{size:,} bytes cannot be mapped here: {error}"
            if message.descriptor >= 0:
                os.close(message.descriptor)

    def drop_segment(self, worker: Worker, message: Frame) -> None:
        """A worker will not use one of its segments again."""
        if worker.unmapped.pop(message.number, None) is None:
            self._retire(_own_segment(worker, message.number))
            del worker.segments[message.number]

    def refer(self, worker: Worker, uid: int) -> Reference | None:
        """A reference to the segment a result lies in; None when it came in the frame.

        Raises OSError when this process could not map it.
        """
        if not uid:
            return None
        if uid in worker.unmapped:
            self._workers.write(worker, frames.frame(frames.FREE, uid, flags=frames.FOR_GOOD))
            raise OSError(worker.unmapped[uid])
        segment = self._referenced[uid] = _own_segment(worker, uid)
        number, post, release = worker.number, self._loop.post_quietly, self._end_reference
        # Quietly: a segment that comes back late costs its worker a new one, a wake-up a switch.
        return Reference(segment, lambda: post(release, number, uid))

    def is_referenced(self, segment: Segment) -> bool:
        """Whether a result that lies in it may still be viewed."""
        return segment.uid in self._referenced

    def remove_worker(self, worker: Worker) -> None:
        """A worker has ended, and its views with it; referenced segments live on."""
        for segment in self._workers.remove(worker):
            if not self.is_referenced(segment):
                self._retire(segment)
        for key in [key for key in self._held if key[0] == worker.number]:
            self.give_back(self._held.pop(key))

    # ends

    def forget_after_fork(self) -> None:
        """In a forked child: close the copied descriptors, without any lock."""
        for segment in (*self._referenced.values(), *self._own.segments()):
            segment.close_descriptor()

    def close(self) -> None:
        """Close every descriptor. Views stay readable."""
        for segment in self._referenced.values():
            self._addresses.remove(segment)
            segment.close_descriptor()
        self._referenced.clear()
        self._held.clear()
        self._own.close()

    def _end_reference(self, worker: int, uid: int) -> None:
        segment = self._referenced.pop(uid, None)
        flags = frames.FOR_GOOD if uid in self._forked else 0
        self._forked.discard(uid)
        maker = self._workers.get(worker)
        if maker is not None:
            self._workers.write(maker, frames.frame(frames.FREE, uid, flags=flags))
        elif segment is not None:  # its maker died before its reader
            self._retire(segment)

    def _retire(self, segment: Segment) -> None:
        self._withdraw(segment.uid)
        self._addresses.remove(segment)
        segment.close()

    def _withdraw(self, uid: int) -> None:
        """Have every worker that mapped the segment unmap it."""
        for worker in self._workers:
            if uid in worker.known:
                worker.known.discard(uid)
                self._workers.write(worker, frames.frame(frames.DROP, uid))

    def give_back(self, packed: PackedPayload | None) -> None:
        """A payload is not needed any more: its own segment may be used again."""
        if packed is not None and packed.own is not None:
            self._own.give_back(packed.own.uid)


def most_viewed() -> int:
    """Fewer where few descriptors are left (ulimit -n): a quarter of them for all segments."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_VIEWED
    return max(1, min(_MOST_VIEWED, (soft - _n_open()) // _DESCRIPTORS_PER_SEGMENT))


def _n_open() -> int:
    """Descriptors of this process; 0 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _own_segment(worker: Worker, uid: int) -> Segment:
    segment = worker.segments.get(uid)
    if segment is None:
        raise ProtocolError(f"it named segment {uid}, which it has not announced")
    return segment


def _keep(_: Reference) -> None:
    """Called when a view is gone, and its own hold on the reference with it."""


def _no_segment(uid: int) -> Segment:
    raise AssertionError(f"a result without a segment refers to segment {uid}")
