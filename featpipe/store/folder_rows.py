"""Row numbers of a table whose rows lie in several files."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray

    Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segments:
    """Runs of rows: segment i has the rows from ``firsts[i]`` on of file ``files[i]``.

    ``starts`` (n + 1,) are the numbers of their first rows in the whole table. A file has a further
    segment for rows that it gained while it was read. Replaced as a whole.
    """

    starts: Rows
    files: Rows
    firsts: Rows
    known: dict[int, int]  #: rows by file
    start_list: list[int]

    @classmethod
    def of(cls, runs: Sequence[tuple[int, int, int]]) -> Segments:
        """From (file, first row, one past the last row) in their order."""
        files, firsts, stops = np.array(runs or np.zeros((0, 3)), np.int64).T
        starts = np.concatenate([[0], np.cumsum(stops - firsts)])
        known: dict[int, int] = {}
        for file, _, stop in runs:
            known[file] = max(stop, known.get(file, 0))
        return cls(starts, files, firsts, known, starts.tolist())

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return self.start_list[-1]

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """As :meth:`of` takes them."""
        sizes = np.diff(self.starts)
        return list(
            zip(
                self.files.tolist(),
                self.firsts.tolist(),
                (self.firsts + sizes).tolist(),
                strict=True,
            )
        )

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """(file, first row, one past the last, number of the first) of rows start:stop."""
        at = bisect_right(self.start_list, start) - 1
        while start < stop:
            end = min(stop, self.start_list[at + 1])
            first = int(self.firsts[at]) + start - self.start_list[at]
            yield int(self.files[at]), first, first + end - start, start
            start, at = end, at + 1

    def locate_one(self, row: int) -> tuple[int, int]:
        """The file of one row, and its number there."""
        at = bisect_right(self.start_list, row) - 1
        return int(self.files[at]), row - self.start_list[at] + int(self.firsts[at])

    def locate(self, rows: Rows) -> tuple[Rows, Rows]:
        """The file of each row, and its number there."""
        at = np.searchsorted(self.starts, rows, side="right") - 1
        return self.files[at], rows - self.starts[at] + self.firsts[at]

    def numbers_of(self, files: Rows, rows: Rows) -> Rows:
        """As :meth:`numbers`, of rows in several files."""
        if len(self.known) != len(self.files):  # some have several runs
            found = np.full(len(rows), -1, np.int64)
            for file, at in grouped(files):
                found[at] = self.numbers(file, rows[at])
            return found
        n = max(int(self.files.max(initial=-1)), int(files.max(initial=-1))) + 1
        starts, sizes = np.zeros(n, np.int64), np.zeros(n, np.int64)
        starts[self.files] = self.starts[:-1] - self.firsts
        sizes[self.files] = self.firsts + np.diff(self.starts)
        return np.where(rows < sizes[files], rows + starts[files], -1)

    def numbers(self, file: int, rows: Rows) -> Rows:
        """The numbers of a file's rows in the whole table; -1 for those not in it yet."""
        found = np.full(len(rows), -1, np.int64)
        for at in np.flatnonzero(self.files == file).tolist():
            first = int(self.firsts[at])
            own = rows - first
            is_here = (own >= 0) & (own < self.start_list[at + 1] - self.start_list[at])
            found[is_here] = own[is_here] + self.start_list[at]
        return found


def cut_runs(
    runs: Sequence[tuple[int, int, int]], is_kept: NDArray[np.bool_]
) -> list[tuple[int, int, int]]:
    """Runs of the kept rows; ``is_kept`` is of all rows of ``runs``, one run after the other."""
    found, at = [], 0
    for number, first, stop in runs:
        kept = is_kept[at : at + stop - first].view(np.int8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], kept, [0]]))) + first
        pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        found += [(number, begin, end) for begin, end in pairs]
        at += stop - first
    return found


def grouped(numbers: Rows) -> Iterator[tuple[int, Rows]]:
    """(number, places where it stands) of each number that occurs, ascending."""
    if not len(numbers):
        return
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order], append=-1)) + 1
    start = 0
    for end in ends.tolist():
        yield int(numbers[order[start]]), order[start:end]
        start = end


def in_order(places: Rows, values: AnyArray, lengths: Rows) -> tuple[AnyArray, Rows]:
    """Values of rows, given one after the other, in the order of the rows' ``places``."""
    if (np.diff(places) == 1).all():
        return values, lengths
    first = np.empty_like(lengths)
    sorted_lengths = np.empty_like(lengths)
    first[places] = np.cumsum(lengths) - lengths
    sorted_lengths[places] = lengths
    before = np.cumsum(sorted_lengths) - sorted_lengths
    at = np.repeat(first - before, sorted_lengths) + np.arange(len(values))
    return values[at], sorted_lengths
