"""The parent's record of one child: its process, its socket, its last words."""

from __future__ import annotations

import logging
import os
import pickle
import signal
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.pool import frames
from featpipe.pool.frames import FrameBuffer
from featpipe.pool.task import Cause, Loss, cause_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

    from featpipe.pool.actions import Start
    from featpipe.pool.event_loop import Switchboard
    from featpipe.pool.frames import Frame
    from featpipe.pool.shared_memory import Slab
    from featpipe.pool.spawn import Started

# Whether the kernel has killed something for want of memory.


#: Files that count it, and the first word of their line: this control group in both versions of
#: control groups, and the whole machine.
_PLACES = (
    ("/sys/fs/cgroup/memory.events", "oom_kill"),
    ("/proc/vmstat", "oom_kill"),
)


def count_oom_kills() -> int:
    """A number that grows with every kill for want of memory in our control group or machine.

    A process that died by SIGKILL while it grew was most likely the victim.
    """
    return sum(_read(Path(path), word) for path, word in (*_PLACES, *_version_one()))


def _read(path: Path, word: str) -> int:
    try:
        text = path.read_text("ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == word and value.isdecimal():
            return int(value)
    return 0


def _version_one() -> list[tuple[str, str]]:
    try:
        groups = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return []
    places = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            places.append((f"/sys/fs/cgroup/memory{path}/memory.oom_control", "oom_kill"))
        elif not controllers:
            places.append((f"/sys/fs/cgroup{path.rstrip('/')}/memory.events", "oom_kill"))
    return places


_TAIL_BYTES = 16_000
#: Small frames are joined up to this size: one system call instead of several.
_JOINED = 1 << 14
_STDERR_READ = 1 << 16


class Worker:
    """One child. Nothing here blocks, except `reap` for a process that is ending."""

    def __init__(self, number: int, name: str, device: str, start: Start, started: Started) -> None:
        self.number, self.name, self.device, self.start = number, name, device, start
        self.process = started.process
        self.sock: socket.socket = started.sock
        self.stderr = started.stderr
        self._lifeline, self._page = started.lifeline, started.page
        os.set_blocking(self.stderr, False)
        self._arrived = FrameBuffer()
        self._to_send: deque[tuple[memoryview, int]] = deque()
        self.is_full = False
        """Whether its socket takes no more for now."""
        self.tail = bytearray()
        #: Slabs it knows of, and slabs it made.
        self.known: set[int] = set()
        self.slabs: dict[int, Slab] = {}
        self.reason: Loss | None = None
        """Why it is ending, when it said so before it did."""
        self.is_condemned = False
        self.is_silent = False
        """Whether it has closed its socket: it has ended, or is about to."""
        self.n_oom_kills = count_oom_kills()
        self.kill_at = 0.0
        """When a stop that was asked for is made one."""
        self.is_closed = False
        if started.greeting:
            self.send(started.greeting)

    @property
    def pid(self) -> int | None:
        """Of its process; None while a template has not forked it."""
        return self.process.pid

    # its socket

    def read(self, *, is_last: bool = False) -> tuple[list[Frame], bool]:
        """(frames that are complete, whether more may come): False at the end of the stream.

        One that has ended is read to the last byte: a result in the socket is a task done.
        """
        found: list[Frame] = []
        while True:
            try:
                data = frames.receive(self.sock, self._arrived.descriptors, may_wait=False)
            except BlockingIOError:
                return found, True
            except OSError:
                return found, False
            if not data:
                return found, False
            found.extend(self._arrived.feed(data))
            if len(data) < frames.READ_BYTES and not is_last:
                return found, True

    def send(self, data: bytes, descriptor: int = -1) -> None:
        """Note for the next `flush`; the descriptor is duplicated."""
        if descriptor >= 0:
            self._to_send.append((memoryview(data), os.dup(descriptor)))
            return
        if self._to_send:
            last, its_descriptor = self._to_send[-1]
            if its_descriptor < 0 and len(last) < _JOINED:
                self._to_send[-1] = (memoryview(bytes(last) + data), -1)
                return
        self._to_send.append((memoryview(data), -1))

    def flush(self) -> bool:
        """Send what was noted. True when nothing is left, False when the socket is full."""
        while self._to_send:
            data, descriptor = self._to_send[0]
            try:
                if descriptor >= 0:
                    n_sent = frames.send_with_descriptor(self.sock, data, descriptor)
                    os.close(descriptor)
                else:
                    n_sent = self.sock.send(data)
            except BlockingIOError:
                return False
            except OSError:
                return True  # it is gone; its end is reported by the process descriptor
            if n_sent == len(data):
                self._to_send.popleft()
            else:
                self._to_send[0] = (data[n_sent:], -1)
        return True

    # its stderr

    def read_stderr(self) -> tuple[list[str], bool]:
        """(whole new lines, whether more may come). The tail is kept for the post-mortem."""
        data = b""
        is_open = True
        try:
            while part := os.read(self.stderr, _STDERR_READ):
                data += part
            is_open = False
        except BlockingIOError:
            pass
        self.tail += data
        del self.tail[:-_TAIL_BYTES]
        return data.decode("utf-8", "backslashreplace").splitlines(), is_open

    def last_words(self) -> str:
        """The end of what it wrote on stderr: its Python stack, if it crashed."""
        return self.tail.decode("utf-8", "backslashreplace").strip()

    # its process

    def begun(self) -> int:
        """Number of the last task it began; 0 when there was none."""
        return int.from_bytes(os.pread(self._page, 8, 0), "little")

    def loss(self, exit_code: int | None) -> Loss:
        """Why it ended, as far as it or its exit code tells."""
        if self.is_condemned:
            return Loss(Cause.TIMED_OUT, "took too long", self.last_words())
        if self.reason is not None:
            return self.reason
        is_starved = exit_code == -signal.SIGKILL and count_oom_kills() > self.n_oom_kills
        cause, words = cause_of(exit_code, is_out_of_memory=is_starved)
        return Loss(cause, f"({self.name}, pid {self.pid}) {words}", self.last_words())

    def note_last_error(self, body: bytes) -> None:
        """It says that it ends because its task ran out of memory."""
        _, message, text, _ = pickle.loads(body)  # noqa: S301  # from our own child
        self.reason = Loss(Cause.OUT_OF_MEMORY, f"ran out of memory: {message}", text)

    def note_failed_start(self, item: Frame) -> None:
        """It says why it could not make its instance."""
        kind, message, text, pickled = pickle.loads(item[4])  # noqa: S301  # from our own child
        summary = f"{self.name} could not start: {kind}: {message}"
        cause = Cause.REFUSED if item[1] & frames.FINAL else Cause.START_FAILED
        self.reason = Loss(cause, summary, text, pickled)

    def relay_log(self, item: Frame) -> None:
        """What was logged there is logged here, under its name."""
        name, level, path, line, message, failure, function, created = pickle.loads(item[4])  # noqa: S301  # from our own child
        logger = logging.getLogger(name)
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(name, level, path, line, message, (), None, function)
        record.created, record.exc_text = created, failure
        record.processName, record.process = self.name, self.pid
        logger.handle(record)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still lives."""
        self.process.signal(number)

    def reap(self, timeout_s: float) -> int | None:
        """Collect the exit code, by force after ``timeout_s``."""
        return self.process.collect(timeout_s)

    def forget_after_fork(self) -> None:
        """In a forked child: the descriptors are copies, and the process is not its to wait for."""
        self.process.forget()
        for slab in self.close():
            slab.give_up_descriptor()

    def close(self) -> Iterable[Slab]:
        """Give up every descriptor; the slabs it made are the caller's."""
        self.is_closed = True
        self.sock.close()
        self._arrived.close()
        for _, descriptor in self._to_send:
            if descriptor >= 0:
                os.close(descriptor)
        self._to_send.clear()
        for descriptor in (self.stderr, self.process.pidfd, self._lifeline, self._page):
            if descriptor >= 0:
                os.close(descriptor)
        slabs = list(self.slabs.values())
        self.slabs.clear()
        return slabs


# The roster: the children that live, how they are heard, and when each is killed.


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
