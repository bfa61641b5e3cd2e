"""What the children of bench_engine.py and chaos_engine.py do; peers import it as well."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

#: What a template imports for `Heavy`.
HEAVY = ("torch", "transformers:BertModel", "transformers:BertConfig")


#: A vector of 768 float32.
ROW_BYTES = 3072

#: Blocks that are written before the clock starts.
WARM_BLOCKS = 4


def square(number: int) -> int:
    """For the peers."""
    return number * number


class Square:
    """For us."""

    def run(self, number: int) -> int:
        """One task."""
        return number * number


class Idle:
    """Has nothing to import and nothing to do."""

    def run(self, payload: object) -> object:
        """One task."""
        return payload


class Sleeper:
    """Is busy for as long as it is told."""

    def run(self, seconds: float) -> float:
        """One task."""
        time.sleep(seconds)
        return seconds


class Maker:
    """Gives arrays of one size, whose bytes say which task they belong to."""

    def __init__(self, n_bytes: int) -> None:
        import numpy as np

        # Not zeros: they would all be read from the one page that the kernel keeps for them.
        n_rows = 1 if n_bytes % ROW_BYTES else n_bytes // ROW_BYTES
        self.array = np.full((n_rows, n_bytes // n_rows), 7, np.uint8)

    def run(self, number: int) -> Any:  # noqa: ANN401  # an array, without importing numpy
        """One task."""
        self.array[0, 0] = self.array[-1, -1] = number % 251
        return self.array


def fill_queue(queue: Any, n_bytes: int, n: int) -> None:  # noqa: ANN401  # multiprocessing's
    """The maker of the peer."""
    maker = Maker(n_bytes)
    for number in range(n):
        # The queue pickles in a thread of its own: what is put must not change afterwards.
        queue.put(maker.run(number).copy())
    queue.close()
    queue.join_thread()


def drain_queue(queue: Any, sink: str, path: str, n: int, took: Any) -> None:  # noqa: ANN401
    """The writer of the peer: seconds that ``n`` blocks took go to the connection ``took``."""
    target = globals()[sink](path)
    for _ in range(WARM_BLOCKS):
        target.run(queue.get())
    started = time.perf_counter()
    for _ in range(n):
        target.run(queue.get())
    took.send(time.perf_counter() - started)
    target.close()


class FileSink:
    """Appends arrays to a file, as far as the page cache: the least that writing can cost."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("wb", buffering=0)  # noqa: SIM115  # open for the role's life

    def run(self, array: Any) -> int:  # noqa: ANN401  # as above
        """One task."""
        return self.file.write(array)

    def close(self) -> None:
        """Nothing is waiting to be written."""
        self.file.close()


class CacheSink:
    """Appends rows to a table of a cache, with checksums and a durable commit for every task.

    That is what the writer of a build does: an answer means that the rows survive anything.
    """

    commit_bytes = 0

    def __init__(self, path: str) -> None:
        from featpipe.store import Column, TableSpec, Writer

        self.writer = Writer.open(Path(path))
        spec = TableSpec((Column("vectors", "uint8", (ROW_BYTES,)),), keyed=False, attributes={})
        self.table = self.writer.table("vectors", spec)
        self.n_bytes = 0

    def run(self, array: Any) -> int:  # noqa: ANN401  # as above
        """One task."""
        n_rows: int = self.table.append({"vectors": array})
        self.n_bytes += array.nbytes
        if self.n_bytes >= self.commit_bytes:
            self.n_bytes = 0
            self.writer.commit()
        return n_rows

    def close(self) -> None:
        """What is not yet durable becomes so."""
        self.writer.close()


class LooseCacheSink(CacheSink):
    """The same with a commit for every few mebibytes, as if many small tasks were one."""

    commit_bytes = 3 << 20


def write_locally(sink: str, path: str, n_bytes: int, n: int) -> float:
    """MB/s of making and writing the blocks in one process: the same calls without an engine."""
    maker = Maker(n_bytes)
    target = globals()[sink](path)
    for number in range(WARM_BLOCKS):
        target.run(maker.run(number))
    started = time.perf_counter()
    for number in range(n):
        target.run(maker.run(number))
    seconds = time.perf_counter() - started
    target.close()
    return n * n_bytes / seconds / 1e6


class Heavy:
    """A worker with a small model in it."""

    def __init__(self) -> None:
        from transformers import BertConfig, BertModel

        config = BertConfig(
            vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2
        )
        self.model = BertModel(config)

    def run(self, _: object) -> int:
        """One task."""
        return os.getpid()
