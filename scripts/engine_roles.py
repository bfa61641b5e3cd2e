"""What the children of bench_engine.py and chaos_engine.py do; peers import it as well."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

#: What a template imports for `Heavy`.
HEAVY = ("torch", "transformers:BertModel", "transformers:BertConfig")


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

        self.array = np.zeros(n_bytes, np.uint8)

    def run(self, number: int) -> Any:  # noqa: ANN401  # an array, without importing numpy
        """One task."""
        self.array[0] = self.array[-1] = number % 251
        return self.array


def fill_queue(queue: Any, n_bytes: int, n: int) -> None:  # noqa: ANN401  # multiprocessing's
    """The maker of the peer."""
    maker = Maker(n_bytes)
    for number in range(n):
        # The queue pickles in a thread of its own: what is put must not change afterwards.
        queue.put(maker.run(number).copy())
    queue.close()
    queue.join_thread()


class Writer:
    """Appends arrays to a file."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("wb", buffering=0)  # noqa: SIM115  # open for the role's life

    def run(self, array: Any) -> int:  # noqa: ANN401  # as above
        """One task."""
        return self.file.write(array)


def write_locally(path: str, n_bytes: int, n: int) -> float:
    """MB/s of making and writing the blocks in one process."""
    maker = Maker(n_bytes)
    with Path(path).open("wb", buffering=0) as file:
        started = time.perf_counter()
        file.writelines(maker.run(number) for number in range(n))
        return n * n_bytes / (time.perf_counter() - started) / 1e6


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
