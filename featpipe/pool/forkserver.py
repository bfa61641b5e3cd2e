"""The parent's side of fork servers: one per list of modules, each forks workers.

Workers start fresh, with a warning, where no fork server can be made safely. A fork server that is
killed from outside costs time only: workers it had forked go on, the others are forked by the next,
and none of it counts as a failed start.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
from typing import TYPE_CHECKING

from featpipe.pool import frames
from featpipe.pool.frames import ProtocolError
from featpipe.pool.log_thread import log
from featpipe.pool.pidfd import has_pidfds
from featpipe.pool.role import START_ATTEMPTS
from featpipe.pool.spawn import (
    ForkedProcess,
    Started,
    boot_record_of_forkserver,
    environment_of_forkserver,
    make_ends,
    start_fresh,
)
from featpipe.pool.workers import Worker, loaded_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from featpipe.pool.child import BootRecord
    from featpipe.pool.event_loop import EventLoop
    from featpipe.pool.frames import Frame
    from featpipe.pool.log_thread import LogThread
    from featpipe.pool.role import Role
    from featpipe.pool.workers import WorkerTable

_ENDING_S = 0.2


class _Forkserver:
    def __init__(self, preload: tuple[str, ...], process: Worker) -> None:
        self.preload, self.process = preload, process
        self.is_ready = False
        self.failure = ""
        self.children: dict[int, ForkedProcess] = {}


class Forkservers:
    """Has workers forked. Used in the hub's thread.

    Args:
        on_exit: called with the number of a forked worker whose process has ended.
        on_never_forked: called with the number of a worker to be started in another way.
    """

    def __init__(
        self,
        loop: EventLoop,
        workers: WorkerTable,
        logs: LogThread,
        on_exit: Callable[[int], None],
        on_never_forked: Callable[[int], None],
    ) -> None:
        self._loop, self._workers, self._logs = loop, workers, logs
        self._on_exit, self._on_never_forked = on_exit, on_never_forked
        self._servers: dict[tuple[str, ...], _Forkserver] = {}
        self._unsafe: set[tuple[str, ...]] = set()
        self._n_killed: dict[tuple[str, ...], int] = {}
        """Fork servers in a row that were killed from outside before they were ready."""

    def takes(self, role: Role, slot: int) -> bool:
        """Whether this worker may be forked: on a cpu, with modules to share."""
        return (
            bool(role.preload)
            and role.devices[slot] == "cpu"
            and role.preload not in self._unsafe
            and has_pidfds()
            and os.environ.get("FEATPIPE_START") != "fresh"
        )

    def start(
        self, number: int, role: Role, record: BootRecord, environment: Mapping[str, str]
    ) -> Started:
        """Have a worker forked. Raises PoolBroken when no fork server can be started."""
        server = self._servers.get(role.preload)
        if server is None:
            server = self._start_server(role.preload)
        ours, theirs = make_ends()
        body = pickle.dumps({**record, "environment": dict(environment)}, 5)
        for descriptor in theirs:
            data = frames.frame_with_descriptor(frames.HAND, number)
            server.process.send(data, descriptor)
            os.close(descriptor)
        server.process.send(frames.frame(frames.FORK, number, body))
        self._workers.flush(server.process)
        process = server.children[number] = ForkedProcess()
        return Started(process, ours)

    def server_of(self, number: int) -> Worker | None:
        """The fork server that is to fork this worker or to report its end, if there is one."""
        for server in self._servers.values():
            if number in server.children:
                return server.process
        return None

    def give_up(self, process: Worker) -> None:
        """Kill a fork server that does not respond: if it was never ready, no other is made."""
        process.is_condemned = True
        self._workers.kill(process)

    def go_on_without(self, process: Worker) -> None:
        """The fork server was killed and has not ended."""
        for server in list(self._servers.values()):
            if server.process is process:
                self._on_server_exit(server)

    def forget_after_fork(self) -> None:
        """In a forked child: close the copied descriptors."""
        for server in self._servers.values():
            server.process.forget_after_fork()

    def close(self) -> None:
        """End the fork servers; their workers have ended before, or end by their lifelines."""
        for server in self._servers.values():
            server.process.signal(signal.SIGKILL)
            server.process.reap(_ENDING_S)
            server.process.close()
        self._servers.clear()

    def _start_server(self, preload: tuple[str, ...]) -> _Forkserver:
        record = boot_record_of_forkserver(preload, logging.getLogger().getEffectiveLevel())
        started = start_fresh(record, environment_of_forkserver())
        process = Worker(0, "fork server", started)
        server = self._servers[preload] = _Forkserver(preload, process)
        self._loop.listen(process.sock.fileno(), lambda _: self._read(server))
        self._loop.listen(process.stderr, lambda _: self._read_stderr(server))
        self._loop.listen(process.process.pidfd, lambda _: self._on_server_exit(server))
        return server

    def _read(self, server: _Forkserver, *, is_last: bool = False) -> None:
        found, is_open = server.process.read(is_last=is_last)
        try:
            for message in found:
                self._handle(server, message)
            server.process.check_stream()
        except ProtocolError as error:  # a module that it imported wrote to its socket
            server.failure = f"the fork server broke the pool's protocol: {error}"
            is_open = False
        self._workers.flush(server.process)
        if not is_open and not is_last:
            self._workers.kill(server.process)
            self._loop.ignore(server.process.sock.fileno())

    def _handle(self, server: _Forkserver, message: Frame) -> None:
        number, body = message.number, message.body
        if message.kind in {frames.FORKED, frames.EXITED}:
            process = server.children.get(number)
            if process is None:
                raise ProtocolError(f"it spoke of worker {number}, which it has not forked")
            if message.kind == frames.FORKED:
                if message.descriptor < 0:
                    raise ProtocolError("too many files are open to follow its children")
                process.learn(int.from_bytes(body, "little"), message.descriptor)
                return
            del server.children[number]
            process.exit_code = int.from_bytes(body, "little", signed=True)
            self._on_exit(number)
        elif message.kind == frames.READY:
            server.is_ready = True
            self._n_killed.pop(server.preload, None)
        elif message.kind == frames.START_ERROR:
            name, words, _, _ = loaded_error(body)
            server.failure = f"{name}: {words}"
        elif message.kind == frames.LOG:
            self._logs.relay("fork server", server.process.pid, message.body)
        else:
            raise ProtocolError(f"it sent a frame of kind {message.kind}")

    def _read_stderr(self, server: _Forkserver) -> None:
        data = server.process.read_stderr()
        if data:
            self._logs.output("fork server", data)
        elif data is None:
            self._loop.ignore(server.process.stderr)

    def _on_server_exit(self, server: _Forkserver) -> None:
        """Its living workers go on; those it has not forked start in another way."""
        self._read(server, is_last=True)
        process = server.process
        for data in (*process.read_last_stderr(), b""):
            self._logs.output("fork server", data)
        self._loop.ignore(process.sock.fileno(), process.stderr, process.process.pidfd)
        self._workers.killed.discard(process)
        code = process.reap(_ENDING_S)
        story = server.failure or f"exit code {code}: {process.last_words()}"
        process.close()
        del self._servers[server.preload]
        if not server.is_ready and self._would_fail_again(server, code):
            self._unsafe.add(server.preload)
            log.warning("workers start without a fork server, which takes longer: %s", story)
        for number, child in server.children.items():
            if child.pid is not None:
                self._watch_orphan(number, child)
            elif child.is_killed:
                self._on_exit(number)
            else:
                self._on_never_forked(number)

    def _watch_orphan(self, number: int, child: ForkedProcess) -> None:
        # Its exit code is lost with the fork server; its end is still seen.
        self._loop.listen(child.pidfd, lambda _: self._on_exit(number))

    def _would_fail_again(self, server: _Forkserver, code: int | None) -> bool:
        """Whether another attempt would only repeat the end of one that was never ready.

        A SIGKILL from outside tells nothing about the modules, but attempts are limited.
        """
        if server.process.is_condemned or server.failure or code != -signal.SIGKILL:
            return True
        n_killed = self._n_killed[server.preload] = self._n_killed.get(server.preload, 0) + 1
        return n_killed >= START_ATTEMPTS
