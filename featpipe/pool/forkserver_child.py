"""The template's side: a fresh interpreter that imports the heavy modules once and forks workers.

Forking is safe here and nowhere else, because this process was started for it: it has one thread,
has never touched a card, has run no parallel region and holds no lock. It makes sure of that before
its first fork, and refuses otherwise. What it has imported is frozen out of the garbage collector's
sight, so that a worker's first collection does not copy every page of it.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import socket
import sys
from importlib import import_module

from featpipe.pool import child, frames
from featpipe.pool import child as lifeline
from featpipe.pool.frames import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from featpipe.pool.frames import Frame


def main(descriptor: int, boot: dict[str, Any]) -> NoReturn:
    """Fork a worker for every request, and tell what became of each."""
    lifeline.arm(boot["lifeline"])
    os.close(boot["page"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    link = Link(socket.socket(fileno=descriptor))
    child.send_logs_to(link, boot["log_level"])
    try:
        for module in boot["preload"]:
            _load(module)
        _refuse_unsafe_fork()
    except BaseException as error:  # whatever it was, workers are then started without us
        link.send(frames.frame(frames.START_ERROR, body=child.describe(error)))
        os._exit(child.EXIT_START_FAILED)
    gc.collect()
    gc.freeze()
    link.send(frames.frame(frames.READY, os.getpid()))
    Template(link, descriptor, boot["lifeline"]).serve()


def _load(path: str) -> None:
    """Import ``package.module`` or ``package.module:name``, which wakes lazily loaded names."""
    module, _, name = path.partition(":")
    loaded = import_module(module)
    if name:
        getattr(loaded, name)


def _refuse_unsafe_fork() -> None:
    n_threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208  # pathlib costs the import
    if n_threads != 1:
        raise RuntimeError(f"importing started {n_threads - 1} threads; forking is not safe")
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise RuntimeError("importing initialised CUDA; forking is not safe")


class Template:
    """Waits for requests and for the ends of its children; does nothing else."""

    def __init__(self, link: Link, descriptor: int, lifeline_descriptor: int) -> None:
        self._link = link
        self._descriptor = descriptor
        self._lifeline = lifeline_descriptor
        self._children: dict[int, tuple[int, int]] = {}
        self._handed: list[int] = []
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def serve(self) -> NoReturn:
        """Never returns: ends with the parent's word, or with the parent."""
        while True:
            try:
                for descriptor, _ in self._poll.poll():
                    if descriptor == self._descriptor:
                        for item in self._link.receive():
                            self._obey(item)
                    else:
                        self._collect(descriptor)
            except (EOFError, ConnectionError):
                os._exit(0)

    def _obey(self, item: Frame) -> None:
        kind, _, number, _, body, descriptor = item
        if kind == frames.HAND:
            self._handed.append(descriptor)
        elif kind == frames.FORK:
            handed, self._handed = self._handed, []
            self._fork(number, body, handed)
        else:
            os._exit(0)

    def _fork(self, number: int, body: bytes, handed: list[int]) -> None:
        pid = os.fork()
        if not pid:
            self._become_worker(pickle.loads(body), handed)  # noqa: S301  # from our parent
        pidfd = os.pidfd_open(pid)
        for descriptor in handed:
            os.close(descriptor)
        self._children[pidfd] = pid, number
        self._poll.register(pidfd, select.POLLIN)
        data = frames.frame_with_descriptor(frames.FORKED, number, pid.to_bytes(8, "little"))
        self._link.send_with_descriptor(data, pidfd)

    def _collect(self, pidfd: int) -> None:
        pid, number = self._children.pop(pidfd)
        _, status = os.waitpid(pid, 0)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        code = os.waitstatus_to_exitcode(status)
        body = code.to_bytes(4, "little", signed=True)
        self._link.send(frames.frame(frames.EXITED, number, body))

    def _become_worker(self, boot: dict[str, Any], handed: list[int]) -> NoReturn:
        try:
            for descriptor in (self._descriptor, self._lifeline, *self._children):
                os.close(descriptor)
            sock, boot["lifeline"], stderr, boot["page"] = handed
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            os.close(stderr)
            os.environ.clear()
            os.environ.update(boot["environment"])
            _make_different(boot["threads"])
            child.main(sock, boot)
        finally:
            os._exit(70)


def _make_different(threads: int) -> None:
    """What every process must have for itself: its random numbers and its number of threads."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
