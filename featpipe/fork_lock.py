"""Locks that a fork leaves free, so that a child may use what its parent's threads were using.

A plain lock that another thread holds at the moment of a fork is held for ever in the child, where
that thread is not.

Guarantee: a fork waits until no other thread holds a lock that is made here, at most
`_LONGEST_S`. In the child each of them is free then, and what it guards is whole.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator

    Lock = threading.Lock | threading.RLock

#: Beyond this a fork goes ahead: the thread that forks may hold a lock itself.
_LONGEST_S = 60.0

#: By id. Copied by one call, which no other thread can interrupt.
_locks: WeakValueDictionary[int, Lock] = WeakValueDictionary()
#: Locks taken for a fork, by the thread that forks.
_taken: dict[int, list[Lock]] = {}


def make_lock() -> threading.Lock:
    """As ``threading.Lock()``."""
    lock = threading.Lock()
    _locks[id(lock)] = lock
    return lock


def make_rlock() -> threading.RLock:
    """As ``threading.RLock()``."""
    lock = threading.RLock()
    _locks[id(lock)] = lock
    return lock


def _before_fork() -> None:
    _taken[threading.get_ident()] = _take_all(monotonic() + _LONGEST_S)


def _after_fork() -> None:
    for lock in _taken.pop(threading.get_ident()):
        lock.release()


def _after_fork_in_child() -> None:
    _after_fork()
    _taken.clear()
    _free_cached_properties()


def _take_all(until: float) -> list[Lock]:
    """All locks at once; none when the time is over.

    No lock is waited for while another is held: threads take them in any order.
    """
    awaited: Lock | None = None
    while monotonic() < until:
        if awaited is not None and not awaited.acquire(timeout=max(0.0, until - monotonic())):
            break
        taken = [] if awaited is None else [awaited]
        for lock in _others(awaited):
            if not lock.acquire(blocking=False):
                awaited = lock
                break
            taken.append(lock)
        else:
            return taken
        for lock in taken:
            lock.release()
    return []


def _others(one: Lock | None) -> Iterator[Lock]:
    living = (reference() for reference in _locks.valuerefs())
    return (lock for lock in living if lock is not None and lock is not one)


def _free_cached_properties() -> None:
    """Until Python 3.11 each has a lock, for all objects of its class; later ones need none."""
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("featpipe."):
            for owner in [each for each in vars(module).values() if isinstance(each, type)]:
                for each in vars(owner).values():
                    if isinstance(each, cached_property):
                        vars(each)["lock"] = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on systems that do not fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
