"""The roster: the children that live, how they are heard, and when each is killed."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from featpipe.pool.slabs import Slab
    from featpipe.pool.switchboard import Switchboard
    from featpipe.pool.worker import Worker

#: What was killed is gone after this long, or it is killed again.
_KILL_AGAIN_S = 1.0


class Roster:
    """Workers by number. Changed in the hub's thread only; read in any."""

    def __init__(self, board: Switchboard) -> None:
        self._board = board
        self._workers: dict[int, Worker] = {}
        self._unsent: set[Worker] = set()

    def __len__(self) -> int:
        return len(self._workers)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._workers.values())

    def __getitem__(self, number: int) -> Worker:
        return self._workers[number]

    def get(self, number: int) -> Worker | None:
        """None when it is no more."""
        return self._workers.get(number)

    def add(
        self,
        worker: Worker,
        on_word: Callable[[Worker, int], None],
        on_stderr: Callable[[Worker], None],
        on_end: Callable[[Worker], None],
    ) -> None:
        """A child was started."""
        self._workers[worker.number] = worker
        self._unsent.add(worker)
        self._board.listen(worker.sock.fileno(), lambda events: on_word(worker, events))
        self._board.listen(worker.stderr, lambda _: on_stderr(worker))
        if worker.process.pidfd >= 0:
            self._board.listen(worker.process.pidfd, lambda _: on_end(worker))

    def remove(self, worker: Worker) -> list[Slab]:
        """It is no more: its descriptors are closed, and the slabs it made are the caller's."""
        del self._workers[worker.number]
        for descriptor in (worker.sock.fileno(), worker.stderr, worker.process.pidfd):
            self._board.ignore(descriptor)
        return list(worker.close())

    # to the children

    def write(self, worker: Worker, data: bytes, descriptor: int = -1) -> None:
        """Note a frame for the end of this turn."""
        worker.send(data, descriptor)
        self._unsent.add(worker)

    def send_all(self) -> None:
        """Send what was noted in this turn."""
        for worker in self._unsent:
            self.flush(worker)
        self._unsent.clear()

    def flush(self, worker: Worker) -> None:
        """Send what was noted; what the socket does not take now is sent when it does."""
        is_sent = worker.flush()
        if is_sent == worker.is_full and not worker.is_closed:
            worker.is_full = not is_sent
            self._board.listen_for_room(worker.sock.fileno(), is_wanted=worker.is_full)

    # ends

    def kill_at(self) -> float:
        """When the next of those that were told to stop is killed."""
        return min((worker.kill_at for worker in self), default=0.0)

    def take_due(self, now: float) -> list[Worker]:
        """Those whose time to stop by themselves is over; again after a while, should they live."""
        due = [worker for worker in self if worker.kill_at <= now]
        for worker in due:
            worker.kill_at = now + _KILL_AGAIN_S
        return due

    def end(self, is_leased: Callable[[Slab], bool]) -> None:
        """Kill and collect whoever is left."""
        for worker in self:
            worker.signal(signal.SIGKILL)
            worker.reap(0)
            for slab in worker.close():
                if not is_leased(slab):
                    slab.close()
        self._workers.clear()

    def forget_after_fork(self, is_leased: Callable[[Slab], bool]) -> None:
        """In a forked child: the descriptors are copies, and the processes are the parent's."""
        for worker in self:
            worker.slabs = {u: s for u, s in worker.slabs.items() if not is_leased(s)}
            worker.forget_after_fork()
        self._workers.clear()
