"""The freight: slabs on their way between the parent and its workers, and who knows of which.

A descriptor is sent once to each worker that needs it; when the memory behind it may be written to
again is the `Cargo`'s to decide.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from featpipe.pool import frames
from featpipe.pool.cargo import Cargo
from featpipe.pool.shared_memory import Slab

if TYPE_CHECKING:
    from featpipe.pool.event_loop import Switchboard
    from featpipe.pool.frames import Frame
    from featpipe.pool.shared_memory import Lease
    from featpipe.pool.task import Task
    from featpipe.pool.workers import Roster, Worker


class Freight:
    """Sends tasks with what they carry, and takes in what results lie in. In the hub's thread."""

    def __init__(self, board: Switchboard, roster: Roster) -> None:
        self._board, self._roster = board, roster
        self.cargo = Cargo(self._withdraw)

    # to the workers

    def send(self, worker: Worker, task: Task) -> None:
        """Note the task for the end of this turn, and before it every slab that is news."""
        parcel = task.parcel
        if parcel is None:
            raise AssertionError(f"task {task.number} was sent after its end")
        for slab in parcel.slabs:
            if slab.uid not in worker.known:
                worker.known.add(slab.uid)
                size = slab.size.to_bytes(8, "little")
                data = frames.frame_with_descriptor(frames.SLAB, slab.uid, size)
                self._roster.write(worker, data, slab.descriptor)
        data = frames.frame(frames.TASK, task.number, parcel.body, parcel.flags)
        self._roster.write(worker, data)

    def _withdraw(self, uid: int) -> None:
        for worker in self._roster:
            if uid in worker.known:
                worker.known.discard(uid)
                self._roster.write(worker, frames.frame(frames.DROP, uid))

    # from the workers

    def lease(self, worker: Worker, uid: int) -> Lease | None:
        """What a result of this worker lies in; None when it came in the frame."""
        if not uid:
            return None
        number, post, free = worker.number, self._board.post_quietly, self._free
        # Quietly: a slab that comes back late costs its worker a fresh one, a wake a switch.
        return self.cargo.lease(worker.slabs[uid], lambda: post(free, number, uid))

    def _free(self, worker: int, uid: int) -> None:
        slab, may_reuse = self.cargo.end_lease(uid)
        record = self._roster.get(worker)
        if record is not None:
            flags = 0 if may_reuse else frames.FOR_GOOD
            self._roster.write(record, frames.frame(frames.FREE, uid, flags=flags))
        elif slab is not None:  # its maker died before its reader
            self.cargo.retire(slab)

    def take_in(self, worker: Worker, item: Frame) -> None:
        """A worker has made a slab. Raises OSError when there is no room to map it."""
        _, _, uid, _, body, descriptor = item
        try:
            worker.slabs[uid] = Slab(uid, int.from_bytes(body, "little"), descriptor, is_mine=False)
        except OSError:  # or, on older Pythons, no second descriptor
            os.close(descriptor)
            raise

    def drop(self, worker: Worker, item: Frame) -> None:
        """A worker has given up a slab of its own."""
        self.cargo.retire(worker.slabs.pop(item[2]))

    def let_go(self, worker: Worker, item: Frame) -> None:
        """A worker looks no more at the payload of a task that has ended."""
        self.cargo.let_go(worker.number, item[2])

    def bury(self, worker: Worker) -> None:
        """A worker is no more, nor are its views; what it made lives on while somebody looks."""
        for slab in self._roster.remove(worker):
            if not self.cargo.is_leased(slab):
                self.cargo.retire(slab)
        self.cargo.let_all_go(worker.number)
