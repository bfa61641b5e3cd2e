"""A worker process: it holds one instance of its role and runs its tasks.

It imports only light parts of the standard library before the role itself, so that a role without
heavy imports is ready in about a tenth of a second.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import socket
import sys
import time
import traceback
from collections import deque
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from featpipe.pool import frames
from featpipe.pool.descendants import descendants_of, kill_with_descendants
from featpipe.pool.frames import Connection
from featpipe.pool.payloads import pack, unpack
from featpipe.pool.shared_memory import Segment, SegmentStore
from featpipe.pool.signals import (
    end_with_parent,
    ignore_group_signals,
    restore_signals_in_forks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn, TypedDict

    from featpipe.pool.frames import Frame

    class BootRecord(TypedDict, total=False):
        """Parent -> child, pickled: the first message a new interpreter reads."""

        entry: str
        sys_path: list[str]
        name: str
        log_level: int
        lifeline: int
        page: int
        preload: tuple[str, ...]
        """Only for a fork server, which sends the rest to its forks."""
        environment: Mapping[str, str]
        """Only for a fork; a fresh interpreter is started in its environment."""
        worker: int
        target: str
        arguments: bytes
        device: str
        threads: int
        max_memory_bytes: int | None
        bisect: str | None


#: Exit codes: the role could not be started, the task ran out of memory.
EXIT_START_FAILED = 3
EXIT_OUT_OF_MEMORY = 71
_LONGEST_MESSAGE = 4_000
_LONGEST_TRACEBACK = 20_000
_LONGEST_PICKLED = 8 << 20
_LONGEST_RECORD = 64_000
#: A shorter body is copied behind its header: that costs less than handing both to the kernel.
_SHORT_BODY = 8_000


def main(descriptor: int, boot: BootRecord) -> NoReturn:
    """Serve the parent at the other end of ``descriptor`` until it asks to stop."""
    end_with_parent(boot["lifeline"])
    ignore_group_signals()
    restore_signals_in_forks()
    leave_removed_folder()
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True, chain=False)
    _prefer_for_oom_kill()
    connection = Connection(socket.socket(fileno=descriptor))
    send_logs_to(connection, boot["log_level"])
    try:
        instance = _make_instance(boot)
    except BaseException as error:  # of any kind: the parent ends the run with it
        flags = frames.FINAL if _is_refusal(error) else 0
        connection.send(frames.frame(frames.START_ERROR, body=describe(error), flags=flags))
        _leave(EXIT_START_FAILED)
    TaskServer(connection, instance, boot).serve()


def leave_removed_folder() -> None:
    """Libraries such as MKL end a process whose working folder was removed."""
    try:
        os.getcwd()  # noqa: PTH109  # pathlib is not imported here
    except FileNotFoundError:
        os.chdir(os.sep)


def _prefer_for_oom_kill() -> None:
    """If memory runs out, have the kernel kill a worker, whose work is repeated."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
    except OSError:
        return


def send_logs_to(connection: Connection, level: int) -> None:
    """Send log records and warnings of this process to the parent, as plain values."""
    import logging

    pid = os.getpid()

    class Forward(logging.Handler):
        """Formats messages and tracebacks here, where their classes are known."""

        def emit(self, record: logging.LogRecord) -> None:
            if os.getpid() != pid:  # a fork by a task: two must not write into one socket
                sys.stderr.write(f"{self.format(record)}\n")
                return
            error = record.exc_info
            values = (
                record.name,
                record.levelno,
                record.pathname,
                record.lineno,
                _shortened(record.getMessage()),
                _shortened(logging.Formatter().formatException(error))
                if error and error[0]
                else None,
                record.funcName,
                record.created,
            )
            connection.send(frames.frame(frames.LOG, body=pickle.dumps(values, 5)))

    root = logging.getLogger()
    root.handlers[:] = [Forward()]
    root.setLevel(level)
    logging.captureWarnings(capture=True)


def _shortened(text: str) -> str:
    """The text, or its beginning and how long it was."""
    if len(text) <= _LONGEST_RECORD:
        return text
    return f"{text[:_LONGEST_RECORD]} ... ({len(text):,} characters in all)"


def _make_instance(boot: BootRecord) -> object:
    limit = boot["max_memory_bytes"]
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    target = resolve_name(boot["target"])
    arguments = pickle.loads(boot["arguments"])
    offered = {"device": boot["device"], "threads": boot["threads"], "worker_name": boot["name"]}
    names = _parameters_of(target)
    for name, value in offered.items():
        if name in names and name not in arguments:
            arguments[name] = value
    return target(**arguments)


def _parameters_of(target: object) -> tuple[str, ...]:
    """Names of the target's parameters; importing inspect would be slow."""
    function = getattr(target, "__init__", None) if isinstance(target, type) else target
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def _is_refusal(error: BaseException) -> bool:
    """Whether the role refused with an error of ours: no model, a foreign file ..."""
    from featpipe.errors import FeatpipeError

    return isinstance(error, FeatpipeError)


def describe(error: BaseException) -> bytes:
    """Pickle of (type, message, traceback text, the pickled error or None), for any exception."""
    text = "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    try:
        message = str(error)[:_LONGEST_MESSAGE]
    except Exception:  # a foreign class's __str__ may raise anything
        message = "(its message cannot be read)"
    try:
        data: bytes | None = pickle.dumps(error, 5)
        # Fails for an exception whose constructor wants more than was pickled.
        pickle.loads(data or b"")
    except Exception:  # the text is sent all the same
        data = None
    if data is not None and len(data) > _LONGEST_PICKLED:
        data = None
    return pickle.dumps((type(error).__name__, message, text, data), 5)


class TaskServer:
    """Runs tasks one by one, in the order they were sent."""

    def __init__(self, connection: Connection, instance: object, boot: BootRecord) -> None:
        self._connection = connection
        self._instance = instance
        self._pid = os.getpid()
        self._run: Callable[[object], object] = getattr(instance, "run", instance)  # type: ignore[arg-type]  # an instance may itself be the function
        self._bisect = boot["bisect"] or ""
        self._page = _map_page(boot["page"])
        self._store = SegmentStore(boot["worker"], self._announce, self._withdraw)
        self._received: dict[int, Segment] = {}
        self._waiting: deque[Frame] = deque()
        #: Task -> views of its payload that live, and the tasks of views that have ended.
        self._n_views: dict[int, int] = {}
        self._gone: deque[int] = deque()

    def serve(self) -> NoReturn:
        """Never returns: exits when the parent asks for it or is gone."""
        self._connection.send(frames.frame(frames.READY, os.getpid()))
        while True:
            try:
                while not self._waiting:
                    self._sort(self._connection.receive())
                self._handle(self._waiting.popleft())
            except (EOFError, ConnectionError):  # the parent is gone
                kill_with_descendants(os.getpid())

    def _sort(self, arrived: Sequence[Frame]) -> None:
        """Queue tasks; act on messages about segments at once."""
        for message in arrived:
            kind, number = message.kind, message.number
            if kind == frames.FREE:
                if message.flags & frames.FOR_GOOD:
                    self._store.discard(number)
                else:
                    self._store.give_back(number)
            elif kind == frames.SEGMENT:
                size = int.from_bytes(message.body, "little")
                self._received[number] = Segment(number, size, message.descriptor, is_mine=False)
            elif kind == frames.DROP:
                self._received.pop(number).close()
            else:
                self._waiting.append(message)

    def _handle(self, message: Frame) -> None:
        if message.kind == frames.STOP:
            self._stop()
        number = message.number
        self._page[:8] = number.to_bytes(8, "little")
        started = time.perf_counter()
        try:
            body, flags = self._answer(message)
        except MemoryError as error:
            # The state of the heap is unknown: this process ends, and the parent treats the task
            # as one that kills workers.
            self._report(number, error, started, frames.FATAL)
            _leave(EXIT_OUT_OF_MEMORY)
        except BaseException as error:  # one task fails, not the worker
            self._report(number, error, started, 0)
            return
        seconds = time.perf_counter() - started
        if self._n_views and self._holds_view(number):
            flags |= frames.HOLDS
        header = frames.header(frames.DONE, number, body, flags, seconds)
        if len(body) < _SHORT_BODY:
            self._connection.send(header + body)
        else:
            self._connection.send(header, body)

    def _answer(self, message: Frame) -> tuple[bytes, int]:
        """Run the task: (body, flags) of its answer. Its payload and result die with this call."""
        payload = unpack(
            message.body,
            message.flags,
            self._received.__getitem__,
            lambda segment: self._view(message.number, segment),
        )
        result = self._cut(payload) if message.flags & frames.CUT else self._run(payload)
        self._refuse_fork()
        del payload
        try:
            packed = pack(result, self._take)
        except MemoryError:
            raise
        except Exception as error:
            from featpipe.pool.pickling import explain

            raise explain(result, "result", error) from error
        if not packed.flags & frames.OUT_OF_BAND:
            return packed.body, packed.flags
        uid = packed.own.uid if packed.own is not None else 0
        return uid.to_bytes(8, "little") + packed.body, packed.flags

    def _cut(self, payload: object) -> list[bytes]:
        """The pickled pieces of a task that kills workers; none when it cannot be cut."""
        how = self._bisect
        pieces = resolve_name(how)(payload) if ":" in how else getattr(payload, how)()
        return [pickle.dumps(piece, 5) for piece in pieces or ()]

    def _take(self, n_bytes: int) -> Segment:
        # The parent's FREE messages may wait in the socket: reading them first allows writing to
        # warm pages instead of new ones.
        self._sort(self._connection.receive_waiting())
        return self._store.take(n_bytes)

    def _view(self, number: int, segment: Segment) -> memoryview:
        from featpipe.pool.shared_memory import tracked_view

        gone = self._gone
        self._n_views[number] = self._n_views.get(number, 0) + 1
        # Views may die in any thread of the role: only note it there, act on it in this one.
        return tracked_view(segment, partial(gone.append, number))

    def _holds_view(self, number: int) -> bool:
        """Whether the role kept a view of the payload, whose memory must stay as it is."""
        if not self._n_views:
            return False
        while self._gone:
            ended = self._gone.popleft()
            self._n_views[ended] -= 1
            if not self._n_views[ended]:
                del self._n_views[ended]
                if ended != number:
                    self._connection.send(frames.frame(frames.RELEASED, ended))
        return number in self._n_views

    def _refuse_fork(self) -> None:
        """A process that a task forked ends where the task returns in it: one task, one answer."""
        if os.getpid() != self._pid:
            sys.stderr.write("a task forked and returned in both processes; the fork is ended\n")
            sys.stderr.flush()
            os._exit(1)

    def _report(self, number: int, error: BaseException, started: float, flags: int) -> None:
        seconds = time.perf_counter() - started
        self._refuse_fork()
        body = describe(error)
        error.__traceback__ = None  # its frames hold the payload
        if self._holds_view(number):
            flags |= frames.HOLDS
        self._connection.send(frames.frame(frames.ERROR, number, body, flags, seconds))

    def _announce(self, segment: Segment) -> None:
        size = segment.size.to_bytes(8, "little")
        data = frames.frame_with_descriptor(frames.SEGMENT, segment.uid, size)
        self._connection.send_with_descriptor(data, segment.descriptor)

    def _withdraw(self, uid: int) -> None:
        self._connection.send(frames.frame(frames.DROP, uid))

    def _stop(self) -> NoReturn:
        close = getattr(self._instance, "close", None)
        if close is not None:
            try:
                close()
            except BaseException as error:  # the parent logs it
                sys.stderr.write(f"{type(self._instance).__name__}.close() failed: {error!r}\n")
                traceback.print_exc()
                _leave(1)
        _leave(0)


def _map_page(descriptor: int) -> memoryview:
    """The page that holds the number of the task in hand; the parent reads it after our death."""
    import mmap

    page = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE))
    os.close(descriptor)
    return page


def _leave(code: int) -> NoReturn:
    """Exit with buffers flushed and exit handlers run, but without tearing modules down.

    What tasks have started ends as well.
    """
    import atexit

    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        for number in descendants_of(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        os._exit(code)
