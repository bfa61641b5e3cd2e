"""Log handlers run in a thread of their own: they are foreign code, and may be slow, raise or hang.

Guarantees: records come in the order in which the hub met them; a handler can cost records, but no
outcome, no deadline and no close; what waits is bounded, and what had to be dropped is counted and
the count is logged.
"""

from __future__ import annotations

import logging
import pickle
import sys
import threading
import traceback
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOGGER = logging.getLogger("featpipe.pool")
#: What workers write and log waits up to this size; beyond it new records are dropped.
_WAITING_BYTES = 8 << 20
#: The least that a record counts for; the hub's own may use half as much again.
_RECORD_BYTES = 800
_LONGEST_LINE = 8_000
#: With a handler that is always behind, the count of dropped records is logged this often.
_RECORDS_PER_COUNT = 10_000


class LogThread:
    """The thread and its queue. Records are put by one thread, the hub's."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[int, Callable[[], object]]] = SimpleQueue()
        # Each number is written by one thread only.
        self._n_put = self._n_done = 0
        self._n_dropped = self._n_told = self._n_failed = 0
        self._rests: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="featpipe-log", daemon=True)

    def start(self) -> None:
        """Begin. Raises RuntimeError where no thread can be started."""
        self._thread.start()

    # for the hub's thread

    def becomes_current(self) -> None:
        """From here on, what this thread logs by `log` is logged by the log thread."""
        _current.thread = self

    def put(self, call: Callable[[], object], n_bytes: int = 0, *, is_ours: bool = False) -> None:
        """Have it called soon, or dropped if too much waits. Never blocks."""
        n_bytes = max(n_bytes, _RECORD_BYTES)
        limit = _WAITING_BYTES + _WAITING_BYTES // 2 * is_ours
        if self._n_put - self._n_done + n_bytes > limit:
            self._n_dropped += 1
            return
        self._n_put += n_bytes
        self._queue.put((n_bytes, call))

    def relay(self, worker: str, pid: int | None, body: bytes) -> None:
        """Log here, under its name, a record that was logged in a worker."""
        self.put(partial(_relay, worker, pid, body), len(body))

    def output(self, worker: str, data: bytes) -> None:
        """Log what a worker wrote to its standard output or error; no data: it has ended."""
        if _LOGGER.isEnabledFor(logging.INFO):
            self.put(partial(self._log_lines, worker, data), len(data))

    def stop(self) -> None:
        """Nothing more is put."""
        self._queue.put((0, self._leave))

    def join(self, timeout_s: float) -> None:
        """Wait until all is logged, for so long; a handler that hangs is left to itself."""
        if threading.current_thread() is self._thread or not self._thread.ident:
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive() and sys.stderr is not None:
            sys.stderr.write(f"featpipe.pool: a log handler has not returned in {timeout_s} s\n")

    # its own thread

    def _run(self) -> None:
        n_since_told = 0
        while True:
            try:
                n_bytes, call = self._queue.get_nowait()
            except Empty:
                self._tell_dropped()
                n_bytes, call = self._queue.get()
            try:
                call()
            except _Leave:
                self._tell_dropped()
                return
            except BaseException:  # a handler may raise anything
                self._note_failed()
            self._n_done += n_bytes
            n_since_told += 1
            if n_since_told >= _RECORDS_PER_COUNT:
                n_since_told = 0
                self._tell_dropped()

    def _leave(self) -> None:
        raise _Leave

    def _tell_dropped(self) -> None:
        n = self._n_dropped - self._n_told
        if not n:
            return
        self._n_told += n
        try:
            _LOGGER.warning(
                "%d log records or pieces of output of workers were dropped:"
                " the log handlers are slower than they come",
                n,
            )
        except BaseException:  # as above
            self._note_failed()

    def _note_failed(self) -> None:
        """As the standard library does, print the traceback; but only that of the first."""
        self._n_failed += 1
        if self._n_failed == 1 and logging.raiseExceptions and sys.stderr is not None:
            sys.stderr.write("--- a log handler failed; further failures are not shown ---\n")
            traceback.print_exc()

    def _log_lines(self, worker: str, data: bytes) -> None:
        text = self._rests.pop(worker, "") + data.decode("utf-8", "backslashreplace")
        *lines, rest = text.split("\n")
        if not data or len(rest) > _LONGEST_LINE:
            lines.append(rest)
        elif rest:
            self._rests[worker] = rest
        for line in lines:
            if line:
                _LOGGER.info("%s: %s", worker, line.rstrip("\r"))


class _Leave(BaseException):
    """The log thread has nothing more to do."""


class HubLog:
    """The logger of this package's parts: from a hub's thread, records go to its log thread."""

    def info(self, text: str, *values: object) -> None:
        """Log."""
        self._log(logging.INFO, text, values)

    def debug(self, text: str, *values: object) -> None:
        """Log."""
        self._log(logging.DEBUG, text, values)

    def warning(self, text: str, *values: object) -> None:
        """Log."""
        self._log(logging.WARNING, text, values)

    def failure(self, text: str, error: BaseException) -> None:
        """Log an error with its traceback."""
        self._log(logging.ERROR, text, (), error)

    def _log(
        self, level: int, text: str, values: tuple[object, ...], error: BaseException | None = None
    ) -> None:
        call = partial(_LOGGER.log, level, text, *values, exc_info=error)
        thread: LogThread | None = getattr(_current, "thread", None)
        if thread is None:
            call()
        elif _LOGGER.isEnabledFor(level):
            thread.put(call, is_ours=True)


_current = threading.local()
log = HubLog()


def _relay(worker: str, pid: int | None, body: bytes) -> None:
    name, level, path, line, text, failure, function, created = pickle.loads(body)
    logger = logging.getLogger(name)
    if not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(name, level, path, line, text, (), None, function)
    record.created, record.exc_text = created, failure
    record.processName, record.process = worker, pid
    logger.handle(record)
