"""Sequences of many lengths as packs of a constant number of tokens, without padding.

A pack is sorted by length: sequences of equal length lie side by side, and attention runs over them
as one plain batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from featpipe.encoders.tokens import number_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from featpipe.encoders.tokens import Ids, Ints

Group: TypeAlias = tuple[int, int, int]
"""Sequences of equal length: (first token, number of sequences, their length)."""

#: Tokens below which a pack is not worth a thread of its own.
LEAST_SHARE = 512


@dataclass(frozen=True, slots=True)
class Pack:
    """Sequences that go through a model in one call, end to end.

    Shapes: sequences and lengths (s,), ids and positions (t,).
    """

    sequences: Ints
    """Numbers of the sequences, in the order of their tokens."""
    lengths: Ints
    """Tokens of each, special ones included."""
    ids: Ids
    positions: Ints
    """0 to length - 1 in each sequence."""
    n_rows: int = 0
    """Rows to compute at least; those beyond the tokens are of no sequence."""

    @property
    def groups(self) -> list[Group]:
        """Runs of sequences of equal length."""
        edges = np.flatnonzero(np.diff(self.lengths, prepend=-1))
        counts = np.diff(edges, append=len(self.lengths))
        sizes = self.lengths[edges]
        starts = np.cumsum(counts * sizes) - counts * sizes
        return list(zip(starts.tolist(), counts.tolist(), sizes.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Sequences:
    """Slices of one flat array of ids, each to be put between special tokens."""

    ids: Ids
    start: Ints
    length: Ints
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]

    @property
    def lengths_with_special(self) -> Ints:
        """Tokens of each sequence, special ones included."""
        return self.length + (len(self.prefix) + len(self.suffix))

    def pack(self, sequences: Ints, *, n_rows: int = 0) -> Pack:
        """Lay the chosen sequences end to end."""
        pack = self._pack(sequences)
        return replace(pack, n_rows=n_rows) if n_rows else pack

    def _pack(self, sequences: Ints) -> Pack:
        if len(sequences) == 1:
            return self._pack_one(sequences)
        lengths = self.lengths_with_special[sequences]
        first = np.cumsum(lengths) - lengths
        positions = number_within(lengths)
        ids = np.empty(len(positions), np.int32)
        n_before = len(self.prefix)
        body = self.length[sequences]
        source = np.repeat(self.start[sequences] - n_before, lengths) + positions
        is_body = (positions >= n_before) & (positions < np.repeat(n_before + body, lengths))
        ids[is_body] = self.ids[source[is_body]]
        for number, token in enumerate(self.prefix):
            ids[first + number] = token
        for number, token in enumerate(self.suffix):
            ids[first + n_before + body + number] = token
        return Pack(sequences, lengths, ids, positions)

    def _pack_one(self, sequences: Ints) -> Pack:
        """As `pack`, in a third of its time: a query is one sequence."""
        number = int(sequences[0])
        first = int(self.start[number])
        body = self.ids[first : first + int(self.length[number])].tolist()
        ids = np.array([*self.prefix, *body, *self.suffix], np.int32)
        return Pack(sequences, np.array([len(ids)]), ids, np.arange(len(ids)))


def extend(numbers: npt.NDArray[np.integer], n_rows: int) -> npt.NDArray[np.integer]:
    """`numbers`, and zeros behind them up to `n_rows`."""
    n_more = n_rows - len(numbers)
    return numbers if n_more <= 0 else np.concatenate([numbers, np.zeros(n_more, numbers.dtype)])


def cut_portions(texts: Sequence[str], *, first: int, most: int) -> Iterator[Sequence[str]]:
    """Cut `texts` where they stand into portions of `first` characters, twice as many, and so on.

    The last ones have `most`, or a single text that is longer. The first is small, so that a card
    is given work soon.
    """
    start = stop = size = 0
    for text in texts:
        stop += 1
        size += len(text)
        if size >= first:
            yield texts[start:stop]
            start, size, first = stop, 0, min(2 * first, most)
    if start < stop:
        yield texts[start:]


def plan_packs(lengths: Ints, *, budget: int, shares: int = 1) -> list[Ints]:
    """Choose the sequences of each pack: longest first, so that memory peaks at the start.

    A pack holds at most `budget` tokens, or one sequence that is longer. With ``shares > 1`` and
    enough tokens, the number of packs is a multiple of `shares` and the packs are alike; they then
    exceed the budget by less than one sequence. Equal lengths stay in the order given.

    Shapes: lengths (sequences,) with special tokens -> arrays of places in it, none empty.
    """
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    total = int(ends[-1]) if len(ends) else 0
    if shares > 1 and total >= shares * LEAST_SHARE:
        return _split_alike(order, ends, shares * -(-total // (budget * shares)))
    packs = []
    at = 0
    while at < len(order):
        done = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, done + budget, side="right")))
        packs.append(order[at:stop])
        at = stop
    return packs


def _split_alike(order: Ints, ends: Ints, n_packs: int) -> list[Ints]:
    """Packs of about as many tokens each."""
    targets = ends[-1] * np.arange(1, n_packs) // n_packs
    stops = np.searchsorted(ends, targets, side="left") + 1
    return [part for part in np.split(order, stops) if len(part)]
