"""Starting a child: a fresh interpreter that is connected to its parent by a socket only.

Neither ``fork`` nor multiprocessing's spawn: the child never imports the caller's ``__main__``, so
a pool works from a script without a guard, from stdin, a notebook, a thread, a daemon.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pickle
import select
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from featpipe import interpreter
from featpipe.errors import PoolBroken
from featpipe.pool.descendants import kill_group, kill_group_of, kill_with_descendants
from featpipe.pool.devices import device_in_child, threads_of, visible_cards
from featpipe.pool.pidfd import end_descriptor
from featpipe.pool.shared_memory import anonymous_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.pool.child import BootRecord
    from featpipe.pool.role import Role

#: What the fresh interpreter runs: read the length and the boot record, then become the child.
_BOOT = """\
import os, pickle, sys
def take(n):
    data = b""
    while len(data) < n:
        part = os.read(fd, n - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
fd = int(sys.argv[1])
boot = pickle.loads(take(int.from_bytes(take(8), "little")))
sys.path[:] = boot["sys_path"]
sys.argv[1:] = []
from importlib import import_module
import_module(boot["entry"]).main(fd, boot)
"""

#: Environment variables by which libraries learn how many threads to start.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

#: Rounds that a thread which waits for another spins before it sleeps: about as long as waking it
#: takes (50 us), so that it sleeps between texts, but not between the operations of one. On two
#: free processors a text of 50 tokens takes 5 ms instead of 7.5; on two that five processes want,
#: a quarter longer than if it always slept. OpenMP's own 300,000 rounds keep a processor from
#: others for milliseconds, and on busy ones a short text took ten times as long.
_SPINS = "1000"

#: A process of ours that was killed ends within this time, unless it is frozen.
_KILLED_S = 1.0
#: What a socket holds, where the system allows as much (`net.core.wmem_max`).
_SOCKET_BYTES = 1 << 20
#: Processes that had not.
_abandoned: list[subprocess.Popen[bytes]] = []


class FreshProcess:
    """An interpreter that this process started and waits for.

    Args:
        process: leads a process group of its own.
        is_spreading: whether its descendants are killed with it, in whatever group they are. Not
            those of a fork server, whose workers live on.
    """

    def __init__(self, process: subprocess.Popen[bytes], *, is_spreading: bool = True) -> None:
        self._process = process
        self._is_spreading = is_spreading
        self.pid: int | None = process.pid
        self.pidfd = _above_stderr(end_descriptor(process.pid))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still lives. SIGKILL is for all that it has started, too."""
        pid = self._process.pid
        if not self._is_uncollected():
            return
        if number != signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        elif self._is_spreading:
            kill_with_descendants(pid)
        else:
            kill_group(pid)

    def collect(self, timeout_s: float) -> int | None:
        """The exit code; after ``timeout_s`` by killing it. Nothing of its group lives on.

        None when it does not end even so.
        """
        if not self._ends_within(timeout_s):
            self.signal(signal.SIGKILL)
            if not self._ends_within(_KILLED_S):
                self.abandon()
                return None
        if self._is_uncollected():
            kill_group(self._process.pid)
        else:
            kill_group_of(self.pidfd)
        return self._process.wait()

    def abandon(self) -> None:
        """It does not end although it was killed: it is collected at some later start."""
        _abandoned.append(self._process)

    def forget(self) -> None:
        """In a forked child: it is the parent's to wait for."""
        self._process.returncode = 0

    def _is_uncollected(self) -> bool:
        """Whether its number is still its own: not where the program ignores SIGCHLD."""
        try:
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return False
        return True

    def _ends_within(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))


class ForkedProcess:
    """A fork of a fork server, which sends its pid after the fork and its exit code at its end.

    Signals go by the process descriptor the fork server took before it could collect the process:
    they never reach another process that was given the same pid.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        self.pidfd = -1
        self.exit_code: int | None = None
        self._waiting: list[signal.Signals] = []

    @property
    def is_killed(self) -> bool:
        """Whether it is killed as soon as it lives."""
        return signal.SIGKILL in self._waiting

    def learn(self, pid: int, pidfd: int) -> None:
        """It lives."""
        self.pid, self.pidfd = pid, pidfd
        for number in self._waiting:
            self.signal(number)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, as soon as it lives. SIGKILL is for all that it has started, too."""
        if self.pidfd < 0:
            self._waiting.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL and self.pid is not None:
                signal.pidfd_send_signal(self.pidfd, 0)  # raises when its number is free
                kill_with_descendants(self.pid)
            signal.pidfd_send_signal(self.pidfd, number)

    def collect(self, _timeout_s: float) -> int | None:
        """The exit code, if the fork server has sent it."""
        return self.exit_code

    def abandon(self) -> None:
        """Nothing to do: its fork server collects it."""

    def forget(self) -> None:
        """Nothing to do: it was never this process's to wait for."""


Process = FreshProcess | ForkedProcess


class Started(NamedTuple):
    """A new child."""

    process: Process
    ends: Ends
    """The parent's, now the receiver's to close."""
    first_message: bytes = b""
    """To be sent: the boot record of a fresh interpreter."""


class Ends(NamedTuple):
    """Descriptors of one side of a connection, which closes its own."""

    sock: int
    lifeline: int
    """A pipe that the child watches: it ends when the parent does."""
    stderr: int
    page: int
    """Memory in which the child notes the number of the task it has begun."""


def boot_record(role: Role, slot: int, worker: int, arguments: bytes, log_level: int) -> BootRecord:
    """What a worker must know; plain values, and ``arguments`` already pickled."""
    return {
        "entry": "featpipe.pool.child",
        "sys_path": interpreter.module_path([role.target]),
        "worker": worker,
        "name": f"{role.name}-{slot}",
        "target": role.target,
        "arguments": arguments,
        "device": device_in_child(role.devices[slot]),
        "threads": threads_of(role),
        "max_memory_bytes": role.max_memory_bytes,
        "bisect": role.bisect,
        "log_level": log_level,
    }


def boot_record_of_forkserver(preload: tuple[str, ...], log_level: int) -> BootRecord:
    """What a fork server must know."""
    return {
        "entry": "featpipe.pool.forkserver_child",
        "sys_path": interpreter.module_path(preload),
        "name": "forkserver",
        "preload": preload,
        "log_level": log_level,
    }


def start_fresh(record: BootRecord, environment: Mapping[str, str]) -> Started:
    """Start an interpreter, to be sent its record.

    Raises:
        PoolBroken: the machine refuses to start processes.
    """
    _abandoned[:] = [process for process in _abandoned if process.poll() is None]
    ours, theirs = make_ends()
    try:
        process = _popen(record, environment, theirs)
    except OSError as error:
        for descriptor in ours:
            os.close(descriptor)
        raise _refusal(error) from error
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    data = pickle.dumps({**record, "lifeline": theirs.lifeline, "page": theirs.page}, 5)
    return Started(process, ours, len(data).to_bytes(8, "little") + data)


def _with_room(end: socket.socket) -> socket.socket:
    """So that several results fit in it, as far as the system allows: no wait after each."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
    return end


def make_ends() -> tuple[Ends, Ends]:
    """All that connects a parent and one child: (the parent's ends, the child's).

    Raises:
        PoolBroken: descriptors have run out.
    """
    made: list[int] = []

    def keep(*descriptors: int) -> list[int]:
        made.extend(_above_stderr(descriptor) for descriptor in descriptors)
        return made[-len(descriptors) :]

    try:
        sock, their_sock = keep(*(_with_room(end).detach() for end in socket.socketpair()))
        their_lifeline, lifeline = keep(*os.pipe())
        stderr, their_stderr = keep(*os.pipe())
        (page,) = keep(anonymous_file("featpipe-page", 4096))
        (their_page,) = keep(os.dup(page))
    except OSError as error:
        for descriptor in made:
            os.close(descriptor)
        raise _refusal(error) from error
    return (
        Ends(sock, lifeline, stderr, page),
        Ends(their_sock, their_lifeline, their_stderr, their_page),
    )


def _popen(record: BootRecord, environment: Mapping[str, str], theirs: Ends) -> FreshProcess:
    stdin = _above_stderr(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    try:
        popen = subprocess.Popen(
            interpreter.command(_BOOT, str(theirs.sock), record["name"]),
            pass_fds=(theirs.sock, theirs.lifeline, theirs.page),
            stdin=stdin,
            stdout=theirs.stderr,
            stderr=theirs.stderr,
            env=dict(environment),
            process_group=0,
        )
    finally:
        os.close(stdin)
    try:
        return FreshProcess(popen, is_spreading="preload" not in record)
    except OSError:
        popen.kill()
        popen.wait()
        raise


def _refusal(error: OSError) -> PoolBroken:
    hint = "limits on processes, memory or open files (ulimit -u -v -n) may be too low"
    if error.errno in {errno.ENOSYS, errno.EPERM, errno.EACCES}:
        hint = "the kernel or a sandbox (seccomp, container) refuses a system call"
    elif error.errno == errno.ENOENT:
        hint = "FEATPIPE_PYTHON, or the interpreter of this environment, is not there"
    return PoolBroken(f"no worker process can be started: {error}", hint=hint)


def _above_stderr(descriptor: int) -> int:
    """The same above 2: without standard streams, new descriptors would take their numbers."""
    if descriptor > 2:
        return descriptor
    higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return higher


def environment_of(role: Role, slot: int) -> dict[str, str]:
    """The parent's environment with the worker's threads and only its own card."""
    environment = _environment_with(threads_of(role))
    card = visible_cards(role.devices[slot], os.environ.get("CUDA_VISIBLE_DEVICES"))
    if card is not None:
        environment["CUDA_VISIBLE_DEVICES"] = card
    environment.update(role.environment)
    return environment


def environment_of_forkserver() -> dict[str, str]:
    """One thread and no card, whatever is imported."""
    return {**_environment_with(1), "CUDA_VISIBLE_DEVICES": ""}


def _environment_with(threads: int) -> dict[str, str]:
    environment = interpreter.environment()
    environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    if "OMP_WAIT_POLICY" not in environment:
        environment["OMP_WAIT_POLICY"] = "PASSIVE"
        environment.setdefault("GOMP_SPINCOUNT", _SPINS)
    environment["TOKENIZERS_PARALLELISM"] = "false"
    environment["PYTHONUNBUFFERED"] = "1"
    return environment
