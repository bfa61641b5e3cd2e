"""A fork server: a fresh interpreter that imports heavy modules once and forks workers.

Forking is safe here because this process was started for it: it has one thread, has never used a
card, has run no parallel region and holds no lock. That is checked before the first fork, which is
refused otherwise. Imported objects are frozen out of the garbage collector's sight, so that a
worker's first collection does not copy their pages.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import socket
import sys
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from featpipe.pool import child, frames
from featpipe.pool.descendants import kill_group
from featpipe.pool.frames import Connection
from featpipe.pool.signals import end_with_parent, ignore_group_signals

if TYPE_CHECKING:
    from typing import NoReturn

    from featpipe.pool.child import BootRecord
    from featpipe.pool.frames import Frame


def main(descriptor: int, boot: BootRecord) -> NoReturn:
    """Fork a worker for every request, and report the end of each."""
    end_with_parent(boot["lifeline"])
    os.close(boot["page"])
    ignore_group_signals()
    child.leave_removed_folder()
    connection = Connection(socket.socket(fileno=descriptor))
    child.send_logs_to(connection, boot["log_level"])
    try:
        for name in boot["preload"]:
            # With a colon, the ImportError of a submodule is raised as it is.
            resolve_name(name if ":" in name else f"{name}:")
        _refuse_unsafe_fork()
    except BaseException as error:  # of any kind: workers are then started fresh
        connection.send(frames.frame(frames.START_ERROR, body=child.describe(error)))
        os._exit(child.EXIT_START_FAILED)
    gc.collect()
    gc.freeze()
    connection.send(frames.frame(frames.READY, os.getpid()))
    Forkserver(connection, descriptor, boot["lifeline"]).serve()


def _refuse_unsafe_fork() -> None:
    n_threads = len(os.listdir("/proc/self/task"))
    if n_threads != 1:
        raise RuntimeError(f"importing started {n_threads - 1} threads; forking is not safe")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise RuntimeError("importing initialised CUDA; forking is not safe")


class Forkserver:
    """Waits for requests and for the ends of its children; does nothing else."""

    def __init__(self, connection: Connection, descriptor: int, lifeline: int) -> None:
        self._connection = connection
        self._descriptor = descriptor
        self._lifeline = lifeline
        self._children: dict[int, tuple[int, int]] = {}
        self._handed: list[int] = []
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def serve(self) -> NoReturn:
        """Never returns: exits when the parent asks for it or is gone."""
        while True:
            try:
                for descriptor, _ in self._poll.poll():
                    if descriptor == self._descriptor:
                        for message in self._connection.receive():
                            self._handle(message)
                    else:
                        self._collect(descriptor)
            except (EOFError, ConnectionError):
                os._exit(0)

    def _handle(self, message: Frame) -> None:
        if message.kind == frames.HAND:
            self._handed.append(message.descriptor)
        elif message.kind == frames.FORK:
            handed, self._handed = self._handed, []
            self._fork(message.number, message.body, handed)
        else:
            os._exit(0)

    def _fork(self, number: int, body: bytes, handed: list[int]) -> None:
        pid = os.fork()
        if not pid:
            self._become_worker(pickle.loads(body), handed)
        pidfd = os.pidfd_open(pid)
        for descriptor in handed:
            os.close(descriptor)
        self._children[pidfd] = pid, number
        self._poll.register(pidfd, select.POLLIN)
        data = frames.frame_with_descriptor(frames.FORKED, number, pid.to_bytes(8, "little"))
        self._connection.send_with_descriptor(data, pidfd)

    def _collect(self, pidfd: int) -> None:
        pid, number = self._children.pop(pidfd)
        kill_group(pid)
        _, status = os.waitpid(pid, 0)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        code = os.waitstatus_to_exitcode(status)
        body = code.to_bytes(4, "little", signed=True)
        self._connection.send(frames.frame(frames.EXITED, number, body))

    def _become_worker(self, boot: BootRecord, handed: list[int]) -> NoReturn:
        try:
            os.setpgid(0, 0)
            for descriptor in (self._descriptor, self._lifeline, *self._children):
                os.close(descriptor)
            sock, boot["lifeline"], stderr, boot["page"] = handed
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            os.close(stderr)
            sys.path[:] = boot["sys_path"]
            os.environ.clear()
            os.environ.update(boot["environment"])
            _reseed(boot["threads"])
            child.main(sock, boot)
        finally:
            os._exit(70)


def _reseed(threads: int) -> None:
    """Give the fork random numbers and a number of threads of its own."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
