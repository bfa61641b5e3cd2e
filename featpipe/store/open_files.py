"""Keeps the files of folder caches open, and closes the least recently used beyond a limit.

Guarantees: one process keeps no more files open than its limit of descriptors leaves room for, with
all its folder caches together; a file that a thread is reading is closed when that thread is done.
The soft limit (``RLIMIT_NOFILE``) is raised towards the hard one as far as the files need it.
"""

from __future__ import annotations

import errno
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from featpipe.fork_lock import make_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from featpipe.store.reader import Reader

#: More files than this are not kept open, whatever the limit: each has maps, too.
_MOST_FILES = 8192
#: Descriptors left to the rest of the program: at least so many, and this part of the limit.
_LEFT, _LEFT_PART = 64, 8
#: Answers of a system that has no more descriptors, or maps.
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class OpenFiles:
    """Readers by key, the most recently used last. Thread-safe.

    Args:
        capacity: how many to keep; by default as many as the descriptors leave room for.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self._capacity = capacity
        self._readers: OrderedDict[Hashable, Reader] = OrderedDict()
        self._given_up: deque[Hashable] = deque()
        self._lock = make_lock()

    def __len__(self) -> int:
        return len(self._readers)

    def get(self, key: Hashable) -> Reader | None:
        """The open reader of this key."""
        with self._lock:
            found = self._readers.get(key)
            if found is not None:
                self._readers.move_to_end(key)
            return found

    def open(self, key: Hashable, make: Callable[[], Reader]) -> Reader:
        """The reader of this key, made if need be. Raises what ``make`` raises.

        Where the system has no more descriptors or maps, half of the others are closed first.
        """
        self._close_given_up()
        found = self.get(key)
        while found is None:
            try:
                found = make()
            except Exception as error:
                if not _is_exhausted(error) or not self._close_oldest(len(self) - len(self) // 2):
                    raise
        with self._lock:
            kept = self._readers.setdefault(key, found)
            self._readers.move_to_end(key)
        self._close_oldest(len(self) - self._limit())
        return kept

    def drop(self, key: Hashable) -> None:
        """Close the reader of this key, if there is one, when no thread uses it any more."""
        with self._lock:
            found = self._readers.pop(key, None)
        if found is not None:
            found.release()

    def give_up(self, keys: Iterable[Hashable]) -> None:
        """As `drop`, of several; for a finalizer, which may run within any other call here."""
        self._given_up.extend(keys)
        self._close_given_up()

    def _close_given_up(self) -> None:
        # Where the lock is taken, perhaps by this very thread, the next call does it.
        if not self._given_up or not self._lock.acquire(blocking=False):
            return
        readers = []
        try:
            while self._given_up:
                readers.append(self._readers.pop(self._given_up.popleft(), None))
        finally:
            self._lock.release()
        for reader in filter(None, readers):
            reader.release()

    def _close_oldest(self, n: int) -> bool:
        """Whether any was closed."""
        with self._lock:
            n = max(0, min(n, len(self._readers)))
            oldest = [self._readers.popitem(last=False)[1] for _ in range(n)]
        for reader in oldest:
            reader.release()
        return bool(oldest)

    def _limit(self) -> int:
        if self._capacity is not None:
            return self._capacity
        import resource  # of POSIX systems: what reads no folder does without

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return _MOST_FILES
        wanted = 2 * len(self) + 8 * _LEFT
        if soft < wanted and soft != hard:
            soft = min(2 * wanted, hard) if hard != resource.RLIM_INFINITY else 2 * wanted
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, min(_MOST_FILES, soft - max(_LEFT, soft // _LEFT_PART)))


def _is_exhausted(error: Exception) -> bool:
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in _EXHAUSTED


#: Those of this process.
OPEN_FILES = OpenFiles()
