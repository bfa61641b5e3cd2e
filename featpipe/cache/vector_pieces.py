"""The vectors of a table as float32: in blocks, or piece by piece in several threads.

numpy releases the interpreter's lock in its loops, so that threads share the cores. Memory is one
piece a thread, whatever the size of the table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from featpipe.pool.devices import usable_cores
from featpipe.store.float16 import widen
from featpipe.store.schema import BFLOAT16, from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from featpipe.store import TableReader
    from featpipe.store.checksum import AnyArray

    Rows = NDArray[np.int64]
    Vectors = NDArray[np.float32]
    #: Takes places among the asked rows, and their vectors (n, dim), which are valid until it ends.
    Take = Callable[[slice, Vectors], None]

#: Values read at a time by a thread, and those of a piece: a float32 piece stays in its cache.
_READ_VALUES, _PIECE_VALUES = 1 << 21, 1 << 18
#: A further thread costs more than it gains for fewer values than these.
_THREAD_VALUES = 1 << 22
_MOST_THREADS = 8


def stored_blocks(table: TableReader, rows: Rows, n_values: int) -> Iterator[tuple[Rows, AnyArray]]:
    """Rows and their vectors as stored (bfloat16 as float32), about ``n_values`` at a time.

    Args:
        table: of vectors.
        rows: ascending.
        n_values: of a block.

    """
    column = table.spec.columns[0]
    step = max(1, n_values // column.shape[0])
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        if len(some) != some[-1] - some[0] + 1:
            yield some, table.gather("vectors", some)
            continue
        block = table.slice("vectors", int(some[0]), int(some[-1]) + 1)
        yield some, from_bfloat16(block) if column.dtype == BFLOAT16 else block


def as_float32(block: AnyArray, out: Vectors | None = None) -> Vectors:
    """A block as float32, exactly; itself, or a copy in ``out`` (as many rows at least)."""
    if block.dtype == np.float16:
        return widen(block, None if out is None else out[: len(block)])
    return np.asarray(block, np.float32)


def for_each_piece(table: TableReader, rows: Rows, take: Take) -> None:
    """Call ``take`` with all vectors of these rows, in pieces, in any order and by several threads.

    Args:
        table: of vectors.
        rows: ascending.
        take: safe between threads for different places.

    """
    dim = int(table.spec.columns[0].shape[0])
    n_threads = min(usable_cores(), _MOST_THREADS, len(rows) * dim // _THREAD_VALUES + 1)

    def run(number: int) -> None:
        first, last = (len(rows) * at // n_threads for at in (number, number + 1))
        _walk(table, rows[first:last], first, take)

    if n_threads == 1:
        run(0)
        return
    with ThreadPoolExecutor(n_threads) as threads:
        list(threads.map(run, range(n_threads)))


def _walk(table: TableReader, rows: Rows, at: int, take: Take) -> None:
    dim = int(table.spec.columns[0].shape[0])
    step = max(1, _PIECE_VALUES // dim)
    buffer = np.empty((step, dim), np.float32)
    for _, block in stored_blocks(table, rows, _READ_VALUES):
        for start in range(0, len(block), step):
            piece = as_float32(block[start : start + step], buffer)
            take(slice(at, at + len(piece)), piece)
            at += len(piece)
