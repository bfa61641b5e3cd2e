"""Settings of a process that encodes, by which it reuses the memory of one pack for the next.

A forward allocates and frees the same dozens of megabytes for every layer of every pack. By default
the C library returns each block to the kernel and receives it again as fresh pages, which costs a
fault and a zeroing per page: for attention over long sequences as much time as the arithmetic.
Imports no torch.
"""

from __future__ import annotations

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

#: Free memory at the end of the heap that stays with the process.
_KEPT_BYTES = 256 << 20

#: Smaller blocks come from the heap; glibc allows no larger limit.
_HEAP_BLOCK_BYTES = 32 << 20

#: Environment of processes that encode, set before they start. oneDNN caches a kernel with its
#: scratch memory for every shape it meets, by default 1,000 of them: a worker grew by 0.4 MB with
#: every pack of another size, to 1.5 GB. A pack of mixed lengths needs up to 200 kernels in every
#: layer; with room for 64 they were built anew for each layer, which took a fifth of the time.
SMALL_KERNEL_CACHES = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256"}

#: The same for workers of a service, several of which run beside each other for months.
SMALLEST_KERNEL_CACHES = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}

_USERS_CHOICE = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Let this whole process keep up to 256 MB of freed memory; return whether it does.

    False where the user set glibc's options in the environment, and without glibc.
    """
    if any(name in os.environ for name in _USERS_CHOICE):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    options = ((_M_TRIM_THRESHOLD, _KEPT_BYTES), (_M_MMAP_THRESHOLD, _HEAP_BLOCK_BYTES))
    return all(set_option(option, value) == 1 for option, value in options)
