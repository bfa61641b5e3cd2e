"""The children that live: the parent's record of each, and the table of all."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import time
from collections import deque
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.pool import frames
from featpipe.pool.frames import FrameBuffer, ProtocolError
from featpipe.pool.task import Cause, Loss, cause_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from featpipe.pool.event_loop import EventLoop
    from featpipe.pool.frames import Frame
    from featpipe.pool.shared_memory import Segment
    from featpipe.pool.spawn import Started

_TAIL_BYTES = 16_000
#: So many frames are sent by one system call.
_MOST_JOINED = 64
#: Reads of one event, so that a worker that never stops writing leaves the others their turn.
_MOST_READS = 4
#: Reads after its end: more than a socket holds, so that only a process it started goes on writing.
_MOST_LAST_READS = 256
_STDERR_READ_BYTES = 1 << 16
#: A killed worker that has not ended after this long is killed again.
_KILL_AGAIN_S = 1.0
#: One that has not ended so long after its kill is given up: it is collected whenever it ends.
LOST_S = 5.0


_Queue = deque[tuple[bytes | memoryview, int]]


class Worker:
    """One child. No method blocks, except `reap` for a process that is ending."""

    def __init__(self, number: int, name: str, started: Started) -> None:
        self.number, self.name = number, name
        self.process = started.process
        sock, self._lifeline, self.stderr, self._page = started.ends
        self.sock = socket.socket(fileno=sock)
        self.sock.setblocking(False)
        os.set_blocking(self.stderr, False)
        self._arrived, self._to_send = FrameBuffer(), _Queue()
        self.is_full = False
        """Whether its socket takes no more for now."""
        self.tail = bytearray()
        #: uids of segments it has mapped, and the segments it made.
        self.known: set[int] = set()
        self.segments: dict[int, Segment] = {}
        self.unmapped: dict[int, str] = {}
        """Segments it made that this process could not map, and why."""
        self.reason: Loss | None = None
        """Why it is ending, if it has sent the reason."""
        self.is_condemned = False
        """Whether it is to be killed for taking too long."""
        self.is_silent = False
        """Whether it has closed its socket, or is not listened to: it is ending."""
        self.is_lost = False
        """Whether it could not be killed."""
        self.n_oom_kills = _count_oom_kills()
        self.kill_at = 0.0
        """When it is killed, if it was asked to stop and has not."""
        self.killed_at: float | None = None
        """When it was killed first."""
        self.is_closed = False
        if started.first_message:
            self.send(started.first_message)

    @property
    def pid(self) -> int | None:
        """Of its process; None until the fork server has forked it."""
        return self.process.pid

    # its socket

    def read(self, *, is_last: bool = False) -> tuple[list[Frame], bool]:
        """(frames that are complete, whether more may come): False at the end of the stream.

        A worker that has ended is read to the last byte: a result in the socket is a task done.
        After a wrong header it is at its end: `check_stream` tells why.
        """
        found: list[Frame] = []
        for _ in range(_MOST_LAST_READS if is_last else _MOST_READS):
            try:
                data = self._arrived.receive(self.sock, may_wait=False)
            except BlockingIOError:
                return found, True
            except OSError:
                return found, False
            if not data:
                return found, False
            found.extend(self._arrived.feed(data))
            if self._arrived.fault:
                return found, False
            if len(data) < frames.READ_BYTES and not is_last:
                return found, True
        return found, True

    def check_stream(self) -> None:
        """Raises ProtocolError when what was read last did not end in frames."""
        if self._arrived.fault:
            raise ProtocolError(self._arrived.fault)

    def send(self, data: bytes, descriptor: int = -1) -> None:
        """Queue for the next `flush`; the descriptor is duplicated."""
        self._to_send.append((data, os.dup(descriptor) if descriptor >= 0 else -1))

    def flush(self) -> bool:
        """Send what is queued. True when nothing is left, False when the socket is full."""
        queue = self._to_send
        while queue:
            data, descriptor = queue[0]
            try:
                if descriptor >= 0:
                    n_sent = frames.send_with_descriptor(self.sock, data, descriptor)
                    os.close(descriptor)
                elif len(queue) == 1:
                    n_sent = self.sock.send(data)
                else:
                    n_sent = self.sock.sendmsg(self._joined())
            except BlockingIOError:
                return False
            except OSError:
                return True  # it is gone; the process descriptor reports its end
            while queue and n_sent >= len(queue[0][0]):
                n_sent -= len(queue.popleft()[0])
            if n_sent:
                queue[0] = (memoryview(queue[0][0])[n_sent:], -1)
        return True

    def _joined(self) -> list[bytes | memoryview]:
        """The first of the queued frames, up to one that has a descriptor."""
        first = islice(self._to_send, _MOST_JOINED)
        return [data for data, _ in takewhile(lambda entry: entry[1] < 0, first)]

    # its stderr

    def read_stderr(self) -> bytes | None:
        """One read; None at its end. What is left is another event. The tail is kept."""
        try:
            data = os.read(self.stderr, _STDERR_READ_BYTES)
        except BlockingIOError:
            return b""
        self.tail += data[-_TAIL_BYTES:]
        del self.tail[:-_TAIL_BYTES]
        return data or None

    @property
    def has_full_tail(self) -> bool:
        """Whether it has written as much as is kept."""
        return len(self.tail) >= _TAIL_BYTES

    def read_last_stderr(self) -> Iterator[bytes]:
        """After its end, what is in the pipe; a process it started may go on writing to it."""
        for _ in range(_MOST_LAST_READS):
            data = self.read_stderr()
            if not data:
                return
            yield data

    def last_words(self) -> str:
        """The end of what it wrote on stderr: its Python stack, if it crashed."""
        return self.tail.decode("utf-8", "backslashreplace").strip()

    # its process

    def begun(self) -> int:
        """Number of the last task it began; 0 before the first."""
        return int.from_bytes(os.pread(self._page, 8, 0), "little")

    def loss(self, exit_code: int | None) -> Loss:
        """Why it ended, as far as its last messages or its exit code tell."""
        if self.is_condemned:
            return Loss(Cause.TIMED_OUT, "took too long", self.last_words())
        if self.reason is not None:
            return self.reason
        if self.is_lost:
            words = "was killed and has not ended: frozen, or waiting in the kernel"
            return Loss(Cause.UNSEEN, f"({self.name}, pid {self.pid}) {words}", self.last_words())
        is_starved = exit_code == -signal.SIGKILL and _count_oom_kills() > self.n_oom_kills
        cause, words = cause_of(exit_code, is_out_of_memory=is_starved)
        return Loss(cause, f"({self.name}, pid {self.pid}) {words}", self.last_words())

    def note_out_of_memory(self, message: Frame) -> None:
        """It ends because its task ran out of memory."""
        _, words, text, _ = loaded_error(message.body)
        self.reason = Loss(Cause.OUT_OF_MEMORY, f"ran out of memory: {words}", text)

    def note_failed_start(self, message: Frame) -> None:
        """It could not make its instance."""
        kind, words, text, pickled = loaded_error(message.body)
        summary = f"{self.name} could not start: {kind}: {words}"
        cause = Cause.REFUSED if message.flags & frames.FINAL else Cause.START_FAILED
        self.reason = Loss(cause, summary, text, pickled)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still lives."""
        self.process.signal(number)

    def kill(self) -> None:
        """Kill it. A worker of a table is killed by `WorkerTable.kill`."""
        self.killed_at = self.killed_at or time.monotonic()
        self.process.signal(signal.SIGKILL)

    def break_off(self, fault: str) -> None:
        """It sent what no worker sends: it is to be killed, and its task charged."""
        if self.reason is None:
            summary = f"({self.name}, pid {self.pid}) broke the pool's protocol: {fault}"
            self.reason = Loss(Cause.BROKEN, summary, self.last_words())

    def reap(self, timeout_s: float) -> int | None:
        """Collect the exit code; after ``timeout_s`` by killing it."""
        return self.process.collect(timeout_s)

    def forget_after_fork(self) -> None:
        """In a forked child: close the copied descriptors; the process is not its to wait for."""
        self.process.forget()
        for segment in self.close():
            segment.close_descriptor()

    def close(self) -> list[Segment]:
        """Close every descriptor; the segments it made are the caller's."""
        self.is_closed = True
        self.sock.close()
        self._arrived.close()
        queued = [descriptor for _, descriptor in self._to_send]
        for descriptor in (*queued, self.stderr, self.process.pidfd, self._lifeline, self._page):
            if descriptor >= 0:
                os.close(descriptor)
        self._to_send.clear()
        segments = list(self.segments.values())
        self.segments.clear()
        return segments


def loaded_error(body: bytes) -> tuple[str, str, str, bytes | None]:
    """What `child.describe` made."""
    try:
        kind, words, text, pickled = pickle.loads(body)
    except Exception as error:
        raise ProtocolError(f"it sent an error that cannot be read: {error!r}") from error
    return kind, words, text, pickled


def _count_oom_kills() -> int:
    """A number that grows with every kill for want of memory in our control group or machine.

    A process that died by SIGKILL while it grew was most likely the victim.
    """
    paths = [Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"), *_own_cgroup_files()]
    return sum(map(_read_oom_kills, paths))


def _read_oom_kills(path: Path) -> int:
    try:
        text = path.read_text("ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.isdecimal():
            return int(value)
    return 0


def _own_cgroup_files() -> list[Path]:
    """Those of this process's own group, in both versions of control groups."""
    try:
        groups = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return []
    paths = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            paths.append(Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control"))
        elif not controllers:
            paths.append(Path(f"/sys/fs/cgroup{path.rstrip('/')}/memory.events"))
    return paths


class WorkerTable:
    """Workers by number. Changed in the hub's thread only; read in any."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self.by_number: dict[int, Worker] = {}
        #: Those with frames for the end of this turn.
        self.unsent: set[Worker] = set()
        #: Killed and not ended; fork servers too.
        self.killed: set[Worker] = set()

    def __len__(self) -> int:
        return len(self.by_number)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self.by_number.values())

    def __getitem__(self, number: int) -> Worker:
        return self.by_number[number]

    def get(self, number: int) -> Worker | None:
        """None once it was removed."""
        return self.by_number.get(number)

    def add(
        self,
        worker: Worker,
        on_socket: Callable[[Worker, int], None],
        on_stderr: Callable[[Worker], None],
        on_end: Callable[[Worker], None],
    ) -> None:
        """A child was started."""
        self.by_number[worker.number] = worker
        self.unsent.add(worker)
        self._loop.listen(worker.sock.fileno(), partial(on_socket, worker))
        self._loop.listen(worker.stderr, lambda _: on_stderr(worker))
        if worker.process.pidfd >= 0:
            self._loop.listen(worker.process.pidfd, lambda _: on_end(worker))

    def remove(self, worker: Worker) -> list[Segment]:
        """It has ended: close its descriptors; the segments it made are the caller's."""
        del self.by_number[worker.number]
        self.killed.discard(worker)
        self._loop.ignore(worker.sock.fileno(), worker.stderr, worker.process.pidfd)
        return worker.close()

    # to the children

    def write(self, worker: Worker, data: bytes, descriptor: int = -1) -> None:
        """Queue a frame for the end of this turn."""
        worker.send(data, descriptor)
        self.unsent.add(worker)

    def send_all(self) -> None:
        """Send the frames of this turn."""
        for worker in self.unsent:
            self.flush(worker)
        self.unsent.clear()

    def flush(self, worker: Worker) -> None:
        """Send the worker's frames; the rest follows when its socket has room."""
        is_sent = worker.flush()
        if is_sent == worker.is_full and not worker.is_closed:
            worker.is_full = not is_sent
            self._loop.listen_for_room(worker.sock.fileno(), is_wanted=worker.is_full)

    # ends

    def kill(self, worker: Worker) -> None:
        """Kill it; `take_lost` gives it if it has not ended some seconds later."""
        self.killed.add(worker)
        worker.kill()

    def kill_at(self) -> float:
        """When the next worker that was asked to stop is killed."""
        return min((worker.kill_at for worker in self), default=0.0)

    def take_due(self, now: float) -> list[Worker]:
        """Workers to kill now; those that live on are due again after a while."""
        due = [worker for worker in self if worker.kill_at <= now]
        for worker in due:
            worker.kill_at = now + _KILL_AGAIN_S
        return due

    def lost_in_s(self) -> float | None:
        """Seconds until `take_lost` gives a worker, if nothing happens before; None: never."""
        killed = [worker.killed_at for worker in self.killed if worker.killed_at is not None]
        return max(0.0, min(killed) + LOST_S - time.monotonic()) if killed else None

    def take_lost(self) -> list[Worker]:
        """Those that were killed and have not ended: frozen, or waiting in the kernel."""
        at = time.monotonic() - LOST_S
        lost = [w for w in self.killed if w.killed_at is not None and w.killed_at <= at]
        self.killed.difference_update(lost)
        for worker in lost:
            worker.is_lost = True
        return lost

    def end(self, is_referenced: Callable[[Segment], bool]) -> None:
        """Kill and collect all that are left."""
        for worker in self:
            worker.kill()
        for worker in self:
            worker.reap(0)
            for segment in worker.close():
                if not is_referenced(segment):
                    segment.close()
        self.by_number.clear()

    def forget_after_fork(self, is_referenced: Callable[[Segment], bool]) -> None:
        """In a forked child: close the copied descriptors; the processes are the parent's."""
        for worker in self:
            worker.segments = {u: s for u, s in worker.segments.items() if not is_referenced(s)}
            worker.forget_after_fork()
        self.by_number.clear()
