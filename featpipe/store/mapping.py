"""A file seen as memory: one read-only map, and arrays that are views of it."""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import UnreadableDictionary
from featpipe.store import format as hdf5

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class Mapping:
    """The first ``size`` bytes of an open file, mapped read-only and shared.

    Arrays made from it keep the map alive, so that a view outlives its reader. The file must not be
    truncated below ``size``: readers check before they touch (see :meth:`Reader.refresh`).
    """

    def __init__(self, descriptor: int, name: object) -> None:
        self.size = os.fstat(descriptor).st_size
        if self.size < hdf5.SUPERBLOCK_BYTES:
            raise UnreadableDictionary(f"{name} is not an HDF5 file: it has {self.size} bytes")
        self.bytes = mmap.mmap(descriptor, self.size, mmap.MAP_SHARED, mmap.PROT_READ)
        self.buffer = memoryview(self.bytes)

    def rows(self, dtype: np.dtype[Any], shape: tuple[int, ...], row_bytes: int) -> NDArray[Any]:
        """The whole file as rows of this type: (size // row_bytes, *shape), a view."""
        return np.ndarray((self.size // row_bytes, *shape), dtype, buffer=self.bytes)

    @contextmanager
    def fetching(
        self, descriptor: int, places: NDArray[np.int64], row_bytes: int
    ) -> Iterator[None]:
        """Have the disk read these rows of ``row_bytes``, all at once, in the order they lie in.

        Without it a random gather waits for one page after the other; and the kernel would read
        ahead around each, which here is wasted.
        """
        advise = getattr(os, "posix_fadvise", None)
        if advise is None or not len(places):
            yield
            return
        starts = np.sort(places) * row_bytes
        is_apart = starts[1:] - starts[:-1] > row_bytes + mmap.PAGESIZE
        first = starts[np.concatenate([[True], is_apart])]
        last = starts[np.concatenate([is_apart, [True]])] + row_bytes
        for start, stop in zip(first.tolist(), last.tolist(), strict=True):
            advise(descriptor, start, stop - start, os.POSIX_FADV_WILLNEED)
        self.bytes.madvise(mmap.MADV_RANDOM)
        try:
            yield
        finally:
            self.bytes.madvise(mmap.MADV_NORMAL)
