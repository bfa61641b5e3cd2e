"""The child's side: one process that holds one instance of its role and serves its tasks.

It imports nothing but the standard library's light half before the role itself, so that a role
without heavy imports is ready in about a tenth of a second.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from importlib import import_module

from featpipe.pool import frames
from featpipe.pool.frames import Link
from featpipe.pool.payloads import pack, unpack
from featpipe.pool.shared_memory import Slab, SlabStore

# The lifeline: a child dies with its parent, whatever it is doing.
#
# The parent holds the write end of a pipe and never writes. The child asks the kernel to send it
# SIGKILL when the read end has something to say, which is when the parent is gone: no thread of the
# child has to run for that, so it works while the interpreter lock is held, asleep or in a loop.
# (A parent-death signal would fire when the parent's *thread* that started the child ends.)


def arm(descriptor: int) -> None:
    """From here on this process does not outlive the holder of the pipe's write end."""
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
    else:
        _watch_in_a_thread(descriptor)
    # The signal comes with a change; a parent that died before we armed it is a state.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    if poll.poll(0):
        os._exit(0)


def _watch_in_a_thread(descriptor: int) -> None:
    import threading

    def wait() -> None:
        try:
            os.read(descriptor, 1)
        finally:
            os._exit(0)

    threading.Thread(target=wait, name="featpipe-lifeline", daemon=True).start()


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from featpipe.pool.frames import Frame

    Boot = dict[str, Any]

#: Exit codes: the role could not be started, the task ran out of memory.
EXIT_START_FAILED = 3
EXIT_OUT_OF_MEMORY = 71
_LONGEST_MESSAGE = 4_000
_LONGEST_TRACEBACK = 20_000


def main(descriptor: int, boot: Boot) -> NoReturn:
    """Serve the parent at the other end of ``descriptor`` until told to stop."""
    arm(boot["lifeline"])
    # Ctrl-C and a terminating service signal the whole group; it is the parent who decides what
    # that means for the work in hand. Its death takes us along in any case.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True, chain=False)
    _volunteer_for_the_oom_killer()
    link = Link(socket.socket(fileno=descriptor))
    send_logs_to(link, boot["log_level"])
    try:
        instance = _make_instance(boot)
    except BaseException as error:  # whatever it was, the parent must learn of it
        flags = frames.FINAL if _is_refusal(error) else 0
        link.send(frames.frame(frames.START_ERROR, body=describe(error), flags=flags))
        _leave(EXIT_START_FAILED)
    Servant(link, instance, boot).serve()


class Servant:
    """Runs tasks one by one, in the order they were sent."""

    def __init__(self, link: Link, instance: object, boot: Boot) -> None:
        self._link = link
        self._instance = instance
        self._run: Callable[[object], object] = getattr(instance, "run", instance)  # type: ignore[arg-type]  # an instance may itself be the function
        self._page = _map_page(boot["page"])
        self._store = SlabStore(boot["worker"], self._announce, self._withdraw)
        self._received: dict[int, Slab] = {}
        self._waiting: deque[Frame] = deque()
        self._n_views: dict[int, int] = {}
        self._gone: deque[int] = deque()

    def serve(self) -> NoReturn:
        """Never returns: ends with the parent's word, or with the parent."""
        self._link.send(frames.frame(frames.READY, os.getpid()))
        while True:
            try:
                while not self._waiting:
                    self._sort(self._link.receive())
                self._serve_one(self._waiting.popleft())
            except (EOFError, ConnectionError):
                os._exit(0)  # the parent has left; nobody waits for anything we could still say

    def _sort(self, arrived: Sequence[Frame]) -> None:
        """Tasks wait their turn; news about slabs is acted on at once."""
        for item in arrived:
            kind, flags, number, _, body, descriptor = item
            if kind == frames.FREE:
                if flags & frames.FOR_GOOD:
                    self._store.discard(number)
                else:
                    self._store.give_back(number)
            elif kind == frames.SLAB:
                size = int.from_bytes(body, "little")
                self._received[number] = Slab(number, size, descriptor, is_mine=False)
            elif kind == frames.DROP:
                self._received.pop(number).close()
            else:
                self._waiting.append(item)

    def _serve_one(self, item: Frame) -> None:
        kind, flags, number, _, body, _ = item
        if kind == frames.STOP:
            self._stop()
        self._page[:8] = number.to_bytes(8, "little")
        started = time.perf_counter()
        try:
            reply, flags, chunk = self._answer(number, body, flags)
        except MemoryError as error:
            # The heap is in doubt, and so is whatever else the task pushed out of it: this
            # process ends, and the parent treats the task as one that kills workers.
            self._report(number, error, started, frames.FATAL)
            _leave(EXIT_OUT_OF_MEMORY)
        except BaseException as error:  # one task fails, not the worker
            self._report(number, error, started, 0)
            return
        seconds = time.perf_counter() - started
        if self._keeps(number):
            flags |= frames.HOLDS
        self._link.send(
            frames.HEADER.pack(frames.DONE, 0, flags, len(reply) + len(chunk), number, seconds)
            + chunk
            + reply
        )

    def _answer(self, number: int, body: bytes, flags: int) -> tuple[bytes, int, bytes]:
        """Run the task. Its payload and result are gone when this returns."""
        payload = (
            unpack(body, flags, self._received.__getitem__, lambda slab: self._view(number, slab))
            if flags
            else (
                pickle.loads(body)  # noqa: S301  # from our parent, over a private socket
            )
        )
        result = self._run(payload)
        del payload
        try:
            parcel = pack(result, self._store_up_to_date())
        except MemoryError:
            raise
        except Exception as error:
            from featpipe.pool.pickling import explain

            raise explain(result, "result", error) from error
        if not parcel.flags:
            return parcel.body, 0, b""
        uid = parcel.own.uid if parcel.own is not None else 0
        return parcel.body, parcel.flags, uid.to_bytes(8, "little")

    def _store_up_to_date(self) -> SlabStore:
        # Slabs the parent has finished with may be announced in the socket already: taking note
        # now means writing to warm pages instead of fresh ones.
        self._sort(self._link.receive_waiting())
        return self._store

    def _view(self, number: int, slab: Slab) -> memoryview:
        from featpipe.pool.shared_memory import lend

        gone = self._gone
        self._n_views[number] = self._n_views.get(number, 0) + 1
        # Views may die in any thread of the role: only note it there, act on it here.
        view, _ = lend(slab, lambda: gone.append(number))
        return view

    def _keeps(self, number: int) -> bool:
        """Whether the role kept a view of the payload: its slabs must not be written to yet."""
        if not self._n_views:
            return False
        while self._gone:
            ended = self._gone.popleft()
            self._n_views[ended] -= 1
            if not self._n_views[ended]:
                del self._n_views[ended]
                if ended != number:
                    self._link.send(frames.frame(frames.LET_GO, ended))
        return number in self._n_views

    def _report(self, number: int, error: BaseException, started: float, flags: int) -> None:
        seconds = time.perf_counter() - started
        body = describe(error)
        error.__traceback__ = None  # its frames hold the payload
        if self._keeps(number):
            flags |= frames.HOLDS
        self._link.send(frames.frame(frames.ERROR, number, body, flags, seconds))

    def _announce(self, slab: Slab) -> None:
        body = slab.size.to_bytes(8, "little")
        self._link.send_with_descriptor(
            frames.frame_with_descriptor(frames.SLAB, slab.uid, body), slab.descriptor
        )

    def _withdraw(self, uid: int) -> None:
        self._link.send(frames.frame(frames.DROP, uid))

    def _stop(self) -> NoReturn:
        close = getattr(self._instance, "close", None)
        if close is not None:
            try:
                close()
            except BaseException as error:  # told to the parent, with the exit code
                sys.stderr.write(f"{type(self._instance).__name__}.close() failed: {error!r}\n")
                traceback.print_exc()
                _leave(1)
        _leave(0)


def resolve(path: str) -> Any:  # noqa: ANN401  # it may name anything
    """The object that ``package.module:attribute.path`` names."""
    module, _, attributes = path.partition(":")
    thing: Any = import_module(module)
    for attribute in attributes.split("."):
        thing = getattr(thing, attribute)
    return thing


def _make_instance(boot: Boot) -> object:
    if boot["max_memory_bytes"]:
        import resource

        limit = boot["max_memory_bytes"]
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    target = resolve(boot["target"])
    arguments = pickle.loads(boot["arguments"])  # noqa: S301  # from our parent
    offered = {"device": boot["device"], "threads": boot["threads"], "worker_name": boot["name"]}
    names = _parameters_of(target)
    for name, value in offered.items():
        if name in names and name not in arguments:
            arguments[name] = value
    return target(**arguments)


def _is_refusal(error: BaseException) -> bool:
    """Whether the role itself said why it will not start: no model, not a file of ours ..."""
    from featpipe.errors import FeatpipeError

    return isinstance(error, FeatpipeError)


def _parameters_of(target: object) -> tuple[str, ...]:
    """Names of the target's parameters, without the weight of importing inspect."""
    function = getattr(target, "__init__", None) if isinstance(target, type) else target
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def _map_page(descriptor: int) -> memoryview:
    """The page on which we note which task we are at, for the parent to read after our death."""
    import mmap

    page = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE))
    os.close(descriptor)
    return page


def describe(error: BaseException) -> bytes:
    """(type, message, traceback text, the pickled error or None): what survives any exception."""
    text = "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    try:
        message = str(error)[:_LONGEST_MESSAGE]
    except Exception:  # a stranger's __str__
        message = "(its message cannot be read)"
    try:
        data: bytes | None = pickle.dumps(error, 5)
        # An exception whose constructor wants more than it pickled fails on arrival: find out here.
        pickle.loads(data or b"")  # noqa: S301  # our own bytes
    except Exception:  # the text has to do
        data = None
    return pickle.dumps((type(error).__name__, message, text, data), 5)


def send_logs_to(link: Link, level: int) -> None:
    """Log records and warnings of this process go to the parent."""
    import logging

    class Forward(logging.Handler):
        """Records travel as plain values: what was formatted here needs nothing of ours there."""

        def emit(self, record: logging.LogRecord) -> None:
            failure = (
                logging.Formatter().formatException(record.exc_info)
                if (record.exc_info and record.exc_info[0])
                else None
            )
            values = (
                record.name,
                record.levelno,
                record.pathname,
                record.lineno,
                record.getMessage(),
                failure,
                record.funcName,
                record.created,
            )
            link.send(frames.frame(frames.LOG, body=pickle.dumps(values, 5)))

    root = logging.getLogger()
    root.handlers[:] = [Forward()]
    root.setLevel(level)
    logging.captureWarnings(capture=True)


def _volunteer_for_the_oom_killer() -> None:
    """If memory runs out, the kernel shall take a worker, whose work is repeated."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123  # pathlib costs the import
            file.write("500")
    except OSError:
        return


def _leave(code: int) -> NoReturn:
    """Exit with buffers flushed and exit handlers run, but without tearing modules down."""
    import atexit

    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
