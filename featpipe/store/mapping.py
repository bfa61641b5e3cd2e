"""Maps files into memory without holding a descriptor of them.

Python's ``mmap`` keeps a second descriptor of the file for as long as the map lives, and the map
lives as long as any array made from it: a program that keeps one vector of each of a thousand files
would run out of descriptors. Python 3.13 can leave it out; before, the file is mapped over
anonymous memory of the same size, of which ``mmap`` knows no descriptor.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

import numpy as np

_MAP_FIXED, _MAP_FAILED = 0x10, ctypes.c_void_p(-1).value


def map_file(
    descriptor: int, n_bytes: int, *, offset: int = 0, is_private: bool = False
) -> mmap.mmap:
    """``n_bytes`` of an open file from ``offset`` on, a multiple of the allocation granularity.

    Read-only and shared with the file; with ``is_private`` writable, and copied when written.

    Raises:
        ValueError: the file is shorter.
        OSError: no memory for the map.
    """
    flags = mmap.MAP_PRIVATE if is_private else mmap.MAP_SHARED
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if is_private else 0)
    if sys.version_info >= (3, 13):
        return mmap.mmap(descriptor, n_bytes, flags, protection, offset=offset, trackfd=False)
    if sys.platform != "linux":
        return mmap.mmap(descriptor, n_bytes, flags, protection, offset=offset)
    if os.fstat(descriptor).st_size < offset + n_bytes:
        raise ValueError(f"the file has fewer than {offset + n_bytes} bytes")
    mapped = mmap.mmap(-1, n_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, protection)
    address = np.frombuffer(mapped, np.uint8).ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    placed = libc.mmap(address, n_bytes, protection, flags | _MAP_FIXED, descriptor, offset)
    if placed == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return mapped
