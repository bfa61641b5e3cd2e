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

#: Of the processor; the page cache holds files in such pieces where it can.
_LARGE_PAGE = 2 << 20
_MAP_FIXED_NOREPLACE = 0x100000
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
    mapped = _reserve(n_bytes, protection, offset)
    placed = _map(_address_of(mapped), n_bytes, protection, flags | _MAP_FIXED, descriptor, offset)
    if placed == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return mapped


def map_padded(descriptor: int, n_bytes: int) -> mmap.mmap:
    """A whole file in memory, with zeros after its end: ``n_bytes``, which is not less than it has.

    Writable, without effect on the file. Linux alone.

    Raises:
        OSError: no memory for the map.
    """
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    mapped = _reserve(n_bytes, protection, 0)
    held, flags = os.fstat(descriptor).st_size, mmap.MAP_PRIVATE | _MAP_FIXED
    if _map(_address_of(mapped), held, protection, flags, descriptor, 0) == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return mapped


def _reserve(n_bytes: int, protection: int, offset: int) -> mmap.mmap:
    """Anonymous memory to map a file over, where its large pages can be mapped if possible.

    That needs an address at a multiple of their size, which the kernel chooses by itself for files
    alone; random rows are then read some 5 % faster. It takes the end of the highest gap: when that
    is no such multiple, what is past it is taken first, for a moment.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    mapped = mmap.mmap(-1, n_bytes, flags, protection)
    past = (_address_of(mapped) - offset) % _LARGE_PAGE
    if n_bytes < _LARGE_PAGE or not past:
        return mapped
    stop = _address_of(mapped) + -(-n_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    mapped.close()
    above = _map(stop - past, past, 0, flags | _MAP_FIXED_NOREPLACE, -1, 0)
    try:
        return mmap.mmap(-1, n_bytes, flags, protection)
    finally:
        if above != _MAP_FAILED:
            ctypes.CDLL(None).munmap(ctypes.c_void_p(above), ctypes.c_size_t(past))


def _address_of(mapped: mmap.mmap) -> int:
    return int(np.frombuffer(mapped, np.uint8).ctypes.data)


def _map(address: int, n_bytes: int, protection: int, flags: int, descriptor: int, at: int) -> int:
    """The system call, which takes an address: the one that was mapped, or :data:`_MAP_FAILED`."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    placed: int = function(address, n_bytes, protection, flags, descriptor, at)
    return placed
