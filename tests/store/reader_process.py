"""A reader in a process of its own: opens a dictionary again and again while it is written.

    python -m tests.store.reader_process plain|featpipe PATH N

Opens it at least N times, and until it has met it in many states, so that the writer was at work
meanwhile. Prints how many opens it made, and fails at the first that does not show whole, right
rows.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import Reader, keys_of
from tests.store.samples import vectors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS_PER_TABLE = 3
N_STATES = 6


def texts_of(number: int) -> list[str]:
    return [f"{number}-{i}" for i in range(ROWS_PER_TABLE)]


def name_of(number: int) -> str:
    """Tables in groups of fifty: rewriting a group costs as much as it lists."""
    return f"{number // 50:05d}/{number:07d}"


def plain(path: str) -> Iterator[int]:
    """h5py with its defaults."""
    import h5py

    while True:
        with h5py.File(path, "r") as file:
            groups = sorted(file)
            names = sorted(file[groups[-1]]) if groups else []
            for name in names[-3:]:
                group = file[groups[-1]][name]
                assert np.array_equal(group["vectors"][:], vectors_of(texts_of(int(name))))
        yield int(names[-1]) if names else -1


def featpipe(path: str) -> Iterator[int]:
    """One reader that is refreshed, and one that is opened each time."""
    number = 0
    with Reader(path) as kept:
        while True:
            kept.refresh()
            with Reader(path) as opened:
                while name_of(number + 1) in opened:
                    number += 1
                for reader in (opened, kept):
                    if name_of(number) not in reader:
                        continue
                    table = reader.table(name_of(number))
                    rows = table.find(keys_of(texts_of(number)))
                    found = table.gather("vectors", rows)
                    assert np.array_equal(found, vectors_of(texts_of(number)))
            yield number


if __name__ == "__main__":
    kind, target, count = sys.argv[1:]
    states: set[int] = set()
    for n_opens, state in enumerate({"plain": plain, "featpipe": featpipe}[kind](target), 1):
        states.add(state)
        if n_opens >= int(count) and len(states) >= N_STATES:
            break
    sys.stdout.write(f"{n_opens}\n")
