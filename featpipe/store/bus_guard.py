"""Keeps SIGBUS from ending a process whose mapped file lost bytes under it.

The kernel sends SIGBUS for a read of a mapped page that cannot be had: a program copied over the
file in place (``cp`` truncates it first), the disk failed, or the page is a hole on a full tmpfs.
No check of the size before the read is early enough.

The handler puts a private page in the place of the one that failed, and lets the read go on. If the
page can still be read through the descriptor (a hole), it has the file's bytes; else it and the
rest of the map are zeros, and :attr:`GuardedRange.is_broken` is set, which readers ask before they
hand anything out. Faults outside of guarded ranges go to the handler that was there before.

The handler runs Python code inside a fault, where only little is safe. It runs only where the
process would have ended. It is installed on 64-bit Linux alone, whose layout of ``sigaction`` it
knows.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import sys
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

import numpy as np

from featpipe.fork_lock import make_lock

if TYPE_CHECKING:
    from collections.abc import Callable

_MACHINES = {"x86_64", "aarch64"}
_SA_SIGINFO, _SA_ONSTACK, _SA_NODEFER = 4, 0x08000000, 0x40000000
_MAP_FIXED, _MAP_FAILED = 0x10, ctypes.c_void_p(-1).value


#: ``struct sigaction`` of glibc and musl: handler, mask of 1,024 bits, flags, restorer.
_ACTION = Struct("P128xi4xP")
#: Offset of the address in ``siginfo_t``.
_FAULT_ADDRESS = 16

_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)


class GuardedRange:
    """The addresses of one map of a file, guarded for as long as this object exists.

    Args:
        mapped: the map.
        descriptor: of the file; a hole is read through it. -1: nothing is read.
        offset: of the map in the file, in bytes.
    """

    def __init__(self, mapped: mmap.mmap, descriptor: int = -1, offset: int = 0) -> None:
        self.start: int = np.frombuffer(mapped, np.uint8).ctypes.data
        self.stop = self.start + -(-len(mapped) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.descriptor, self.offset = descriptor, offset
        self.is_broken = False
        with _lock:
            _install()
            _ranges.add(self)


class _Installed(NamedTuple):
    libc: ctypes.CDLL
    former: ctypes.Array[ctypes.c_char]
    handler: ctypes._CFunctionType


_ranges: WeakSet[GuardedRange] = WeakSet()
_lock = make_lock()
_installed: list[_Installed] = []  #: what the handler needs for as long as the process lives


def _install() -> None:
    """Make ours the handler of SIGBUS; others, such as Ray's, may have taken its place since."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return
    if not _installed:
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.pread.restype = ctypes.c_ssize_t
        libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
        former = ctypes.create_string_buffer(_ACTION.size)
        _installed.append(_Installed(libc, former, _HANDLER(_make_handler(libc, former))))
    libc, former, handler = _installed[0]
    address = ctypes.cast(handler, ctypes.c_void_p).value
    now = ctypes.create_string_buffer(_ACTION.size)
    if libc.sigaction(int(signal.SIGBUS), None, now) == 0 and _ACTION.unpack(now)[0] != address:
        action = _ACTION.pack(address, _SA_SIGINFO | _SA_ONSTACK | _SA_NODEFER, 0)
        libc.sigaction(int(signal.SIGBUS), action, former)


def _make_handler(
    libc: ctypes.CDLL, former: ctypes.Array[ctypes.c_char]
) -> Callable[[int, int, object], None]:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    protection, size = mmap.PROT_READ | mmap.PROT_WRITE, mmap.PAGESIZE

    default = _ACTION.pack(0, 0, 0)  # SIG_DFL
    is_given_up = False

    def handle(number: int, info: int, _: object) -> None:
        nonlocal is_given_up
        address = ctypes.c_uint64.from_address(info + _FAULT_ADDRESS).value
        page = address - address % size
        for each in list(_ranges):
            if not each.start <= address < each.stop:
                continue
            if libc.mmap(page, size, protection, flags, -1, 0) == _MAP_FAILED:
                break
            place = each.offset + page - each.start
            if each.descriptor < 0 or libc.pread(each.descriptor, page, size, place) != size:
                each.is_broken = True
                libc.mmap(page, each.stop - page, protection, flags, -1, 0)
            return
        # Not ours: the read faults again, under the former handler, which may call this one.
        libc.sigaction(number, default if is_given_up else former, None)
        is_given_up = True

    return handle
