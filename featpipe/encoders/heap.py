"""Keeping the memory of one pack for the next.

A forward allocates and frees the same dozens of megabytes for every layer of every pack. By its
defaults the C library hands each of them back to the kernel and gets it again a moment later as
fresh pages, each of which costs a fault and a zeroing: for attention over long sequences as much
time as the arithmetic.
"""

from __future__ import annotations

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

#: Free memory at the end of the heap that stays with the process.
_KEPT_BYTES = 256 << 20

#: Blocks below this come from the heap; glibc allows no more.
_HEAP_BLOCK_BYTES = 32 << 20

#: For processes that encode, set before they start: oneDNN keeps a kernel with its scratch memory
#: for every shape it met, a thousand of them by default, and a worker grew by 0.4 MB with every
#: pack of another size, to 1.5 GB. A pack of mixed lengths needs up to two hundred, layer after
#: layer: with room for only 64 they were made anew for each, a fifth of the time.
SMALL_KERNEL_CACHES = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256"}

_USERS_CHOICE = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Let this process keep up to 256 MB of freed memory; whether the C library can.

    For the whole process. What a user has set in the environment stays.
    """
    if any(name in os.environ for name in _USERS_CHOICE):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    return all(
        set_option(option, value) == 1
        for option, value in (
            (_M_TRIM_THRESHOLD, _KEPT_BYTES),
            (_M_MMAP_THRESHOLD, _HEAP_BLOCK_BYTES),
        )
    )
